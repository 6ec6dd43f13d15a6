//! Kernels that set flags outside their arrays, for tests of the order of work; and a limit for
//! tests that could deadlock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use resident::{In, InOut, Kernel};

use crate::bodies::Gate;
use crate::own_process::HANG_LIMIT;

/// A flag that a kernel body raises.
#[derive(Clone, Default)]
pub struct Flag(Arc<AtomicBool>);

impl Flag {
    pub fn is_up(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Raises the flag. The library does not see this effect; it orders only the kernel's accesses to
/// its array.
pub fn raising(flag: &Flag) -> Kernel<(InOut<u32>,)> {
    let flag = flag.clone();
    Kernel::new("raising").host(move |_, (_,): (&mut [u32],)| flag.raise())
}

/// Writes its array, and raises `late` if `flag` is not raised by then.
pub fn expecting(flag: &Flag, late: &Flag) -> Kernel<(InOut<u32>,)> {
    let (flag, late) = (flag.clone(), late.clone());
    Kernel::new("expecting").host(move |_, (x,): (&mut [u32],)| {
        x.iter_mut().for_each(|x| *x += 1);
        if !flag.is_up() {
            late.raise();
        }
    })
}

/// As `expecting`, but the kernel only reads its array.
pub fn expecting_reader(flag: &Flag, late: &Flag) -> Kernel<(In<u32>,)> {
    let (flag, late) = (flag.clone(), late.clone());
    Kernel::new("expecting").host(move |_, (_,): (&[u32],)| {
        if !flag.is_up() {
            late.raise();
        }
    })
}

/// A kernel that adds one once the gate is open.
pub fn gated(gate: &Gate) -> Kernel<(InOut<u32>,)> {
    let gate = gate.clone();
    Kernel::new("gated").host(move |_, (x,): (&mut [u32],)| {
        gate.pass();
        x.iter_mut().for_each(|x| *x += 1);
    })
}

/// Runs, with a time limit, a test that could hang if there is an error.
#[track_caller]
pub fn without_deadlock(test: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let running = std::thread::spawn(move || {
        test();
        done.send(()).ok();
    });
    match finished.recv_timeout(HANG_LIMIT) {
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
            running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {
            panic!("the test waits for work that it must not wait for")
        }
    }
}
