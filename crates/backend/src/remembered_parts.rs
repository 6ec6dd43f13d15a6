//! A switch for tests: when launches remember the parts of arrays that they use. Programs leave it
//! as it is. Tests run the same program with each setting, and compare.

use std::sync::atomic::{AtomicU8, Ordering};

/// When a launch remembers a part of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Remember {
    /// When a launch or another access uses it again.
    Again = 0,
    /// At its first use.
    AtOnce = 1,
    /// Never, and nothing that was remembered is used.
    Never = 2,
}

static SETTING: AtomicU8 = AtomicU8::new(Remember::Again as u8);

/// When launches remember parts.
#[inline]
pub fn setting() -> Remember {
    match SETTING.load(Ordering::Relaxed) {
        0 => Remember::Again,
        1 => Remember::AtOnce,
        _ => Remember::Never,
    }
}

/// Changes the setting for all launches of this process.
pub fn set(when: Remember) {
    SETTING.store(when as u8, Ordering::Relaxed);
}
