//! The wrapper of every driver function: it records the call, makes it fail if a test requested
//! that, and never unwinds.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::code::{Code, Outcome};
use crate::interface::{Interface, choose, rules};
use crate::{capture, context};

/// One recorded call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub name: &'static str,
    pub len_bytes: u64,
    pub stream: u64,
    pub code: u32,
}

/// The largest number of calls in the record. Further calls are not recorded until a test takes the
/// record.
const CALLS_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
struct Record {
    calls: Vec<Call>,
    /// The number of calls that tests have taken from the record, so that a call that ends later
    /// finds its entry.
    taken: usize,
    faults: Vec<Fault>,
    notes: Vec<String>,
    /// Functions for which a note already says that they are unsupported.
    unsupported: BTreeSet<&'static str>,
}

/// A failure that a test requested.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The function; empty for any.
    pub name: String,
    /// The number of calls until the failure occurs, including the failing one.
    pub nth: u64,
    pub code: Code,
    /// Whether the failure applies to queued work instead of a call.
    pub late: bool,
}

static RECORD: Mutex<Option<Record>> = Mutex::new(None);

thread_local! {
    /// The size in bytes and the stream of this thread's current call.
    static DETAIL: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Runs the body of a driver function.
pub fn run_recorded(
    interface: &'static dyn Interface,
    name: &'static str,
    body: impl FnOnce() -> Outcome,
) -> u32 {
    choose(interface);
    let number = begin(name);
    // Calls can nest: a wait can run a host function, which makes calls.
    let outer = DETAIL.replace((0, 0));
    let outcome = match due(name, false) {
        Some(code) => {
            context::find_dead(code);
            Err(code)
        }
        None => capture::check_call(name)
            .and_then(|()| catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Code::UNKNOWN))),
    };
    let code = outcome.err().unwrap_or(Code::SUCCESS).0;
    settle(number, DETAIL.replace(outer), code);
    code
}

/// Records a call of an unsupported function, and adds a note.
pub fn unsupported(interface: &'static dyn Interface, name: &'static str) -> u32 {
    run_recorded(interface, name, || {
        let is_new = with(|record| record.unsupported.insert(name));
        if is_new {
            note(format!("{name} is not supported by the stand-in driver"));
        }
        Err(Code::NOT_SUPPORTED)
    })
}

/// Sets the size in bytes of this thread's current call.
pub fn set_bytes(len_bytes: u64) {
    DETAIL.set((len_bytes, DETAIL.get().1));
}

/// Sets the stream of this thread's current call.
pub fn set_stream(handle: u64) {
    DETAIL.set((DETAIL.get().0, handle));
}

/// Adds a note for the test.
pub fn note(text: String) {
    with(|record| record.notes.push(text));
}

/// The failure of the next queued operation, if a test requested one.
pub fn late_fault() -> Option<Code> {
    due("", true)
}

/// Adds a requested failure.
pub fn add_fault(fault: Fault) {
    with(|record| record.faults.push(fault));
}

/// Removes requested failures that have not occurred.
pub fn forget_faults() {
    with(|record| record.faults.clear());
}

/// The calls so far.
pub fn calls(take: bool) -> Vec<Call> {
    with(|record| {
        if !take {
            return record.calls.clone();
        }
        record.taken += record.calls.len();
        std::mem::take(&mut record.calls)
    })
}

/// The notes so far.
pub fn notes(take: bool) -> Vec<String> {
    with(|record| if take { std::mem::take(&mut record.notes) } else { record.notes.clone() })
}

fn begin(name: &'static str) -> usize {
    with(|record| {
        if record.calls.len() == CALLS_MAX {
            return usize::MAX;
        }
        record.calls.push(Call { name, len_bytes: 0, stream: 0, code: 0 });
        record.taken + record.calls.len()
    })
}

fn settle(number: usize, (len_bytes, stream): (u64, u64), code: u32) {
    with(|record| {
        let place = number.checked_sub(record.taken + 1);
        if let Some(call) = place.and_then(|place| record.calls.get_mut(place)) {
            *call = Call { len_bytes, stream, code, ..*call };
        }
    });
}

fn due(name: &str, late: bool) -> Option<Code> {
    with(|record| {
        for fault in record.faults.iter_mut().filter(|fault| fault.concerns(name, late)) {
            fault.nth = fault.nth.saturating_sub(1);
        }
        let place = record.faults.iter().position(|fault| fault.nth == 0)?;
        Some(record.faults.remove(place).code)
    })
}

impl Fault {
    /// "Any" call is one whose failure its caller must handle.
    fn concerns(&self, name: &str, late: bool) -> bool {
        let is_any = self.name.is_empty() && !rules().unfailing.contains(&name);
        self.late == late && (is_any || self.name == name)
    }
}

fn with<T>(use_record: impl FnOnce(&mut Record) -> T) -> T {
    let mut record: MutexGuard<'_, Option<Record>> =
        RECORD.lock().unwrap_or_else(PoisonError::into_inner);
    use_record(record.get_or_insert_default())
}
