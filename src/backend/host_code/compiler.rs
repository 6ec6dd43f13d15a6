//! The C++ compiler that turns CUDA C into code of the host.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

use super::library::TemporaryFile;
use super::translation::Translation;

/// The environment variable for the compiler.
const VARIABLE: &str = "RESIDENT_CXX";

/// The compilers that are tried if it is not set.
const USUAL: [&str; 3] = ["c++", "clang++", "g++"];

/// Options for every source. As in CUDA C, `a * b + c` is rounded twice unless the options say
/// otherwise, and mathematical functions set no `errno`.
const OPTIONS: [&str; 10] = [
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
];

/// A compiler that runs on this machine.
#[derive(Debug)]
pub(super) struct Compiler {
    program: OsString,
    /// The first line that it prints for `--version`.
    version: String,
}

impl Compiler {
    /// The compiler of this process.
    pub(super) fn find() -> Result<&'static Self, String> {
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
            Some(version) if output.status.success() => {
                Ok(Self { program: program.clone(), version: version.to_owned() })
            }
            _ => Err(format!("`--version` ended with {}", output.status)),
        }
    }

    /// What of the compiler decides over the code.
    pub(super) fn key(&self) -> Vec<u8> {
        let options = OPTIONS.join(" ");
        [self.program.as_encoded_bytes(), b"\0", self.version.as_bytes(), options.as_bytes(), b"\0"]
            .concat()
    }

    /// Compiles. The error contains the compiler's log.
    pub(super) fn compile(&self, translation: &Translation) -> Result<Vec<u8>, String> {
        let not_written =
            |fault: std::io::Error| format!("a file for the C++ compiler cannot be used: {fault}");
        let source = TemporaryFile::new("cpp").map_err(not_written)?;
        let output = TemporaryFile::new("so").map_err(not_written)?;
        source.fill(translation.text().as_bytes()).map_err(not_written)?;
        let mut command = Command::new(&self.program);
        command.args(OPTIONS).args(translation.options());
        command.arg("-o").arg(&output.path).arg(&source.path).arg("-lm");
        let ran = command.output();
        let ran = ran.map_err(|fault| format!("{} cannot be run: {fault}", self.version))?;
        if !ran.status.success() {
            let log = String::from_utf8_lossy(&ran.stderr);
            return Err(format!("{} refuses the source, correct it:\n{log}", self.version));
        }
        std::fs::read(&output.path).map_err(not_written)
    }
}

#[cfg(test)]
mod tests {
    use super::Compiler;

    #[test]
    fn a_compiler_that_is_named_and_missing_is_an_error_that_names_the_variable() {
        let fault = Compiler::first_of(Some("/nowhere/c++".into())).expect_err("it is missing");
        assert!(fault.contains("/nowhere/c++ that RESIDENT_CXX names"), "{fault}");
        let fault = Compiler::first_of(Some("false".into())).expect_err("it compiles nothing");
        assert!(fault.contains("exit status: 1"), "{fault}");
    }
}
