//! The programs, each written twice.

use std::sync::Arc;

use resident::cudarc::driver::{CudaSlice, CudaStream};
use resident::ndarray::{Array1, Array2, Array3, Ix1, s};
use resident::{Device, Grid, Result, SmartArray, Stream};

use crate::{Pair, by_hand, touches};
use resident_benches::gpu::programs::{conjugate_gradient, photos};

pub(crate) const LEN: usize = 1 << 12;
pub(crate) const LAUNCHES: usize = 100;

type Floats = SmartArray<f32, Ix1>;

pub(crate) fn gpu() -> Device {
    Device::cuda(0).expect("the stand-in driver has a device")
}

fn arrays(count: usize, device: &Device) -> Vec<Floats> {
    let array = |_| {
        let array = Floats::from(Array1::zeros(LEN));
        array.prefetch(&device.stream()).expect("an upload");
        array
    };
    (0..count).map(array).collect()
}

pub(crate) fn grid() -> Grid {
    Grid::new(1, 256)
}

/// The chain of launches on one stream, in a twin.
pub(crate) fn twin_chain(arrays: usize) -> Box<dyn FnMut()> {
    let context = by_hand::context();
    let stream = context.new_stream().expect("a stream");
    let function = by_hand::function(&context, arrays);
    let inputs: Vec<CudaSlice<f32>> = (1..arrays).map(|_| by_hand::zeros(&stream, LEN)).collect();
    let mut output = by_hand::zeros(&stream, LEN);
    Box::new(move || {
        let inputs: Vec<&CudaSlice<f32>> = inputs.iter().collect();
        (0..LAUNCHES).for_each(|_| by_hand::launch(&stream, &function, &inputs, &mut output));
        stream.synchronize().expect("a wait");
    })
}

/// A sequence of launches on one stream, compared with a twin that uses the same number of arrays.
fn chain(
    name: &'static str,
    count: usize,
    launch: impl Fn(&Stream, &mut [Floats]) -> Result<()> + 'static,
) -> Pair {
    let device = gpu();
    let mut all = arrays(count, &device);
    let ours = move || {
        (0..LAUNCHES).for_each(|_| launch(&device.stream(), &mut all).expect("a launch"));
        device.stream().synchronize().expect("a wait");
    };
    Pair::new(name, ours, twin_chain(count))
}

pub(crate) fn a_chain_with_one_array() -> Pair {
    let kernel = touches::touch1();
    chain("100 launches with 1 array, one stream", 1, move |stream, all| {
        kernel.launch_on(stream, grid(), (&mut all[0],))
    })
}

pub(crate) fn a_chain_with_four_arrays() -> Pair {
    let kernel = touches::touch4();
    chain("100 launches with 4 arrays, one stream", 4, move |stream, all| {
        let [a, b, c, d] = all else { unreachable!("four arrays") };
        kernel.launch_on(stream, grid(), (&*a, &*b, &*c, d))
    })
}

pub(crate) fn a_chain_with_eight_arrays() -> Pair {
    let kernel = touches::touch8();
    chain("100 launches with 8 arrays, one stream", 8, move |stream, all| {
        let [a, b, c, d, e, f, g, h] = all else { unreachable!("eight arrays") };
        kernel.launch_on(stream, grid(), (&*a, &*b, &*c, &*d, &*e, &*f, &*g, h))
    })
}

pub(crate) fn a_chain_with_sixteen_arrays() -> Pair {
    let kernel = touches::touch16();
    chain("100 launches with 16 arrays, one stream", 16, move |stream, all| {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = all else {
            unreachable!("sixteen arrays")
        };
        let (a, b, c, d, e, f, g, h) = (&*a, &*b, &*c, &*d, &*e, &*f, &*g, &*h);
        let (i, j, k, l, m, n, o) = (&*i, &*j, &*k, &*l, &*m, &*n, &*o);
        kernel.launch_on(stream, grid(), (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p))
    })
}

