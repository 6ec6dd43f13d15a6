//! Copies of pinned memory: uploads, downloads, and both at once.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use resident::cudarc::driver::{CudaSlice, CudaStream};
use resident::{SmartArray, Stream};

use crate::by_hand_hip;
use crate::measure::{Contender, Run, Took, timed};
use crate::report::{Report, Target};
use crate::rows::launches::Floats;
use crate::session::Session;
use resident_benches::gpu::fault::Outcome;
use resident_benches::gpu::twin::{self, HostMemory, Twin, bare};

/// The direction of the copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Up,
    Down,
    Both,
}

pub const WAYS: [Way; 3] = [Way::Up, Way::Down, Way::Both];

impl Way {
    pub fn goes_up(self) -> bool {
        self != Self::Down
    }

    pub fn goes_down(self) -> bool {
        self != Self::Up
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both at once",
        }
    }

    /// The bytes that are copied for an array of this size.
    pub fn moved_bytes(self, len_bytes: u64) -> u64 {
        if self == Self::Both { 2 * len_bytes } else { len_bytes }
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The smallest size with a target.
const LARGE_BYTES: u64 = 16 * MIB;

pub fn measure(session: &Session, report: &mut Report) -> Outcome {
    let all = [KIB, 16 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1 << 30];
    let sizes = sizes(session, report, &all)?;
    session.expect(sizes.len() * WAYS.len());
    let allocated_by = session
        .either("asynchronous copies, `cuMemHostAlloc`", "asynchronous copies, `hipHostMalloc`");
    for len_bytes in sizes {
        let ours = pair(session, len_bytes);
        let [allocated, registered] =
            [false, true].map(|is_registered| bare_pair(session, len_bytes, is_registered));
        let names = [
            session.either("cuMemHostAlloc", "hipHostMalloc"),
            session.either("cuMemHostRegister", "hipHostRegister"),
        ];
        for way in WAYS {
            let measured = session.measure(vec![
                Contender::new("ours", || run(session, &ours, way)),
                Contender::new(names[0], || bare_run(&allocated, way)),
                Contender::new(names[1], || bare_run(&registered, way)),
            ]);
            let least = if way == Way::Both { 0.95 } else { 0.97 };
            let target = if len_bytes >= LARGE_BYTES { Target::Speed(least) } else { Target::None };
            let work = format!("{} {}", size_text(len_bytes), way.name());
            // Ours is registered too. The driver may back memory that it allocates by larger pages.
            let against =
                [(1, allocated_by, Target::None), (2, "the same, registered memory", target)];
            for (theirs, against, target) in against {
                let figures =
                    [0, theirs].map(|index| measured[index].figure(|took: &Took| took.finish_s));
                let line = report.compare(work.clone(), against, figures, target);
                line.len_bytes = Some(way.moved_bytes(len_bytes));
            }
        }
    }
    Ok(())
}

/// The sizes for which there is enough memory. The report names the others: a machine whose memory
/// grows on demand has little at first.
pub fn sizes(session: &Session, report: &mut Report, all: &[u64]) -> Outcome<Vec<u64>> {
    let room_bytes = if session.is_smoke { 256 * KIB } else { session.room_bytes()? };
    let (kept, dropped): (Vec<u64>, Vec<u64>) =
        all.iter().partition(|len_bytes| **len_bytes <= room_bytes);
    if !dropped.is_empty() {
        let names: Vec<String> = dropped.into_iter().map(size_text).collect();
        let room = format!("not measured: a case may use {}", size_text(room_bytes));
        report.add_fact(names.join(", "), room, None);
    }
    Ok(kept)
}

pub fn size_text(len_bytes: u64) -> String {
    match len_bytes {
        bytes if bytes >= 1 << 30 => format!("{} GiB", bytes >> 30),
        bytes if bytes >= MIB => format!("{} MiB", bytes / MIB),
        bytes => format!("{} KiB", bytes / KIB),
    }
}

/// Two arrays of this library: one to upload, one to download.
pub struct Pair {
    pub arrays: [Floats; 2],
    pub stream: Stream,
}

pub type SharedPair = Outcome<Rc<RefCell<Pair>>>;

fn pair(session: &Session, len_bytes: u64) -> SharedPair {
    let pair = pageable_pair(session, len_bytes)?;
    pair.borrow().arrays.iter().try_for_each(SmartArray::page_lock)?;
    Ok(pair)
}

/// A pair in pageable memory that has been written.
pub fn pageable_pair(session: &Session, len_bytes: u64) -> SharedPair {
    let array = || Floats::from(vec![1.0; (len_bytes / 4) as usize]);
    let pair = Pair { arrays: [array(), array()], stream: session.gpu.new_stream()? };
    pair.arrays.iter().try_for_each(|array| array.prefetch(&pair.stream))?;
    pair.stream.synchronize()?;
    Ok(Rc::new(RefCell::new(pair)))
}

/// Before each run the host writes the uploaded array, and the device owns the downloaded one.
pub fn run(session: &Session, pair: &SharedPair, way: Way) -> Outcome<Run<'static>> {
    let (pair, gpu) = (pair.clone()?, session.gpu.clone());
    Ok(Box::new(move || {
        let Pair { arrays: [rising, falling], stream } = &mut *pair.borrow_mut();
        if way.goes_up() {
            rising.host_overwrite()?[0] += 1.0;
        }
        if way.goes_down() {
            drop(falling.gpu_overwrite_on(stream)?);
        }
        gpu.synchronize()?;
        let queue = || {
            if way.goes_up() {
                rising.prefetch(stream)?;
            }
            if way == Way::Both {
                falling.prefetch_host()?;
            }
            Ok(())
        };
        let finish = || {
            if way.goes_down() {
                drop(falling.host()?);
            }
            Ok(stream.synchronize()?)
        };
        timed(queue, finish)
    }))
}

