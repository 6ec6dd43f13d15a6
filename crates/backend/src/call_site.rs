//! The line of the user's program that calls into this library.

use std::panic::Location;

/// File, line and column of a call into this library.
pub type CallSite = &'static Location<'static>;

/// Where the enclosing `#[track_caller]` function was called.
#[track_caller]
#[inline(always)]
pub const fn call_site() -> CallSite {
    Location::caller()
}
