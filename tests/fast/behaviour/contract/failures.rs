//! Refused calls, work that fails later, and calls from inside a body.

use std::sync::{Arc, Mutex};
use support::prelude::*;

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
    assert!(matches!(target.host().map(drop), Err(Error::Uninitialised { .. })), "not written");
    assert_eq!(moves(source.traffic()), [(1, 16), (0, 0), (0, 0)], "copies already made stay");
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
