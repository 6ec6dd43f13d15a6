//! The stand-in for CUDA's driver, as suites use it that run on both stand-ins.

/// What differs between the stand-ins for CUDA's driver and for HIP.
pub mod face {
    pub use resident_stand_in::*;

    use resident::{Device, GpuSource, Result};

    /// The call that `fail_any` leaves out.
    pub const CAPTURE_MODE: &str = "cuThreadExchangeStreamCaptureMode";
    /// How the names of calls that load modules begin.
    pub const MODULE_CALLS: &str = "cuModule";
    /// What the error of a lost first device says.
    pub const LOST_SAYS: [&str; 2] = ["cuda:0", "compute-sanitizer"];

    /// The settings of the simulated machine.
    pub fn settings() -> Settings {
        Settings::new()
    }

    /// Opens a device.
    ///
    /// # Errors
    ///
    /// As [`Device::cuda`].
    pub fn device(ordinal: usize) -> Result<Device> {
        Device::cuda(ordinal)
    }

    /// Loads the stand-in for the compiler.
    pub fn load_compiler() {
        resident_stand_in_nvrtc::load().unwrap_or_else(|fault| panic!("{fault}"));
    }

    /// A kernel as PTX: its parameters, without code.
    #[must_use]
    pub fn code(kernel: &str, parameters: &[Parameter]) -> GpuSource {
        GpuSource::ptx(ptx(kernel, parameters))
    }

    /// As [`code`], as backends take it.
    #[must_use]
    pub fn source(kernel: &str, parameters: &[Parameter]) -> resident_backend::GpuSource {
        resident_backend::GpuSource::ptx(ptx(kernel, parameters))
    }

    fn ptx(kernel: &str, parameters: &[Parameter]) -> String {
        let slot = |(index, parameter): (usize, &Parameter)| match parameter {
            Parameter::View { dimensions, .. } => {
                format!(".param .align 8 .b8 p{index}[{}]", 8 + 16 * dimensions)
            }
            _ => format!(".param .u32 p{index}"),
        };
        let slots: Vec<String> = parameters.iter().enumerate().map(slot).collect();
        let head = ".version 7.0\n.target sm_50\n.address_size 64\n";
        format!("{head}.visible .entry {kernel}(\n{}\n)\n{{\nret;\n}}\n", slots.join(",\n"))
    }
}

// Included for each of the two stand-ins: its statics say what the process knows of one of them.
#[path = "driver.rs"]
pub mod driver;
