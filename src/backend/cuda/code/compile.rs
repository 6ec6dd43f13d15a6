//! CUDA C to machine code and PTX, by NVRTC.

use std::ffi::c_int;

use super::compilation::{Compilation, c_string};
use super::nvrtc::Nvrtc;
use super::{options, ptx};

/// What came out: code for the driver, and what is known of it. There is machine code or PTX, or
/// both.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Compiled {
    /// Machine code for one architecture. Empty where there is none.
    pub(super) cubin: Vec<u8>,
    /// A text that the driver compiles for its device. Empty where there is none.
    pub(super) ptx: Vec<u8>,
    /// Under which name the code has the function that a name expression stands for.
    pub(super) lowered_name: Option<String>,
}

impl Compiled {
    /// What the driver may be given, the best first, and what that is.
    pub(super) fn images(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        [("machine code", &*self.cubin), ("PTX", &*self.ptx)]
            .into_iter()
            .filter(|(_, image)| !image.is_empty())
    }

    /// The heads of all kernels, as PTX declares them.
    pub(super) fn declarations(&self) -> String {
        ptx::declarations(&String::from_utf8_lossy(&self.ptx))
    }
}

/// What is compiled, and for what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    pub(super) text: String,
    /// What the log calls it.
    pub(super) file: String,
    /// With one that says what to compile for.
    pub(super) options: Vec<String>,
    /// What that one says.
    pub(super) target: String,
    /// Of the function to run, where it is no `extern "C"` one: `scale<float>`.
    pub(super) expression: Option<String>,
}

/// An architecture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// Machine code for compute capability 90, or what.
    Machine(u32),
    /// PTX for an older architecture than the device's, the newest that the compiler knows: the
    /// driver compiles it further.
    Virtual(u32),
}

impl Target {
    /// As NVRTC's option has it.
    pub(super) fn name(self) -> String {
        match self {
            Self::Machine(capability) => format!("sm_{capability}"),
            Self::Virtual(capability) => format!("compute_{capability}"),
        }
    }

    /// The best for a device among those that a compiler knows.
    fn among(supported: &[u32], (major, minor): (u32, u32)) -> Result<Self, String> {
        let capability = 10 * major + minor;
        if supported.contains(&capability) {
            return Ok(Self::Machine(capability));
        }
        let older = supported.iter().copied().filter(|supported| *supported < capability).max();
        older.map(Self::Virtual).ok_or_else(|| {
            let oldest = supported.iter().min().copied().unwrap_or_default();
            format!("it compiles for sm_{oldest} and later, and the device is sm_{capability}: use an older NVRTC, or `CudaSource::ptx` or `cubin`")
        })
    }
}

/// The compiler that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compiler {
    nvrtc: &'static Nvrtc,
    version: (i32, i32),
}

impl Compiler {
    /// Looks for NVRTC, for a driver of this version.
    pub(super) fn find(driver_version: i32) -> Result<Self, String> {
        let nvrtc = Nvrtc::find(driver_version)?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the library writes two `int`s.
        nvrtc.check(unsafe { (nvrtc.version)(&raw mut major, &raw mut minor) })?;
        Ok(Self { nvrtc, version: (major, minor) })
    }

    /// `13.5`
    pub(super) fn version(self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }

    /// What to compile for, for a device of that compute capability.
    pub(super) fn target(self, capability: (u32, u32)) -> Result<Target, String> {
        Target::among(&self.supported()?, capability)
            .map_err(|fault| format!("NVRTC {} was found, but {fault}", self.version()))
    }

    /// Compute capabilities, as 90.
    pub(super) fn supported(self) -> Result<Vec<u32>, String> {
        let mut count = 0;
        // SAFETY: the library writes one `int`.
        self.nvrtc.check(unsafe { (self.nvrtc.architecture_count)(&raw mut count) })?;
        let mut supported: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or_default()];
        // SAFETY: there is room for as many as the library has just said that there are.
        self.nvrtc.check(unsafe { (self.nvrtc.architectures)(supported.as_mut_ptr()) })?;
        Ok(supported.into_iter().filter_map(|capability| u32::try_from(capability).ok()).collect())
    }

    /// Compiles; or says what is wrong, as the compiler's log does.
    pub(super) fn compile(self, unit: &Unit) -> Result<Compiled, String> {
        let compilation = Compilation::new(self.nvrtc, &unit.text, &unit.file)?;
        let expression = unit.expression.as_deref().map(c_string).transpose()?;
        if let Some(expression) = &expression {
            compilation.add(expression)?;
        }
        let refused = |log| {
            format!(
                "NVRTC {} for {} refuses the source, correct it:\n{log}",
                self.version(),
                unit.target
            )
        };
        compilation.run(&unit.options).map_err(refused)?;
        let (cubin, ptx) = (compilation.cubin()?, compilation.ptx()?);
        if cubin.is_empty() && ptx.is_empty() {
            return Err(self.nothing_made(unit));
        }
        let lowered_name =
            expression.map(|expression| compilation.lowered_name(&expression)).transpose()?;
        Ok(Compiled { cubin, ptx, lowered_name })
    }

    /// A compilation that went well, and left nothing for the driver.
    #[cold]
    fn nothing_made(self, unit: &Unit) -> String {
        let what = format!(
            "NVRTC {} for {} made neither machine code nor PTX",
            self.version(),
            unit.target
        );
        match options::without_code(&unit.options) {
            Some(option) => format!(
                "{what}, since the option `{option}` asks for something else, which no driver loads; leave it out"
            ),
            None => format!(
                "{what} with the options {}; leave out the one that asks for something else",
                unit.options.join(" ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn a_device_gets_machine_code_or_the_newest_older_ptx() {
        let supported = [75, 80, 86, 90, 100, 120];
        assert_eq!(Target::among(&supported, (9, 0)), Ok(Target::Machine(90)));
        assert_eq!(Target::among(&supported, (8, 9)), Ok(Target::Virtual(86)));
        assert_eq!(Target::among(&supported, (13, 0)), Ok(Target::Virtual(120)));
        let too_old = Target::among(&supported, (7, 0)).expect_err("older than all");
        assert!(too_old.contains("sm_75 and later, and the device is sm_70"), "{too_old}");
        assert_eq!(
            [Target::Machine(90).name(), Target::Virtual(86).name()],
            ["sm_90", "compute_86"]
        );
    }
}
