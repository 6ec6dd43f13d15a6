//! Programs with explicit device arrays, which say themselves what is copied and when.

use resident::ndarray::{Array1, Array2, Ix1, s};
use resident::{Device, DeviceArray, PinnedArray};

use crate::programs::{
    LAUNCHES, LEN, gpu, grid, through_pinned_memory, twin_chain, up_and_down_by_hand,
};
use crate::{Pair, by_hand, touches};

fn zeros(device: &Device) -> DeviceArray<f32, Ix1> {
    DeviceArray::zeros_on(&device.stream(), LEN).expect("memory")
}

pub(crate) fn a_chain_with_four_device_arrays() -> Pair {
    let (device, kernel) = (gpu(), touches::touch4());
    let [a, b, c, mut d] = [(); 4].map(|()| zeros(&device));
    let ours = move || {
        for _ in 0..LAUNCHES {
            kernel.launch_on(&device.stream(), grid(), (&a, &b, &c, &mut d)).expect("a launch");
        }
        device.stream().synchronize().expect("a wait");
    };
    Pair::new("100 launches with 4 device arrays, one stream", ours, twin_chain(4))
}

pub(crate) fn a_device_array_up_and_down() -> Pair {
    let (device, kernel) = (gpu(), touches::touch1());
    let mut array = zeros(&device);
    let mut host = Array1::<f32>::zeros(LEN);
    let ours = move || {
        array.copy_from_host(&host).expect("an upload");
        kernel.launch_on(&device.stream(), grid(), (&mut array,)).expect("a launch");
        array.copy_to_host_into(&mut host).expect("a download");
        assert!(host[0] > 0.0);
    };
    let (stream, function) = by_hand::stream_and_function(1);
    let mut memory = by_hand::zeros(&stream, LEN);
    let mut host = vec![0.0_f32; LEN];
    let by_hand = move || {
        stream.memcpy_htod(&host, &mut memory).expect("a copy");
        by_hand::launch(&stream, &function, &[], &mut memory);
        stream.memcpy_dtoh(&memory, &mut host).expect("a copy");
        stream.synchronize().expect("a wait");
        assert!(host[0] > 0.0);
    };
    Pair::new("a device array uploaded, launched and downloaded", ours, by_hand)
}

pub(crate) fn columns_between_device_arrays() -> Pair {
    const SIDE: usize = 64;
    let (device, kernel) = (gpu(), touches::touch1());
    let sheet = Array2::<f32>::zeros((SIDE, SIDE));
    let mut from = DeviceArray::from_host_on(&device.stream(), &sheet).expect("memory");
    let mut to = DeviceArray::from_host_on(&device.stream(), &sheet).expect("memory");
    let ours = move || {
        for _ in 0..10 {
            kernel.launch_on(&device.stream(), grid(), (&mut from,)).expect("a launch");
            let columns = from.slice(s![.., 8..24]);
            to.slice_mut(s![.., 40..56]).copy_from_device(&columns).expect("a copy");
        }
        device.stream().synchronize().expect("a wait");
    };
    let (stream, function) = by_hand::stream_and_function(1);
    let mut from = by_hand::zeros(&stream, SIDE * SIDE);
    let mut to = by_hand::zeros(&stream, SIDE * SIDE);
    let by_hand = move || {
        for _ in 0..10 {
            by_hand::launch(&stream, &function, &[], &mut from);
            by_hand::columns(&stream, (&mut from, 8), (&mut to, 40), [SIDE, 16]);
        }
        stream.synchronize().expect("a wait");
    };
    Pair::new("16 columns of 64 copied between device arrays, 10 times", ours, by_hand)
}

const LARGE: usize = 1 << 21;

pub(crate) fn a_large_device_array_up_and_down_pageable() -> Pair {
    let mut array = DeviceArray::zeros_on(&gpu().stream(), LARGE).expect("memory");
    let mut host = Array1::<f32>::ones(LARGE);
    let ours = move || {
        array.copy_from_host(&host).expect("an upload");
        array.copy_to_host_into(&mut host).expect("a download");
        assert!(host[5] > 0.0);
    };
    Pair::new("8 MiB of a device array up and down, pageable", ours, up_and_down_by_hand())
        .but(&through_pinned_memory(4))
}

