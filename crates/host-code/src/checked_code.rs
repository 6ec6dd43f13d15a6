//! How a compiler makes code that announces each access: as assembly, which gets gaps between its
//! variables, and which is linked with the functions that it calls (`hooks.hpp`). These are
//! compiled once, since they are the same for all sources. Clang's code is changed twice, before
//! and after it is optimised (`clang_code`).

use std::ffi::OsString;

use super::clang_code::{self, NOT_OPTIMISED, OF_CODE};
use super::compiler::{Compiler, Fault, LINKING};
use super::kept_code;
use super::sanitizer::gaps::with_gaps;
use super::sanitizer::section_of_warnings;
use super::sanitizer::{CALLS_HEADER, FAST_PATH_HEADER, HOOKS};
use super::temporary_files::{TemporaryFile, unusable};

/// Options for code that is checked while it runs: each access of the source is announced, as it
/// stands there.
const OPTIONS: [&str; 13] = [
    "-O2",
    "-fno-optimize-sibling-calls",
    "-fno-delete-null-pointer-checks",
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    "-fsanitize=thread",
    "-fsanitize=integer-divide-by-zero",
    // Before it divides a vector's access into those of its parts.
    "-fsanitize=alignment",
    // Local arrays have an end too.
    "-fsanitize=object-size",
    // Compilers do not announce accesses to memory that they know to be new.
    "-fno-builtin-malloc",
    "-fno-builtin-free",
    // Local variables that are read before they are written are notes.
    "-Wuninitialized",
    "-Wno-error=uninitialized",
];

/// More of them, in the spelling of GCC and of Clang.
const OPTIONS_OF_GCC: [&str; 8] = [
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
const OPTIONS_OF_CLANG: [&str; 6] = [
    "-mllvm",
    "-tsan-instrument-func-entry-exit=0",
    "-mllvm",
    "-tsan-distinguish-volatile=1",
    // A race has two writes then, but contents that are missing are read.
    "-mllvm",
    "-tsan-instrument-read-before-write=1",
];

/// Options for the functions that it calls, whose lines no finding names.
const OPTIONS_OF_HOOKS: [&str; 3] = ["-c", "-O2", "-g0"];

/// Chooses those for atomic operations (`hooks.hpp`).
const ATOMIC_HOOKS: &str = "-DRESIDENT_ATOMIC_HOOKS";

impl Compiler {
    /// The options for checked code that this compiler has.
    pub(super) fn checked_options(&self) -> Vec<&'static str> {
        let more: &[_] = if self.is_clang() { &OPTIONS_OF_CLANG } else { &OPTIONS_OF_GCC };
        [&OPTIONS, more].concat()
    }

    /// Compiles checked code. `refused` makes an error of the compiler's log of the source.
    pub(super) fn run_checked(
        &self,
        source: &TemporaryFile,
        output: &TemporaryFile,
        options: &[OsString],
        refused: impl Fn(String) -> String,
    ) -> Result<(), String> {
        let assembly = TemporaryFile::new("s")?;
        let made = self.checked_assembly(source, &assembly, options);
        let (text, log) = made.map_err(|fault| fault.text(&refused))?;
        assembly.fill([with_gaps(&text), section_of_warnings(&log)].concat().as_bytes())?;
        let hooks = self.hooks(&[])?;
        let atomics = calls_atomic_hooks(&text).then(|| self.hooks(&[ATOMIC_HOOKS])).transpose()?;
        let objects: Vec<OsString> =
            [Some(&hooks), atomics.as_ref()].into_iter().flatten().map(path).collect();
        // A step of its own, so that the compiler does not add its own sanitizer.
        self.run(&assembly, output, &objects, &LINKING)
            .map(drop)
            .map_err(|fault| fault.text(refused))
    }

    /// Makes assembly of checked code in a file. Returns it, and the compiler's log.
    fn checked_assembly(
        &self,
        source: &TemporaryFile,
        assembly: &TemporaryFile,
        options: &[OsString],
    ) -> Result<(String, String), Fault> {
        let checked = self.checked_options();
        if !self.is_clang() {
            let log = self.run(source, assembly, options, &[&["-S"], &*checked].concat())?;
            return Ok((text(assembly)?, log));
        }
        let file = TemporaryFile::new("ll").map_err(Fault::NotRun)?;
        let log = self.run(source, &file, options, &[&NOT_OPTIMISED, &*checked].concat())?;
        let code = text(&file)?;
        let changed = clang_code::with_aligned_records(&clang_code::with_lengths(&code));
        file.fill(changed.as_bytes()).map_err(Fault::NotRun)?;
        self.run(&file, assembly, options, &[&OF_CODE, &*checked].concat())?;
        let assembly = clang_code::with_announced_copies(&text(assembly)?);
        Ok((assembly, clang_code::with_functions(&log, &code)))
    }

    /// A file with the functions that checked code calls, from memory or from disk, or compiled
    /// now.
    fn hooks(&self, options: &[&str]) -> Result<TemporaryFile, String> {
        let text = [CALLS_HEADER, FAST_PATH_HEADER, HOOKS].concat();
        let options = [&OPTIONS_OF_HOOKS, options].concat();
        let key = [&*self.key(), options.join(" ").as_bytes(), b"\0", text.as_bytes()].concat();
        let code = kept_code::get_or_compile(key, || {
            let source = TemporaryFile::new("cpp")?;
            let object = TemporaryFile::new("o")?;
            source.fill(text.as_bytes())?;
            let said = |log| format!("the checker's functions do not compile: {log}");
            self.run(&source, &object, &[], &options).map_err(|fault| fault.text(said))?;
            std::fs::read(&object.path).map_err(|fault| unusable(&fault.to_string()))
        })?;
        let object = TemporaryFile::new("o")?;
        object.fill(&code)?;
        Ok(object)
    }
}

fn path(file: &TemporaryFile) -> OsString {
    file.path.clone().into_os_string()
}

/// What a file has. In comments Clang writes characters of one byte.
fn text(file: &TemporaryFile) -> Result<String, Fault> {
    let bytes = std::fs::read(&file.path);
    let bytes = bytes.map_err(|fault| Fault::NotRun(unusable(&fault.to_string())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether assembly calls functions of the thread sanitizer for atomic operations. Those for fences
/// have no number of bits.
fn calls_atomic_hooks(assembly: &str) -> bool {
    let mut behind = assembly.split("__tsan_atomic").skip(1);
    behind.any(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}