/// A sequence of launches on a stream of its own, with arrays that `prepare` used on the default
/// stream before.
fn chain_after(
    name: &'static str,
    prepare: impl Fn(&Stream, &mut [Floats]) -> Result<()> + 'static,
) -> Pair {
    let (device, kernel) = (gpu(), touches::touch4());
    let stream = device.new_stream().expect("a stream");
    let mut all = arrays(4, &device);
    prepare(&device.stream(), &mut all).expect("an earlier use");
    let ours = move || {
        let [a, b, c, d] = &mut all[..] else { unreachable!("four arrays") };
        for _ in 0..LAUNCHES {
            kernel.launch_on(&stream, grid(), (&*a, &*b, &*c, &mut *d)).expect("a launch");
        }
        stream.synchronize().expect("a wait");
    };
    Pair::new(name, ours, twin_chain(4))
}

pub(crate) fn a_chain_after_a_prefetch_on_another_stream() -> Pair {
    chain_after("100 launches, their arrays prefetched on another stream", |_, _| Ok(()))
}

pub(crate) fn a_chain_with_arrays_that_two_streams_used() -> Pair {
    let kernel = touches::touch4();
    chain_after("100 launches, their arrays once written by two streams", move |stream, all| {
        let other = stream.device().new_stream()?;
        for stream in [stream, &other, stream, &other] {
            for written in 0..4 {
                all.rotate_left(written);
                let [a, b, c, d] = &mut *all else { unreachable!("four arrays") };
                kernel.launch_on(stream, grid(), (&*a, &*b, &*c, d))?;
            }
        }
        Ok(())
    })
}

pub(crate) fn one_stream_writes_and_one_reads() -> Pair {
    let (device, kernel, writer) = (gpu(), touches::touch4(), touches::touch1());
    let [writing, reading] = [(); 2].map(|()| device.new_stream().expect("a stream"));
    let (mut shared, inputs) = (arrays(1, &device), arrays(2, &device));
    let mut outputs = arrays(1, &device);
    let ours = move || {
        for _ in 0..LAUNCHES / 2 {
            writer.launch_on(&writing, grid(), (&mut shared[0],)).expect("a launch");
            kernel
                .launch_on(&reading, grid(), (&shared[0], &inputs[0], &inputs[1], &mut outputs[0]))
                .expect("a launch");
        }
        [&writing, &reading].iter().for_each(|stream| stream.synchronize().expect("a wait"));
    };
    Pair::new("50 rounds over 2 streams: one writes, the other reads", ours, two_streams_by_hand())
        .but(
            "
        cuStreamWaitEvent -1: the first round's writer does not wait for a reader that is known to
            be complete
        cuCtxGetCurrent -1: with that call
        ",
        )
}

/// An event is recorded after each launch, and the other stream's next launch waits for it.
fn two_streams_by_hand() -> Box<dyn FnMut()> {
    let context = by_hand::context();
    let [writing, reading] = [(); 2].map(|()| context.new_stream().expect("a stream"));
    let [written, read] = [(); 2].map(|()| context.new_event(None).expect("an event"));
    let (kernel, writer) = (by_hand::function(&context, 4), by_hand::function(&context, 1));
    let mut shared = by_hand::zeros(&writing, LEN);
    let inputs = [by_hand::zeros(&writing, LEN), by_hand::zeros(&writing, LEN)];
    let mut output = by_hand::zeros(&writing, LEN);
    context.synchronize().expect("a wait");
    Box::new(move || {
        for _ in 0..LAUNCHES / 2 {
            writing.wait(&read).expect("an order");
            by_hand::launch(&writing, &writer, &[], &mut shared);
            written.record(&writing).expect("an event");
            reading.wait(&written).expect("an order");
            by_hand::launch(&reading, &kernel, &[&shared, &inputs[0], &inputs[1]], &mut output);
            read.record(&reading).expect("an event");
        }
        [&writing, &reading].iter().for_each(|stream| stream.synchronize().expect("a wait"));
    })
}

