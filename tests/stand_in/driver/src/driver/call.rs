//! What each function of the driver is wrapped in: it is entered in the record, fails if a test
//! asked for that, and never unwinds.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::code::{Code, Outcome};
use super::context;

/// One call, as it is remembered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) len_bytes: u64,
    pub(super) stream: u64,
    pub(super) code: u32,
}

/// Calls remembered until they are taken; what comes beyond that is not.
const CALLS_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
struct Record {
    calls: Vec<Call>,
    /// How many calls were taken out, so that a call that ends later finds its place.
    taken: usize,
    faults: Vec<Fault>,
    notes: Vec<String>,
    /// Functions that were noted as unsupported.
    unsupported: BTreeSet<&'static str>,
}

/// A failure that a test asked for.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// Empty: any.
    pub(super) name: String,
    /// Calls to come until it is its turn, that one included.
    pub(super) nth: u64,
    pub(super) code: Code,
    /// It meets queued work instead of a call.
    pub(super) late: bool,
}

static RECORD: Mutex<Option<Record>> = Mutex::new(None);

thread_local! {
    /// Bytes and stream of the call that this thread makes.
    static DETAIL: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// A function of the driver.
pub(super) fn enter(name: &'static str, body: impl FnOnce() -> Outcome) -> u32 {
    let number = begin(name);
    // A call may be made inside another: work that a wait runs may be a host function.
    let outer = DETAIL.replace((0, 0));
    let outcome = match due(name, false) {
        Some(code) => {
            context::find_dead(code);
            Err(code)
        }
        None => catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Code::UNKNOWN)),
    };
    let code = outcome.err().unwrap_or(Code::SUCCESS).0;
    settle(number, DETAIL.replace(outer), code);
    code
}

/// A function that the driver has not: it says so.
pub(super) fn unsupported(name: &'static str) -> u32 {
    enter(name, || {
        let is_new = with(|record| record.unsupported.insert(name));
        if is_new {
            note(format!("{name} is not supported by the stand-in driver"));
        }
        Err(Code::NOT_SUPPORTED)
    })
}

/// How many bytes the call that this thread makes is about.
pub(super) fn set_bytes(len_bytes: u64) {
    DETAIL.set((len_bytes, DETAIL.get().1));
}

/// The stream of the call that this thread makes.
pub(super) fn set_stream(handle: u64) {
    DETAIL.set((DETAIL.get().0, handle));
}

/// Something that a test may want to know.
pub(super) fn note(text: String) {
    with(|record| record.notes.push(text));
}

/// The failure that the next piece of queued work is to have.
pub(super) fn late_fault() -> Option<Code> {
    due("", true)
}

/// Asks for a failure.
pub(super) fn add_fault(fault: Fault) {
    with(|record| record.faults.push(fault));
}

/// Takes back what has not come up.
pub(super) fn forget_faults() {
    with(|record| record.faults.clear());
}

/// The calls so far.
pub(super) fn calls(take: bool) -> Vec<Call> {
    with(|record| {
        if !take {
            return record.calls.clone();
        }
        record.taken += record.calls.len();
        std::mem::take(&mut record.calls)
    })
}

/// The notes so far.
pub(super) fn notes(take: bool) -> Vec<String> {
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
        for fault in record
            .faults
            .iter_mut()
            .filter(|fault| fault.late == late && (fault.name.is_empty() || fault.name == name))
        {
            fault.nth = fault.nth.saturating_sub(1);
        }
        let place = record.faults.iter().position(|fault| fault.nth == 0)?;
        Some(record.faults.remove(place).code)
    })
}

fn with<T>(use_record: impl FnOnce(&mut Record) -> T) -> T {
    let mut record: MutexGuard<'_, Option<Record>> =
        RECORD.lock().unwrap_or_else(PoisonError::into_inner);
    use_record(record.get_or_insert_default())
}

/// Functions of the driver: each is exported under its name.
macro_rules! driver_functions {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {$(
        /// As CUDA's manual says, in so far as the stand-in does it.
        ///
        /// # Safety
        ///
        /// As CUDA's manual says: what arguments point to is valid, and of the size that it says.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "CUDA's name")]
        unsafe extern "C" fn $name($($argument: $kind),*) -> u32 {
            $crate::driver::call::enter(stringify!($name), move || -> $crate::driver::code::Outcome { $body })
        }
    )*};
}

/// Functions that are refused, whatever their arguments: the caller's convention leaves those to
/// the caller.
macro_rules! unsupported_functions {
    ($($name:ident)*) => {$(
        /// Not supported.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "CUDA's name")]
        extern "C" fn $name() -> u32 {
            $crate::driver::call::unsupported(stringify!($name))
        }
    )*};
}

pub(super) use {driver_functions, unsupported_functions};
