//! Explicit device arrays of two kinds of devices, on the stand-in driver.

use resident::ndarray::{Array1, s};
use resident::{Device, DeviceArray, Error, Grid, InOut, Kernel, SmartArray, Validity};
use resident_stand_in::Settings;
use support::in_own_process;

/// Devices that cannot access each other's memory: the source stays on its device only.
#[test]
fn a_device_array_is_copied_to_another_kind_of_device_and_stays_where_it_is() {
    let gpu = in_own_process!(support::driver::open(Settings::new().seed(7), 1).remove(0));
    let here = Device::cpu();
    let contents = Array1::from_iter(0..64_u32);
    let mut from = DeviceArray::from_host_on(&here.stream(), &contents).expect("memory");
    let mut to = DeviceArray::<u32, _>::uninit_on(&gpu.stream(), 64).expect("memory");
    to.copy_from_device(&from).expect("copied");
    assert_eq!(to.copy_to_host().expect("copied"), contents);
    let before = gpu.memory().in_use;
    let add = Kernel::<(InOut<u32>,)>::new("add")
        .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x += 1));
    let refused = add.launch_on(&gpu.stream(), Grid::cover(64), (&mut from,));
    assert!(matches!(refused, Err(Error::WrongDevice { .. } | Error::NoKernelBody { .. })));
    assert!(matches!(from.fill_on(&gpu.stream(), 1), Err(Error::WrongDevice { .. })));
    let coherent = SmartArray::from_device(from);
    assert_eq!(coherent.residency().on(&gpu), Validity::Absent);
    assert_eq!((coherent.residency().host(), gpu.memory().in_use), (Validity::Absent, before));
}

/// By copies between views that have elements of other sizes than the array, and fills of patterns.
#[test]
fn bytes_of_numbers_and_numbers_of_bytes_are_copied_and_filled_on_a_gpu() {
    let device = in_own_process!(support::driver::open(Settings::new().seed(7), 1).remove(0));
    let stream = device.stream();
    let steps = || -> resident::Result<()> {
        let numbers = Array1::from(vec![1.0_f32, 2.0, 3.0, 4.0]);
        let mut numbers = DeviceArray::from_host_on(&stream, &numbers)?;
        let bytes = numbers.reinterpret::<u8>()?;
        assert_eq!(bytes.slice(s![2..6]).copy_to_host()?.to_vec(), [128, 63, 0, 0]);
        assert_eq!(bytes.get(15)?, 64);
        let mut bytes = numbers.reinterpret_mut::<u8>()?;
        bytes.slice_mut(s![..4]).copy_from_host(&Array1::from(vec![0, 0, 0, 64]))?;
        bytes.slice_mut(s![4..8]).fill(0)?;
        let cut = bytes.slice_mut(s![9..13]).fill(1);
        assert!(matches!(cut, Err(Error::Shape { .. })), "{cut:?}");
        numbers.reinterpret_mut::<f64>()?.slice_mut(s![1..]).fill(1.5)?;
        assert_eq!(numbers.copy_to_host()?.to_vec(), [2.0, 0.0, 0.0, 1.9375]);

        let mut bytes = SmartArray::from(vec![0_u8; 16]);
        drop(bytes.slice_mut(s![3..7]).gpu_mut_on(&stream)?);
        bytes.reinterpret_mut::<f32>()?.slice_mut(s![2..]).fill_on(&stream, 1.0)?;
        assert_eq!(bytes.reinterpret::<f32>()?.snapshot_on(&stream)?.wait()?.sum(), 2.0);
        assert_eq!(bytes.to_vec()?[11..], [63, 0, 0, 128, 63]);
        Ok(())
    };
    steps().expect("no error");
}