pub(crate) fn four_streams_with_a_shared_input() -> Pair {
    let (device, kernel, writer) = (gpu(), touches::touch4(), touches::touch1());
    let streams: Vec<Stream> = (0..4).map(|_| device.new_stream().expect("a stream")).collect();
    let mut shared = arrays(1, &device);
    let (inputs, mut outputs) = (arrays(2, &device), arrays(4, &device));
    let ours = move || {
        for _ in 0..LAUNCHES / 5 {
            writer.launch_on(&streams[0], grid(), (&mut shared[0],)).expect("a launch");
            for (stream, output) in streams.iter().zip(&mut outputs) {
                kernel
                    .launch_on(stream, grid(), (&shared[0], &inputs[0], &inputs[1], output))
                    .expect("a launch");
            }
        }
        streams.iter().for_each(|stream| stream.synchronize().expect("a wait"));
    };
    Pair::new("20 rounds over 4 streams: one writes, all four read", ours, four_streams_by_hand())
        .but(
            "
        cuStreamWaitEvent -3: the first round's writer does not wait for readers that are known to
            be complete
        cuCtxGetCurrent -3: one per omitted wait
        ",
        )
}

/// An event is recorded after the shared input is written, and each reader waits for it. An event
/// is recorded after each reader's launch, and the next writer waits for these.
fn four_streams_by_hand() -> Box<dyn FnMut()> {
    let context = by_hand::context();
    let streams: Vec<Arc<CudaStream>> =
        (0..4).map(|_| context.new_stream().expect("a stream")).collect();
    let events: Vec<_> = (0..5).map(|_| context.new_event(None).expect("an event")).collect();
    let (kernel, writer) = (by_hand::function(&context, 4), by_hand::function(&context, 1));
    let mut shared = by_hand::zeros(&streams[0], LEN);
    let inputs = [by_hand::zeros(&streams[0], LEN), by_hand::zeros(&streams[0], LEN)];
    let mut outputs: Vec<CudaSlice<f32>> =
        (0..4).map(|_| by_hand::zeros(&streams[0], LEN)).collect();
    context.synchronize().expect("a wait");
    Box::new(move || {
        for _ in 0..LAUNCHES / 5 {
            (1..4).for_each(|reader| streams[0].wait(&events[reader]).expect("an order"));
            by_hand::launch(&streams[0], &writer, &[], &mut shared);
            events[4].record(&streams[0]).expect("an event");
            for (reader, output) in outputs.iter_mut().enumerate() {
                if reader > 0 {
                    streams[reader].wait(&events[4]).expect("an order");
                }
                by_hand::launch(
                    &streams[reader],
                    &kernel,
                    &[&shared, &inputs[0], &inputs[1]],
                    output,
                );
                if reader > 0 {
                    events[reader].record(&streams[reader]).expect("an event");
                }
            }
        }
        streams.iter().for_each(|stream| stream.synchronize().expect("a wait"));
    })
}

pub(crate) fn four_bytes_after_a_kernel() -> Pair {
    let (device, kernel) = (gpu(), touches::touch1());
    let mut all = arrays(1, &device);
    let ours = move || {
        kernel.launch_on(&device.stream(), grid(), (&mut all[0],)).expect("a launch");
        assert!(all[0].get(0).expect("a number") > 0.0);
    };
    let (stream, function) = by_hand::stream_and_function(1);
    let mut output = by_hand::zeros(&stream, LEN);
    let by_hand = move || {
        by_hand::launch(&stream, &function, &[], &mut output);
        let mut number = [0.0_f32];
        stream.memcpy_dtoh(&output.slice(0..1), &mut number).expect("a copy");
        stream.synchronize().expect("a wait");
        assert!(number[0] > 0.0);
    };
    Pair::new("4 bytes to the host after a kernel", ours, by_hand)
}

