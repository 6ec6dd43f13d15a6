//! Contents that are compared before and after accesses, for a thread that asks for it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::facts;
use super::listeners::{self, Captures};
use resident_backend::sync::Mutex;

/// How many guards live, on all threads; and one more for `RESIDENT_AUDIT`, until it was read and
/// does not ask to compare.
static GUARDS: AtomicUsize = AtomicUsize::new(1);

/// Whether `RESIDENT_AUDIT` asks to compare, for all threads.
static IN_ALL_THREADS: AtomicBool = AtomicBool::new(false);

/// By the numbers of arrays: what was on the host when it began to write, and where else it was.
static KEPT: Mutex<BTreeMap<u64, (u64, Vec<u8>)>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// How many guards of this thread live.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// While this lives, accesses of its thread are compared: made by [`compare_contents`].
#[derive(Debug)]
#[must_use = "contents are compared only while this guard lives"]
pub struct ContentsGuard {
    /// Makes the type not `Send`: the setting belongs to its thread.
    not_send: PhantomData<*const ()>,
}

/// Lets captures compare contents until the guard drops, so that their reports also tell of
/// accesses that change nothing, or little, and of equal contents that are uploaded again: the
/// findings `round_trip`, `few_changes`, `unchanged_argument` and `repeated_upload`. It concerns
/// captures in which this thread is, or is through a [`scope`](crate::audit::scope()) that was made
/// under the guard.
///
/// - When the host takes a whole array to write it, which a device has too, its bytes are kept
///   until they are copied to a device again, and compared then.
/// - On embedded and emulated devices a launch compares its `InOut` arguments before and after.
/// - The bytes of an upload of a whole array are hashed, to 64 bits.
///
/// With `contents` in `RESIDENT_AUDIT` this concerns all threads, without a guard.
///
/// So these accesses take longer, and arrays that the host writes take twice the host memory. On
/// one core of a server, 1 MiB takes 0.2 ms to hash, and 1.3 ms to keep and to compare.
///
/// ```
/// use resident::{Device, Grid, In, Kernel, SmartArray, audit};
///
/// let show = Kernel::<(In<f32>,)>::new("show").host(|_grid, _field| ());
/// let _here = Device::cpu().enter();
/// let mut field = SmartArray::from(vec![1.0_f32; 1000]).named("field");
/// let (outcome, report) = audit::capture(|| {
///     let _guard = audit::compare_contents();
///     show.launch(Grid::cover(1000), (&field,))?;
///     println!("{}", field.host_mut()?.sum());               // `host()` would do
///     show.launch(Grid::cover(1000), (&field,))
/// });
/// outcome?;
/// let finding = &report.findings()[0];
/// assert_eq!((&*finding.kind, finding.bytes), ("round_trip", 4000));
/// # Ok::<(), resident::Error>(())
/// ```
pub fn compare_contents() -> ContentsGuard {
    GUARDS.fetch_add(1, Ordering::Relaxed);
    DEPTH.set(DEPTH.get() + 1);
    ContentsGuard { not_send: PhantomData }
}

impl Drop for ContentsGuard {
    fn drop(&mut self) {
        // The thread's thread-locals may be destroyed already.
        let _ = DEPTH.try_with(|depth| depth.set(depth.get() - 1));
        if GUARDS.fetch_sub(1, Ordering::Relaxed) == 1 {
            let kept = std::mem::take(&mut *KEPT.lock());
            drop(kept);
        }
    }
}

/// `RESIDENT_AUDIT` asks to compare. Either this or [`compare_under_guards`] is called, once.
pub(in crate::audit) fn compare_in_all_threads() {
    IN_ALL_THREADS.store(true, Ordering::Relaxed);
}

/// `RESIDENT_AUDIT` does not ask to compare.
pub(in crate::audit) fn compare_under_guards() {
    GUARDS.fetch_sub(1, Ordering::Relaxed);
}

/// Whether this thread asks to compare contents, or the program's user does.
pub(in crate::audit) fn is_asked_for() -> bool {
    IN_ALL_THREADS.load(Ordering::Relaxed)
        || DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(false)
}

/// Whether contents are compared for what this thread does now.
#[inline]
pub(super) fn is_asked_for_here() -> bool {
    may_compare_contents() && is_asked_for()
}

/// Whether any thread compares contents. May be called with locks held.
#[inline]
pub(crate) fn may_compare_contents() -> bool {
    GUARDS.load(Ordering::Relaxed) > 0
}

/// Adds to captures what a launch has changed.
#[derive(Debug)]
pub(crate) struct Comparison {
    launch: u64,
    captures: Captures,
}

/// For the launch that this thread prepares, and the captures in which it is.
pub(crate) fn comparison() -> Comparison {
    Comparison { launch: facts::launch_of_thread(), captures: listeners::of_thread() }
}

impl Comparison {
    /// Adds how many bytes of one of its array arguments the launch has changed.
    pub(crate) fn tell(&self, argument: usize, changed_bytes: u64) {
        for capture in &self.captures {
            capture.report.lock().records.add_compared(self.launch, argument, changed_bytes);
        }
    }
}

/// Keeps the contents of an array, and the set of places where they are, unless some are kept.
pub(crate) fn keep_contents(array: u64, places: u64, contents: impl FnOnce() -> Vec<u8>) {
    KEPT.lock().entry(array).or_insert_with(|| (places, contents()));
}

/// Takes the kept contents of an array, and the set of places where they were.
pub(crate) fn take_contents(array: u64) -> Option<(u64, Vec<u8>)> {
    KEPT.lock().remove(&array)
}
