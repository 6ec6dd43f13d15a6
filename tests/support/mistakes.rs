//! Tables of mistakes that programs make, and the message of each.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use resident::{Device, Emulation, Result};

use crate::panics::text_of;

/// What a program does wrong, and the program.
pub type Mistake = (&'static str, fn() -> Result<()>);

/// The whole message of each mistake, without what differs between runs.
pub fn messages(mistakes: &[Mistake]) -> String {
    mistakes.iter().fold(String::new(), |mut all, (name, mistake)| {
        let _ = writeln!(all, "[{name}]\n{}\n", lasting(&message(name, *mistake)));
        all
    })
}

/// The message of the error, or of the panic.
fn message(name: &str, mistake: fn() -> Result<()>) -> String {
    let _here = Device::emulated(Emulation::new()).enter();
    match catch_unwind(AssertUnwindSafe(mistake)) {
        Ok(Ok(())) => panic!("{name}: no error"),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => format!("panic: {}", text_of(&*panic).expect("a message")),
    }
}

/// The message without lines of the test, and numbers of devices.
fn lasting(message: &str) -> String {
    let without_lines =
        message.split(".rs:").map(without_place).collect::<Vec<_>>().join(".rs:L:C");
    let without_number = |text: &str| text.trim_start_matches(is_digit).to_owned();
    without_lines.split("cpu:").map(without_number).collect::<Vec<_>>().join("cpu:N")
}

/// The text without a line and a column before it.
fn without_place(text: &str) -> &str {
    let column = text.trim_start_matches(is_digit).strip_prefix(':');
    column.map_or(text, |column| column.trim_start_matches(is_digit))
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}
