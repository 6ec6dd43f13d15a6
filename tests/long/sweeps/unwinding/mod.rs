//! Calls that work with borrowed or freed memory, while user code panics: `tracing` subscribers,
//! wakers, destructors of captured values. In each run another call of user code does. Afterwards
//! no work writes the memory, nothing hangs, and other arrays are usable.

mod places;
mod user_code;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::each_call::counting;
use crate::steps::with_device_code;
pub(crate) use places::{CALLS, TASKS};
use support::prelude::*;
use user_code::{Broken, Subscriber, UserCode};

type Table = SmartArray<u32, Ix2>;

/// How long kernels take on the devices of this process, so that their work is under way when user
/// code panics.
const KERNEL_TIME: Duration = Duration::from_millis(1);

fn start() -> Array2<u32> {
    counting(8, 8)
}

fn add() -> Kernel<(u32, InOut<u32, Ix2>)> {
    let kernel = Kernel::new("add").host(|_, (k, mut x)| {
        thread::sleep(KERNEL_TIME);
        x += k;
    });
    // SAFETY: the stand-in's host function accesses only the view's elements.
    unsafe { with_device_code(kernel) }
}

fn one() -> Grid {
    Grid::cover(1)
}

/// A call, or several, that user code interrupts, with its name.
pub(crate) type Place = (&'static str, fn(&Scene<'_>));

/// One run of a place.
pub(crate) struct Scene<'d> {
    devices: &'d [Device; 2],
    user_code: Arc<UserCode>,
    /// Which call of user code panics.
    nth: usize,
    /// Whether one has panicked.
    has_panicked: Cell<bool>,
}

impl Scene<'_> {
    /// The default stream of the first device, another of its streams, and one of the other device.
    fn streams(&self) -> [Stream; 3] {
        let [here, other] = self.devices;
        [here.stream(), here.new_stream().expect("a stream"), other.stream()]
    }

    fn arm(&self) {
        self.user_code.arm(self.nth);
    }

    /// Makes calls while user code panics. Returns their result, `None` if they panicked.
    fn interrupted<T>(&self, calls: impl FnOnce() -> Result<T>) -> Option<T> {
        self.arm();
        self.caught(calls)
    }

    /// As [`interrupted`](Self::interrupted), for calls that arm the user code themselves.
    fn caught<T>(&self, calls: impl FnOnce() -> Result<T>) -> Option<T> {
        let outcome = catch_unwind(AssertUnwindSafe(calls));
        self.has_panicked.set(self.has_panicked.get() | self.user_code.disarm());
        match outcome {
            Ok(result) => Some(result.unwrap_or_else(|error| panic!("{error}"))),
            Err(panic) if panic.is::<Broken>() => None,
            Err(panic) => resume_unwind(panic),
        }
    }

    fn settle(&self) {
        for device in self.devices {
            device.synchronize().unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// Asserts that no work writes memory whose borrow is over.
    #[track_caller]
    fn assert_still(&self, returned: &Array2<u32>) {
        let before = returned.clone();
        self.settle();
        assert_eq!(*returned, before, "the memory was written after it was returned");
    }

    /// Asserts that both devices and the host work with a new array.
    fn assert_usable(&self) {
        let [here, own, other] = self.streams();
        let mut array = Table::from(start());
        for stream in [&here, &other, &own] {
            add().launch_on(stream, one(), (1, &mut array)).expect("it is launched");
        }
        assert_eq!(*array.host().expect("it is read"), start() + 3);
    }
}

/// Runs each place until no call of user code is left that could panic. `check` is called after
/// each run.
pub(crate) fn sweep(
    places: &[Place],
    open: impl Fn(usize) -> [Device; 2],
    check: impl Fn(&[Device; 2], &str),
) {
    user_code::silence_panics();
    for (name, run) in places {
        for nth in 1.. {
            let devices = open(nth);
            let user_code = Arc::<UserCode>::default();
            let subscriber = Subscriber(Arc::clone(&user_code));
            let scene = Scene { devices: &devices, user_code, nth, has_panicked: Cell::new(false) };
            let what = format!("{name}, call {nth} of user code");
            let outcome = tracing::subscriber::with_default(subscriber, || {
                catch_unwind(AssertUnwindSafe(|| {
                    run(&scene);
                    scene.assert_usable();
                    scene.settle();
                    devices.iter().for_each(|device| device.trim().expect("it is trimmed"));
                    check(&devices, &what);
                }))
            });
            outcome.unwrap_or_else(|panic| {
                eprintln!("{what}");
                resume_unwind(panic)
            });
            if !scene.has_panicked.get() {
                assert!(nth > 1, "{name}: no user code was called");
                break;
            }
        }
    }
}

fn sweep_emulated(open: fn(usize) -> [Device; 2]) {
    without_deadlock(move || {
        let check = |devices: &[Device; 2], what: &str| {
            for device in devices {
                let hazards = device.emulation().map(|emulation| emulation.hazards());
                assert_eq!(hazards.unwrap_or_default(), [], "{what}");
                assert_eq!(device.memory().in_use, 0, "{what}: bytes on {device}");
            }
        };
        sweep(CALLS, open, check);
        sweep(TASKS, open, check);
    });
}

#[test]
fn user_code_that_panics_leaves_no_work_on_returned_memory_on_seeded_devices() {
    support::own_process!();
    sweep_emulated(|nth| {
        [0, 1].map(|device| Device::emulated(Emulation::new().seed(nth as u64 + device)))
    });
}

#[test]
fn user_code_that_panics_leaves_no_work_on_returned_memory_with_workers() {
    support::own_process!();
    sweep_emulated(|_| [Emulation::new(), Emulation::new()].map(Device::emulated));
}

#[test]
fn user_code_that_panics_leaves_no_work_on_returned_memory_of_the_embedded_device() {
    support::own_process!();
    sweep_emulated(|_| [Device::cpu(), Device::emulated(Emulation::new())]);
}
