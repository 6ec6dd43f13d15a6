//! The stand-in for AMD's HIP, as suites use it that run on both stand-ins.

/// What differs between the stand-ins for CUDA's driver and for HIP.
pub mod face {
    pub use resident_stand_in_hip::*;

    use resident::{Device, GpuSource, Result};

    /// The call that `fail_any` leaves out.
    pub const CAPTURE_MODE: &str = "hipThreadExchangeStreamCaptureMode";
    /// How the names of calls that load modules begin.
    pub const MODULE_CALLS: &str = "hipModule";
    /// What the error of a lost first device says.
    pub const LOST_SAYS: [&str; 2] = ["hip:0", "RESIDENT_SANITIZE=1"];

    /// If this variable is set, the machine has HIP 5.2: no memory pools, no host functions behind
    /// work.
    pub const OLDER: &str = "RESIDENT_TEST_OLDER_HIP";

    /// The settings of the simulated machine.
    pub fn settings() -> Settings {
        if std::env::var_os(OLDER).is_none() {
            return Settings::new();
        }
        Settings::new().without_pools().version(50_221_153)
    }

    /// Opens a device.
    ///
    /// # Errors
    ///
    /// As [`Device::hip`].
    pub fn device(ordinal: usize) -> Result<Device> {
        Device::hip(ordinal)
    }

    /// Loads the stand-in for the compiler.
    pub fn load_compiler() {
        resident_stand_in_hiprtc::load().unwrap_or_else(|fault| panic!("{fault}"));
    }

    /// A kernel as a code object: its parameters, without code.
    #[must_use]
    pub fn code(kernel: &str, parameters: &[Parameter]) -> GpuSource {
        GpuSource::hsaco(image(kernel, parameters))
    }

    /// As [`code`], as backends take it.
    #[must_use]
    pub fn source(kernel: &str, parameters: &[Parameter]) -> resident_backend::GpuSource {
        resident_backend::GpuSource::hsaco(image(kernel, parameters))
    }

    fn image(kernel: &str, parameters: &[Parameter]) -> Vec<u8> {
        let slot = |parameter: &Parameter| match parameter {
            Parameter::View { dimensions, .. } => (8 + 16 * *dimensions as usize, 8, Kind::Value),
            _ => (4, 4, Kind::Value),
        };
        let parameters = parameters.iter().map(slot).collect();
        let described = Described { name: kernel.to_owned(), parameters, threads_max: 1024 };
        let image = code_object("gfx90a", &[described], &[]);
        image.unwrap_or_else(|fault| panic!("{fault}"))
    }
}

// Included for each of the two stand-ins: its statics say what the process knows of one of them.
#[allow(clippy::duplicate_mod, reason = "see above")]
#[path = "driver.rs"]
pub mod driver;
