//! What a `tracing` subscriber may do. The library calls it with none of the library's locks held.
//! Each test has its own process, as in `tracing_events`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use support::bodies::{add, one};
use support::prelude::*;
use tracing::subscriber::Interest;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// A subscriber that queries an array whenever bytes are copied.
#[derive(Clone)]
struct Looking {
    array: Arc<SmartArray<u32, Ix1>>,
    seen: Arc<Mutex<Vec<(Validity, usize)>>>,
}

impl<S: tracing::Subscriber> Layer<S> for Looking {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() == "resident::transfer" {
            let look = (self.array.residency().host(), audit::inventory().len());
            self.seen.lock().expect("no panic").push(look);
        }
    }
}

#[test]
fn a_subscriber_may_look_at_the_array_that_is_moved() -> Result<()> {
    own_process!();
    let device = Device::emulated(Emulation::new());
    let array = Arc::new(SmartArray::from((0..100).collect::<Vec<u32>>()));
    let looking = Looking { array: Arc::clone(&array), seen: Arc::default() };
    let subscriber = tracing_subscriber::registry().with(looking.clone());
    tracing::subscriber::with_default(subscriber, || -> Result<()> {
        drop(array.gpu_on(&device.stream())?);
        drop(array.try_clone()?.host()?);
        drop(array.snapshot_on(&device.stream())?.wait()?);
        Ok(())
    })?;
    let seen = looking.seen.lock().expect("no panic");
    assert_eq!(seen.len(), 2, "one upload, and one download for the clone, which is on the device");
    assert!(seen.iter().all(|(validity, live)| *validity == Valid && *live > 0));
    Ok(())
}

/// A subscriber that runs user code when `tracing` asks whether it wants an event of the library,
/// and when it gets one.
struct Answering<A, T> {
    asked: A,
    told: T,
}

impl<S: tracing::Subscriber, A: Fn() + 'static, T: Fn() + 'static> Layer<S> for Answering<A, T> {
    /// With this result, `tracing` asks for each event.
    fn register_callsite(&self, _metadata: &'static tracing::Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &tracing::Metadata<'_>, _context: Context<'_, S>) -> bool {
        if metadata.target().starts_with("resident") {
            (self.asked)();
        }
        true
    }

    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target().starts_with("resident") {
            (self.told)();
        }
    }
}

/// Copies to a device and back, by every method that reports copies.
fn move_about(device: &Device) -> Result<()> {
    let mut array = SmartArray::from((0..100).collect::<Vec<u32>>());
    drop(array.gpu_mut_on(&device.stream())?);
    drop(array.snapshot_on(&device.stream())?.wait()?);
    array.get(3)?;
    let mut copy = SmartArray::<u32, _>::uninit(100);
    copy.assign_on(&device.stream(), &array)?;
    drop(array.host()?);
    copy.prefetch_host()?;
    drop(copy.host()?);
    Ok(())
}

#[test]
fn a_subscriber_may_take_the_inventory_when_it_is_asked_what_it_wants() {
    own_process!();
    without_deadlock(|| {
        let counts = [(); 2].map(|()| Arc::<AtomicUsize>::default());
        let [asked, told] = counts.clone().map(|count| {
            move || {
                count.fetch_add(audit::inventory().len(), Ordering::SeqCst);
            }
        });
        let subscriber = tracing_subscriber::registry().with(Answering { asked, told });
        tracing::subscriber::with_default(subscriber, || {
            move_about(&Device::emulated(Emulation::new()))
        })
        .expect("nothing fails");
        assert!(
            counts.iter().all(|count| count.load(Ordering::SeqCst) > 0),
            "while an array was alive"
        );
    });
}

/// A subscriber that panics when it is called for the first time.
fn panics_once() -> impl Fn() {
    panics_at(1)
}

/// A subscriber that panics when it is called for the `nth` time.
fn panics_at(nth: usize) -> impl Fn() {
    let calls = AtomicUsize::new(1);
    move || assert_ne!(calls.fetch_add(1, Ordering::SeqCst), nth, "the subscriber is broken")
}

