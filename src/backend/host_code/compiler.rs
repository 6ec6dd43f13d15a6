//! The C++ compiler that turns CUDA C into code of the host.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

use super::headers::Headers;
use super::library::TemporaryFile;
use super::processor;
use super::translation::Translation;

/// The environment variable for the compiler.
const VARIABLE: &str = "RESIDENT_CXX";

/// The compilers that are tried if it is not set.
const USUAL: [&str; 3] = ["c++", "clang++", "g++"];

/// Options for every source. As in CUDA C, `a * b + c` is rounded twice unless the options say
/// otherwise, and mathematical functions set no `errno`.
const OPTIONS: [&str; 11] = [
    "-std=c++17",
    "-O3",
    "-g",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-exceptions",
    // A local array that is larger than the stack ends at the guard page, not behind it.
    "-fstack-clash-protection",
    "-fno-math-errno",
    "-fno-trapping-math",
    // `__global__` functions are inlined without being declared so.
    "-Wno-attributes",
];

/// Options for code that is checked while it runs: each access of the source is announced, as it
/// stands there.
const CHECKED_OPTIONS: [&str; 7] = [
    "-c",
    "-O2",
    "-fno-optimize-sibling-calls",
    "-fno-delete-null-pointer-checks",
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    "-fsanitize=thread",
];

/// More of them, in the spelling of GCC and of Clang.
const CHECKED_OPTIONS_GCC: [&str; 8] = [
    // Accesses and functions stay where the source has them.
    "-fno-ipa-sra",
    "-fno-ipa-icf",
    "-fno-store-merging",
    // Two calls of one function stay two, with a line each.
    "-fno-crossjumping",
    "-fno-tree-tail-merge",
    // A loop that goes beyond an array's end must do so.
    "-fno-aggressive-loop-optimizations",
    "--param=tsan-instrument-func-entry-exit=0",
    "--param=tsan-distinguish-volatile=1",
];
const CHECKED_OPTIONS_CLANG: [&str; 4] =
    ["-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-distinguish-volatile=1"];

/// One more of GCC: pointers may wrap, as they do on a GPU. Without it GCC does not see that
/// `p[i - 1]` and `p[i + 1]` of consecutive threads are consecutive.
const OPTION_GCC: &str = "-fwrapv-pointer";

/// The first versions of GCC and of Clang that know the levels of x86-64.
const LEVELS_SINCE_GCC: u32 = 11;
const LEVELS_SINCE_CLANG: u32 = 12;

/// A compiler that runs on this machine.
#[derive(Debug)]
pub(crate) struct Compiler {
    program: OsString,
    /// The first line that it prints for `--version`.
    version: String,
    /// Options for every source, beyond `OPTIONS`.
    options: Vec<&'static str>,
}

