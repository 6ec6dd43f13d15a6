//! One row of a matrix, or one face of a cube, is changed on the host between launches that read
//! the whole array. Only the part needs to be copied.

use std::sync::Arc;

use resident::cudarc::driver::{CudaFunction, CudaSlice, CudaStream};
use resident::ndarray::{Array, ArrayViewMut, Axis, Dimension, Ix2, Ix3, RemoveAxis};
use resident::{SmartArray, Stream};

use crate::measure::{Contender, Run, Took, timed};
use crate::report::{Report, Target};
use crate::rows::launches::Floats;
use crate::session::Session;
use resident_benches::gpu::fault::{Fault, Outcome};
use resident_benches::gpu::ours::{PARTS, partial_sum, parts};
use resident_benches::gpu::twin::{self, HostMemory, Twin, bare};

/// An array, and the axis along which the part is selected.
#[derive(Clone)]
struct Case<D> {
    what: String,
    shape: D,
    axis: usize,
}

pub fn measure(session: &Session, report: &mut Report) -> Outcome {
    let (side, edge) = (session.size(4096, 64), session.size(512, 16));
    session.expect(4);
    let what = format!("one row of {side} x {side}");
    case(session, report, &Case { what, shape: Ix2(side, side), axis: 0 });
    for axis in 0..3 {
        let what = format!("one face of {edge} x {edge} x {edge}, across axis {axis}");
        case(session, report, &Case { what, shape: Ix3(edge, edge, edge), axis });
    }
    Ok(())
}

fn case<D: Dimension + RemoveAxis + 'static>(
    session: &Session,
    report: &mut Report,
    case: &Case<D>,
) {
    let measured = session.measure(vec![
        Contender::new("ours", || ours(session, case)),
        Contender::new("whole", || whole(case)),
        Contender::new("managed", || managed(case)),
    ]);
    for (theirs, against) in [(1, "the whole array, pinned"), (2, "managed memory")] {
        let figures = [0, theirs].map(|index| measured[index].figure(|took: &Took| took.finish_s));
        report.compare(case.what.clone(), against, figures, Target::Faster);
    }
    let (holds, value) = match bytes_moved(session, case) {
        Ok((moved, part)) => {
            (moved == part, format!("{moved} bytes uploaded; the part has {part}"))
        }
        Err(fault) => (false, fault.to_string()),
    };
    report.add_fact(format!("{}: bytes moved", case.what), value, Some(holds));
}

/// An array on the GPU, and the partial sums that a launch computes from it.
struct Summed<D: Dimension> {
    array: SmartArray<f32, D>,
    sums: Floats,
    kernel: resident_benches::gpu::ours::PartialSum,
    stream: Stream,
    axis: usize,
}

impl<D: Dimension + RemoveAxis> Summed<D> {
    fn new(session: &Session, case: &Case<D>) -> Outcome<Self> {
        let array = SmartArray::from(Array::<f32, D>::zeros(case.shape.clone()));
        let stream = session.gpu.new_stream()?;
        array.prefetch(&stream)?;
        stream.synchronize()?;
        let sums = Floats::uninit(PARTS);
        Ok(Self { array, sums, kernel: partial_sum(), stream, axis: case.axis })
    }

    /// Changes the part on the host, then launches a kernel that reads the whole array.
    fn turn(&mut self, value: f32) -> Outcome {
        let (axis, extent) = (self.axis, self.array.shape()[self.axis]);
        part_mut(&mut self.array, axis, extent / 2, value)?;
        let arguments = (&self.array, &mut self.sums, self.array.len() as u64);
        Ok(self.kernel.launch_on(&self.stream, parts(), arguments)?)
    }
}

/// The part at `index` of the axis, to overwrite on the host.
fn part_mut<D: Dimension + RemoveAxis>(
    array: &mut SmartArray<f32, D>,
    axis: usize,
    index: usize,
    value: f32,
) -> Outcome {
    let (_before, rest) = array.split_at_mut(Axis(axis), index);
    let (mut part, _behind) = rest.split_at(Axis(axis), 1);
    part.host_overwrite()?.fill(value);
    Ok(())
}

