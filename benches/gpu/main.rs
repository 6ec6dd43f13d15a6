//! What the library costs on a GPU, beside what somebody would write by hand with cudarc, in the
//! same run: medians of runs in turn.
//!
//! `cargo bench --bench gpu -- --help` says how to call it. Without a GPU it says so; `--stand-in`
//! tries it on the stand-in driver.

#![allow(
    unreachable_pub,
    unused_qualifications,
    reason = "a program: `pub` says what a module is for"
)]

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
Measures this library on a GPU, beside programs written by hand with cudarc, in the same run.

usage: gpu [--only NAME]... [--json FILE] [--limit SECONDS] [--smoke] [--stand-in] [--list]

  --only NAME      this row alone; may be given more than once
  --json FILE      where to write the figures, beside the tables on the output
  --limit SECONDS  time of each row, instead of its own
  --smoke          tiny sizes and few runs: shows that everything works, and measures nothing
  --stand-in       on the stand-in driver, which is no GPU: together with --smoke
  --list           the rows

Leaves with 0 when everything of ours was measured and came out right, whether or not a target was met; with 1 otherwise, 2 without a GPU.";

#[derive(Default)]
struct Arguments {
    only: Vec<String>,
    json: Option<PathBuf>,
    limit: Option<Duration>,
    is_smoke: bool,
    is_stand_in: bool,
    is_list: bool,
    is_help: bool,
    /// `cargo test --benches` and `cargo bench` pass such things.
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
            "--smoke" => arguments.is_smoke = true,
            "--stand-in" => arguments.is_stand_in = true,
            "--list" => arguments.is_list = true,
            "--help" => arguments.is_help = true,
            "--bench" => {}
            "--test" => arguments.is_test = true,
            _ => return Err(Fault::new(format_args!("{word:?} is no option; see --help"))),
        }
    }
    if arguments.is_stand_in && !arguments.is_smoke {
        return Err(Fault::new("the stand-in driver is no GPU: --stand-in goes with --smoke"));
    }
    Ok(arguments)
}

fn known(name: String) -> Outcome<String> {
    let names = rows::ALL.map(|row| row.name);
    if names.contains(&name.as_str()) {
        Ok(name)
    } else {
        Err(Fault::new(format_args!("there is no row {name:?}, but {}", names.join(", "))))
    }
}

fn open(arguments: &Arguments) -> Outcome<Session> {
    if arguments.is_stand_in {
        stand_in::load(Settings::new())?;
    }
    Ok(Session::new(Device::cuda(0)?, arguments.is_smoke, arguments.is_stand_in))
}

fn measure(session: &Session, arguments: &Arguments) -> ExitCode {
    if session.is_smoke {
        println!(
            "**Tiny sizes and few runs: these figures say that the rows run, and nothing else.**\n"
        );
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
    session.begin(limit.unwrap_or(Duration::from_secs(row.limit_s)));
    if let Err(fault) = (row.measure)(session, &mut report) {
        report.tell("the row ended early", fault.to_string(), Some(false));
    }
    session.look_for_hazards("ours, besides");
    for (name, count) in session.take_unordered() {
        let is_ours = name.starts_with("ours");
        if is_ours || count > 0 {
            report.tell(
                format!("pairs of unordered work, as the stand-in driver sees it: {name}"),
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
