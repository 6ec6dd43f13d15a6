//! Compiles CUDA C to machine code and PTX, with NVRTC or hiprtc.

use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use super::compilation::{Compilation, c_string};
use super::compiler_library::{CompilerLibrary, Product};
#[cfg(feature = "hip")]
use super::hiprtc;
use super::missing_header;
#[cfg(feature = "cuda")]
use super::nvrtc;
use super::ptx;
use crate::context::{Architecture, Context};
use crate::driver::Driver;
#[cfg(feature = "cuda")]
use crate::driver::cuda;
use resident_backend::DeviceKind;
use resident_code::cache::Parts;
use resident_code::code_object;
use resident_code::headers::Header;

/// Compiled code: machine code, PTX, or both.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Compiled {
    /// Machine code for one architecture. May be empty.
    pub(super) machine_code: Vec<u8>,
    /// PTX text, which the driver compiles for its device. May be empty.
    pub(super) ptx: Vec<u8>,
    /// The name expressions, and the lowered name of the function that each selects.
    pub(super) lowered: Lowered,
    /// What the compiler said: warnings.
    pub(super) log: String,
}

/// The name in the code of the function that an entry names: the lowered one of a name expression,
/// or the entry itself, or the only function of C++ with this name and no namespace.
pub(super) fn name_in_code<'a>(
    lowered: &'a Lowered,
    kernel_names: &'a [String],
    entry: &'a str,
) -> &'a str {
    if let Some((_, name)) = lowered.iter().find(|(expression, _)| expression == entry) {
        return name;
    }
    let prefix = format!("_Z{}{entry}", entry.len());
    let is_its =
        |name: &&String| name.strip_prefix(&prefix).is_some_and(|rest| !rest.starts_with('I'));
    let mut of_cpp = kernel_names.iter().filter(is_its);
    match (kernel_names.iter().any(|name| name == entry), of_cpp.next(), of_cpp.next()) {
        (false, Some(only), None) => only,
        _ => entry,
    }
}

/// Name expressions with their lowered names.
pub(super) type Lowered = Vec<(String, String)>;

/// What separates the two in the disk cache, and one pair from the next.
const LOWERED_AS: char = '\u{1f}';
const NEXT: char = '\u{1e}';

impl Compiled {
    pub(super) fn ptx(text: &str) -> Self {
        Self { ptx: text.as_bytes().to_vec(), ..Self::default() }
    }

    pub(super) fn machine_code(image: &[u8]) -> Self {
        Self { machine_code: image.to_vec(), ..Self::default() }
    }

    /// The code as the disk cache stores it.
    pub(super) fn parts(&self) -> Parts<4> {
        let pair =
            |(expression, name): &(String, String)| format!("{expression}{LOWERED_AS}{name}");
        let pairs: Vec<String> = self.lowered.iter().map(pair).collect();
        let pairs = pairs.join(&NEXT.to_string()).into_bytes();
        [self.machine_code.clone(), self.ptx.clone(), pairs, self.log.clone().into_bytes()]
    }

    /// The code that the disk cache returned; `None` if there is none.
    pub(super) fn from_parts([machine_code, ptx, pairs, log]: Parts<4>) -> Option<Self> {
        let pairs = String::from_utf8(pairs).ok()?;
        let pairs = pairs.split(NEXT).filter_map(|pair| pair.split_once(LOWERED_AS));
        let lowered = pairs.map(|(one, other)| (one.to_owned(), other.to_owned())).collect();
        let is_code = !machine_code.is_empty() || !ptx.is_empty();
        let log = String::from_utf8_lossy(&log).into_owned();
        is_code.then_some(Self { machine_code, ptx, lowered, log })
    }

    /// The images that the driver can load, the best first, each with a name for messages.
    pub(super) fn images(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        [("machine code", &*self.machine_code), ("PTX", &*self.ptx)]
            .into_iter()
            .filter(|(_, image)| !image.is_empty())
    }

    /// The names of all kernels, as far as the code tells them.
    pub(super) fn kernel_names(&self) -> Vec<String> {
        if self.ptx.is_empty() {
            let kernels = code_object::kernels(&self.machine_code).ok().flatten();
            return kernels.unwrap_or_default().into_iter().map(|kernel| kernel.name).collect();
        }
        ptx::kernel_names(&String::from_utf8_lossy(&self.ptx))
    }
}