fn ours<D: Dimension + RemoveAxis + 'static>(
    session: &Session,
    case: &Case<D>,
) -> Outcome<Run<'static>> {
    let mut summed = Summed::new(session, case)?;
    let mut value = 0.0;
    Ok(Box::new(move || {
        value += 1.0;
        let stream = summed.stream.clone();
        timed(|| summed.turn(value), || Ok(stream.synchronize()?))
    }))
}

/// The bytes that one iteration copies to the device, and the bytes of the part.
fn bytes_moved<D: Dimension + RemoveAxis + 'static>(
    session: &Session,
    case: &Case<D>,
) -> Outcome<(u64, u64)> {
    let mut summed = Summed::new(session, case)?;
    let before = summed.array.traffic();
    summed.turn(1.0)?;
    summed.stream.synchronize()?;
    let after = summed.array.traffic();
    let downloaded = after.to_host.bytes - before.to_host.bytes;
    if downloaded > 0 {
        return Err(Fault::new(format_args!("{downloaded} bytes were downloaded")));
    }
    let part_len = summed.array.len() / summed.array.shape()[case.axis];
    Ok((after.to_device.bytes - before.to_device.bytes, 4 * part_len as u64))
}

/// What the two competitors share: host memory, and a launch that gets a device address.
struct Theirs {
    host: HostMemory<f32>,
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    sums: CudaSlice<f32>,
}

impl Theirs {
    fn new(twin: &Twin, host: HostMemory<f32>) -> Outcome<Self> {
        let (stream, kernel) = (twin.stream()?, twin.function("partial_sum")?);
        Ok(Self { host, kernel, sums: twin::zeros(&stream, PARTS)?, stream })
    }

    fn change<D: Dimension + RemoveAxis>(&mut self, case: &Case<D>, value: f32) -> Outcome {
        let mut all =
            ArrayViewMut::from_shape(case.shape.clone(), self.host.host()).map_err(Fault::new)?;
        let index = all.len_of(Axis(case.axis)) / 2;
        all.index_axis_mut(Axis(case.axis), index).fill(value);
        Ok(())
    }

    fn launch(&mut self, address: u64, len: usize) -> Outcome {
        twin::partial_sum(&self.stream, &self.kernel, address, &mut self.sums, len)
    }
}

/// Uploads the whole array each time.
fn whole<D: Dimension + RemoveAxis + 'static>(case: &Case<D>) -> Outcome<Run<'static>> {
    let (twin, case) = (Twin::untracked()?, case.clone());
    let len = case.shape.size();
    let host = HostMemory::pinned(&twin.context, len)?;
    let mut theirs = Theirs::new(&twin, host)?;
    let memory: CudaSlice<f32> = twin::zeros(&theirs.stream, len)?;
    let mut value = 0.0;
    Ok(Box::new(move || {
        value += 1.0;
        let (stream, address) = (theirs.stream.clone(), twin::address(&memory, &theirs.stream));
        let queue = || {
            theirs.change(&case, value)?;
            bare::upload(&theirs.stream, address, theirs.host.host())?;
            theirs.launch(address, len)
        };
        timed(queue, || Ok(stream.synchronize()?))
    }))
}

/// Managed memory: the driver copies the accessed pages.
fn managed<D: Dimension + RemoveAxis + 'static>(case: &Case<D>) -> Outcome<Run<'static>> {
    let (twin, case) = (Twin::untracked()?, case.clone());
    let len = case.shape.size();
    let host = HostMemory::managed(&twin.context, len)?;
    let mut theirs = Theirs::new(&twin, host)?;
    let mut value = 0.0;
    Ok(Box::new(move || {
        value += 1.0;
        let stream = theirs.stream.clone();
        let queue = || {
            theirs.change(&case, value)?;
            theirs.launch(theirs.host.address(), len)
        };
        timed(queue, || Ok(stream.synchronize()?))
    }))
}