/// In the first use of an array the subscriber panics; later uploads and downloads work.
fn next_use_works<A: Fn() + Send + Sync + 'static, T: Fn() + Send + Sync + 'static>(
    answering: Answering<A, T>,
) -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let mut array = SmartArray::from((0..100).collect::<Vec<u32>>());
    let subscriber = tracing_subscriber::registry().with(answering);
    tracing::subscriber::with_default(subscriber, || -> Result<()> {
        let first = catch_unwind(AssertUnwindSafe(|| array.gpu_on(&device.stream()).map(drop)));
        assert!(first.is_err(), "the subscriber panicked");
        drop(array.gpu_on(&device.stream())?);
        drop(array.gpu_mut_on(&device.stream())?);
        assert_eq!(array.host_mut()?.sum(), 4950);
        Ok(())
    })
}

#[test]
fn an_array_is_of_use_after_a_subscriber_panicked_when_it_was_asked() {
    own_process!();
    without_deadlock(|| {
        next_use_works(Answering { asked: panics_once(), told: || () }).expect("nothing fails");
    });
}

#[test]
fn an_array_is_usable_after_a_subscriber_panicked() {
    own_process!();
    without_deadlock(|| {
        next_use_works(Answering { asked: || (), told: panics_once() }).expect("nothing fails");
    });
}

/// The source is newest on a device, on the host and as a constant. Whichever report makes the
/// subscriber panic, everything is copied or nothing.
#[test]
fn an_assignment_is_whole_although_a_subscriber_panicked() {
    own_process!();
    without_deadlock(|| {
        let done = (0..6).filter(|nth| assign_under_a_panic(*nth).expect("nothing fails"));
        assert!(done.count() > 0, "no report came after the copies");
    });
}

/// Whether the subscriber panicked and everything was copied.
fn assign_under_a_panic(nth: usize) -> Result<bool> {
    let (device, other) = (Device::emulated(Emulation::new()), Device::emulated(Emulation::new()));
    let mut source = SmartArray::from((1..=300).collect::<Vec<u32>>());
    drop(source.gpu_mut_on(&device.stream())?);
    source.slice_mut(s![..100]).host_mut()?.fill(7);
    source.slice_mut(s![200..]).fill(9)?;
    let mut copy = SmartArray::<u32, _>::zeros(300);
    drop(copy.gpu_mut_on(&other.stream())?);
    let reports = AtomicUsize::new(0);
    let told = move || assert!(reports.fetch_add(1, Ordering::SeqCst) != nth, "it is broken");
    let subscriber = tracing_subscriber::registry().with(Answering { asked: || (), told });
    let assigned = tracing::subscriber::with_default(subscriber, || {
        catch_unwind(AssertUnwindSafe(|| copy.assign(&source)))
    });
    let (seen, expected) = (copy.host()?.to_vec(), source.host()?.to_vec());
    assert!(seen == expected || assigned.is_err() && seen == [0; 300], "{nth}: {seen:?}");
    Ok(assigned.is_err() && seen == expected)
}

/// The loan ends while a panic of the program unwinds, and the subscriber panics too. The program's
/// panic arrives, and the memory has the newest contents.
#[test]
fn a_loan_ends_while_a_panic_unwinds_and_a_subscriber_panics() {
    own_process!();
    without_deadlock(|| {
        let device = Device::emulated(Emulation::new().seed(5));
        let _here = device.enter();
        let mut lent = Array1::<u32>::zeros(100);
        let told = || assert!(!std::thread::panicking(), "the subscriber is broken");
        let subscriber = tracing_subscriber::registry().with(Answering { asked: || (), told });
        let outcome = tracing::subscriber::with_default(subscriber, || {
            catch_unwind(AssertUnwindSafe(|| {
                with_pinned(&mut lent, |pinned| -> Result<()> {
                    pinned.fill_on(&device.stream(), 7)?;
                    add().launch(one(), (1, pinned))?;
                    panic!("the program is broken")
                })
            }))
        });
        let panic = outcome.expect_err("it unwinds");
        assert_eq!(panic.downcast_ref(), Some(&"the program is broken"));
        assert_eq!(lent, Array1::from_elem(100, 8));
    });
}