/// The input of the compiler.
#[derive(Clone, Debug)]
pub(super) struct CompilerInput {
    pub(super) text: String,
    /// The name of the source in the log.
    pub(super) file: String,
    /// What it may include, beside the compiler's own headers.
    pub(super) headers: Vec<&'static Header>,
    /// All options, the architecture included.
    pub(super) options: Vec<String>,
    /// The architecture that the options name.
    pub(super) target: String,
    /// The name expressions of functions to run, such as `scale<float>`. `extern "C"` functions
    /// need none.
    pub(super) expressions: Vec<String>,
}

/// The driver's version whose NVRTC is looked for where there is no driver.
#[cfg(feature = "cuda")]
const NVRTC_WITHOUT_DRIVER: i32 = 13_000;

/// The architecture of an NVIDIA GPU to compile for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// Machine code for this compute capability, such as 90.
    Machine(u32),
    /// PTX for the newest architecture that the compiler supports, for devices that are newer. The
    /// driver compiles the PTX.
    Virtual(u32),
}

impl Target {
    /// The architecture's name in NVRTC's option.
    pub(super) fn name(self) -> String {
        match self {
            Self::Machine(capability) => format!("sm_{capability}"),
            Self::Virtual(capability) => format!("compute_{capability}"),
        }
    }

    /// The best target for a device among the compute capabilities that a compiler supports.
    fn best(supported: &[u32], capability: u32) -> Result<Self, String> {
        if supported.contains(&capability) {
            return Ok(Self::Machine(capability));
        }
        let older = supported.iter().copied().filter(|supported| *supported < capability).max();
        older.map(Self::Virtual).ok_or_else(|| {
            let oldest = supported.iter().min().copied().unwrap_or_default();
            format!(
                "it compiles for sm_{oldest} and later, and the device is sm_{capability}: \
                 use an older NVRTC, or `GpuSource::ptx` or `cubin`"
            )
        })
    }
}

/// A compiler and its version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compiler {
    library: &'static CompilerLibrary,
    version: (i32, i32),
}

impl Compiler {
    /// Finds a compiler whose code this driver can load.
    pub(super) fn find(driver: &Driver) -> Result<Self, String> {
        match driver.vendor.kind {
            #[cfg(feature = "hip")]
            DeviceKind::Hip => Self::of(hiprtc::find()?),
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda => Self::find_nvrtc(driver.version()),
            kind => Err(format!("nothing compiles CUDA C for devices of kind {kind:?}")),
        }
    }

    /// As [`find`](Self::find), by the version of CUDA's driver.
    #[cfg(feature = "cuda")]
    pub(super) fn find_nvrtc(driver_version: i32) -> Result<Self, String> {
        Self::of(nvrtc::find(driver_version)?)
    }

    /// The compiler for an architecture that is named as NVIDIA's or AMD's are.
    pub(super) fn for_architecture(name: &str) -> Result<Self, String> {
        match name {
            #[cfg(feature = "cuda")]
            _ if name.starts_with("sm_") || name.starts_with("compute_") => {
                // That of the driver, if there is one.
                let driver = (cuda::INSTALLATION.driver)();
                Self::find_nvrtc(driver.map_or(NVRTC_WITHOUT_DRIVER, Driver::version))
            }
            #[cfg(feature = "hip")]
            _ if name.starts_with("gfx") => Self::of(hiprtc::find()?),
            _ => Err(format!(
                "nothing compiles for `{name}`: give an architecture such as `sm_90` (NVIDIA, \
                 feature `cuda`) or `gfx90a` (AMD, feature `hip`)"
            )),
        }
    }

    fn of(library: &'static CompilerLibrary) -> Result<Self, String> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the library writes two `int`s.
        library.check(unsafe { (library.version)(&raw mut major, &raw mut minor) })?;
        Ok(Self { library, version: (major, minor) })
    }