/// The same copies by the driver's calls.
#[derive(Clone)]
pub enum BarePair {
    Cuda(SharedPairOfCuda),
    Hip(by_hand_hip::SharedPair),
}

pub fn bare_pair(session: &Session, len_bytes: u64, is_registered: bool) -> BarePair {
    if session.is_hip() {
        BarePair::Hip(by_hand_hip::pair(len_bytes, is_registered))
    } else {
        BarePair::Cuda(pair_of_cuda(len_bytes, is_registered))
    }
}

pub fn bare_run(pair: &BarePair, way: Way) -> Outcome<Run<'static>> {
    match pair {
        BarePair::Cuda(pair) => run_of_cuda(pair, way),
        BarePair::Hip(pair) => by_hand_hip::copies(pair, way),
    }
}

/// By cudarc.
pub struct PairOfCuda {
    rising: HostMemory<f32>,
    falling: HostMemory<f32>,
    memory: [CudaSlice<f32>; 2],
    streams: [Arc<CudaStream>; 2],
}

pub type SharedPairOfCuda = Outcome<Rc<RefCell<PairOfCuda>>>;

fn pair_of_cuda(len_bytes: u64, is_registered: bool) -> SharedPairOfCuda {
    let (twin, len) = (Twin::untracked()?, (len_bytes / 4) as usize);
    let make = if is_registered { HostMemory::registered } else { HostMemory::pinned };
    let streams = [twin.stream()?, twin.stream()?];
    let memory = [twin::zeros(&streams[0], len)?, twin::zeros(&streams[1], len)?];
    let pair = PairOfCuda {
        rising: make(&twin.context, len)?,
        falling: make(&twin.context, len)?,
        memory,
        streams,
    };
    twin.context.synchronize()?;
    Ok(Rc::new(RefCell::new(pair)))
}

fn run_of_cuda(pair: &SharedPairOfCuda, way: Way) -> Outcome<Run<'static>> {
    let pair = pair.clone()?;
    Ok(Box::new(move || {
        let PairOfCuda { rising, falling, memory, streams } = &mut *pair.borrow_mut();
        let queue = || {
            if way.goes_up() {
                bare::upload(&streams[0], twin::address(&memory[0], &streams[0]), rising.host())?;
            }
            if way.goes_down() {
                bare::download(
                    &streams[1],
                    falling.host(),
                    twin::address(&memory[1], &streams[1]),
                )?;
            }
            Ok(())
        };
        timed(queue, || Ok(streams.iter().try_for_each(|stream| stream.synchronize())?))
    }))
}
