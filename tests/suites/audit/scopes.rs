//! Scopes carry captures to thread pools and tasks.

use rayon::prelude::*;
use resident::audit::Implicit;
use resident::{Budget, Error, Result, SmartArray, audit};
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

/// Threads with guards, budgets, captures and scopes of their own do not disturb each other, and
/// the capture around them has all that they copied, once.
#[test]
fn guards_budgets_and_scopes_of_many_threads_at_once() -> Result<()> {
    const THREADS: usize = 8;
    const ROUNDS: usize = 40;
    let device = lab();
    let (outcome, report) = audit::capture(|| {
        let scope = audit::scope();
        let work = |number: usize| -> Result<()> {
            let stream = device.new_stream()?;
            let bytes = 10 * (number as u64 + 1);
            for _ in 0..ROUNDS {
                let mut array = SmartArray::from(vec![1_u8; bytes as usize]);
                let budget = Budget::new().to_device(bytes).to_host(0).exactly();
                scope.run(|| budget.enforce(|| array.prefetch(&stream)))??;
                let denied = match number % 2 {
                    0 => Implicit::TO_HOST,
                    _ => Implicit::TO_DEVICE,
                };
                let _guard = audit::deny(denied);
                array.gpu_mut_on(&stream).map(drop)?;
                let (host, own) = audit::capture(|| scope.run(|| array.host().map(drop)));
                assert_eq!(matches!(host, Err(Error::Denied { .. })), number.is_multiple_of(2));
                let expected = if number.is_multiple_of(2) { 0 } else { bytes };
                assert_eq!(own.traffic().to_host.bytes, expected);
            }
            Ok(())
        };
        let work = &work;
        std::thread::scope(|threads| {
            let threads: Vec<_> =
                (0..THREADS).map(|number| threads.spawn(move || work(number))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })
    });
    outcome?;
    let traffic = report.traffic();
    let of = |numbers: &mut dyn Iterator<Item = usize>| {
        numbers.map(|number| 10 * (number as u64 + 1) * ROUNDS as u64).sum::<u64>()
    };
    assert_eq!(traffic.to_device.bytes, of(&mut (0..THREADS)));
    assert_eq!(traffic.to_host.bytes, of(&mut (1..THREADS).step_by(2)));
    Ok(())
}
