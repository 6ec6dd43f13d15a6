//! Explicit device arrays of two kinds of devices, on the stand-in driver.

use resident::ndarray::Array1;
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
