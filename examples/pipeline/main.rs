//! Finds the edges of a photograph by a chain of kernels, and shows what moved between host and
//! device on the way.
//!
//! The photograph goes up once, by the first launch that reads it. Everything in between stays on
//! the device; nobody says so anywhere. One picture comes down, the first, the middle and the last
//! stage side by side. The same steps done with ndarray alone must give the same.

mod reference;

use resident_examples::pipeline::{arguments, brightness, failure, picture, sheet};
use std::path::Path;
use std::process::ExitCode;

use resident::ndarray::Array3;
use resident::{Device, Result, SmartArray, audit};

use resident_examples::pipeline::arguments::{Arguments, Command, Settings};
use resident_examples::pipeline::failure::Failure;
use resident_examples::pipeline::kernels::Kernels;
use resident_examples::pipeline::progress::Progress;
use resident_examples::pipeline::steps::{LAUNCHES, Picture, Steps};

const HELP: &str = "\
Finds the edges of a photograph, and shows what moved between host and device.

usage: pipeline [PHOTOGRAPH] [--output PATH] [--sigma NUMBER] [--low NUMBER] [--high NUMBER]

  PHOTOGRAPH       a PNG or JPEG; without one, the portrait that comes with the examples
  --output PATH    the PNG to write: photograph, gradient and edges side by side [pipeline.png in the working directory]
  --sigma NUMBER   width of the blur in pixels, 0 to 64 [1.4]
  --low NUMBER     gradients below this are no edges; 1 is a step from black to white [0.04]
  --high NUMBER    gradients above this are edges, and so is what is connected to them and above --low [0.1]

Leaves with 0 when the result is the same as with plain ndarray, 1 when it is not or a device fails, 2 when the input cannot be used.";

const OUTPUT: &str = "pipeline.png";

/// Reading, the histogram, composing the sheet, writing, checking: each moves the bar by one, as
/// each of the detector's launches does.
const OTHER_STEPS: usize = 5;

/// What came down: the sheet, and the bins of the histogram.
struct Developed {
    sheet: Array3<u8>,
    bins: Vec<u32>,
}

fn main() -> ExitCode {
    let outcome = arguments::parse(std::env::args_os().skip(1)).and_then(|command| match command {
        Command::Help => Ok(HELP.to_owned()),
        Command::Run(arguments) => run(&arguments),
    });
    failure::finish("pipeline", outcome)
}

/// The whole program; what it has to say comes back as text.
fn run(arguments: &Arguments) -> std::result::Result<String, Failure> {
    let progress = Progress::start(LAUNCHES + OTHER_STEPS);
    progress.begin("read");
    let photo =
        SmartArray::from(arguments.input.as_deref().map_or_else(picture::built_in, picture::read)?)
            .named("photo");
    progress.done();

    let (developed, report) = audit::capture(|| develop(&photo, arguments.settings, &progress));
    let developed = developed?;

    progress.begin("write");
    let output = arguments.output.as_deref().unwrap_or(Path::new(OUTPUT));
    picture::write(output, developed.sheet.view())?;
    progress.done();

    // After writing: if something is wrong with the picture, somebody will want to look at it.
    progress.begin("check against ndarray");
    compare(&developed, &reference::expected(photo.host()?.view(), arguments.settings))?;
    drop(progress);
    Ok(summary(&photo, &developed, output, &report.to_string()))
}

/// The chain on one stream, the histogram on another: it waits for `grey` and holds nothing up.
fn develop(photo: &Picture, settings: Settings, progress: &Progress) -> Result<Developed> {
    let device = Device::current()?;
    let (stream, side) = (device.stream(), device.new_stream()?);
    let steps = Steps { kernels: &Kernels::new(), stream: &stream, progress };

    let grey = steps.grey(photo)?;
    let bins = brightness::histogram(&side, &grey)?;
    progress.follow("histogram", &side)?;
    let soft = steps.blur(settings.sigma, &grey)?;
    let (strength, direction) = steps.gradient(&soft)?;
    let ridges = steps.thin(&strength, &direction)?;
    let edges = steps.connect(settings.low, settings.high, &ridges)?;
    let overlay = steps.overlay(photo, &edges)?;
    let sheet = sheet::compose(&stream, photo, &strength, &overlay)?;
    progress.follow("sheet", &stream)?;

    Ok(Developed { bins: bins.host()?.to_vec(), sheet: sheet.into_array()? })
}

fn compare(
    developed: &Developed,
    expected: &reference::Expected,
) -> std::result::Result<(), Failure> {
    if developed.sheet.shape() != expected.sheet.shape() {
        let (found, wanted) = (developed.sheet.shape(), expected.sheet.shape());
        return Err(Failure::result(format_args!(
            "the sheet has shape {found:?}, with plain ndarray {wanted:?}"
        )));
    }
    let differing = developed
        .sheet
        .iter()
        .zip(&expected.sheet)
        .filter(|(found, wanted)| found != wanted)
        .count();
    if differing > 0 {
        return Err(Failure::result(format_args!(
            "{differing} of {} values differ from plain ndarray's",
            developed.sheet.len()
        )));
    }
    if developed.bins != expected.bins {
        return Err(Failure::result("the histogram differs from plain ndarray's"));
    }
    Ok(())
}

fn summary(photo: &Picture, developed: &Developed, output: &Path, report: &str) -> String {
    let lines = [
        format!("photograph   {} x {}", photo.shape()[1], photo.shape()[0]),
        format!("brightness   {}", brightness::line(&developed.bins)),
        format!("checked      all {} values as with plain ndarray", developed.sheet.len()),
        format!("written      {}", output.display()),
    ];
    format!("{}\n\n{report}", lines.join("\n"))
}
