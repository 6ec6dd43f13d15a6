//! Programs with explicit device arrays, which say themselves what is copied and when.

use resident::ndarray::{Array1, Array2, Ix1, s};
use resident::{Device, DeviceArray};

use crate::programs::{LAUNCHES, LEN, gpu, grid, twin_chain};
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
    Pair {
        name: "100 launches with 4 device arrays, one stream",
        ours: Box::new(ours),
        twin: twin_chain(4),
        extra: &[],
    }
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
    let context = by_hand::context();
    let (stream, function) =
        (context.new_stream().expect("a stream"), by_hand::function(&context, 1));
    let mut memory = by_hand::zeros(&stream, LEN);
    let mut host = vec![0.0_f32; LEN];
    let by_hand = move || {
        stream.memcpy_htod(&host, &mut memory).expect("a copy");
        by_hand::launch(&stream, &function, &[], &mut memory);
        stream.memcpy_dtoh(&memory, &mut host).expect("a copy");
        stream.synchronize().expect("a wait");
        assert!(host[0] > 0.0);
    };
    Pair {
        name: "a device array uploaded, launched and downloaded",
        ours: Box::new(ours),
        twin: Box::new(by_hand),
        extra: &[],
    }
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
    let context = by_hand::context();
    let (stream, function) =
        (context.new_stream().expect("a stream"), by_hand::function(&context, 1));
    let mut from = by_hand::zeros(&stream, SIDE * SIDE);
    let mut to = by_hand::zeros(&stream, SIDE * SIDE);
    let by_hand = move || {
        for _ in 0..10 {
            by_hand::launch(&stream, &function, &[], &mut from);
            by_hand::columns(&stream, (&mut from, 8), (&mut to, 40), [SIDE, 16]);
        }
        stream.synchronize().expect("a wait");
    };
    Pair {
        name: "16 columns of 64 copied between device arrays, 10 times",
        ours: Box::new(ours),
        twin: Box::new(by_hand),
        extra: &[],
    }
}
