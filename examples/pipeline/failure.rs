//! How the programs end: with a text on stdout, or with one line on stderr and an exit code.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// Prints the program's result, or the reason why there is none.
pub fn finish(program: &str, outcome: Result<String, Failure>) -> ExitCode {
    let unprintable = |error| Failure::result(format_args!("cannot print the result: {error}"));
    match outcome.and_then(|text| writeln!(std::io::stdout(), "{text}").map_err(unprintable)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(program),
    }
}

/// The reason of a failure in one line, and the exit code.
#[derive(Debug)]
pub struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// The user's input cannot be used: code 2.
    pub fn input(message: impl Display) -> Self {
        Self { message: message.to_string(), code: 2 }
    }

    /// An operation failed or the result is wrong: code 1.
    pub fn result(message: impl Display) -> Self {
        Self { message: message.to_string(), code: 1 }
    }

    /// Prints the message on stderr as one line. Messages of other libraries may contain line
    /// breaks.
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
