//! Reports as plain data and as text.

use resident::{Result, SmartArray};
use support::lab::lab;

use crate::report_of;

#[test]
fn hostile_names_are_text_in_json() -> Result<()> {
    let name = "\"}],<script>\u{202e}\u{0}\\\n";
    let array = SmartArray::from(vec![1_u8; 8]).named(name);
    let report = report_of(|| array.prefetch(&lab().stream()))?;
    let document = report.to_document();
    assert_eq!(document.sites[0].array, name);
    let escaped = "\\\"}],<script>\u{202e}\\u0000\\\\\\u000a";
    assert!(report.to_json().contains(escaped), "{}", report.to_json());
    Ok(())
}

#[test]
fn text_is_the_largest_first_and_fits_a_hundred_columns() -> Result<()> {
    let device = lab();
    let long = "a long name ".repeat(20);
    let arrays = [(10, "small"), (1000, &*long), (100, "middle")]
        .map(|(len, name)| SmartArray::from(vec![1_u8; len]).named(name));
    let report =
        report_of(|| arrays.iter().try_for_each(|array| array.prefetch(&device.stream())))?;
    let text = report.to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let at = |name: &str| text.find(name).unwrap_or_else(|| panic!("{name} in {text}"));
    assert!(at("1_000 ") < at("middle") && at("middle") < at("small"), "{text}");
    Ok(())
}