pub(crate) fn up_and_down_pinned() -> Pair {
    let device = gpu();
    let _here = device.enter();
    let mut array = SmartArray::from(vec![1.0_f32; 1 << 21]);
    array.page_lock().expect("pinned memory");
    let ours = move || {
        drop(array.host_mut().expect("the host's copy"));
        drop(array.gpu_mut_on(&device.stream()).expect("an upload"));
        assert!(array.host().expect("a download")[5] > 0.0);
    };
    let context = by_hand::context();
    let stream = context.new_stream().expect("a stream");
    let mut memory = by_hand::zeros(&stream, 1 << 21);
    // SAFETY: the memory is written before it is read.
    let mut pinned =
        unsafe { context.alloc_pinned_with_flags::<f32>(1 << 21, 0) }.expect("pinned memory");
    pinned.as_mut_slice().expect("idle").fill(1.0);
    let by_hand = move || {
        stream.memcpy_htod(&pinned, &mut memory).expect("a copy");
        stream.memcpy_dtoh(&memory, &mut pinned).expect("a copy");
        stream.synchronize().expect("a wait");
        assert!(pinned.as_slice().expect("idle")[5] > 0.0);
    };
    Pair::new("8 MiB uploaded and downloaded, pinned", ours, by_hand).but(
        "
        cuEventSynchronize -1: cudarc also waits for the event of its pinned slice
        cuStreamWaitEvent -2: cudarc orders its pinned slice by events
        cuCtxGetCurrent -3: with those calls
        ",
    )
}

pub(crate) fn up_and_down_at_once() -> Pair {
    let device = gpu();
    let _here = device.enter();
    let (up, down) =
        (device.new_stream().expect("a stream"), device.new_stream().expect("a stream"));
    let (mut rising, mut falling) =
        (SmartArray::from(vec![1.0_f32; 1 << 21]), SmartArray::from(vec![2.0_f32; 1 << 21]));
    [&rising, &falling].into_iter().for_each(|array| array.page_lock().expect("pinned memory"));
    let ours = move || {
        drop(rising.host_mut().expect("the host's copy"));
        drop(falling.gpu_mut_on(&down).expect("the device's copy"));
        rising.prefetch(&up).expect("an upload");
        assert!(falling.host().expect("a download")[5] > 0.0);
        up.synchronize().expect("a wait");
    };
    let context = by_hand::context();
    let (up, down) =
        (context.new_stream().expect("a stream"), context.new_stream().expect("a stream"));
    let (mut above, below) = (by_hand::zeros(&up, 1 << 21), by_hand::zeros(&down, 1 << 21));
    let pinned = || {
        // SAFETY: the memory is written before it is read.
        let mut pinned =
            unsafe { context.alloc_pinned_with_flags::<f32>(1 << 21, 0) }.expect("pinned memory");
        pinned.as_mut_slice().expect("idle").fill(1.0);
        pinned
    };
    let (rising, mut falling) = (pinned(), pinned());
    let by_hand = move || {
        up.memcpy_htod(&rising, &mut above).expect("a copy");
        down.memcpy_dtoh(&below, &mut falling).expect("a copy");
        down.synchronize().expect("a wait");
        up.synchronize().expect("a wait");
    };
    Pair::new("8 MiB each way at once, pinned", ours, by_hand).but(
        "
        cuEventRecord +1: a prefetch records an event, so that a later user waits for nothing more
        cuStreamWaitEvent -2: cudarc orders its pinned slices by events
        cuCtxGetCurrent -1: with those calls
        ",
    )
}

pub(crate) fn a_face_of_a_cube_changed_between_launches() -> Pair {
    const SIDE: usize = 16;
    let (device, kernel) = (gpu(), touches::touch1());
    let mut cube = SmartArray::from(Array3::<f32>::zeros((SIDE, SIDE, SIDE)));
    let ours = move || {
        for _ in 0..10 {
            cube.slice_mut(s![.., 3, ..]).into_host_mut().expect("the face").fill(1.0);
            kernel.launch_on(&device.stream(), grid(), (&mut cube,)).expect("a launch");
        }
        device.stream().synchronize().expect("a wait");
    };
    let (stream, function) = by_hand::stream_and_function(1);
    let mut memory = by_hand::zeros(&stream, SIDE * SIDE * SIDE);
    let by_hand = move || {
        let mut face = vec![0.0_f32; SIDE * SIDE];
        for _ in 0..10 {
            // The device's copy is newer: the face is downloaded before it is changed.
            by_hand::face(&stream, &mut memory, &mut face, SIDE, 3, false);
            stream.synchronize().expect("a wait");
            face.fill(1.0);
            by_hand::face(&stream, &mut memory, &mut face, SIDE, 3, true);
            by_hand::launch(&stream, &function, &[], &mut memory);
        }
        stream.synchronize().expect("a wait");
    };
    Pair::new("one face of 16 changed on the host between launches, 10 times", ours, by_hand)
}