/// A subscriber that panics when it gets an event, and when a span ends.
struct PanicsAtEnds;

impl<S: tracing::Subscriber> Layer<S> for PanicsAtEnds {
    fn on_event(&self, _event: &tracing::Event<'_>, _context: Context<'_, S>) {
        panic!("the event is refused");
    }

    fn on_exit(&self, _span: &tracing::span::Id, _context: Context<'_, S>) {
        panic!("the end is refused");
    }
}

#[test]
fn a_launch_is_whole_although_a_subscriber_panics_at_its_events_and_its_end() -> Result<()> {
    own_process!();
    let device = Device::emulated(Emulation::new());
    let mut array = SmartArray::from(vec![1_u32; 100]);
    let subscriber = tracing_subscriber::registry().with(PanicsAtEnds);
    let outcome = tracing::subscriber::with_default(subscriber, || {
        let launch = || add().launch_on(&device.stream(), one(), (1, &mut array));
        catch_unwind(AssertUnwindSafe(launch))
    });
    let panic = outcome.expect_err("it unwinds");
    assert_eq!(panic.downcast_ref(), Some(&"the event is refused"));
    assert_eq!(array.host()?.sum(), 200, "the kernel ran");
    Ok(())
}

/// The ledger knows the library's events by what the thread emits, and not by their target.
#[test]
fn a_ledger_adds_nothing_of_the_program_after_a_subscriber_panicked() {
    own_process!();
    let device = Device::emulated(Emulation::new());
    let ledger = audit::Ledger::new();
    // After the event of the device's memory.
    let broken = Answering { asked: || (), told: panics_at(2) };
    let subscriber = tracing_subscriber::registry().with(broken).with(ledger.layer());
    let upload = || SmartArray::from(vec![1_u8; 100]).prefetch(&device.stream());
    tracing::subscriber::with_default(subscriber, || {
        assert!(catch_unwind(AssertUnwindSafe(upload)).is_err(), "the subscriber panicked");
        let before = ledger.report().traffic();
        tracing::event!(target: "resident::transfer", tracing::Level::DEBUG, bytes = 100);
        assert_eq!(ledger.report().traffic(), before);
        upload().expect("nothing fails");
        assert_eq!(ledger.report().traffic().to_device.bytes, before.to_device.bytes + 100);
    });
}

/// Captures, ledgers and reports within a subscriber see what the subscriber does, and no other
/// part of the allocation and the copy that it is told of: they were counted before.
#[test]
fn a_subscriber_may_begin_captures_and_read_reports() {
    own_process!();
    without_deadlock(|| {
        let device = Device::emulated(Emulation::new());
        let (is_outermost, seen) = (AtomicBool::new(true), Arc::<Mutex<Vec<_>>>::default());
        let told = {
            let (seen, device) = (Arc::clone(&seen), device.clone());
            move || {
                if !is_outermost.swap(false, Ordering::SeqCst) {
                    return;
                }
                let upload = |len: usize| {
                    let array = SmartArray::from(vec![1_u8; len]);
                    array.prefetch(&device.stream()).expect("there is memory");
                };
                let ledger = audit::Ledger::attach();
                let ((), of_thread) = audit::capture(|| upload(10));
                let ((), of_all) = audit::capture_all(|| upload(20));
                let scope = audit::scope();
                scope.run(|| upload(40));
                let bytes = |report: &audit::Report| report.traffic().to_device.bytes;
                seen.lock().expect("no panic").push([
                    bytes(&of_thread),
                    bytes(&of_all),
                    bytes(&ledger.report()),
                ]);
                is_outermost.store(true, Ordering::SeqCst);
            }
        };
        let subscriber = tracing_subscriber::registry().with(Answering { asked: || (), told });
        let (outcome, report) = audit::capture(|| {
            tracing::subscriber::with_default(subscriber, || {
                let array = SmartArray::from(vec![1_u8; 100]);
                array.prefetch(&device.stream())
            })
        });
        outcome.expect("nothing fails");
        assert_eq!(*seen.lock().expect("no panic"), [[10, 20, 70]; 2]);
        assert_eq!(report.traffic().to_device.bytes, 240);
    });
}
