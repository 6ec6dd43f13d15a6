//! Refused calls, work that fails later, and calls from inside a body.

use std::sync::{Arc, Mutex};

use resident::ndarray::s;
use resident::{
    Device, Emulation, Error, Fault, Grid, In, InOut, Kernel, Out, Result, SmartArray, Validity,
};

use support::lab::lab;
use support::moves::moves;

fn panicking() -> Kernel<(InOut<u32>,)> {
    Kernel::<(InOut<u32>,)>::new("panicking").host(|_grid, (_,)| panic!("as it was asked to"))
}

fn copy() -> Kernel<(In<u32>, Out<u32>)> {
    Kernel::<(In<u32>, Out<u32>)>::new("copy").host(|_grid, (from, to)| to.copy_from_slice(from))
}

#[test]
fn a_refused_launch_changes_nothing_and_keeps_the_copies_it_made() -> Result<()> {
    // The device calls are: allocate and upload for `xs`; allocate for `ys`; launch.
    let device = Device::emulated(Emulation::new().fail(Fault::nth(4)));
    let source = SmartArray::from(vec![3_u32; 4]);
    let mut target = SmartArray::<u32, _>::uninit(4);
    let refused = copy().launch_on(&device.stream(), Grid::cover(4), (&source, &mut target));
    assert!(matches!(refused, Err(Error::Backend { .. })), "{refused:?}");
    assert!(
        matches!(target.host().map(drop), Err(Error::Uninitialised { .. })),
        "not marked written"
    );
    assert_eq!(
        moves(source.traffic()),
        [(1, 16), (0, 0), (0, 0)],
        "copies already made stay, and are counted"
    );
    copy().launch_on(&device.stream(), Grid::cover(4), (&source, &mut target))?;
    assert_eq!(target.host()?.to_vec(), [3; 4]);
    assert_eq!(moves(source.traffic()), [(1, 16), (0, 0), (0, 0)]);
    Ok(())
}

#[test]
fn a_body_that_panics_loses_what_it_was_to_write() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1_u32; 4]).named("victim");
    panicking().launch_on(&device.stream(), Grid::cover(4), (&mut array,))?;
    let line = line!() - 1;
    for _ in 0..2 {
        let Err(Error::Lost { array, operation, site, cause }) = array.host().map(drop) else {
            panic!("each time")
        };
        assert_eq!((&*array, &*operation), ("\"victim\"", "kernel \"panicking\""));
        assert!(
            site.contains(&format!("failures.rs:{line}")) && cause.contains("as it was asked to"),
            "{site} {cause}"
        );
    }
    assert!(matches!(array.get(0), Err(Error::Lost { .. })));
    assert!(matches!(array.gpu_on(&device.stream()).map(drop), Err(Error::Lost { .. })));
    array.host_overwrite()?.fill(2);
    assert_eq!(array.host()?.to_vec(), [2; 4], "until an overwriting access");
    Ok(())
}

#[test]
fn loss_follows_the_data_and_nothing_else() -> Result<()> {
    let device = lab();
    let runs = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&runs);
    let counting = Kernel::<(In<u32>, Out<u32>)>::new("counting").host(move |_grid, (from, to)| {
        *seen.lock().expect("no panic") += 1;
        to.copy_from_slice(from);
    });
    let mut lost = SmartArray::from(vec![1_u32; 4]).named("first");
    let (mut follows, mut apart) =
        (SmartArray::<u32, _>::uninit(4).named("follows"), SmartArray::<u32, _>::uninit(4));
    let healthy = SmartArray::from(vec![5_u32; 4]);
    panicking().launch_on(&device.stream(), Grid::cover(4), (&mut lost,))?;
    // This launch follows the failure. If the library has noticed the failure by then, it refuses
    // the launch.
    let queued = counting.launch_on(&device.stream(), Grid::cover(4), (&lost, &mut follows));
    counting.launch_on(&device.stream(), Grid::cover(4), (&healthy, &mut apart))?;
    assert_eq!(apart.host()?.to_vec(), [5; 4]);
    assert_eq!(*runs.lock().expect("no panic"), 1, "work that reads lost bytes does not run");
    match queued {
        Ok(()) => assert!(matches!(follows.host().map(drop), Err(Error::Lost { .. }))),
        Err(refused) => assert!(matches!(refused, Error::Lost { .. }), "{refused:?}"),
    }
    Ok(())
}