pub(crate) fn up_and_down_ordinary() -> Pair {
    let device = gpu();
    let mut array = SmartArray::from(vec![1.0_f32; 1 << 21]);
    let ours = move || {
        drop(array.host_mut().expect("the host's copy"));
        drop(array.gpu_mut_on(&device.stream()).expect("an upload"));
        assert!(array.host().expect("a download")[5] > 0.0);
    };
    Pair::new("8 MiB uploaded and downloaded, pageable", ours, up_and_down_by_hand())
        .but(&through_pinned_memory(5))
}

/// 8 MiB of pageable memory, up and down.
pub(crate) fn up_and_down_by_hand() -> Box<dyn FnMut()> {
    let stream = by_hand::context().new_stream().expect("a stream");
    let mut memory = by_hand::zeros(&stream, 1 << 21);
    let mut ordinary = vec![1.0_f32; 1 << 21];
    Box::new(move || {
        stream.memcpy_htod(&ordinary, &mut memory).expect("a copy");
        stream.memcpy_dtoh(&memory, &mut ordinary).expect("a copy");
        stream.synchronize().expect("a wait");
        assert!(ordinary[5] > 0.0);
    })
}

/// The calls that this library makes in addition to that program.
pub(crate) fn through_pinned_memory(contexts: i64) -> String {
    format!(
        "
        cuMemcpyHtoDAsync_v2 +1: the copy goes through pinned memory in chunks of 4 MiB; the twin
            leaves that to the driver
        cuMemcpyDtoHAsync_v2 +1: the same
        cuEventRecord +1: the host unpacks the first chunk of the download while the second is
            downloaded
        cuEventSynchronize +1: the same
        cuCtxGetCurrent {contexts:+}: with those calls
        "
    )
}

pub(crate) fn one_row_changed_between_launches() -> Pair {
    const ROWS: usize = 64;
    let (device, kernel) = (gpu(), touches::touch1());
    let mut sheet = SmartArray::from(Array2::<f32>::zeros((ROWS, ROWS)));
    let ours = move || {
        for row in 0..10 {
            sheet.slice_mut(s![row, ..]).into_host_mut().expect("the row").fill(1.0);
            kernel.launch_on(&device.stream(), grid(), (&mut sheet,)).expect("a launch");
        }
        device.stream().synchronize().expect("a wait");
    };
    let (stream, function) = by_hand::stream_and_function(1);
    let mut memory = by_hand::zeros(&stream, ROWS * ROWS);
    let mut host = vec![0.0_f32; ROWS * ROWS];
    let by_hand = move || {
        for row in 0..10 {
            let range = row * ROWS..(row + 1) * ROWS;
            // The device's copy is newer: the row is downloaded before it is changed.
            stream
                .memcpy_dtoh(&memory.slice(range.clone()), &mut host[range.clone()])
                .expect("a copy");
            stream.synchronize().expect("a wait");
            host[range.clone()].fill(1.0);
            stream.memcpy_htod(&host[range.clone()], &mut memory.slice_mut(range)).expect("a copy");
            by_hand::launch(&stream, &function, &[], &mut memory);
        }
        stream.synchronize().expect("a wait");
    };
    Pair::new("one row of 64 changed on the host between launches, 10 times", ours, by_hand)
}

