//! Numbers in a text, with the types and values that C gives them.

use super::types::Type;

/// The value of a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Number {
    Integer(u64, Type),
    /// 2⁶³, which `long long` does not have; the number with a minus before it does.
    MinusLowest,
    F32(f32),
    F64(f64),
}

impl Number {
    pub(super) fn kind(self) -> Type {
        match self {
            Self::Integer(_, kind) => kind,
            Self::MinusLowest => Type::I64,
            Self::F32(_) => Type::F32,
            Self::F64(_) => Type::F64,
        }
    }
}

/// What is wrong with a decimal number without the suffix `u` that has 64 bits.
pub(super) const TOO_LARGE: &str = "`long long` has no number so large; write a smaller one, or \
                                    add the suffix `ull`, which makes it `unsigned long long`";

/// The bytes of the number at the start of a text: all that C's preprocessor would take for one, so
/// that `1x` is a number with a fault and not a number and a word.
pub(super) fn len(text: &str) -> usize {
    let is_hex = text.starts_with("0x") || text.starts_with("0X");
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        let is_sign = matches!(letter, '+' | '-') && matches!(before, 'e' | 'E') && !is_hex;
        if !(is_sign || letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_')) {
            return at;
        }
        before = letter;
    }
    text.len()
}

/// The number that a text is.
pub(super) fn of(text: &str) -> Result<Number, String> {
    let lower = text.to_ascii_lowercase();
    let digits_of = |prefix: &str| lower.strip_prefix(prefix);
    if let Some(digits) = digits_of("0x") {
        integer(digits, 16)
    } else if let Some(digits) = digits_of("0b") {
        integer(digits, 2)
    } else if lower.contains(['.', 'e']) {
        float(&lower)
    } else if let Some(digits) = digits_of("0").filter(|digits| digits.starts_with(is_digit)) {
        integer(digits, 8)
    } else {
        integer(&lower, 10)
    }
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

/// A number with a point or an exponent: `double`, or `float` with the suffix `f`.
fn float(text: &str) -> Result<Number, String> {
    let (digits, is_f32) = match text.strip_suffix('f') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let no_number = || String::from("this is no number; write one such as `1.5` or `1.5f`");
    if digits.contains(|letter: char| !matches!(letter, '0'..='9' | '.' | 'e' | '+' | '-')) {
        return Err(no_number());
    }
    let is_finite;
    let number = if is_f32 {
        let value: f32 = digits.parse().map_err(|_| no_number())?;
        is_finite = value.is_finite();
        Number::F32(value)
    } else {
        let value: f64 = digits.parse().map_err(|_| no_number())?;
        is_finite = value.is_finite();
        Number::F64(value)
    };
    if is_finite {
        return Ok(number);
    }
    Err(format!("its type `{}` has no number so large; write `INFINITY`", number.kind().c()))
}

fn integer(text: &str, radix: u32) -> Result<Number, String> {
    let end = text.find(|letter: char| !letter.is_digit(radix)).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let (is_unsigned, is_long) = match suffix {
        "" => (false, false),
        "u" => (true, false),
        "l" | "ll" => (false, true),
        "ul" | "ull" | "lu" | "llu" => (true, true),
        _ => {
            return Err(String::from("this is no number; write one such as `10`, `10u` or `10ll`"));
        }
    };
    let too_large = || String::from("`unsigned long long` has no number so large; write a smaller");
    let value = match u64::from_str_radix(digits, radix) {
        Ok(value) => value,
        Err(_) if digits.is_empty() => {
            return Err(String::from("digits are missing; write a number such as `0x10`"));
        }
        Err(_) => return Err(too_large()),
    };
    // As in C, a number that is not decimal may be unsigned without a suffix.
    let kinds = [
        (Type::I32, i32::MAX as u64, !is_unsigned && !is_long),
        (Type::U32, u64::from(u32::MAX), !is_long && (is_unsigned || radix != 10)),
        (Type::I64, i64::MAX as u64, !is_unsigned),
        (Type::U64, u64::MAX, is_unsigned || radix != 10),
    ];
    let fitting = kinds.into_iter().find(|(_, max, is_wanted)| *is_wanted && value <= *max);
    match fitting {
        Some((kind, ..)) => Ok(Number::Integer(value, kind)),
        None if value == i64::MIN.unsigned_abs() => Ok(Number::MinusLowest),
        None => Err(String::from(TOO_LARGE)),
    }
}