impl Compiler {
    /// The compiler of this process.
    pub(crate) fn find() -> Result<&'static Self, String> {
        static FOUND: OnceLock<Result<Compiler, String>> = OnceLock::new();
        let found = FOUND.get_or_init(|| Self::first_of(std::env::var_os(VARIABLE)));
        found.as_ref().map_err(String::clone)
    }

    fn first_of(named: Option<OsString>) -> Result<Self, String> {
        match named.filter(|named| !named.is_empty()) {
            Some(named) => Self::at(&named).map_err(|fault| {
                format!(
                    "the C++ compiler {} that {VARIABLE} names cannot be used: {fault}",
                    named.display()
                )
            }),
            None => USUAL.iter().find_map(|name| Self::at(&OsString::from(name)).ok()).ok_or_else(
                || {
                    format!(
                        "there is no C++ compiler ({} were tried) to compile the CUDA C body for \
                         the embedded device: install one (package `g++` or `clang`), name it in \
                         {VARIABLE}, or give the kernel a body by `.host(..)`",
                        USUAL.join(", ")
                    )
                },
            ),
        }
    }

    fn at(program: &OsString) -> Result<Self, String> {
        let output = Command::new(program).arg("--version").output();
        let output = output.map_err(|fault| fault.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        match text.lines().next() {
            Some(version) if output.status.success() => Ok(Self {
                program: program.clone(),
                version: version.to_owned(),
                options: options_of(version),
            }),
            _ => Err(format!("`--version` ended with {}", output.status)),
        }
    }

    /// What of the compiler decides over the code.
    pub(crate) fn key(&self) -> Vec<u8> {
        let options = [&OPTIONS[..], &self.options, &CHECKED_OPTIONS, self.checked_options()];
        let options = options.concat().join(" ");
        [self.program.as_encoded_bytes(), b"\0", self.version.as_bytes(), options.as_bytes(), b"\0"]
            .concat()
    }

    /// Compiles. The error contains the compiler's log.
    pub(crate) fn compile(&self, translation: &Translation) -> Result<Vec<u8>, String> {
        let not_written =
            |fault: std::io::Error| format!("a file for the C++ compiler cannot be used: {fault}");
        let source = TemporaryFile::new("cpp").map_err(not_written)?;
        let output = TemporaryFile::new("so").map_err(not_written)?;
        source.fill(translation.text().as_bytes()).map_err(not_written)?;
        let headers = translation.has_headers.then(Headers::write).transpose();
        let headers = headers.map_err(not_written)?;
        // Before the folders of a CUDA toolkit.
        let folders = headers.iter().map(|headers| format!("-I{}", headers.folder.display()));
        let options: Vec<String> = folders.chain(translation.options().iter().cloned()).collect();
        if translation.is_checked() {
            // Linked in a second step, so that the compiler does not add its own sanitizer.
            let object = TemporaryFile::new("o").map_err(not_written)?;
            let checked = [&CHECKED_OPTIONS[..], self.checked_options()].concat();
            self.run(&source, &object, &options, &checked)?;
            self.run(&object, &output, &[], &[])?;
        } else {
            self.run(&source, &output, &options, &[])?;
        }
        std::fs::read(&output.path).map_err(not_written)
    }

    /// The options for checked code that this compiler has.
    fn checked_options(&self) -> &'static [&'static str] {
        if is_clang(&self.version) { &CHECKED_OPTIONS_CLANG } else { &CHECKED_OPTIONS_GCC }
    }

    fn run(
        &self,
        from: &TemporaryFile,
        to: &TemporaryFile,
        options: &[String],
        more_options: &[&str],
    ) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.args(OPTIONS).args(&self.options).args(options).args(more_options);
        command.arg("-o").arg(&to.path).arg(&from.path).arg("-lm");
        let ran = command.output();
        let ran = ran.map_err(|fault| format!("{} cannot be run: {fault}", self.version))?;
        if ran.status.success() {
            return Ok(());
        }
        let log = String::from_utf8_lossy(&ran.stderr);
        Err(format!("{} refuses the source, correct it:\n{log}", self.version))
    }
}

fn is_clang(version: &str) -> bool {
    version.contains("clang")
}

/// The options that a compiler has beyond `OPTIONS`, by the line that it prints for `--version`.
fn options_of(version: &str) -> Vec<&'static str> {
    let words = version.split([' ', '-']);
    let mut numbers = words.filter(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    let major = numbers.next().and_then(|number| number.split('.').next()?.parse::<u32>().ok());
    let (since, own) = match is_clang(version) {
        true => (LEVELS_SINCE_CLANG, None),
        false => (LEVELS_SINCE_GCC, Some(OPTION_GCC)),
    };
    let level = processor::option().filter(|_| major.is_some_and(|major| major >= since));
    own.into_iter().chain(level).collect()
}

#[cfg(test)]
mod tests {
    use super::{Compiler, OPTION_GCC, options_of};
    use crate::backend::host_code::processor;

    #[test]
    fn compilers_get_the_options_that_they_know() {
        let gcc = |options: &[&'static str]| [&[OPTION_GCC], options].concat();
        let with_level: Vec<_> = processor::option().into_iter().collect();
        for (version, expected) in [
            ("c++ (Debian 12.2.0-14+deb12u1) 12.2.0", gcc(&with_level)),
            ("g++ (Ubuntu 9.4.0-1ubuntu1~20.04.2) 9.4.0", gcc(&[])),
            ("g++ (GCC) 14.2.1 20240912", gcc(&with_level)),
            ("Debian clang version 14.0.6", with_level.clone()),
            ("clang version 11.1.0", Vec::new()),
            ("another compiler", gcc(&[])),
        ] {
            assert_eq!(options_of(version), expected, "{version}");
        }
    }

    #[test]
    fn a_compiler_that_is_named_and_missing_is_an_error_that_names_the_variable() {
        let fault = Compiler::first_of(Some("/nowhere/c++".into())).expect_err("it is missing");
        assert!(fault.contains("/nowhere/c++ that RESIDENT_CXX names"), "{fault}");
        let fault = Compiler::first_of(Some("false".into())).expect_err("it compiles nothing");
        assert!(fault.contains("exit status: 1"), "{fault}");
    }
}