pub(crate) fn a_pipeline_of_kernels() -> Pair {
    let (device, kernel) = (gpu(), touches::touch4());
    let ours = move || {
        let inputs: Vec<Floats> = (0..3).map(|_| Floats::from(Array1::zeros(LEN))).collect();
        let mut output = Floats::from(Array1::zeros(LEN));
        for _ in 0..50 {
            kernel
                .launch_on(
                    &device.stream(),
                    grid(),
                    (&inputs[0], &inputs[1], &inputs[2], &mut output),
                )
                .expect("a launch");
        }
        assert!(output.host().expect("a download")[0] > 0.0);
    };
    let (stream, function) = by_hand::stream_and_function(4);
    let by_hand = move || {
        let host = vec![0.0_f32; LEN];
        let up = |_| stream.clone_htod(&host).expect("a copy");
        let inputs: Vec<CudaSlice<f32>> = (0..3).map(up).collect();
        let mut output = up(3);
        let inputs: Vec<&CudaSlice<f32>> = inputs.iter().collect();
        (0..50).for_each(|_| by_hand::launch(&stream, &function, &inputs, &mut output));
        let mut down = vec![0.0_f32; LEN];
        stream.memcpy_dtoh(&output, &mut down).expect("a copy");
        stream.synchronize().expect("a wait");
        assert!(down[0] > 0.0);
    };
    Pair::new("4 uploads, 50 launches, 1 download, all freed", ours, by_hand).but(
        "
        cuMemAllocFromPoolAsync +4: resident allocates from its own pool, the twin from the
            device's default pool
        cuMemAllocAsync -4: instead of these
        cuCtxGetCurrent +4: each free makes its context current first, which cudarc omits (its hole
            d)
        ",
    )
}

pub(crate) fn a_solver_of_conjugate_gradients() -> Pair {
    // Each step has products of 262,144 threads that wait for each other.
    const SIDE: usize = 4;
    let mut solver = conjugate_gradient::by_resident::Solver::new(&gpu(), SIDE).expect("a solver");
    let ours = move || assert_eq!(solver.solve().expect("a solution").steps, 10);
    let mut solver = conjugate_gradient::by_hand::Solver::new(SIDE).expect("a solver");
    let by_hand = move || assert_eq!(solver.solve().expect("a solution").steps, 10);
    Pair::new("conjugate gradient, 10 steps", ours, by_hand).but(
        "
        cuMemAllocFromPoolAsync +8: resident allocates from its own pool, the twin from the
            device's default pool
        cuMemAllocAsync -8: instead of these
        cuMemcpyHtoDAsync_v2 +2: the driver cannot fill with a pattern of 8 bytes, so ones are
            uploaded
        cuMemcpyDtoDAsync_v2 -2: the twin copies from ones that it keeps
        cuMemsetD8Async -5: memory that is written before it is read is not zeroed first, unlike in
            cudarc's safe `alloc_zeros`
        cuCtxGetCurrent +3: each free makes its context current first, which cudarc omits; minus
            the fills
        ",
    )
}

pub(crate) fn photographs_overlapped() -> Pair {
    const SHAPE: (usize, usize, usize) = (24, 32, 3);
    const COUNT: usize = 8;
    let photos = || {
        (0..COUNT)
            .map(|index| {
                Array3::from_shape_fn(SHAPE, |(row, column, _)| (row * column + 31 * index) as u8)
            })
            .collect()
    };
    let ours_studio = photos::by_resident::Studio::new(&gpu()).expect("a studio");
    let mut studio = photos::by_hand::Studio::new(SHAPE).expect("a studio");
    let ours = move || assert_eq!(ours_studio.process(photos(), 1).expect("photographs").len(), 1);
    let by_hand = move || assert_eq!(studio.process(photos(), 1).expect("photographs").len(), 1);
    Pair::new("8 photographs over 3 streams", ours, by_hand).but(
        "
        cuMemAllocFromPoolAsync +88: resident allocates from its own pool, the twin from the
            device's default pool
        cuMemAllocAsync -88: instead of these
        cuEventRecord +8: the kernel that reads the photograph follows its upload on another
            stream, so an event is recorded on the guess that a third stream waits for the kernel
        cuMemFreeAsync 0: each array is freed where its scope ends, the twin's at the end
        cuMemsetD8Async 0: zeros are filled in when their array is first used
        cuCtxGetCurrent +112: each free makes its context current first, which cudarc omits; and
            with the events
        ",
    )
}
