//! Implicit copies that a thread denies.

use resident::audit::{self, Implicit};
use resident::ndarray::arr1;
use support::prelude::*;

fn double() -> Kernel<(InOut<f32>,)> {
    Kernel::<(InOut<f32>,)>::new("double")
        .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0))
}

fn ones(len: usize) -> SmartArray<f32, Ix1> {
    SmartArray::from(vec![1.0; len])
}

/// The message of `Error::Denied`.
fn denied<T>(outcome: Result<T>) -> String {
    match outcome.map(drop) {
        Err(error @ Error::Denied { .. }) => error.to_string(),
        other => panic!("expected Error::Denied, got {other:?}"),
    }
}

#[test]
fn a_denied_launch_names_the_array_both_lines_and_the_fix_and_does_nothing() -> Result<()> {
    let device = lab();
    let mut field = ones(1000).named("field");
    field.prefetch(&device.stream())?;
    let stale = line!() + 1;
    field.host_mut()?[0] = 5.0;
    device.synchronize()?;
    let (traffic, calls) = (device.traffic(), device.emulation().map(|log| log.calls().len()));
    let guard = audit::deny(Implicit::ALL);
    let (deny, launch) = (line!() - 1, line!() + 1);
    let outcome = double().launch_on(&device.stream(), Grid::cover(1000), (&mut field,));
    let text = denied(outcome);
    for word in [
        "denied: kernel \"double\" would copy 4_000 bytes of \"field\"".to_owned(),
        format!("to {device}, where they are stale since {}:{stale}:", file!()),
        format!("`audit::deny` at {}:{deny}:", file!()),
        "`prefetch`".to_owned(),
        "`audit::allow(Implicit::TO_DEVICE)`".to_owned(),
        format!("(called at {}:{launch}:", file!()),
    ] {
        assert!(text.contains(&word), "{word} is not in\n{text}");
    }
    assert_eq!(device.traffic(), traffic);
    assert_eq!(device.emulation().map(|log| log.calls().len()), calls, "nothing was queued");
    drop(guard);
    double().launch_on(&device.stream(), Grid::cover(1000), (&mut field,))?;
    assert_eq!(field.host()?[0], 10.0);
    Ok(())
}

#[test]
fn each_direction_is_denied_by_itself() -> Result<()> {
    let device = lab();
    let other = Device::emulated(Emulation::new());
    let mut there = ones(10);
    drop(there.gpu_mut_on(&device.stream())?);
    let here = ones(10);
    {
        let _guard = audit::deny(Implicit::TO_HOST);
        let text = denied(there.host());
        assert!(text.contains("40 bytes of") && text.contains("to the host"), "{text}");
        assert!(text.contains("`prefetch_host`") && text.contains("Implicit::TO_HOST"), "{text}");
        denied(there.host_mut());
        denied(there.to_vec());
        denied(there.slice(s![2..4]).host());
        drop(here.gpu_on(&device.stream())?);
    }
    {
        let _guard = audit::deny(Implicit::TO_DEVICE);
        denied(ones(10).gpu_mut_on(&device.stream()));
        denied(ones(10).slice(s![..3]).gpu_on(&other.stream()));
        drop(here.gpu_on(&other.stream())?); // from the other device
    }
    {
        let _guard = audit::deny(Implicit::BETWEEN_DEVICES);
        let text = denied(there.gpu_on(&other.stream()));
        assert!(text.contains(&format!("to {other}, where they never were")), "{text}");
        drop(there.host()?);
    }
    Ok(())
}

#[test]
fn calls_that_say_that_they_copy_are_never_denied() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let _guard = audit::deny(Implicit::ALL);
    let mut array = ones(10);
    array.prefetch(&stream)?;
    drop(array.gpu_mut_on(&stream)?);
    assert_eq!(array.get(3)?, 1.0);
    array.set(3, 4.0)?;
    assert_eq!(array.snapshot_on(&stream)?.wait()?[3], 4.0);
    let mut clone = array.try_clone()?;
    clone.assign(&array)?;
    clone.copy_from_slice(&[7.0; 10])?;
    drop(array.watch()?);
    array.prefetch_host()?;
    assert_eq!(array.host()?[3], 4.0, "it is there");
    drop(array.gpu_mut_on(&stream)?);
    array.release_on(&device)?;
    assert_eq!(array.into_device(&device)?.copy_to_host()?[3], 4.0);
    let explicit = DeviceArray::from_host_on(&stream, &arr1(&[1.0_f32; 4]))?;
    assert_eq!(explicit.copy_to_host()?.sum(), 4.0);
    let mut newest_there = ones(4);
    newest_there.prefetch(&stream)?;
    drop(newest_there.gpu_mut_on(&stream)?);
    assert_eq!(newest_there.into_array()?.sum(), 4.0, "what is given away is not lost");
    Ok(())
}

