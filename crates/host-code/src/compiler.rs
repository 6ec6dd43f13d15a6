//! The C++ compiler that turns CUDA C into code of the host.

use std::ffi::OsString;
use std::process::{Command, Output};
use std::sync::OnceLock;

use super::kept_code::DISK;
use super::temporary_files::TemporaryFile;
use super::{limited, processor};
use resident_backend::environment;
use resident_code::cache::DiskCache;

/// The environment variable for the compiler.
const VARIABLE: &str = "RESIDENT_CXX";

/// The compilers that are tried if it is not set.
const USUAL: [&str; 3] = ["c++", "clang++", "g++"];

/// Options for every source. As in CUDA C, `a * b + c` is rounded twice unless the options say
/// otherwise, and mathematical functions set no `errno`.
const OPTIONS: [&str; 17] = [
    "-std=c++17",
    // A source has the names that NVRTC declares, and no others.
    "-nostdinc",
    "-nostdinc++",
    "-O3",
    "-g",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    // So that the linker keeps what each function refers to.
    "-ffunction-sections",
    "-fno-exceptions",
    "-fno-math-errno",
    "-fno-trapping-math",
    // Sums of integers wrap around, as a GPU's do.
    "-fwrapv",
    // As NVRTC, which lets memory be read as another type than it was written.
    "-fno-strict-aliasing",
    // `__global__` functions are inlined without being declared so.
    "-Wno-attributes",
    // As NVRTC, which takes `int x = {2.0}`.
    "-Wno-narrowing",
    // As NVRTC, for which the length of an array is a constant.
    "-Werror=vla",
];

/// Pointers may wrap, as they do on a GPU. Without it GCC does not see that `p[i - 1]` and
/// `p[i + 1]` of consecutive threads are consecutive.
const WRAPPING_POINTERS: &str = "-fwrapv-pointer";

/// A loop without an end is one, and its time limit ends it. Compilers take it for granted that
/// each ends, and leave out those that compute nothing, or with Clang what comes next.
const ENDLESS_LOOPS: &str = "-fno-finite-loops";

/// GCC's logs otherwise have all errors of a source; Clang's have as many.
const FEW_ERRORS: &str = "-fmax-errors=20";

/// A local array that is larger than the stack ends at the guard page, not behind it.
const STACK_CLASH_PROTECTION: &str = "-fstack-clash-protection";

/// Options of the linker.
#[cfg(target_os = "linux")]
pub(super) const LINKING: [&str; 4] = [NOTHING_MISSING, KEPT_RELOCATIONS, OWN_DIVISIONS, OWN_HEAP];
#[cfg(not(target_os = "linux"))]
pub(super) const LINKING: [&str; 0] = [];

/// A division by zero is made, and does not end the process.
const DIVISIONS_STAY: &str = "-fno-isolate-erroneous-paths-dereference";

/// What is declared and used is defined.
#[cfg(target_os = "linux")]
const NOTHING_MISSING: &str = "-Wl,-z,defs";

/// What each function refers to stays known: `static_shared` reads it.
#[cfg(target_os = "linux")]
const KEPT_RELOCATIONS: &str = "-Wl,--emit-relocs";

/// A function of the source is never one of C, whatever its name. Clang knows no other names of
/// mathematics; it gets those options for functions that it takes for ones that do not return.
const OWN_FUNCTIONS: &str = "-fno-builtin";
const OPTIONS_OF_CLANG: [&str; 5] = [
    "-fno-builtin-exit",
    "-fno-builtin-_exit",
    "-fno-builtin-abort",
    "-fno-builtin-longjmp",
    // What one lane alone sets, before all pass it to a shuffle, has a value in the others too:
    // else Clang takes it that all set it, and does in all what that lane was to do.
    "-ftrivial-auto-var-init=pattern",
];

/// Numbers of 128 bits are divided by a function of the compiler's, which becomes code of the
/// library, where a division by zero has a result.
#[cfg(target_os = "linux")]
const OWN_DIVISIONS: &str = "-static-libgcc";

/// `malloc`, `new` and their kin are the functions of `exports.hpp`.
#[cfg(target_os = "linux")]
const OWN_HEAP: &str = "-Wl,--wrap=malloc,--wrap=free,--wrap=_Znwm,--wrap=_Znam,--wrap=_ZdlPv,\
                        --wrap=_ZdaPv,--wrap=_ZdlPvm,--wrap=_ZdaPvm";

