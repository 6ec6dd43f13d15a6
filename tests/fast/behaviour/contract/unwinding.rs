//! Which types may be used in a closure of `catch_unwind`: all but exclusive views and guards,
//! which are as `&mut`.

use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};

use resident::launch::Slice;
use resident::ops::{Elementwise, Reduction};
use resident::{
    AutoSynchronize, Budget, CudaSource, DeviceMut, DeviceRef, Done, Emulation, Entered, Event,
    HostFunction, HostMut, HostRef, Watch, emulation,
};
use support::prelude::*;

#[test]
fn handles_arrays_and_guards_are_unwind_safe() {
    fn is_safe<T: UnwindSafe + RefUnwindSafe>() {}
    fn is_safe_to_share<T: RefUnwindSafe>() {}
    macro_rules! each {
        ($check:ident: $($type:ty),+ $(,)?) => {
            $($check::<$type>();)+
        };
    }
    each!(is_safe:
        Device, Stream, Event, Entered, AutoSynchronize<'static>, HostFunction<i32>, Done,
        Kernel<(InOut<f32>, In<u8, Ix2>, Slice<Out<u8>>)>, CudaSource, Error, Emulation,
        emulation::EmulationLog, Elementwise<(InOut<f32>,)>, Reduction<(In<f32>,), f32>,
    );
    each!(is_safe:
        SmartArray<f32, Ix2>, DeviceArray<f32, Ix2>, PinnedArray<f32, Ix2>, MappedArray<f32, Ix2>,
        ManagedArray<f32, Ix2>, SmartView<'static, f32, Ix2>, DeviceView<'static, f32, Ix2>,
        HostRef<'static, f32, Ix2>, DeviceRef<'static, f32, Ix2>, Pending<SmartArray<f32, Ix2>>,
        Watch<f32, Ix2>,
    );
    each!(is_safe_to_share:
        SmartViewMut<'static, f32, Ix2>, DeviceViewMut<'static, f32, Ix2>,
        HostMut<'static, f32, Ix2>, DeviceMut<'static, f32, Ix2>,
    );
    each!(is_safe:
        audit::Report, audit::Scope, audit::ImplicitGuard, audit::DeviceTimes, audit::Ledger,
        audit::ContentsGuard, Budget,
    );
}

#[test]
fn a_caught_panic_leaves_devices_and_arrays_usable() -> Result<()> {
    let (device, array) = (lab(), SmartArray::from(vec![1_u32; 100]));
    let stream = device.new_stream()?;
    let caught = catch_unwind(|| {
        let _here = device.enter();
        let _on_device = array.gpu_on(&stream);
        panic!("of the program");
    });
    assert!(caught.is_err());
    let entered = catch_unwind(|| device.enter()).expect("no panic");
    assert_eq!((Device::current()?, array.host()?.sum()), (device.clone(), 100));
    drop(entered);
    let guard = catch_unwind(move || array.gpu_on(&stream).map(drop)).expect("no panic");
    guard.and_then(|()| device.synchronize())
}
