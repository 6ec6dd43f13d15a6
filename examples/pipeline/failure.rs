//! How the programs end: with what they have to say, or with one line on stderr and an exit code.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// Prints what the program has to say, or why it has nothing to say.
pub fn finish(program: &str, outcome: Result<String, Failure>) -> ExitCode {
    let unprintable = |error| Failure::result(format_args!("cannot print the result: {error}"));
    match outcome.and_then(|text| writeln!(std::io::stdout(), "{text}").map_err(unprintable)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(program),
    }
}

/// What went wrong, in one line, and the code to leave with.
#[derive(Debug)]
pub struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// What the user gave cannot be used: code 2.
    pub fn input(message: impl Display) -> Self {
        Self { message: message.to_string(), code: 2 }
    }

    /// The program did its work and the result is wrong: code 1.
    pub fn result(message: impl Display) -> Self {
        Self { message: message.to_string(), code: 1 }
    }

    /// Says so on stderr. A message from elsewhere may hold line breaks; the user sees one line.
    fn report(&self, program: &str) -> ExitCode {
        eprintln!("{program}: {}", self.message.split_whitespace().collect::<Vec<_>>().join(" "));
        ExitCode::from(self.code)
    }
}

impl From<resident::Error> for Failure {
    fn from(error: resident::Error) -> Self {
        Self::result(error)
    }
}