/// GCC's guards on this processor have 64 KiB unless the option says how many bits: ours is a page.
const GUARD_SIZE: &str = "--param=stack-clash-protection-guard-size=12";

/// Whose compiler it is, by the macros that it defines, and its major version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    Gcc(u32),
    Clang(u32),
    /// It gets only options that all compilers have.
    Other,
}

/// A compiler that runs on this machine.
#[derive(Debug)]
pub struct Compiler {
    program: OsString,
    /// The first line that it prints for `--version`.
    pub(super) version: String,
    /// The macros that it defines.
    macros: String,
    family: Family,
    /// Options for every source, beyond `OPTIONS`.
    options: Vec<&'static str>,
    /// Whether an earlier process had it, and this one has none: what it made is in the cache.
    is_missing: bool,
}

/// Under which the cache has the last compiler: its name, its version and its macros.
const LAST: &[u8] = b"compiler\0";

impl Compiler {
    /// The compiler of this process.
    pub fn find() -> Result<&'static Self, String> {
        static FOUND: OnceLock<Result<Compiler, String>> = OnceLock::new();
        let found = FOUND.get_or_init(|| Self::first_of(environment::text(VARIABLE), &DISK));
        found.as_ref().map_err(String::clone)
    }

    fn first_of(named: Option<OsString>, disk: &DiskCache) -> Result<Self, String> {
        limited::time()?;
        match named.filter(|named| !named.is_empty()) {
            Some(named) => Self::at(&named).map_err(|fault| {
                format!(
                    "the C++ compiler {} that {VARIABLE} names cannot be used: {fault}",
                    named.display()
                )
            }),
            None => {
                let mut usual = USUAL.iter();
                let found = usual.find_map(|name| Self::at(&OsString::from(name)).ok());
                found.or_else(|| Self::last(disk)).ok_or_else(none)
            }
        }
    }

    fn at(program: &OsString) -> Result<Self, String> {
        let output = limited::output(Command::new(program).arg("--version"));
        let output = output.map_err(|fault| format!("it {fault}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        match text.lines().next() {
            Some(version) if output.status.success() => {
                Ok(Self::new(program.clone(), version.to_owned(), macros(program)))
            }
            _ => Err(format!("`--version` ended with {}", output.status)),
        }
    }

    fn new(program: OsString, version: String, macros: String) -> Self {
        let family = Family::with_macros(&macros);
        Self { program, version, macros, family, options: family.options(), is_missing: false }
    }

    /// The compiler, if it is there: the one that was found last may be gone.
    #[cfg(test)]
    pub(super) fn of_this_machine() -> Option<&'static Self> {
        let found = Self::find().ok();
        found.filter(|compiler| compiler.output(compiler.command().arg("--version")).is_ok())
    }

    /// The compiler of this process, which the cache has for later processes beside its code.
    pub(super) fn find_and_keep() -> Result<&'static Self, String> {
        static KEPT: OnceLock<()> = OnceLock::new();
        let found = Self::find()?;
        KEPT.get_or_init(|| found.keep(&DISK));
        Ok(found)
    }

    fn keep(&self, disk: &DiskCache) {
        if let Some(name) = self.program.to_str() {
            let parts = [name, &self.version, &self.macros].map(str::as_bytes);
            if disk.get(LAST).is_none_or(|last: [Vec<u8>; 3]| last != parts) {
                disk.put(LAST, &parts);
            }
        }
    }

    /// The one that an earlier process had.
    fn last(disk: &DiskCache) -> Option<Self> {
        let [name, version, macros] =
            disk.get(LAST)?.map(|part| String::from_utf8_lossy(&part).into_owned());
        Some(Self { is_missing: true, ..Self::new(name.into(), version, macros) })
    }

    /// What of the compiler decides over the code.
    pub fn key(&self) -> Vec<u8> {
        let checked = self.checked_options();
        let machine = [std::env::consts::ARCH, std::env::consts::OS];
        let options = [&OPTIONS[..], &LINKING, &self.options, &checked, &machine];
        let options = options.concat().join(" ");
        [self.program.as_encoded_bytes(), b"\0", self.version.as_bytes(), options.as_bytes(), b"\0"]
            .concat()
    }

    #[cfg(test)]
    pub(super) fn program(&self) -> &OsString {
        &self.program
    }

    /// The compiler with the options for every source.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(OPTIONS).args(&self.options);
        command
    }

    /// What it writes when it runs.
    pub(super) fn output(&self, command: &mut Command) -> Result<Output, String> {
        if self.is_missing {
            return Err(none());
        }
        let named = |fault| format!("the C++ compiler {} {fault}", self.program.display());
        limited::output(command).map_err(named)
    }

    pub(super) fn is_gcc(&self) -> bool {
        matches!(self.family, Family::Gcc(_))
    }

    pub(super) fn is_clang(&self) -> bool {
        matches!(self.family, Family::Clang(_))
    }

    /// Runs the compiler. Returns its log.
    pub(super) fn run(
        &self,
        from: &TemporaryFile,
        to: &TemporaryFile,
        options: &[OsString],
        more_options: &[&str],
    ) -> Result<String, Fault> {
        let mut command = self.command();
        command.args(options).args(more_options);
        command.arg("-o").arg(&to.path).arg(&from.path).arg("-lm");
        let ran = self.output(&mut command).map_err(Fault::NotRun)?;
        let log = String::from_utf8_lossy(&ran.stderr).into_owned();
        if ran.status.success() { Ok(log) } else { Err(Fault::Refused(log)) }
    }

    /// Says that what the compiler wrote is no code.
    #[cold]
    pub(super) fn no_code(&self) -> String {
        let named = environment::text(VARIABLE).filter(|named| !named.is_empty());
        let origin = named.map_or(String::new(), |_| format!(", which {VARIABLE} names,"));
        format!(
            "the C++ compiler {} ({}){origin} ended without an error, but wrote no code that can \
             be loaded; let {VARIABLE} name another one",
            self.program.display(),
            self.version
        )
    }
}

