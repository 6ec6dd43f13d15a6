//! The text of a caught panic.

use std::any::Any;

use crate::unwinding::contain_panic;

/// The message of a panic, if its payload came from `panic!`. A payload whose own drop panics is
/// leaked.
pub fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    contain_panic(|| drop(payload));
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
