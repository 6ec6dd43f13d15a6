//! The example `photos`: uploading, computing and downloading overlapped, beside the longest of the three alone.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use resident::ndarray::{Array3, s};
use resident::{Pending, SmartArray, Stream};

use crate::fault::{Fault, Outcome};
use crate::kernels::Kernels;
use crate::measure::{Contender, Measured, Run, timed};
use crate::picture;
use crate::progress::Progress;
use crate::report::{Report, Target};
use crate::session::Session;
use crate::steps::{Picture, Steps};
use crate::twin::{self, HostMemory, Twin, bare};

/// Photographs that differ.
const VARIATIONS: usize = 8;

/// As in the example: three streams are busy with three; the fourth is ready when one of them is done.
const IN_FLIGHT: usize = 4;

const SIGMA: f32 = 1.4;
const LOW: f32 = 0.04;
const HIGH: f32 = 0.1;

pub fn measure(session: &Session, report: &mut Report) -> Outcome {
    let studio = Rc::new(Studio::new(session)?);
    session.expect(1);
    let measured = session.measure(vec![
        Contender::new("ours, overlapped", || overlapped(&studio)),
        Contender::new("upload alone, page-locked", || copies(&studio, true)),
        Contender::new("computing alone", || computing(&studio)),
        Contender::new("download alone, page-locked", || copies(&studio, false)),
    ]);
    let longest = longest_of(&measured[1..]);
    for (index, theirs) in measured.iter().enumerate().skip(1) {
        let target = if Some(index - 1) == longest { Target::Speed(0.9) } else { Target::None };
        let figures = [&measured[0], theirs].map(|measured| measured.figure(|took| took.finish_s));
        report.compare(format!("{} photographs, overlapped", studio.count), theirs.name, figures, target);
    }
    let alone = studio.develop(1, studio.count.min(VARIATIONS))?;
    let holds = *studio.first_results.borrow() == alone;
    report.tell("the first photographs come out as they do one after the other", format!("{} compared", alone.len()), Some(holds));
    Ok(())
}

fn longest_of(measured: &[Measured]) -> Option<usize> {
    let median_s = |index: usize| measured[index].figure(|took| took.finish_s).map_or(0.0, |figure| figure.median_s);
    (0..measured.len()).max_by(|one, other| median_s(*one).total_cmp(&median_s(*other)))
}

/// What all photographs share.
struct Studio {
    variations: Vec<Array3<u8>>,
    count: usize,
    kernels: Kernels,
    streams: Vec<Stream>,
    /// Of the last overlapped run.
    first_results: RefCell<Vec<Array3<u8>>>,
}

impl Studio {
    fn new(session: &Session) -> Outcome<Self> {
        let portrait = picture::built_in().map_err(|_| Fault::new("the portrait of the examples cannot be read"))?;
        let step = session.size(1, 16) as isize;
        let variation = |index: usize| {
            let exposure = 100 - 3 * index as u16;
            portrait.slice(s![..;step, ..;step, ..]).mapv(|value| (u16::from(value) * exposure / 100) as u8)
        };
        Ok(Self {
            variations: (0..VARIATIONS).map(variation).collect(),
            count: session.size(200, 6),
            kernels: Kernels::new(),
            streams: session.streams(3)?,
            first_results: RefCell::default(),
        })
    }

    fn photo(&self, index: usize) -> Array3<u8> {
        self.variations[index % VARIATIONS].clone()
    }

    fn steps(&self, photo: &Picture) -> resident::Result<Picture> {
        let steps = Steps { kernels: &self.kernels, stream: &self.streams[1], progress: &Progress };
        let soft = steps.blur(SIGMA, &steps.grey(photo)?)?;
        let (strength, direction) = steps.gradient(&soft)?;
        let edges = steps.connect(LOW, HIGH, &steps.thin(&strength, &direction)?)?;
        steps.overlay(photo, &edges)
    }

    fn queue(&self, photo: Array3<u8>) -> resident::Result<Pending<Array3<u8>>> {
        let photo = SmartArray::from(photo);
        photo.prefetch(&self.streams[0])?;
        self.steps(&photo)?.snapshot_on(&self.streams[2])
    }

    /// So many photographs with so many under way: the results of the first few.
    fn develop(&self, in_flight: usize, count: usize) -> Outcome<Vec<Array3<u8>>> {
        self.develop_these((0..count).map(|index| self.photo(index)).collect(), in_flight)
    }

    fn develop_these(&self, photos: Vec<Array3<u8>>, in_flight: usize) -> Outcome<Vec<Array3<u8>>> {
        let (mut under_way, mut first) = (VecDeque::new(), Vec::new());
        let mut finish = |edges: Pending<Array3<u8>>| -> Outcome {
            let edges = edges.wait()?;
            if first.len() < VARIATIONS {
                first.push(edges);
            }
            Ok(())
        };
        for photo in photos {
            under_way.push_back(self.queue(photo)?);
            if under_way.len() >= in_flight {
                under_way.pop_front().map_or(Ok(()), &mut finish)?;
            }
        }
        under_way.into_iter().try_for_each(&mut finish)?;
        Ok(first)
    }
}

fn overlapped(studio: &Rc<Studio>) -> Outcome<Run<'static>> {
    let studio = Rc::clone(studio);
    Ok(Box::new(move || {
        let photos = (0..studio.count).map(|index| studio.photo(index)).collect();
        let work = || {
            *studio.first_results.borrow_mut() = studio.develop_these(photos, IN_FLIGHT)?;
            Ok(())
        };
        timed(work, || Ok(()))
    }))
}

/// All photographs are there already, and no result comes down.
fn computing(studio: &Rc<Studio>) -> Outcome<Run<'static>> {
    let studio = Rc::clone(studio);
    Ok(Box::new(move || {
        let photos: Vec<Picture> = (0..studio.count).map(|index| SmartArray::from(studio.photo(index))).collect();
        photos.iter().try_for_each(|photo| photo.prefetch(&studio.streams[0]))?;
        studio.streams[0].synchronize()?;
        let work = || Ok(photos.iter().try_for_each(|photo| studio.steps(photo).map(drop))?);
        timed(work, || Ok(studio.streams[1].synchronize()?))
    }))
}

/// As many asynchronous copies of page-locked memory, each of a photograph's length.
fn copies(studio: &Rc<Studio>, is_up: bool) -> Outcome<Run<'static>> {
    let (twin, count, len) = (Twin::untracked()?, studio.count, studio.variations[0].len());
    let stream = twin.stream()?;
    let mut host = HostMemory::<u8>::page_locked(&twin.context, len)?;
    let memory = twin::zeros::<u8>(&stream, len)?;
    stream.synchronize()?;
    let address = twin::address(&memory, &stream);
    Ok(Box::new(move || {
        let _kept = &memory;
        let copy = || {
            let copy = |_| if is_up { bare::up(&stream, address, host.host()) } else { bare::down(&stream, host.host(), address) };
            (0..count).try_for_each(copy)
        };
        timed(copy, || Ok(stream.synchronize()?))
    }))
}
