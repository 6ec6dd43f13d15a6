//! `resident-report`: shows, converts, compares and joins the audit reports of programs that use
//! `resident`. Such a program writes one with `RESIDENT_AUDIT=json:PATH`, or by
//! `Report::write_json`.
//!
//! Exit codes: 0; 1 if `diff` found more than is tolerated; 2 for wrong arguments and for files
//! that cannot be read or written.

mod command_line;
mod diff;
mod document;
mod merge;
mod show;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use command_line::{CommandLine, Task};
use merge::Job;

fn main() -> ExitCode {
    match run(CommandLine::parse()) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("resident-report: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(command_line: CommandLine) -> Result<ExitCode, String> {
    match command_line.task {
        Task::Show { report, by } => {
            let text = show::text(&document::read(&report)?, by);
            print(&text.map_err(|error| format!("{}: {error}", report.display()))?)
        }
        Task::Html { report, output } => {
            let document = document::read(&report)?;
            document.write_html(output).map_err(|error| error.to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Perfetto { report, output } => {
            let document = document::read(&report)?;
            document.write_perfetto(output).map_err(|error| error.to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Diff { before, after, tolerance } => {
            let diff = diff::of(&document::read(&before)?, &document::read(&after)?, tolerance);
            print(&diff.text)?;
            Ok(if diff.is_worse { ExitCode::from(1) } else { ExitCode::SUCCESS })
        }
        Task::Merge { reports, json, perfetto } => {
            let job = Job::read(&reports)?;
            let clocks = perfetto.map(|output| job.write_perfetto(&output)).transpose()?;
            let clocks = clocks.as_deref();
            print(&if json { job.json(clocks) } else { job.text(clocks) })
        }
        Task::Schema => print(&document::schema()),
    }
}

/// Prints a text. A reader that closes the pipe early, such as `head`, has seen enough.
fn print(text: &str) -> Result<ExitCode, String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
