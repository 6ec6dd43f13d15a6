//! Runs many photographs through the edge detector on three streams: while one photograph is
//! uploaded, the previous one is computed, and the result of the one before is downloaded. The
//! library makes each launch wait for the arrays that it uses. So this file uses no events, and it
//! synchronises only when it waits for a result.
//!
//! For comparison, the program first processes a few photographs one after the other. Overlapping
//! must not change a pixel.

use resident_example_pipeline::{arguments, failure, picture};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use resident::ndarray::{Array3, s};
use resident::{Device, Pending, SmartArray, Stream, audit};

use resident_example_pipeline::arguments::{Arguments, Command, Settings};
use resident_example_pipeline::failure::Failure;
use resident_example_pipeline::kernels::Kernels;
use resident_example_pipeline::progress::Progress;
use resident_example_pipeline::steps::{LAUNCHES, Steps};

const HELP: &str = "\
Finds the edges of many photographs, with upload, computation and download overlapped.

usage: photos [FOLDER] [--output FOLDER] [--sigma NUMBER] [--low NUMBER] [--high NUMBER]

  FOLDER           its PNG and JPEG files; without one, variations of the built-in portrait
  --output FOLDER  where to write the results as PNG; without it they are only computed
  --sigma NUMBER   width of the blur in pixels, 0 to 64 [1.4]
  --low NUMBER     gradients below this are not edges; 1 is a step from black to white [0.04]
  --high NUMBER    gradients above this are edges, and so are connected gradients above --low [0.1]

Exits with 1 if overlapping changed a result or a device failed, 2 if the input cannot be used.";

/// Photographs in flight at once: one for each of the three streams, and one that is ready when a
/// stream becomes idle.
const IN_FLIGHT: usize = 4;

/// Photographs that are also processed one after the other, to compare with.
const COMPARED: usize = 8;

const VARIATIONS: usize = 24;

type Outcome<T> = Result<T, Failure>;

/// Where the photographs come from.
enum Album {
    Files(Vec<PathBuf>),
    Variations(Array3<u8>),
}

/// The stream for each stage, and how many photographs are in flight at once.
struct Streams {
    upload: Stream,
    compute: Stream,
    download: Stream,
    in_flight_max: usize,
}

/// The input, the kernels and the settings.
struct Detector {
    album: Album,
    kernels: Kernels,
    settings: Settings,
}

fn main() -> ExitCode {
    let outcome = arguments::parse(std::env::args_os().skip(1)).and_then(|command| match command {
        Command::Help => Ok(HELP.to_owned()),
        Command::Run(arguments) => run(&arguments),
    });
    failure::finish("photos", outcome)
}

fn run(arguments: &Arguments) -> Outcome<String> {
    let detector = Detector {
        album: Album::open(arguments.input.as_deref())?,
        kernels: Kernels::new(),
        settings: arguments.settings,
    };
    if let Some(folder) = &arguments.output {
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::input(format_args!("cannot make {}: {error}", folder.display()))
        })?;
    }
    let (all, compared) = (detector.album.len(), detector.album.len().min(COMPARED));
    let progress = Progress::start((all + compared) * (LAUNCHES + 1));
    let (first, one_by_one) = detector.one_by_one(compared, &progress)?;

    let (streams, started) = (Streams::three()?, Instant::now());
    let deliver = |index: usize, edges: Array3<u8>| {
        detector.deliver(index, &edges, first.get(index), arguments.output.as_deref())
    };
    let (outcome, report) =
        audit::capture(|| detector.process_all(&streams, all, &progress, deliver));
    outcome?;
    let overlapped = all as f64 / started.elapsed().as_secs_f64();
    drop(progress);
    let rates = [("one after the other", one_by_one, compared), ("overlapped", overlapped, all)]
        .map(|(how, rate, count)| format!("{how:<20}{rate:8.1} images per second, of {count}"));
    Ok(format!("{}\n\n{report}", rates.join("\n")))
}

impl Detector {
    /// Processes the first few photographs on a single stream and waits for each. Returns the
    /// results and the number of photographs per second.
    fn one_by_one(&self, count: usize, progress: &Progress) -> Outcome<(Vec<Array3<u8>>, f64)> {
        let (streams, started) = (Streams::one()?, Instant::now());
        let mut results = Vec::with_capacity(count);
        self.process_all(&streams, count, progress, |_, edges| {
            results.push(edges);
            Ok(())
        })?;
        Ok((results, count as f64 / started.elapsed().as_secs_f64()))
    }

