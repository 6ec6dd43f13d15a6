//! Scopes carry captures to thread pools and tasks.

use rayon::prelude::*;
use resident::{Result, SmartArray, audit};
use support::block_on::block_on;
use support::lab::lab;

#[test]
fn what_threads_of_a_pool_copy_counts_to_the_capture_whose_scope_they_run_in() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let arrays: Vec<_> = (1..=20).map(|len| SmartArray::from(vec![1_u8; len])).collect();
    let (outcome, report) = audit::capture(|| {
        let scope = audit::scope();
        arrays.par_iter().try_for_each(|array| scope.run(|| array.prefetch(&stream)))
    });
    outcome?;
    let to_device = report.traffic().to_device;
    assert_eq!((to_device.count, to_device.bytes), (20, 210));
    Ok(())
}

#[test]
fn what_a_task_copies_counts_to_the_capture_whose_scope_it_runs_in() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let array = SmartArray::from(vec![1_u8; 64]);
    let (outcome, report) = audit::capture(|| {
        let scope = audit::scope();
        let task = async {
            scope.run(|| array.prefetch(&stream))?;
            stream.done().await?;
            scope.run(|| SmartArray::from(vec![1_u8; 36]).prefetch(&stream))
        };
        std::thread::scope(|threads| threads.spawn(|| block_on(task)).join().expect("no panic"))
    });
    outcome?;
    assert_eq!(report.traffic().to_device.bytes, 100);
    Ok(())
}

#[test]
fn launches_and_waits_of_a_scope_count_too() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let mut array = SmartArray::from(vec![1.0_f32; 64]);
    let (outcome, report) = audit::capture(|| {
        let scope = audit::scope();
        let work = || {
            scope.run(|| -> Result<()> {
                crate::double().launch_on(&stream, crate::grid(), (&mut array,))?;
                array.host().map(drop)
            })
        };
        std::thread::scope(|threads| threads.spawn(work).join().expect("no panic"))
    });
    outcome?;
    assert_eq!(report.launches(), 1);
    Ok(())
}
