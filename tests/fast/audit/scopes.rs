//! Scopes carry captures to thread pools and tasks.

use rayon::prelude::*;
use resident::audit::Implicit;
use resident::{Budget, Error, Result, SmartArray, audit};
use support::block_on::block_on;
use support::lab::lab;

use crate::{ones, report_of};

#[test]
fn what_threads_of_a_pool_copy_counts_to_the_capture_whose_scope_they_run_in() -> Result<()> {
    let stream = lab().stream();
    let arrays: Vec<_> = (1..=20).map(|len| SmartArray::from(vec![1_u8; len])).collect();
    let report = report_of(|| {
        let scope = audit::scope();
        arrays.par_iter().try_for_each(|array| scope.run(|| array.prefetch(&stream)))
    })?;
    let to_device = report.traffic().to_device;
    assert_eq!((to_device.count, to_device.bytes), (20, 210));
    Ok(())
}

#[test]
fn what_a_task_copies_counts_to_the_capture_whose_scope_it_runs_in() -> Result<()> {
    let stream = lab().stream();
    let array = SmartArray::from(vec![1_u8; 64]);
    let report = report_of(|| {
        let scope = audit::scope();
        let task = async {
            scope.run(|| array.prefetch(&stream))?;
            stream.done().await?;
            scope.run(|| SmartArray::from(vec![1_u8; 36]).prefetch(&stream))
        };
        std::thread::scope(|threads| threads.spawn(|| block_on(task)).join().expect("no panic"))
    })?;
    assert_eq!(report.traffic().to_device.bytes, 100);
    Ok(())
}

#[test]
fn launches_and_waits_of_a_scope_count_too() -> Result<()> {
    let stream = lab().stream();
    let mut array = ones(64);
    let report = report_of(|| {
        let scope = audit::scope();
        let work = || {
            scope.run(|| {
                crate::double().launch_on(&stream, crate::grid(), (&mut array,))?;
                array.host().map(drop)
            })
        };
        std::thread::scope(|threads| threads.spawn(work).join().expect("no panic"))
    })?;
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
    let report = report_of(|| {
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
    })?;
    let traffic = report.traffic();
    let of = |numbers: &mut dyn Iterator<Item = usize>| {
        numbers.map(|number| 10 * (number as u64 + 1) * ROUNDS as u64).sum::<u64>()
    };
    assert_eq!(traffic.to_device.bytes, of(&mut (0..THREADS)));
    assert_eq!(traffic.to_host.bytes, of(&mut (1..THREADS).step_by(2)));
    Ok(())
}

/// Runs work on another thread, and waits for it.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|threads| threads.spawn(work).join().expect("no panic"))
}

#[test]
fn a_budget_counts_what_the_work_hands_to_other_threads() -> Result<()> {
    // Budgets of all threads count copies of other tests.
    support::own_process!();
    let stream = lab().stream();
    let upload = || SmartArray::from(vec![1_u8; 100]).prefetch(&stream);
    let nothing = Budget::new().to_device(0).of_all_threads();
    let Err(Error::OverBudget { spent, sites, .. }) = nothing.enforce(|| elsewhere(upload)) else {
        panic!("the budget was got round")
    };
    assert!(spent.starts_with("100 bytes to_device (100 of them on other threads"), "{spent}");
    assert!(spent.ends_with("of at most 0"), "{spent}");
    assert!(sites[0].contains("scopes.rs"), "{sites:?}");
    // Once, whichever thread copies, and threads in a scope are no others.
    let both = Budget::new().to_device(200).exactly().of_all_threads();
    both.enforce(|| elsewhere(upload).and_then(|()| upload()))??;
    let scoped = nothing.enforce(|| {
        let scope = audit::scope();
        elsewhere(|| scope.run(upload))
    });
    let Err(Error::OverBudget { spent, .. }) = scoped else { panic!("it copies 100 bytes") };
    assert_eq!(spent, "100 bytes to_device of at most 0");
    // Without being asked, threads of this one and its scopes alone.
    let own = Budget::new().to_device(0);
    own.enforce(|| elsewhere(upload))??;
    assert!(own.enforce(upload).is_err());
    Ok(())
}

