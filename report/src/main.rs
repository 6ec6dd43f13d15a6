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
mod schema;
mod show;
mod table;

use std::io::{self, Cursor, Read, Write};
use std::panic::resume_unwind;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use clap::Parser;

use command_line::{CommandLine, Task};
use document::Records;
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
            let text = show::text(&document::read(&report, Records::Skipped)?, by);
            print(&text.map_err(|error| format!("{}: {error}", document::name(&report)))?)
        }
        Task::Html { report, output } => {
            write_page(&report, &output)?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Perfetto { report, output } => {
            let document = document::read(&report, Records::Kept)?;
            document.write_perfetto(output).map_err(|error| error.to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        Task::Diff { before, after, tolerance } => {
            if [&before, &after].iter().all(|path| document::is_standard_input(path)) {
                return Err("only one of the two reports can be standard input".to_owned());
            }
            // Reading takes the most of the time of large reports.
            let read = |path: &Path| document::read(path, Records::Skipped);
            let (before, after) = thread::scope(|threads| {
                let reading = threads.spawn(|| read(&before));
                let after = read(&after);
                (reading.join().unwrap_or_else(|panic| resume_unwind(panic)), after)
            });
            let diff = diff::of(&before?, &after?, tolerance);
            print(&diff.text)?;
            Ok(if diff.is_worse { ExitCode::from(1) } else { ExitCode::SUCCESS })
        }
        Task::Merge { reports, json, perfetto } => {
            let records = if perfetto.is_some() { Records::Kept } else { Records::Skipped };
            let job = Job::read(&reports, records)?;
            let clocks = perfetto.map(|output| job.write_perfetto(&output)).transpose()?;
            let clocks = clocks.as_deref();
            print(&if json { job.json(clocks) } else { job.text(clocks) })
        }
        Task::Schema => print(&schema::text()),
    }
}

/// Writes the page of a report, whose text is checked and taken over as it is. A file is read
/// twice, so that its text is never in memory; standard input is kept meanwhile.
fn write_page(report: &Path, output: &Path) -> Result<(), String> {
    let mut text = Vec::new();
    if document::is_standard_input(report) {
        let read = document::open(report)?.read_to_end(&mut text);
        read.map_err(|error| format!("{}: {error}", document::name(report)))?;
    }
    let open = || -> Result<Box<dyn Read + '_>, String> {
        if document::is_standard_input(report) {
            return Ok(Box::new(Cursor::new(&text)));
        }
        document::open(report)
    };
    let parsed = document::parse(open()?, Records::Skipped);
    parsed.map_err(|error| format!("{}: {error}", document::name(report)))?;
    resident_documents::write_page(output, open()?).map_err(|error| error.to_string())
}

/// Prints a text. A reader that closes the pipe early, such as `head`, has seen enough.
fn print(text: &str) -> Result<ExitCode, String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
