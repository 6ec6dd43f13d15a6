//! The log of a C++ compiler as hiprtc would write it.

#![forbid(unsafe_code)]

/// The log of a source for a target, without the lines that say in which function an error is.
/// Clang ends it with the number of errors.
pub(crate) fn of_compiler(log: &str, target: &str) -> String {
    let is_place = |line: &&str| line.contains(": In function ") || line.contains(": In instant");
    let is_diagnostic = |line: &str| line.contains(": error: ") || line.contains(": warning: ");
    // Before the first diagnostic, the compiler's name.
    let begins = log.lines().position(is_diagnostic).unwrap_or(0);
    let lines: Vec<&str> = log.lines().skip(begins).filter(|line| !is_place(line)).collect();
    let errors = lines.iter().filter(|line| line.contains("error: ")).count();
    let mut written = lines.join("\n");
    written.push('\n');
    written + &ending(errors, target)
}

/// The last line of a log.
pub(crate) fn ending(errors: usize, target: &str) -> String {
    let noun = if errors == 1 { "error" } else { "errors" };
    format!("{errors} {noun} generated when compiling for {target}.\n")
}
