//! A program with a loop in which an array goes down and up again, and the same program once it is
//! mended: `mended before` and `mended after` print what their reports find. The README shows both.

mod rounds;

use std::process::ExitCode;

use resident::{Result, audit};

use crate::rounds::{after, before};

fn main() -> Result<ExitCode> {
    let program = match std::env::args().nth(1).as_deref() {
        Some("before") => before,
        Some("after") => after,
        _ => {
            eprintln!("mended: the argument is `before` or `after`");
            return Ok(ExitCode::from(2));
        }
    };
    let (brightest, report) = audit::capture(program);
    println!("{}\n{report}", brightest?);
    Ok(ExitCode::SUCCESS)
}
