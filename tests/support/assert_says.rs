//! What a text must say.

/// Asserts that a text has all these parts.
///
/// # Panics
///
/// If one is missing, with the part and the text.
#[track_caller]
pub fn assert_says(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "\"{part}\" is not in: {text}"));
}