#[test]
fn what_needs_no_copy_is_not_denied() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let _guard = audit::deny(Implicit::ALL);
    let scale = Kernel::<(f32, In<f32>, Out<f32>)>::new("scale")
        .host(|_grid, (k, xs, ys)| ys.iter_mut().zip(xs).for_each(|(y, x)| *y = k * x));
    let (constant, mut out) = (SmartArray::full(10, 3.0_f32), SmartArray::<f32, _>::uninit(10));
    scale.launch_on(&stream, Grid::cover(10), (2.0, &constant, &mut out))?;
    assert_eq!(out.get(9)?, 6.0);
    assert_eq!((out.shape(), out.residency().on(&device)), (&[10][..], Valid));
    let mut here = ones(10);
    drop(here.gpu_overwrite_on(&stream)?);
    drop(here.host_overwrite()?);
    scale.launch_on(&stream, Grid::cover(0), (1.0, &here, &mut out))?;
    assert_eq!(here.host()?.len(), 10);
    assert_eq!(moves(here.traffic()), NOTHING);
    assert_eq!(ones(0).gpu_on(&stream)?.len(), 0);
    Ok(())
}

#[test]
fn guards_nest_and_drop_in_any_order() -> Result<()> {
    let device = lab();
    let array = ones(10);
    let upload = || ones(10).gpu_on(&device.stream()).map(drop);
    let all = audit::deny(Implicit::ALL);
    let uploads = audit::allow(Implicit::TO_DEVICE);
    upload()?;
    let again = audit::deny(Implicit::TO_DEVICE | Implicit::TO_HOST);
    denied(upload());
    drop(uploads);
    denied(upload());
    drop(all);
    denied(upload());
    drop(again);
    upload()?;
    let _allowed = audit::allow(Implicit::ALL);
    {
        let _denied = audit::deny(Implicit::ALL);
        denied(array.gpu_on(&device.stream()));
    }
    drop(array.gpu_on(&device.stream())?);
    Ok(())
}

#[test]
fn a_guard_ends_with_a_panic_and_a_leaked_one_stays_on_its_thread() -> Result<()> {
    let device = lab();
    let upload = || ones(10).gpu_on(&device.stream()).map(drop);
    let outcome = std::panic::catch_unwind(|| {
        let _guard = audit::deny(Implicit::ALL);
        panic!("while copies are denied");
    });
    assert!(outcome.is_err());
    upload()?;
    std::thread::scope(|threads| {
        threads.spawn(|| {
            std::mem::forget(audit::deny(Implicit::ALL));
            denied(upload());
        });
    });
    upload()
}

#[test]
fn a_scope_carries_what_its_thread_denied() -> Result<()> {
    let device = lab();
    let upload = || ones(10).gpu_on(&device.stream()).map(drop);
    let guard = audit::deny(Implicit::ALL);
    let downloads = audit::allow(Implicit::TO_HOST);
    let scope = audit::scope();
    drop((guard, downloads));
    upload()?;
    std::thread::scope(|threads| {
        let work = || -> Result<()> {
            upload()?;
            let text = scope.run(|| denied(upload()));
            assert!(text.contains("`audit::deny` at"), "{text}");
            let mut array = ones(10);
            drop(array.gpu_mut_on(&device.stream())?);
            scope.run(|| array.host().map(drop))?;
            upload()
        };
        threads.spawn(work).join().expect("no panic")
    })
}

#[test]
fn a_denied_access_leaves_the_state_of_each_part() -> Result<()> {
    let device = lab();
    let mut array: SmartArray<f32, Ix2> = SmartArray::from(Array2::ones((2_000, 4)));
    array.prefetch(&device.stream())?;
    for row in 0..1_500 {
        array.set([row, 1], 2.0)?;
    }
    let before = array.residency().on(&device);
    {
        let _guard = audit::deny(Implicit::ALL);
        let text = denied(array.gpu_on(&device.stream()));
        assert!(text.contains(" 6_000 bytes of"), "{text}");
    }
    assert_eq!(array.residency().on(&device), before);
    assert_eq!(array.get([3, 1])?, 2.0);
    Ok(())
}
