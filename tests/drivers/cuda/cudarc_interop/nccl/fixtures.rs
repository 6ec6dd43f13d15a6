//! Ranks, in one thread or in several, and a kernel between their messages.

use std::panic::{AssertUnwindSafe, catch_unwind};

use resident::cudarc::driver::{CudaFunction, LaunchConfig, PushKernelArg};
use resident::nccl::{self, Comm};
use resident::ndarray::Dimension;
use resident::{AsViewMut, Device, Stream};
use resident_stand_in::{self as stand_in, Access, Length, Parameter};

use crate::cudarc_interop::bench::{Bench, function};

pub(super) fn open(devices: u32) -> Bench {
    let bench = Bench::with_devices(devices);
    resident_stand_in_nccl::load().expect("what stands for NCCL loads");
    bench
}

/// A rank: its communicator, and the stream that it uses.
pub(super) struct Rank {
    pub(super) comm: Comm,
    pub(super) stream: Stream,
}

/// So many ranks of one communicator, on the first devices. The calling thread's context is that of
/// the last one before the first rank joins.
pub(super) fn ranks<const RANKS: usize>() -> [Rank; RANKS] {
    let id = nccl::new_id().expect("an id");
    let stream = |rank| Device::cuda(rank).expect("a device").new_stream().expect("a stream");
    let streams: [Stream; RANKS] = std::array::from_fn(stream);
    let mut number = 0..RANKS;
    streams.map(|stream| {
        let rank = number.next().expect("one for each");
        Rank { comm: nccl::join(id, rank, RANKS, &stream).expect("it joins"), stream }
    })
}

/// Two devices, and a rank on each.
pub(super) fn two_ranks() -> (Bench, [Rank; 2]) {
    (open(2), ranks())
}

/// Runs all ranks, each on a thread of its own, and returns what they return. A rank that panics
/// ends the process, since the others would wait for it.
pub(super) fn on_threads<R: Send>(ranks: usize, run: impl Fn(&Rank) -> R + Sync) -> Vec<R> {
    let (id, run) = (nccl::new_id().expect("an id"), &run);
    let rank = move |rank: usize| {
        let device = Device::cuda(rank).expect("a device");
        let _here = device.enter();
        let stream = device.new_stream().expect("a stream");
        let rank = Rank { comm: nccl::join(id, rank, ranks, &stream).expect("it joins"), stream };
        let result = run(&rank);
        // Dropping the communicator ends what is still queued.
        rank.stream.synchronize().expect("nothing failed");
        result
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|number| {
                scope.spawn(move || {
                    catch_unwind(AssertUnwindSafe(|| rank(number)))
                        .unwrap_or_else(|_| std::process::exit(101))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it did not panic")).collect()
    })
}

/// A kernel that adds 1 to so many elements.
pub(super) fn raising(gpu: &Device, name: &str) -> CudaFunction {
    let elements = Parameter::Pointer {
        access: Access::ReadWrite,
        length: Length::Counted { by: 1, element_bytes: 4 },
    };
    stand_in::register(name, &[elements, Parameter::Scalar { len_bytes: 8 }], |launch| {
        // SAFETY: the driver keeps the memory during the launch and reports other accesses.
        unsafe { launch.slice_mut::<f32>(0) }.iter_mut().for_each(|element| *element += 1.0);
        Ok(())
    });
    function(gpu, name, 2)
}

/// Launches such a kernel on a part.
pub(super) fn raise<D: Dimension>(
    kernel: &CudaFunction,
    stream: &Stream,
    part: &mut impl AsViewMut<f32, D>,
) {
    let (mut view, cudarc) = (part.as_view_mut(), stream.cudarc());
    let mut guard = view.gpu_mut_on(stream).expect("it is there");
    let count = guard.len() as u64;
    let mut builder = cudarc.launch_builder(kernel);
    builder.arg(&mut guard).arg(&count);
    // SAFETY: the host function accesses only the elements of the guard, which has no gaps.
    unsafe { builder.launch(LaunchConfig::for_num_elems(1)) }.expect("a launch");
}
