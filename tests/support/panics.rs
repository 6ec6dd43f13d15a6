//! The text of a panic.

use std::any::Any;

/// The text that a panic was made with, if it has one. (`PanicHookInfo::payload_as_str` is newer
/// than the oldest Rust that the manifests name.)
pub fn text_of(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
}
