//! Constants.

/// The bits of a constant: a whole number, `0f3F800000`, `0d3FF0000000000000`.
pub(super) fn number(word: &str) -> Option<u64> {
    let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let prefixes = ["0f", "0F", "0d", "0D"];
    if let Some(digits) = prefixes.iter().find_map(|prefix| word.strip_prefix(prefix)) {
        return hexadecimal(digits);
    }
    let word = word.strip_suffix('U').unwrap_or(word);
    let after = |lower: &str, upper: &str| {
        word.strip_prefix(lower).or_else(|| word.strip_prefix(upper)).map(str::to_owned)
    };
    if let Some(digits) = after("0x", "0X") {
        return hexadecimal(&digits);
    }
    if let Some(digits) = after("0b", "0B") {
        return u64::from_str_radix(&digits, 2).ok();
    }
    match word.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u64::from_str_radix(digits, 8).ok(),
        _ => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn constants_of_each_kind() {
        let cases = [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("0x1F", Some(31)),
            ("017", Some(15)),
            ("0b101U", Some(5)),
            ("42U", Some(42)),
            ("0f3F800000", Some(0x3f80_0000)),
            ("0dBFF0000000000000", Some(0xbff0_0000_0000_0000)),
            ("x", None),
            ("%r1", None),
            ("1x", None),
        ];
        for (word, expected) in cases {
            assert_eq!(number(word), expected, "{word}");
        }
    }
}
