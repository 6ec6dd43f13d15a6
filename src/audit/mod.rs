//! What moved, when, why, and because of which line.
//!
//! Totals are always counted ([`SmartArray::traffic`](crate::SmartArray::traffic),
//! [`Device::traffic`](crate::Device::traffic)). [`capture`] collects what the calls of one thread
//! moved, with call sites, as a [`Report`]. [`inventory`] lists the live arrays. Nothing here ever
//! moves data.
//!
//! Every copy is also a `tracing` event of level `DEBUG`, target `resident::transfer`, with the
//! fields `direction`, `bytes`, `array`, `device`, `stream`, `cause`, `site` (file:line:column of
//! the call that needed the bytes) and `stale_since` (the last call that made any of them stale
//! there, or took them away). A copy from one device to another has the one that it goes to as
//! `device`, and the other as `source`. `stale_since` is left out where the bytes had never been
//! there, and where it would say nothing ([`Site::never_there`] tells which).
//!
//! Copies have the name of the array whose bytes they bring where they are needed.
//! `destination.assign(&source)` is the exception, as it is no access of one array: what has to
//! come to a device first, or to the host, is told under the source's name, and the copy itself,
//! where it goes from one device to another, under the destination's. On one device it moves
//! nothing between places, and is not told.
//!
//! ```
//! use resident::{Device, SmartArray, audit};
//!
//! let _here = Device::cpu().enter();
//! let (sum, report) = audit::capture(|| {
//!     let mut array = SmartArray::from(vec![1.0_f32; 1000]).named("ones");
//!     array.gpu_mut()?;                                   // 4000 bytes go up
//!     Ok::<f32, resident::Error>(array.host()?.sum())     // and come down again
//! });
//! assert_eq!(sum?, 1000.0);
//! assert_eq!((report.traffic().to_device.bytes, report.traffic().to_host.bytes), (4000, 4000));
//! println!("{report}");
//! # Ok::<(), resident::Error>(())
//! ```

mod capture;
mod emit;
pub(crate) mod registry;
mod report;
mod traffic;
mod validity;

use crate::call_site::CallSite;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

pub use capture::capture;
pub use registry::{Entry, inventory};
pub use report::{Report, Site};
pub(crate) use traffic::SharedTraffic;
pub use traffic::{Cause, Direction, Flow, Traffic};
pub use validity::{Residency, Validity};

/// One planned copy.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) direction: Direction,
    pub(crate) bytes: u64,
    pub(crate) array: Arc<str>,
    /// The device whose stream copies: of two devices the destination.
    pub(crate) device: Arc<str>,
    /// The device that the bytes come from, if it is another.
    pub(crate) source: Option<Arc<str>>,
    pub(crate) stream: u32,
    pub(crate) cause: Cause,
    /// The call that needed the bytes.
    pub(crate) site: CallSite,
    pub(crate) stale: Stale,
}

/// Why the bytes of a copy were not where they were needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stale {
    /// They had never been there.
    Never,
    /// Nobody can tell, or it is of no matter, as where the copy overwrites what is there.
    Unreported,
    /// The last call that made any of them stale there.
    StaleOrigin(CallSite),
}

impl Stale {
    fn since(self) -> Option<CallSite> {
        match self {
            Self::StaleOrigin(location) => Some(location),
            Self::Never | Self::Unreported => None,
        }
    }
}

thread_local! {
    /// Copies that this thread has queued and not told of yet.
    static UNTOLD: RefCell<VecDeque<Record>> = const { RefCell::new(VecDeque::new()) };
}

/// Whether anybody may want to be told of copies. May be asked with locks held.
#[inline]
pub(crate) fn has_listeners() -> bool {
    capture::is_active() || emit::may_be_enabled()
}

/// Notes a copy for [`tell`]. The record is made only if somebody listens. May be called with locks
/// held: nobody is told yet.
#[inline]
pub(crate) fn record(make: impl FnOnce() -> Record) {
    if has_listeners() {
        // A thread that is being torn down tells nobody.
        let _ = UNTOLD.try_with(|untold| untold.borrow_mut().push_back(make()));
    }
}

/// Tells whoever listens of the copies noted. Subscribers are code of the user's, which may look at
/// arrays: no lock and no claim is held.
pub(crate) fn tell() {
    let next = || UNTOLD.try_with(|untold| untold.borrow_mut().pop_front()).ok().flatten();
    while let Some(record) = next() {
        if capture::is_active() {
            capture::add(&record);
        }
        if emit::is_enabled() {
            emit::emit(&record);
        }
    }
}

/// Tells of one use of an array on a stream that its guard does not keep order on: it was waited
/// for, before and after. No lock is held.
#[cfg(feature = "cuda")]
pub(crate) fn waited_for(array: &str, device: &str, stream: u32) {
    if capture::is_active() {
        capture::add_waited_for(array);
    }
    emit::emit_waited_for(array, device, stream);
}

/// Tells a capture of copies that a launch did not make: how many, and their bytes.
pub(crate) fn avoided(flow: Flow) {
    if capture::is_active() {
        capture::add_avoided(flow);
    }
}
