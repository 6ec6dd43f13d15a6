//! The names of operations in errors, hazards and logs.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::call_site::CallSite;

/// The name of an operation, and the line of the program that queued it.
#[derive(Clone, Debug)]
pub struct Label {
    pub text: LabelText,
    pub site: Option<CallSite>,
}

/// The name of an operation. Most operations succeed, and nobody asks for their names, so the name
/// of an operation on an array without a name is made only when it is asked for.
#[derive(Clone, Debug)]
pub enum LabelText {
    /// `upload of "photo"`, `kernel "blur"`.
    Text(Arc<str>),
    /// An operation, such as `upload of`, on an array to which the program gave no name.
    Unnamed(&'static str, AutomaticName),
}

/// The name of an array to which the program gave none.
#[derive(Clone, Debug)]
pub struct AutomaticName {
    /// The name of the element type.
    pub element: fn() -> &'static str,
    pub shape: SmallVec<[usize; 4]>,
    pub made_at: CallSite,
}

impl LabelText {
    /// Whether this is the same text, in the same memory.
    #[inline]
    pub fn is(&self, other: &Arc<str>) -> bool {
        matches!(self, Self::Text(text) if Arc::ptr_eq(text, other))
    }

    pub fn to_text(&self) -> Arc<str> {
        match self {
            Self::Text(text) => Arc::clone(text),
            Self::Unnamed(..) => self.to_string().into(),
        }
    }
}

impl fmt::Display for LabelText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Unnamed(operation, array) => write!(f, "{operation} {array}"),
        }
    }
}

/// `f32[2, 3] made at src/main.rs:7:17`.
impl fmt::Display for AutomaticName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { element, shape, made_at } = self;
        write!(f, "{}{shape:?} made at {made_at}", short_type(element()))
    }
}

/// A type without its path: `f32`, `Complex<f64>`.
pub fn short_type(name: &str) -> String {
    let mut short = String::new();
    for word in name.split_inclusive(|character: char| {
        !(character.is_alphanumeric() || character == '_' || character == ':')
    }) {
        short.push_str(word.rsplit("::").next().unwrap_or(word));
    }
    short
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::{AutomaticName, LabelText};
    use crate::call_site::call_site;

    #[test]
    fn operations_on_arrays_without_a_name_are_named_by_type_shape_and_line() {
        let element = std::any::type_name::<Option<std::num::NonZeroU8>>;
        let array = AutomaticName { element, shape: smallvec![2, 3], made_at: call_site() };
        let text = LabelText::Unnamed("upload of", array).to_text();
        assert!(text.starts_with("upload of Option<NonZero<u8>>[2, 3] made at crates"), "{text}");
        assert!(text.contains("label.rs:"), "{text}");
    }
}