pub(crate) fn a_large_device_array_up_and_down_pinned() -> Pair {
    let device = gpu();
    let _here = device.enter();
    let mut array = DeviceArray::<f32, _>::zeros(LARGE).expect("memory");
    let mut pinned = PinnedArray::from_array(Array1::<f32>::ones(LARGE)).expect("pinned memory");
    let ours = move || {
        array.copy_from_pinned(&pinned).expect("an upload");
        array.copy_to_pinned(&mut pinned).expect("a download");
        assert!(pinned.host().expect("a wait")[5] > 0.0);
    };
    let context = by_hand::context();
    let stream = context.new_stream().expect("a stream");
    let mut memory = by_hand::zeros(&stream, LARGE);
    // SAFETY: the memory is written before it is read.
    let mut pinned =
        unsafe { context.alloc_pinned_with_flags::<f32>(LARGE, 0) }.expect("pinned memory");
    pinned.as_mut_slice().expect("idle").fill(1.0);
    let by_hand = move || {
        stream.memcpy_htod(&pinned, &mut memory).expect("a copy");
        stream.memcpy_dtoh(&memory, &mut pinned).expect("a copy");
        stream.synchronize().expect("a wait");
        assert!(pinned.as_slice().expect("idle")[5] > 0.0);
    };
    Pair::new("8 MiB of a device array up and down, pinned", ours, by_hand).but(
        "
        cuEventRecord +1: the host waits for the download, and not for later work
        cuStreamSynchronize -1: the same
        cuStreamWaitEvent -2: cudarc orders its pinned slice by events
        cuCtxGetCurrent -2: with those calls
        ",
    )
}

pub(crate) fn a_device_array_copied_behind_a_kernel() -> Pair {
    let (device, kernel) = (gpu(), touches::touch1());
    let mut array = zeros(&device);
    let ours = move || {
        kernel.launch_on(&device.stream(), grid(), (&mut array,)).expect("a launch");
        let copy = array.copy_to_host_on(&device.stream()).expect("queued");
        assert!(copy.wait().expect("a download")[0] > 0.0);
    };
    let (stream, function) = by_hand::stream_and_function(1);
    let copied = stream.context().new_event(None).expect("an event");
    let mut memory = by_hand::zeros(&stream, LEN);
    let by_hand = move || {
        by_hand::launch(&stream, &function, &[], &mut memory);
        let mut copy = vec![0.0_f32; LEN];
        stream.memcpy_dtoh(&memory, &mut copy).expect("a copy");
        copied.record(&stream).expect("an event");
        copied.synchronize().expect("a wait");
        assert!(copy[0] > 0.0);
    };
    Pair::new("16 KiB of a device array as a pending copy behind a kernel", ours, by_hand)
}

pub(crate) fn a_device_array_filled_set_and_read() -> Pair {
    let mut array = zeros(&gpu());
    let ours = move || {
        array.fill(0.5).expect("a fill");
        array.set(5, 2.0).expect("an upload");
        assert!((array.get(5).expect("a download") - 2.0).abs() < f32::EPSILON);
    };
    let stream = by_hand::context().new_stream().expect("a stream");
    let mut memory = by_hand::zeros(&stream, LEN);
    let by_hand = move || {
        by_hand::fill(&stream, &mut memory, 0.5);
        stream.memcpy_htod(&[2.0], &mut memory.slice_mut(5..6)).expect("a copy");
        let mut number = [0.0_f32];
        stream.memcpy_dtoh(&memory.slice(5..6), &mut number).expect("a copy");
        stream.synchronize().expect("a wait");
        assert!((number[0] - 2.0).abs() < f32::EPSILON);
    };
    Pair::new("a device array filled, one number set and read", ours, by_hand).but(
        "
        cuMemsetD32Async +1: one number is set by a fill, which needs no host memory
        cuMemcpyHtoDAsync_v2 -1: the same
        cuEventRecord +1: a user on another stream waits for the fill, not for later work
        cuCtxGetCurrent +1: with that call
        ",
    )
}

/// Memory of other code on the same stream: nothing is copied, and nothing has to wait.
#[cfg(feature = "dlpack")]
pub(crate) fn a_tensor_taken_over_and_handed_out() -> Pair {
    use resident::dlpark::{ffi::DLDataType, versioned::Dlpack};
    use resident::ndarray::Ix2;
    use support::foreign::{ForeignMemory, Form};

    let (device, kernel) = (gpu(), touches::touch1());
    let zeros = vec![0_u32; LEN];
    let foreign = ForeignMemory::of(&device, &zeros);
    let form = Form { dtype: DLDataType::F32, ..Form::rows([64, (LEN / 64) as i64]) };
    let ours = move || {
        let stream = device.stream();
        // SAFETY: nothing else uses the memory until the tensor's deleter is called.
        let array =
            unsafe { DeviceArray::<f32, Ix2>::from_dlpack_on(&stream, form.tensor(&foreign)) };
        let mut array = array.expect("taken over");
        kernel.launch_on(&stream, grid(), (&mut array,)).expect("a launch");
        let tensor: Dlpack = array.into_dlpack_on(&stream).expect("handed out");
        drop(tensor);
        stream.synchronize().expect("a wait");
    };
    let (stream, function) = by_hand::stream_and_function(1);
    let mut memory = by_hand::zeros(&stream, LEN);
    let by_hand = move || {
        by_hand::launch(&stream, &function, &[], &mut memory);
        stream.synchronize().expect("a wait");
    };
    Pair::new("a DLPack tensor taken over, launched on and handed out, one stream", ours, by_hand)
        .but(
            "
        cuCtxGetCurrent +1: the end of the array makes its context current, as each free does
        ",
        )
}
