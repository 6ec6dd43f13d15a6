//! Finds the edges of a photograph with a chain of kernels, and reports the transfers between host
//! and device.
//!
//! The first launch that reads the photograph uploads it, once. All intermediate arrays stay on the
//! device; no call is needed for that. One picture is downloaded: the first, the middle and the
//! last stage side by side. The program computes the same steps with plain ndarray and requires the
//! same result.

mod reference;

use resident_example_pipeline::{arguments, brightness, failure, picture, sheet};
use std::path::Path;
use std::process::ExitCode;

use resident::ndarray::Array3;
use resident::{Device, Result, SmartArray, audit};

use resident_example_pipeline::arguments::{Arguments, Command, Settings};
use resident_example_pipeline::failure::Failure;
use resident_example_pipeline::kernels::Kernels;
use resident_example_pipeline::progress::Progress;
use resident_example_pipeline::steps::{LAUNCHES, Picture, Steps};

const HELP: &str = "\
Finds the edges of a photograph, and reports the transfers between host and device.

usage: pipeline [PHOTOGRAPH] [--output PATH] [--html PATH] [--sigma NUMBER] [--low NUMBER]
                [--high NUMBER]

  PHOTOGRAPH       a PNG or JPEG file; without one, the built-in portrait
  --output PATH    the PNG to write: photograph, gradient and edges side by side [pipeline.png]
  --html PATH      a page to write of what was copied, when and why
  --sigma NUMBER   width of the blur in pixels, 0 to 64 [1.4]
  --low NUMBER     gradients below this are not edges; 1 is a step from black to white [0.04]
  --high NUMBER    gradients above this are edges, and so are connected gradients above --low [0.1]

Exits with 0 if the result is the same as with plain ndarray, 1 if it differs or a device failed,
2 if the input cannot be used.";

const DEFAULT_PATH: &str = "pipeline.png";

/// The number of steps of the progress bar in addition to the detector's launches: read, histogram,
/// sheet, write, check.
const OTHER_STEPS: usize = 5;

/// The downloaded results: the sheet and the bins of the histogram.
struct Output {
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

/// Runs the whole program and returns the text to print.
fn run(arguments: &Arguments) -> std::result::Result<String, Failure> {
    let progress = Progress::start(LAUNCHES + OTHER_STEPS);
    progress.begin("read");
    let photo =
        SmartArray::from(arguments.input.as_deref().map_or_else(picture::built_in, picture::read)?)
            .named("photo");
    progress.done();

    let (output, report) = audit::capture(|| detect(&photo, arguments.settings, &progress));
    let output = output?;
    if let Some(path) = &arguments.html {
        let unwritten = |error| Failure::input(format_args!("cannot write the page {error}"));
        report.write_html(path).map_err(unwritten)?;
    }

    progress.begin("write");
    let path = arguments.output.as_deref().unwrap_or(Path::new(DEFAULT_PATH));
    picture::write(path, output.sheet.view())?;
    progress.done();

    // The check follows the writing, so that a wrong picture can be inspected.
    progress.begin("check against ndarray");
    compare(&output, &reference::expected(photo.host()?.view(), arguments.settings))?;
    drop(progress);
    Ok(summary(&photo, &output, path, &report.to_string()))
}

/// Runs the chain on one stream and the histogram on another. The histogram waits for `grey`, and
/// the chain does not wait for the histogram.
fn detect(photo: &Picture, settings: Settings, progress: &Progress) -> Result<Output> {
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

    Ok(Output { bins: bins.host()?.to_vec(), sheet: sheet.into_array()? })
}

fn compare(output: &Output, expected: &reference::Expected) -> std::result::Result<(), Failure> {
    if output.sheet.shape() != expected.sheet.shape() {
        let (found, wanted) = (output.sheet.shape(), expected.sheet.shape());
        return Err(Failure::result(format_args!(
            "the sheet has shape {found:?}, but {wanted:?} with plain ndarray"
        )));
    }
    let differing =
        output.sheet.iter().zip(&expected.sheet).filter(|(found, wanted)| found != wanted).count();
    if differing > 0 {
        return Err(Failure::result(format_args!(
            "{differing} of {} values differ from plain ndarray's",
            output.sheet.len()
        )));
    }
    if output.bins != expected.bins {
        return Err(Failure::result("the histogram differs from plain ndarray's"));
    }
    Ok(())
}

fn summary(photo: &Picture, output: &Output, path: &Path, report: &str) -> String {
    let lines = [
        format!("photograph   {} x {}", photo.shape()[1], photo.shape()[0]),
        format!("brightness   {}", brightness::line(&output.bins)),
        format!("checked      all {} values as with plain ndarray", output.sheet.len()),
        format!("written      {}", path.display()),
    ];
    format!("{}\n\n{report}", lines.join("\n"))
}
