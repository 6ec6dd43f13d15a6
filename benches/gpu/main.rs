//! The cost of the library on a GPU, compared with programs written by hand with cudarc in the same
//! run: medians of alternating runs.
//!
//! `cargo bench --bench gpu -- --help` prints the options. Without a GPU it ends with an error;
//! `--stand-in` runs it on the stand-in driver.

#![allow(
    unreachable_pub,
    unused_qualifications,
    reason = "a program: `pub` says what a module is for"
)]

mod by_hand_hip;
mod measure;
mod report;
mod rows;
mod session;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use resident::Device;
use resident_benches::gpu::fault::{Fault, Outcome};
use resident_benches::gpu::stand_in;
use resident_stand_in::Settings;

use report::{Object, Report};
use rows::Row;
use session::Session;

const HELP: &str = "\
Measures this library and programs written by hand with cudarc on a GPU, in the same run.

usage: gpu [--only NAME]... [--json FILE] [--limit SECONDS] [--hip] [--smoke] [--stand-in] [--list]

  --only NAME      run only this row; may be repeated
  --json FILE      write the figures to this file as well
  --limit SECONDS  time limit of each row
  --hip            on an AMD GPU, with programs by hand on HIP: the rows that have one
  --smoke          tiny sizes and few runs: checks that everything works, measures nothing
  --stand-in       run on the stand-in driver; requires --smoke
  --list           list the rows

Exits with 0 if this library was measured and its results are right, whether or not a target was
met; with 1 otherwise; with 2 without a GPU.";

#[derive(Default)]
struct Arguments {
    only: Vec<String>,
    json: Option<PathBuf>,
    limit: Option<Duration>,
    is_hip: bool,
    is_smoke: bool,
    is_stand_in: bool,
    is_list: bool,
    is_help: bool,
    /// Set by `cargo test --benches`.
    is_test: bool,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(fault) => return end(2, &fault),
    };
    if arguments.is_help || arguments.is_list {
        let names = rows::ALL.map(|row| format!("{}\t{} s\t{}", row.name, row.limit_s, row.about));
        println!("{}", if arguments.is_help { HELP.to_owned() } else { names.join("\n") });
        return ExitCode::SUCCESS;
    }
    match open(&arguments) {
        Ok(session) => measure(&session, &arguments),
        Err(fault) if arguments.is_test => {
            println!("nothing was measured: {fault}");
            ExitCode::SUCCESS
        }
        Err(fault) => end(2, &fault),
    }
}

fn end(code: u8, fault: &Fault) -> ExitCode {
    eprintln!("gpu: {fault}");
    ExitCode::from(code)
}

fn parse(mut words: impl Iterator<Item = String>) -> Outcome<Arguments> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        let mut value = || {
            words.next().ok_or_else(|| Fault::new(format_args!("{word} needs a value; see --help")))
        };
        match word.as_str() {
            "--only" => arguments.only.push(known(value()?)?),
            "--json" => arguments.json = Some(value()?.into()),
            "--limit" => {
                let text = value()?;
                let seconds = text.parse().map_err(|_| {
                    Fault::new(format_args!("--limit needs a number of seconds, not {text:?}"))
                })?;
                arguments.limit = Some(Duration::from_secs(seconds));
            }
            "--hip" => arguments.is_hip = true,
            "--smoke" => arguments.is_smoke = true,
            "--stand-in" => arguments.is_stand_in = true,
            "--list" => arguments.is_list = true,
            "--help" => arguments.is_help = true,
            "--bench" => {}
            "--test" => arguments.is_test = true,
            _ => return Err(Fault::new(format_args!("{word:?} is not an option; see --help"))),
        }
    }
    if arguments.is_stand_in && !arguments.is_smoke {
        return Err(Fault::new("the stand-in driver is not a GPU: --stand-in requires --smoke"));
    }
    Ok(arguments)
}

fn known(name: String) -> Outcome<String> {
    let names = rows::ALL.map(|row| row.name);
    if names.contains(&name.as_str()) {
        Ok(name)
    } else {
        Err(Fault::new(format_args!("there is no row {name:?}; the rows are {}", names.join(", "))))
    }
}

fn open(arguments: &Arguments) -> Outcome<Session> {
    let gpu = match (arguments.is_hip, arguments.is_stand_in) {
        (true, is_stand_in) => {
            if is_stand_in {
                stand_in::load_hip()?;
            }
            Device::hip(0)?
        }
        (false, is_stand_in) => {
            if is_stand_in {
                stand_in::load(Settings::new())?;
            }
            Device::cuda(0)?
        }
    };
    Ok(Session::new(gpu, arguments.is_smoke, arguments.is_stand_in))
}

fn measure(session: &Session, arguments: &Arguments) -> ExitCode {
    if session.is_smoke {
        println!("**Tiny sizes and few runs: these figures only show that the rows run.**\n");
    }
    let (mut reports, mut has_failed) = (Vec::new(), false);
    for row in rows::ALL.iter().filter(|row| {
        arguments.only.is_empty() || arguments.only.iter().any(|name| name == row.name)
    }) {
        let report = measure_row(session, row, arguments.limit);
        println!("{}", report.markdown(row.name, row.about));
        has_failed |= report.has_failed();
        reports.push(report.json(row.name));
    }
    if let Some(path) = &arguments.json
        && let Err(fault) = std::fs::write(path, json(session, &reports))
    {
        return end(1, &Fault::new(format_args!("{}: {fault}", path.display())));
    }
    ExitCode::from(u8::from(has_failed))
}

fn measure_row(session: &Session, row: &Row, limit: Option<Duration>) -> Report {
    let mut report = Report { is_smoke: session.is_smoke, ..Report::default() };
    if session.is_hip() && !row.has_hip {
        let why = "its program by hand is written with cudarc";
        report.add_fact("skipped on AMD GPUs", why, None);
        return report;
    }
    session.begin(limit.unwrap_or(Duration::from_secs(row.limit_s)));
    if let Err(fault) = (row.measure)(session, &mut report) {
        report.add_fact("the row ended early", fault.to_string(), Some(false));
    }
    session.count_hazards("ours, outside the measured runs");
    for (name, count) in session.take_unordered() {
        let is_ours = name.starts_with("ours");
        if is_ours || count > 0 {
            report.add_fact(
                format!("unordered accesses, found by the stand-in driver: {name}"),
                count.to_string(),
                is_ours.then_some(count == 0),
            );
        }
    }
    report
}

fn json(session: &Session, reports: &[String]) -> String {
    let mut object = Object::default();
    object.text("device", &session.gpu.to_string());
    object.text("model", &session.gpu.model());
    object.raw("smoke", &session.is_smoke.to_string());
    object.raw("rows", &report::list(reports.iter().cloned()));
    object.end() + "\n"
}