/// Why a compiler has made nothing.
#[derive(Debug)]
pub(super) enum Fault {
    /// Its log.
    Refused(String),
    /// It did not come to an end.
    NotRun(String),
}

impl Fault {
    /// What to say, where `refused` makes that of a log.
    pub(super) fn text(self, refused: impl FnOnce(String) -> String) -> String {
        match self {
            Self::Refused(log) => refused(log),
            Self::NotRun(text) => text,
        }
    }
}

/// Says that there is no compiler.
#[cold]
fn none() -> String {
    format!(
        "there is no C++ compiler ({} were tried) to compile the CUDA C body for the embedded \
         device: install one (package `g++` or `clang`), name it in {VARIABLE}, or give the kernel \
         a body by `.host(..)`",
        USUAL.join(", ")
    )
}

/// The macros that a compiler defines; nothing if it does not say.
fn macros(program: &OsString) -> String {
    let mut command = Command::new(program);
    command.args(["-dM", "-E", "-x", "c++", "-"]);
    let output = limited::output(&mut command).ok();
    let output = output.filter(|output| output.status.success());
    output.map_or_else(String::new, |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Family {
    fn with_macros(macros: &str) -> Self {
        let value = |name: &str| {
            let mut words = macros.lines().map(str::split_whitespace);
            words.find_map(|mut words| {
                words.next().filter(|word| *word == "#define")?;
                words.next().filter(|word| *word == name)?;
                words.next()?.parse::<u32>().ok()
            })
        };
        // Clang defines the macro of an old GCC too. Apple's versions are not those of LLVM.
        match (value("__clang_major__"), value("__GNUC__"), value("__apple_build_version__")) {
            (Some(version), _, None) => Self::Clang(version),
            (Some(_), _, Some(_)) => Self::Clang(0),
            (None, Some(version), _) => Self::Gcc(version),
            (None, None, _) => Self::Other,
        }
    }

    /// The options for every source that this compiler has beyond `OPTIONS`.
    fn options(self) -> Vec<&'static str> {
        let is_since = |gcc: u32, clang: u32| match self {
            Self::Gcc(version) => version >= gcc,
            Self::Clang(version) => version >= clang,
            Self::Other => false,
        };
        let needs_guard_size = cfg!(target_arch = "aarch64") && matches!(self, Self::Gcc(8..));
        let level = processor::option().filter(|_| is_since(11, 12));
        let of_family = match self {
            Self::Gcc(_) => &[OWN_FUNCTIONS, FEW_ERRORS, DIVISIONS_STAY][..],
            Self::Clang(_) => &OPTIONS_OF_CLANG,
            Self::Other => &[],
        };
        let of_version = [
            is_since(8, 20).then_some(WRAPPING_POINTERS),
            is_since(8, 11).then_some(STACK_CLASH_PROTECTION),
            is_since(10, 12).then_some(ENDLESS_LOOPS),
            needs_guard_size.then_some(GUARD_SIZE),
            level,
        ];
        of_family.iter().copied().chain(of_version.into_iter().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Compiler, DIVISIONS_STAY, ENDLESS_LOOPS, FEW_ERRORS, Family, GUARD_SIZE, OPTIONS_OF_CLANG,
        OWN_FUNCTIONS, STACK_CLASH_PROTECTION, WRAPPING_POINTERS,
    };
    use crate::processor;
    use resident_code::cache::DiskCache;

    /// A cache that keeps nothing.
    fn nowhere() -> DiskCache {
        DiskCache::at("/dev/null/nowhere".as_ref())
    }

    #[test]
    fn the_family_of_a_compiler_is_in_its_macros() {
        let of_clang = "#define __GNUC__ 4\n#define __clang__ 1\n#define __clang_major__ 14\n";
        for (macros, expected) in [
            ("#define __GNUC_MINOR__ 2\n#define __GNUC__ 12\n", Family::Gcc(12)),
            (of_clang, Family::Clang(14)),
            (&format!("{of_clang}#define __apple_build_version__ 14000\n"), Family::Clang(0)),
            ("#define __cplusplus 201703L\n", Family::Other),
            ("", Family::Other),
        ] {
            assert_eq!(Family::with_macros(macros), expected, "{macros}");
        }
        assert_eq!(super::macros(&"false".into()), "");
    }

    #[test]
    fn compilers_get_the_options_that_they_know() {
        let guard_size = Some(GUARD_SIZE).filter(|_| cfg!(target_arch = "aarch64"));
        let (gcc, clang) = ([OWN_FUNCTIONS, FEW_ERRORS, DIVISIONS_STAY], OPTIONS_OF_CLANG);
        let wrapping = Some(WRAPPING_POINTERS);
        let protection = Some(STACK_CLASH_PROTECTION);
        let (endless, level) = (Some(ENDLESS_LOOPS), processor::option());
        for (family, expected) in [
            (Family::Gcc(7), (&gcc[..], [None; 5])),
            (Family::Gcc(9), (&gcc, [wrapping, protection, None, guard_size, None])),
            (Family::Gcc(12), (&gcc, [wrapping, protection, endless, guard_size, level])),
            (Family::Clang(0), (&clang, [None; 5])),
            (Family::Clang(11), (&clang, [None, protection, None, None, None])),
            (Family::Clang(14), (&clang, [None, protection, endless, None, level])),
            (Family::Clang(20), (&clang, [wrapping, protection, endless, None, level])),
            (Family::Other, (&[], [None; 5])),
        ] {
            let (of_family, of_version) = expected;
            let of_family = of_family.iter().copied();
            let expected: Vec<_> = of_family.chain(of_version.into_iter().flatten()).collect();
            assert_eq!(family.options(), expected, "{family:?}");
        }
    }

    /// Each option, as a compiler of this machine takes it.
    #[test]
    fn compilers_of_this_machine_accept_their_options() {
        for program in super::USUAL {
            let Ok(compiler) = Compiler::at(&program.into()) else { continue };
            let mut command = std::process::Command::new(program);
            command.args(super::OPTIONS).args(&compiler.options).args([
                "-fsyntax-only",
                "-x",
                "c++",
                "-",
            ]);
            command.stdin(std::process::Stdio::null());
            let output = command.output().expect("it runs");
            assert!(output.status.success(), "{program}: {output:?}");
        }
    }

    #[test]
    fn a_compiler_that_is_named_and_missing_is_an_error_that_names_the_variable() {
        let named = |name: &str| Compiler::first_of(Some(name.into()), &nowhere());
        let fault = named("/nowhere/c++").expect_err("it is missing");
        assert!(fault.contains("/nowhere/c++ that RESIDENT_CXX names"), "{fault}");
        let fault = named("false").expect_err("it compiles nothing");
        assert!(fault.contains("exit status: 1"), "{fault}");
    }
}
