//! The example `photos`: upload, computation and download overlapped, compared with the longest of
//! the three alone.

use std::cell::RefCell;
use std::rc::Rc;

use resident::SmartArray;
use resident::ndarray::{Array3, s};

use crate::measure::{Contender, Measured, Run, timed};
use crate::report::{Report, Target};
use crate::session::Session;
use resident_benches::gpu::fault::{Fault, Outcome};
use resident_benches::gpu::programs::photos::{by_hand, by_resident};
use resident_benches::gpu::twin::{self, HostMemory, Twin, bare};
use resident_example_pipeline::picture;
use resident_example_pipeline::steps::Picture;

/// The number of different photographs.
const VARIATIONS: usize = 8;

pub fn measure(session: &Session, report: &mut Report) -> Outcome {
    let album = Rc::new(Album::new(session)?);
    session.expect(1);
    let measured = session.measure(vec![
        Contender::new("ours, overlapped", || overlapped(&album)),
        Contender::new("by hand, overlapped", || overlapped_by_hand(&album)),
        Contender::new("only the uploads, pinned", || copies(&album, true)),
        Contender::new("only the computation", || computing(&album)),
        Contender::new("only the downloads, pinned", || copies(&album, false)),
    ]);
    let longest = 2 + longest_of(&measured[2..]);
    for (index, theirs) in measured.iter().enumerate().skip(1) {
        let target = if index == longest { Target::Speed(0.9) } else { Target::None };
        let figures = [&measured[0], theirs].map(|measured| measured.figure(|took| took.finish_s));
        let work = format!("{} photographs, overlapped", album.count);
        report.compare(work, theirs.name, figures, target);
    }
    let one_by_one = album.process_one_by_one()?;
    for (who, results) in ["ours", "by hand"].into_iter().zip(&album.first_results) {
        let work = format!("the first results are the same as without overlapping: {who}");
        let is_same = *results.borrow() == one_by_one;
        report.add_fact(work, one_by_one.len().to_string(), Some(is_same));
    }
    Ok(())
}

/// The index of the longest stage.
fn longest_of(measured: &[Measured]) -> usize {
    let median_s = |index: usize| {
        measured[index].figure(|took| took.finish_s).map_or(0.0, |figure| figure.median_s)
    };
    (0..measured.len())
        .max_by(|one, other| median_s(*one).total_cmp(&median_s(*other)))
        .unwrap_or(0)
}

/// The photographs and the results.
struct Album {
    variations: Vec<Array3<u8>>,
    count: usize,
    studio: by_resident::Studio,
    /// The results of the last overlapped run, ours and by hand.
    first_results: [RefCell<Vec<Array3<u8>>>; 2],
}

impl Album {
    fn new(session: &Session) -> Outcome<Self> {
        let portrait = picture::built_in()
            .map_err(|_| Fault::new("the portrait of the examples cannot be read"))?;
        let step = session.size(1, 16) as isize;
        let variation = |index: usize| {
            let exposure = 100 - 3 * index as u16;
            portrait
                .slice(s![..;step, ..;step, ..])
                .mapv(|value| (u16::from(value) * exposure / 100) as u8)
        };
        Ok(Self {
            variations: (0..VARIATIONS).map(variation).collect(),
            count: session.size(200, 6),
            studio: by_resident::Studio::new(&session.gpu)?,
            first_results: [RefCell::default(), RefCell::default()],
        })
    }

    fn photos(&self) -> Vec<Array3<u8>> {
        (0..self.count).map(|index| self.variations[index % VARIATIONS].clone()).collect()
    }

    /// Processes the first photographs one after the other.
    fn process_one_by_one(&self) -> Outcome<Vec<Array3<u8>>> {
        let first = self.photos().into_iter().take(VARIATIONS);
        first.map(|photo| Ok(self.studio.steps(&SmartArray::from(photo))?.into_array()?)).collect()
    }
}

fn overlapped(album: &Rc<Album>) -> Outcome<Run<'static>> {
    let studio = Rc::clone(album);
    Ok(processing(album, 0, move |photos| studio.studio.process(photos, VARIATIONS)))
}

fn overlapped_by_hand(album: &Rc<Album>) -> Outcome<Run<'static>> {
    let mut studio = by_hand::Studio::new(album.variations[0].dim())?;
    Ok(processing(album, 1, move |photos| studio.process(photos, VARIATIONS)))
}

/// Processes all photographs, and keeps the first results.
fn processing(
    album: &Rc<Album>,
    who: usize,
    mut process: impl FnMut(Vec<Array3<u8>>) -> Outcome<Vec<Array3<u8>>> + 'static,
) -> Run<'static> {
    let album = Rc::clone(album);
    Box::new(move || {
        let photos = album.photos();
        let work = || process(photos).map(|first| *album.first_results[who].borrow_mut() = first);
        timed(work, || Ok(()))
    })
}

/// All photographs are already on the device, and no result is downloaded.
fn computing(album: &Rc<Album>) -> Outcome<Run<'static>> {
    let album = Rc::clone(album);
    Ok(Box::new(move || {
        let (studio, photos): (_, Vec<Picture>) =
            (&album.studio, album.photos().into_iter().map(SmartArray::from).collect());
        photos.iter().try_for_each(|photo| photo.prefetch(&studio.upload))?;
        studio.upload.synchronize()?;
        let work = || Ok(photos.iter().try_for_each(|photo| studio.steps(photo).map(drop))?);
        timed(work, || Ok(studio.compute.synchronize()?))
    }))
}

/// As many asynchronous copies of pinned memory as there are photographs, each of a photograph's
/// size.
fn copies(album: &Album, is_up: bool) -> Outcome<Run<'static>> {
    let (twin, count, len) = (Twin::untracked()?, album.count, album.variations[0].len());
    let stream = twin.stream()?;
    let mut host = HostMemory::<u8>::pinned(&twin.context, len)?;
    let memory = twin::zeros::<u8>(&stream, len)?;
    stream.synchronize()?;
    let address = twin::address(&memory, &stream);
    Ok(Box::new(move || {
        let _kept = &memory;
        let copy = || {
            let copy = |_| {
                if is_up {
                    bare::upload(&stream, address, host.host())
                } else {
                    bare::download(&stream, host.host(), address)
                }
            };
            (0..count).try_for_each(copy)
        };
        timed(copy, || Ok(stream.synchronize()?))
    }))
}