#[test]
fn with_a_seed_the_loss_travels_through_queued_launches() -> Result<()> {
    for seed in 0..20 {
        let device = Device::emulated(Emulation::new().seed(seed));
        let mut lost = SmartArray::from(vec![1_u32; 4]);
        let (mut second, mut third) =
            (SmartArray::<u32, _>::uninit(4), SmartArray::<u32, _>::uninit(4).named("third"));
        panicking().launch_on(&device.new_stream()?, Grid::cover(4), (&mut lost,))?;
        copy().launch_on(&device.new_stream()?, Grid::cover(4), (&lost, &mut second))?;
        copy().launch_on(&device.new_stream()?, Grid::cover(4), (&second, &mut third))?;
        let Err(Error::Lost { array, operation, .. }) = third.host().map(drop) else {
            panic!("seed {seed}")
        };
        assert_eq!(
            (&*array, &*operation),
            ("\"third\"", "kernel \"panicking\""),
            "the root is named"
        );
    }
    Ok(())
}

#[test]
fn bytes_that_are_valid_elsewhere_are_never_lost() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1_u32; 8]);
    drop(array.gpu_on(&device.stream())?);
    panicking().launch_on(&device.stream(), Grid::cover(4), (&mut array.slice_mut(s![4..]),))?;
    assert!(matches!(array.host().map(drop), Err(Error::Lost { .. })));
    assert_eq!(array.slice(s![..4]).host()?.to_vec(), [1; 4]);
    assert_eq!(array.slice(s![..4]).residency().host(), Validity::Valid);
    array.slice_mut(s![4..]).fill(2)?;
    assert_eq!(array.host()?.to_vec(), [1, 1, 1, 1, 2, 2, 2, 2]);
    Ok(())
}

#[test]
fn a_failure_is_returned_once_by_the_first_synchronize_that_covers_it() -> Result<()> {
    let device = lab();
    let (stream, bystander) = (device.new_stream()?, device.new_stream()?);
    let before = stream.record()?;
    let mut array = SmartArray::from(vec![1_u32; 4]);
    panicking().launch_on(&stream, Grid::cover(4), (&mut array,))?;
    before.synchronize()?;
    bystander.synchronize()?;
    let mut unrelated = SmartArray::<u32, _>::uninit(4);
    copy().launch_on(
        &bystander,
        Grid::cover(4),
        (&SmartArray::<u32, _>::ones(4), &mut unrelated),
    )?;
    assert_eq!(unrelated.host()?.to_vec(), [1; 4], "an unrelated call never returns it");
    let told = stream.synchronize().expect_err("once");
    assert!(told.to_string().contains("panicking"), "{told}");
    stream.synchronize()?;
    device.synchronize()?;
    assert!(array.host().is_err(), "a read of lost bytes each time");
    drop(array);
    device.synchronize()
}

#[test]
fn a_failed_download_loses_nothing_and_is_repeated() -> Result<()> {
    // Calls: allocate, upload, download.
    let device = Device::emulated(Emulation::new().poison(false).fail(Fault::nth(3).late()));
    let mut array = SmartArray::from(vec![7_u32; 4]);
    drop(array.gpu_mut_on(&device.stream())?);
    let failed = array.host().map(drop);
    assert!(matches!(failed, Err(Error::Backend { .. })), "{failed:?}");
    assert_eq!(array.residency().host(), Validity::Stale);
    assert_eq!(array.host()?.to_vec(), [7; 4]);
    Ok(())
}

#[test]
fn a_library_call_that_would_wait_inside_a_body_is_an_error() -> Result<()> {
    let device = lab();
    let found: Arc<Mutex<Vec<Error>>> = Arc::default();
    let (seen, inside) = (Arc::clone(&found), device.clone());
    let nosy = Kernel::<(InOut<u32>,)>::new("nosy").host(move |_grid, (_,)| {
        let mut there = SmartArray::<u32, _>::zeros(4);
        let attempts = [
            inside.synchronize(),
            inside.stream().synchronize(),
            there.gpu_mut_on(&inside.stream()).map(drop).and_then(|()| there.host().map(drop)),
        ];
        seen.lock().expect("no panic").extend(attempts.into_iter().filter_map(Result::err));
        assert_eq!(
            SmartArray::<u32, _>::ones(4).host().map(|host| host.sum()),
            Ok(4),
            "calls that need not wait are allowed"
        );
    });
    nosy.launch_on(&device.stream(), Grid::cover(4), (&mut SmartArray::<u32, _>::zeros(4),))?;
    device.synchronize()?;
    let found = found.lock().expect("no panic");
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|error| matches!(error, Error::InsideKernel { .. })), "{found:?}");
    Ok(())
}

#[test]
fn a_panic_in_one_body_leaves_the_stream_usable() -> Result<()> {
    let device = lab();
    panicking().launch_on(
        &device.stream(),
        Grid::cover(4),
        (&mut SmartArray::<u32, _>::zeros(4),),
    )?;
    let mut target = SmartArray::<u32, _>::uninit(4);
    copy().launch_on(
        &device.stream(),
        Grid::cover(4),
        (&SmartArray::<u32, _>::ones(4), &mut target),
    )?;
    assert_eq!(target.host()?.to_vec(), [1; 4]);
    assert!(device.synchronize().is_err());
    device.synchronize()
}