    pub(super) fn product(self) -> &'static Product {
        &self.library.product
    }

    /// `NVRTC 13.5`
    pub(super) fn name(self) -> String {
        format!("{} {}.{}", self.library.product.name, self.version.0, self.version.1)
    }

    /// The file that it is in.
    pub(super) fn file(self) -> &'static str {
        &self.library.file
    }

    /// The name of the architecture to compile for, for a device.
    pub(super) fn target_of(self, context: &Context) -> Result<String, String> {
        let Architecture { name, capability } = context.architecture();
        capability.map_or_else(
            || Ok(name.clone()),
            |capability| self.target(capability).map(Target::name),
        )
    }

    /// The architecture to compile for, given a device's compute capability.
    pub(super) fn target(self, capability: u32) -> Result<Target, String> {
        Target::best(&self.supported()?, capability)
            .map_err(|reason| format!("{} was found, but {reason}", self.name()))
    }

    /// The supported compute capabilities, such as 90.
    pub(super) fn supported(self) -> Result<Vec<u32>, String> {
        let library = self.library;
        let (Some(ask_count), Some(ask)) = (library.architecture_count, library.architectures)
        else {
            return Err(format!("{} does not say what it compiles for", self.name()));
        };
        let mut count = 0;
        // SAFETY: the library writes one `int`.
        library.check(unsafe { ask_count(&raw mut count) })?;
        let mut supported: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or_default()];
        // SAFETY: the vector has the length that the library has just returned.
        library.check(unsafe { ask(supported.as_mut_ptr()) })?;
        Ok(supported.into_iter().filter_map(|capability| u32::try_from(capability).ok()).collect())
    }

    /// Compiles. The error contains the compiler's log.
    pub(super) fn compile(self, input: &CompilerInput) -> Result<Compiled, String> {
        static ALONE: Mutex<()> = Mutex::new(());
        let is_alone = self.library.product.is_for_one_thread;
        let _alone = is_alone.then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner));
        let compilation =
            Compilation::new(self.library, (&input.text, &input.file), &input.headers)?;
        for expression in &input.expressions {
            compilation.add_expression(&c_string(expression)?)?;
        }
        let refused = |log: String| {
            let advice = missing_header::advice(&log).map(|advice| advice + "\n");
            let advice = advice.unwrap_or_default();
            let (name, target) = (self.name(), &input.target);
            format!("{advice}{name} for {target} refuses the source, correct it:\n{log}")
        };
        compilation.run(&self.with_standard(&input.options)).map_err(refused)?;
        let machine_code = compilation.machine_code()?;
        let ptx = compilation.ptx()?;
        if machine_code.is_empty() && ptx.is_empty() {
            return Err(self.no_code(input));
        }
        let lower = |expression: &String| {
            Ok((expression.clone(), compilation.lowered_name(&c_string(expression)?)?))
        };
        let lowered = input.expressions.iter().map(lower).collect::<Result<_, String>>()?;
        let log = compilation.log().unwrap_or_default();
        Ok(Compiled { machine_code, ptx, lowered, log })
    }

    /// The options with a standard of C++ that has all that the library declares. The default of
    /// NVRTC 11 is an older one.
    fn with_standard(self, options: &[String]) -> Vec<String> {
        let is_standard = |option: &String| {
            ["--std", "-std"].iter().any(|name| option.trim_start().starts_with(name))
        };
        let lacks = self.version.0 < 12 && self.library.product.prefix == "nvrtc";
        let standard =
            (lacks && !options.iter().any(is_standard)).then(|| "--std=c++17".to_owned());
        options.iter().cloned().chain(standard).collect()
    }

    /// The error for a compilation that succeeds but produces no code that a driver can load.
    #[cold]
    fn no_code(self, input: &CompilerInput) -> String {
        let outcome =
            format!("{} for {} made neither machine code nor PTX", self.name(), input.target);
        match (self.library.product.without_code)(&input.options) {
            Some(option) => format!(
                "{outcome}: no driver loads what the option `{option}` produces; leave it out"
            ),
            None => format!(
                "{outcome} with the options {}; leave out the one that asks for other output",
                input.options.join(" ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn a_device_gets_machine_code_or_the_newest_ptx_that_is_older() {
        let supported = [75, 80, 86, 90, 100, 120];
        assert_eq!(Target::best(&supported, 90), Ok(Target::Machine(90)));
        assert_eq!(Target::best(&supported, 89), Ok(Target::Virtual(86)));
        assert_eq!(Target::best(&supported, 130), Ok(Target::Virtual(120)));
        let too_old = Target::best(&supported, 70).expect_err("older than all");
        assert!(too_old.contains("sm_75 and later, and the device is sm_70"), "{too_old}");
        assert_eq!(
            [Target::Machine(90).name(), Target::Virtual(86).name()],
            ["sm_90", "compute_86"]
        );
    }
}