    /// Queues one photograph after another. Delivers the results in order. It waits for a result
    /// only when enough later photographs are queued to keep the device busy.
    fn process_all(
        &self,
        streams: &Streams,
        count: usize,
        progress: &Progress,
        mut deliver: impl FnMut(usize, Array3<u8>) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut in_flight = VecDeque::new();
        for index in 0..count {
            progress.begin(&self.album.name(index));
            let photo = self.album.read(index)?;
            progress.done();
            in_flight.push_back((index, self.queue(streams, photo, progress)?));
            if in_flight.len() >= streams.in_flight_max {
                finish(&mut in_flight, &mut deliver)?;
            }
        }
        while !in_flight.is_empty() {
            finish(&mut in_flight, &mut deliver)?;
        }
        Ok(())
    }

    /// Queues all steps for one photograph. The arrays are dropped at the end although the work is
    /// still queued; queued work keeps the memory that it needs.
    fn queue(
        &self,
        streams: &Streams,
        photo: Array3<u8>,
        progress: &Progress,
    ) -> resident::Result<Pending<Array3<u8>>> {
        let steps = Steps { kernels: &self.kernels, stream: &streams.compute, progress };
        let photo = SmartArray::from(photo).named("photo");
        photo.prefetch(&streams.upload)?;
        let grey = steps.grey(&photo)?;
        let soft = steps.blur(self.settings.sigma, &grey)?;
        let (strength, direction) = steps.gradient(&soft)?;
        let ridges = steps.thin(&strength, &direction)?;
        let edges = steps.connect(self.settings.low, self.settings.high, &ridges)?;
        steps.overlay(&photo, &edges)?.snapshot_on(&streams.download)
    }

    fn deliver(
        &self,
        index: usize,
        edges: &Array3<u8>,
        one_by_one: Option<&Array3<u8>>,
        folder: Option<&Path>,
    ) -> Outcome<()> {
        let name = self.album.name(index);
        if one_by_one.is_some_and(|expected| expected != edges) {
            return Err(Failure::result(format_args!(
                "the result of {name} changed when overlapped"
            )));
        }
        folder.map_or(Ok(()), |folder| {
            picture::write(&folder.join(format!("{name}.png")), edges.view())
        })
    }
}

fn finish(
    in_flight: &mut VecDeque<(usize, Pending<Array3<u8>>)>,
    deliver: &mut impl FnMut(usize, Array3<u8>) -> Outcome<()>,
) -> Outcome<()> {
    match in_flight.pop_front() {
        Some((index, edges)) => deliver(index, edges.wait()?),
        None => Ok(()),
    }
}

impl Streams {
    fn one() -> resident::Result<Self> {
        let stream = Device::current()?.new_stream()?;
        Ok(Self {
            upload: stream.clone(),
            compute: stream.clone(),
            download: stream,
            in_flight_max: 1,
        })
    }

    fn three() -> resident::Result<Self> {
        let device = Device::current()?;
        Ok(Self {
            upload: device.new_stream()?,
            compute: device.new_stream()?,
            download: device.new_stream()?,
            in_flight_max: IN_FLIGHT,
        })
    }
}

impl Album {
    fn open(folder: Option<&Path>) -> Outcome<Self> {
        let Some(folder) = folder else { return Ok(Self::Variations(picture::built_in()?)) };
        let unreadable = |error: std::io::Error| {
            Failure::input(format_args!("cannot read folder {}: {error}", folder.display()))
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if is_photograph(&path) {
                files.push(path);
            }
        }
        if files.is_empty() {
            return Err(Failure::input(format_args!(
                "there is no PNG or JPEG file in {}",
                folder.display()
            )));
        }
        files.sort();
        Ok(Self::Files(files))
    }

    fn len(&self) -> usize {
        match self {
            Self::Files(files) => files.len(),
            Self::Variations(_) => VARIATIONS,
        }
    }

    /// The full file name, so that `a.png` and `a.jpg` have separate results.
    fn name(&self, index: usize) -> String {
        match self {
            Self::Files(files) => {
                files[index].file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            Self::Variations(_) => format!("variation {}", index + 1),
        }
    }

    fn read(&self, index: usize) -> Outcome<Array3<u8>> {
        match self {
            Self::Files(files) => picture::read(&files[index]),
            Self::Variations(portrait) => Ok(variation(portrait, index)),
        }
    }
}

fn is_photograph(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    path.is_file()
        && ["png", "jpg", "jpeg"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Every second variation is mirrored, and each is darker than the one before.
fn variation(portrait: &Array3<u8>, index: usize) -> Array3<u8> {
    let direction = if index.is_multiple_of(2) { 1 } else { -1 };
    let exposure = 100 - 2 * (index % VARIATIONS) as u16;
    portrait.slice(s![.., ..;direction, ..]).mapv(|value| (u16::from(value) * exposure / 100) as u8)
}
