//! The environment. One place reads all variables, so that all accept the same spellings, and
//! refuse what they do not know with an error that says what they do. A variable that is empty is
//! not set. The table has those that are the library's; of another one that looks so, standard
//! error is told once.

mod table;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Once;
use std::time::Duration;

pub use table::{VARIABLES, Variable, is_known};

/// What a variable is, as it was written, if it is set: a file, or a list that has files.
pub fn text(variable: &str) -> Option<OsString> {
    static TOLD: Once = Once::new();
    TOLD.call_once(tell_of_unknown);
    of_system(variable)
}

/// What a variable is that is not the library's own.
pub fn of_system(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

/// The names of all variables that are set.
pub fn names() -> impl Iterator<Item = OsString> {
    std::env::vars_os().map(|(name, _)| name)
}

fn tell_of_unknown() {
    for complaint in names().filter_map(|name| table::complaint(name.to_str()?)) {
        let _ = writeln!(std::io::stderr(), "resident: {complaint}");
    }
}

/// What a variable is, if it is set. `parse` gets its value in lower case and without spaces around
/// it. The error names the variable, the value and what is `expected`.
pub fn read<T>(
    variable: &str,
    expected: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, String> {
    let Some(value) = text(variable) else { return Ok(None) };
    let text = value.to_str().map(|text| text.trim().to_ascii_lowercase());
    text.and_then(|text| parse(&text)).map(Some).ok_or_else(|| {
        format!("{variable}={}: expected {expected}; set it so, or unset it", value.display())
    })
}

/// Whether a variable is switched on.
pub fn switch(variable: &str) -> Result<bool, String> {
    choice(variable).map(|is_on| is_on.unwrap_or(false))
}

/// Whether a variable is switched on or off, if it is set.
pub fn choice(variable: &str) -> Result<Option<bool>, String> {
    let parse = |text: &str| match text {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    };
    read(variable, "1, true, yes or on, or else 0, false, no or off", parse)
}

/// The environment variable that says whether arrays need no second copy on devices that reach the
/// host's memory: a switch. If it is not set, they need none where CUDA's driver says that the
/// device reaches it coherently, by the host's page tables.
pub const COHERENT_VARIABLE: &str = "RESIDENT_COHERENT";

/// A number in a range.
pub fn number<T>(variable: &str, range: RangeInclusive<T>) -> Result<Option<T>, String>
where
    T: Display + FromStr + PartialOrd,
{
    let expected = format!("a number from {} to {}", range.start(), range.end());
    read(variable, &expected, |text| text.parse().ok().filter(|number| range.contains(number)))
}

/// A number in a range, which may have a unit: k, M or G for powers of 1,024.
pub fn number_of_bytes(variable: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, String> {
    let (least, most) = (range.start(), range.end());
    let expected = format!("a number from {least} to {most}, as in 8388608 or 8M");
    read(variable, &expected, |text| parse_bytes(text).filter(|number| range.contains(number)))
}

fn parse_bytes(text: &str) -> Option<u64> {
    let shift = match text.chars().last()? {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    digits.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A positive number of seconds.
pub fn seconds(variable: &str) -> Result<Option<Duration>, String> {
    read(variable, "a number of seconds above 0, as in 10 or 0.5", |text| {
        let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0)?;
        Duration::try_from_secs_f64(seconds).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn bytes_are_parsed_with_their_unit() {
        assert_eq!(
            ["4096", "64k", "2 g", "3m"].map(parse_bytes),
            [Some(4096), Some(64 << 10), Some(2 << 30), Some(3 << 20)]
        );
        assert_eq!(["", "lots", "-1", "99999999999g"].map(parse_bytes), [None; 4]);
    }

    #[test]
    #[cfg(unix)]
    fn what_is_set_is_understood_or_named() {
        use std::time::Duration;

        use super::{number, number_of_bytes, seconds, switch};

        // Set for every process on this system.
        assert!(switch("PATH").expect_err("no switch").starts_with("PATH=/"));
        for refused in [
            number("PATH", 1..=9).map(|_| ()),
            number_of_bytes("PATH", 1..=9).map(|_| ()),
            seconds("PATH").map(|_| ()),
        ] {
            let text = refused.expect_err("no number");
            assert!(text.contains(": expected a number") && text.contains("unset it"), "{text}");
        }
        let unset = "RESIDENT_TEST_THAT_IS_NOT_SET";
        assert_eq!((switch(unset), number(unset, 1..=9)), (Ok(false), Ok(None)));
        assert_eq!(seconds(unset), Ok(None::<Duration>));
    }
}