#[test]
fn a_budget_does_not_count_threads_that_work_for_another_capture() -> Result<()> {
    // Budgets of all threads count copies of other tests.
    support::own_process!();
    let stream = lab().stream();
    let upload = || SmartArray::from(vec![1_u8; 100]).prefetch(&stream);
    let nothing = Budget::new().to_device(0).of_all_threads();
    nothing.enforce(|| elsewhere(|| audit::capture(upload).0))??;
    let own = Budget::new().to_device(100).exactly();
    nothing.enforce(|| elsewhere(|| own.enforce(upload)))???;
    // A scope of a capture around the budget works for both.
    let (outcome, report) = audit::capture(|| {
        let scope = audit::scope();
        nothing.enforce(|| elsewhere(|| scope.run(upload)))
    });
    assert!(matches!(outcome, Err(Error::OverBudget { .. })), "{outcome:?}");
    assert_eq!(report.traffic().to_device.bytes, 100);
    Ok(())
}

#[test]
fn what_is_denied_to_all_is_denied_to_threads_of_which_the_caller_knows_nothing() -> Result<()> {
    support::own_process!();
    let device = lab();
    let array = SmartArray::from(vec![1_u8; 100]);
    let upload = || array.gpu_on(&device.stream()).map(drop);
    let guard = audit::deny(Implicit::ALL);
    assert!(upload().is_err());
    elsewhere(|| SmartArray::from(vec![1_u8; 8]).gpu_on(&device.stream()).map(drop))?;
    drop(guard);
    let guard = audit::deny_all(Implicit::TO_DEVICE);
    let Err(error @ Error::Denied { .. }) = elsewhere(upload) else { panic!("100 bytes") };
    assert!(error.to_string().contains("scopes.rs"), "{error}");
    assert!(upload().is_err());
    // Two of them; and a thread that has its own rule.
    let inner = audit::deny_all(Implicit::TO_HOST);
    drop(guard);
    elsewhere(upload)?;
    let other = SmartArray::from(vec![1_u8; 100]);
    let guard = audit::deny_all(Implicit::TO_DEVICE);
    elsewhere(|| {
        let _allowed = audit::allow(Implicit::TO_DEVICE);
        other.gpu_on(&device.stream()).map(drop)
    })?;
    drop((guard, inner));
    elsewhere(|| SmartArray::from(vec![1_u8; 8]).gpu_on(&device.stream()).map(drop))
}

/// Polls a task on a new thread each time, until it is over.
fn poll_on_many_threads<F: Future + Send>(task: F) -> (F::Output, usize)
where
    F::Output: Send,
{
    let mut task = std::pin::pin!(task);
    for polls in 1.. {
        let poll = std::thread::scope(|threads| {
            let task = task.as_mut();
            let poll = || task.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
            threads.spawn(poll).join().expect("no panic")
        });
        if let std::task::Poll::Ready(output) = poll {
            return (output, polls);
        }
    }
    unreachable!("a task ends")
}

/// Gives the thread back once.
async fn pause() {
    let mut has_paused = false;
    std::future::poll_fn(|_| match std::mem::replace(&mut has_paused, true) {
        false => std::task::Poll::Pending,
        true => std::task::Poll::Ready(()),
    })
    .await;
}

/// Each poll of the one future runs in the scope, on whatever thread, and no poll of the other.
#[test]
fn an_instrumented_future_counts_whichever_thread_polls_it() -> Result<()> {
    let stream = lab().stream();
    let work = async |len: usize| -> Result<()> {
        for _ in 0..3 {
            SmartArray::from(vec![1_u8; len]).prefetch(&stream)?;
            pause().await;
        }
        Ok(())
    };
    let ((outcome, polls), report) = audit::capture(|| {
        let task = audit::scope().instrument(work(10));
        poll_on_many_threads(async {
            let mut task = std::pin::pin!(task);
            let mut other = std::pin::pin!(work(1_000));
            std::future::poll_fn(|context| {
                let _of_nobody = other.as_mut().poll(context);
                task.as_mut().poll(context)
            })
            .await
        })
    });
    outcome?;
    assert_eq!(polls, 4);
    assert_eq!((report.traffic().to_device.count, report.traffic().to_device.bytes), (3, 30));
    Ok(())
}

/// A future that is dropped in its middle frees what it has in the scope.
#[test]
fn an_instrumented_future_is_dropped_in_the_scope() {
    struct CopiesAtItsEnd(resident::Stream);
    impl Drop for CopiesAtItsEnd {
        fn drop(&mut self) {
            SmartArray::from(vec![1_u8; 77]).prefetch(&self.0).expect("memory");
        }
    }
    let stream = lab().stream();
    let ((), report) = audit::capture(|| {
        let held = CopiesAtItsEnd(stream.clone());
        let task = audit::scope().instrument(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        std::thread::scope(|threads| {
            threads.spawn(move || {
                let mut task = Box::pin(task);
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                assert!(task.as_mut().poll(&mut context).is_pending());
            });
        });
    });
    assert_eq!(report.traffic().to_device.bytes, 77);
}
