//! Copies of pageable memory, for programs that pin nothing: uploads, downloads, and both at once.

use std::hint::black_box;

use resident::cudarc::driver::CudaSlice;

use crate::by_hand_hip;
use crate::measure::{Contender, Measured, Run, Took, timed};
use crate::report::{Report, Target};
use crate::rows::launches::Floats;
use crate::rows::pinned::{WAYS, Way, bare_pair, bare_run, pageable_pair, run, size_text, sizes};
use crate::session::Session;
use resident_benches::gpu::fault::{Fault, Outcome};
use resident_benches::gpu::twin::{self, Twin, bare};

const MIB: u64 = 1 << 20;
/// The smallest sizes with a target: against plain copies, and against pinned copies.
const FASTER_BYTES: u64 = 4 * MIB;
const LARGE_BYTES: u64 = 64 * MIB;

pub fn measure(session: &Session, report: &mut Report) -> Outcome {
    let all = [64 << 10, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1 << 30];
    let sizes = sizes(session, report, &all)?;
    session.expect(sizes.len() * WAYS.len() + 2);
    for &len_bytes in &sizes {
        let (ours, locked) =
            (pageable_pair(session, len_bytes), bare_pair(session, len_bytes, false));
        for way in WAYS {
            let measured = session.measure(vec![
                Contender::new("ours", || run(session, &ours, way)),
                Contender::new("plain", || {
                    if session.is_hip() {
                        by_hand_hip::plain(len_bytes, way, false)
                    } else {
                        plain(len_bytes, way)
                    }
                }),
                Contender::new("pinned", || bare_run(&locked, way)),
            ]);
            compare(report, &measured, len_bytes, way);
            if len_bytes >= LARGE_BYTES {
                report_cpu(report, &measured, len_bytes, way);
            }
        }
    }
    let largest = sizes.into_iter().filter(|len_bytes| *len_bytes <= 256 * MIB).max();
    untouched(session, report, largest.unwrap_or(MIB));
    Ok(())
}

fn compare(report: &mut Report, measured: &[Measured], len_bytes: u64, way: Way) {
    let plain =
        if len_bytes >= FASTER_BYTES && way != Way::Both { Target::Faster } else { Target::None };
    let locked = match way {
        Way::Up if len_bytes >= LARGE_BYTES => Target::Speed(0.9),
        Way::Down if len_bytes >= LARGE_BYTES => Target::Speed(0.8),
        _ => Target::None,
    };
    let work = format!("{} {}", size_text(len_bytes), way.name());
    for (theirs, against, target) in
        [(1, "plain synchronous copies", plain), (2, "pinned, asynchronous", locked)]
    {
        let figures = [0, theirs].map(|index| measured[index].figure(|took: &Took| took.finish_s));
        let line = report.compare(work.clone(), against, figures, target);
        line.len_bytes = Some(way.moved_bytes(len_bytes));
    }
}

/// Reports the processor seconds of all threads per copied gigabyte.
fn report_cpu(report: &mut Report, measured: &[Measured], len_bytes: u64, way: Way) {
    let gigabytes = way.moved_bytes(len_bytes) as f64 / 1e9;
    let share = |measured: &Measured| match measured.figure(|took| took.cpu_s) {
        Ok(figure) => format!("{} {:.3}", measured.name, figure.median_s / gigabytes),
        Err(fault) => format!("{}: {fault}", measured.name),
    };
    let work = format!("{} {}: processor seconds per GB", size_text(len_bytes), way.name());
    report.add_fact(work, measured.iter().map(share).collect::<Vec<_>>().join(", "), None);
}

/// The driver's synchronous copies from and to a vector. The row "both at once" runs them one after
/// the other, because each blocks its thread.
fn plain(len_bytes: u64, way: Way) -> Outcome<Run<'static>> {
    let (memory, address) = memory_of_twin(len_bytes)?;
    let (rising, mut falling) = (vec![1.0_f32; memory.len()], vec![1.0_f32; memory.len()]);
    Ok(Box::new(move || {
        let _kept = &memory;
        let copy = || {
            if way.goes_up() {
                bare::upload_sync(address, &rising)?;
            }
            if way.goes_down() {
                bare::download_sync(&mut falling, address)?;
            }
            Ok(())
        };
        timed(copy, || Ok(()))
    }))
}

fn memory_of_twin(len_bytes: u64) -> Outcome<(CudaSlice<f32>, u64)> {
    let twin = Twin::untracked()?;
    let stream = twin.context.default_stream();
    let memory: CudaSlice<f32> = twin::zeros(&stream, (len_bytes / 4) as usize)?;
    stream.synchronize()?;
    let address = twin::address(&memory, &stream);
    Ok((memory, address))
}

/// Untouched memory: the operating system allocates the pages during the copy.
fn untouched(session: &Session, report: &mut Report, len_bytes: u64) {
    // On AMD GPUs there is no cudarc to write what is downloaded.
    let ways = if session.is_hip() { &[Way::Up][..] } else { &[Way::Up, Way::Down] };
    for way in ways.iter().copied() {
        let measured = session.measure(vec![
            Contender::new("ours", || ours_untouched(session, len_bytes, way)),
            Contender::new("plain", || {
                if session.is_hip() {
                    by_hand_hip::plain(len_bytes, way, true)
                } else {
                    plain_untouched(len_bytes, way)
                }
            }),
        ]);
        let figures = [0, 1].map(|index| measured[index].figure(|took| took.finish_s));
        let work = format!("{} {}, untouched", size_text(len_bytes), way.name());
        let against = "plain synchronous copies, untouched";
        report.compare(work, against, figures, Target::None).len_bytes = Some(len_bytes);
    }
}

/// A new array in each run, with memory on the host and on the device.
fn ours_untouched(session: &Session, len_bytes: u64, way: Way) -> Outcome<Run<'static>> {
    let (stream, len) = (session.gpu.new_stream()?, (len_bytes / 4) as usize);
    Ok(Box::new(move || {
        if way == Way::Up {
            let array = Floats::from(vec![0.0; len]);
            return timed(|| Ok(array.prefetch(&stream)?), || Ok(stream.synchronize()?));
        }
        let mut array = Floats::uninit(len);
        stream.cudarc().memset_zeros(&mut array.gpu_overwrite_on(&stream)?)?;
        stream.synchronize()?;
        timed(|| array.host().map(|host| drop(black_box(host))).map_err(Fault::from), || Ok(()))
    }))
}

fn plain_untouched(len_bytes: u64, way: Way) -> Outcome<Run<'static>> {
    let (memory, address) = memory_of_twin(len_bytes)?;
    Ok(Box::new(move || {
        let mut host = vec![0.0_f32; memory.len()];
        let copy = || {
            if way == Way::Up {
                bare::upload_sync(address, &host)
            } else {
                bare::download_sync(&mut host, address)
            }
        };
        let took = timed(copy, || Ok(()))?;
        black_box(&host);
        Ok(took)
    }))
}
