//! The numbers and types of C's headers `<stdint.h>`, `<limits.h>`, `<float.h>` and `<math.h>`,
//! which NVRTC lacks: for sources that name them, without a header.
//!
//! A name that the source declares itself, as many sources for NVRTC do, is the source's.

use crate::prelude;
use crate::words::words;

/// Integer types of a fixed width.
const TYPES: [(&str, &str); 12] = [
    ("int8_t", "signed char"),
    ("uint8_t", "unsigned char"),
    ("int16_t", "short"),
    ("uint16_t", "unsigned short"),
    ("int32_t", "int"),
    ("uint32_t", "unsigned int"),
    ("int64_t", "long long"),
    ("uint64_t", "unsigned long long"),
    ("intptr_t", "long long"),
    ("uintptr_t", "unsigned long long"),
    ("intmax_t", "long long"),
    ("uintmax_t", "unsigned long long"),
];

/// Macros.
const MACROS: [(&str, &str); 76] = [
    ("INFINITY", prelude::INFINITY),
    ("NAN", prelude::NAN),
    ("HUGE_VALF", prelude::INFINITY),
    ("HUGE_VAL", "__longlong_as_double(0x7ff0000000000000ll)"),
    ("FLT_RADIX", "2"),
    ("FLT_DIG", "6"),
    ("FLT_MANT_DIG", "24"),
    ("FLT_MIN_EXP", "(-125)"),
    ("FLT_MAX_EXP", "128"),
    ("FLT_MIN_10_EXP", "(-37)"),
    ("FLT_MAX_10_EXP", "38"),
    ("FLT_MAX", "3.402823466e+38f"),
    ("FLT_MIN", "1.175494351e-38f"),
    ("FLT_EPSILON", "1.192092896e-07f"),
    ("DBL_DIG", "15"),
    ("DBL_MANT_DIG", "53"),
    ("DBL_MIN_EXP", "(-1021)"),
    ("DBL_MAX_EXP", "1024"),
    ("DBL_MIN_10_EXP", "(-307)"),
    ("DBL_MAX_10_EXP", "308"),
    ("DBL_MAX", "1.7976931348623157e+308"),
    ("DBL_MIN", "2.2250738585072014e-308"),
    ("DBL_EPSILON", "2.2204460492503131e-16"),
    ("CHAR_BIT", "8"),
    ("SCHAR_MIN", "(-128)"),
    ("SCHAR_MAX", "127"),
    ("UCHAR_MAX", "255"),
    ("CHAR_MIN", "(-128)"),
    ("CHAR_MAX", "127"),
    ("SHRT_MIN", "(-32768)"),
    ("SHRT_MAX", "32767"),
    ("USHRT_MAX", "65535"),
    ("INT_MIN", "(-2147483647 - 1)"),
    ("INT_MAX", "2147483647"),
    ("UINT_MAX", "4294967295u"),
    ("LONG_MIN", "(-9223372036854775807l - 1)"),
    ("LONG_MAX", "9223372036854775807l"),
    ("ULONG_MAX", "18446744073709551615ul"),
    ("LLONG_MIN", "(-9223372036854775807ll - 1)"),
    ("LLONG_MAX", "9223372036854775807ll"),
    ("ULLONG_MAX", "18446744073709551615ull"),
    ("INT8_MIN", "(-128)"),
    ("INT8_MAX", "127"),
    ("UINT8_MAX", "255"),
    ("INT16_MIN", "(-32768)"),
    ("INT16_MAX", "32767"),
    ("UINT16_MAX", "65535"),
    ("INT32_MIN", "(-2147483647 - 1)"),
    ("INT32_MAX", "2147483647"),
    ("UINT32_MAX", "4294967295u"),
    ("INT64_MIN", "(-9223372036854775807ll - 1)"),
    ("INT64_MAX", "9223372036854775807ll"),
    ("UINT64_MAX", "18446744073709551615ull"),
    ("INTPTR_MAX", "9223372036854775807ll"),
    ("UINTPTR_MAX", "18446744073709551615ull"),
    ("PTRDIFF_MAX", "9223372036854775807ll"),
    ("SIZE_MAX", "18446744073709551615ull"),
    ("M_E", "2.7182818284590452354"),
    ("M_LOG2E", "1.4426950408889634074"),
    ("M_LOG10E", "0.43429448190325182765"),
    ("M_LN2", "0.69314718055994530942"),
    ("M_LN10", "2.30258509299404568402"),
    ("M_PI", "3.14159265358979323846"),
    ("M_PI_2", "1.57079632679489661923"),
    ("M_PI_4", "0.78539816339744830962"),
    ("M_1_PI", "0.31830988618379067154"),
    ("M_2_PI", "0.63661977236758134308"),
    ("M_2_SQRTPI", "1.12837916709551257390"),
    ("M_SQRT2", "1.41421356237309504880"),
    ("M_SQRT1_2", "0.70710678118654752440"),
    ("FLT_TRUE_MIN", "1.401298464e-45f"),
    ("DBL_TRUE_MIN", "4.9406564584124654e-324"),
    ("FLT_DECIMAL_DIG", "9"),
    ("DBL_DECIMAL_DIG", "17"),
    ("INTMAX_MAX", "9223372036854775807ll"),
    ("UINTMAX_MAX", "18446744073709551615ull"),
];

/// What stands before a source for NVRTC and hiprtc: what it names and does not declare. No types
/// if it includes files of its own, which may declare them.
pub fn for_gpu(text: &str, includes_others: impl Fn(&str) -> bool) -> String {
    let names = Names::of(text);
    let mut result = String::new();
    let has_files = includes_others(text);
    for (name, kind) in TYPES.iter().filter(|(name, _)| !has_files && names.lacks(name)) {
        result += &of_type(name, kind);
    }
    for (name, value) in MACROS.iter().filter(|(name, _)| names.lacks(name)) {
        result += &of_macro(name, value);
    }
    result
}

/// Macros that are constants for a host's compiler.
const CONSTANTS_OF_HOST: [(&str, &str); 4] = [
    ("INFINITY", "__builtin_inff()"),
    ("NAN", "__builtin_nanf(\"\")"),
    ("HUGE_VALF", "__builtin_inff()"),
    ("HUGE_VAL", "__builtin_inf()"),
];

/// The same for the host.
pub fn for_host(text: &str, includes_others: impl Fn(&str) -> bool) -> String {
    let names = Names::of(text);
    let constants = CONSTANTS_OF_HOST.iter().filter(|(name, _)| names.lacks(name));
    let constants: String = constants.map(|(name, value)| of_macro(name, value)).collect();
    constants + &for_gpu(text, includes_others)
}

/// The text of a header with all types, or all macros, or both.
pub(crate) fn header() -> String {
    let types = TYPES.iter().map(|(name, kind)| of_type(name, kind));
    types.chain(MACROS.iter().map(|(name, value)| of_macro(name, value))).collect()
}

/// hiprtc declares the types itself.
fn of_type(name: &str, kind: &str) -> String {
    format!("#ifndef __HIPCC_RTC__\ntypedef {kind} {name};\n#endif\n")
}

fn of_macro(name: &str, value: &str) -> String {
    format!("#ifndef {name}\n#define {name} {value}\n#endif\n")
}

/// The names of these that a source has, and whether it declares them.
struct Names<'a>(Vec<(&'a str, bool)>);

impl<'a> Names<'a> {
    fn of(text: &'a str) -> Self {
        let is_known = |word: &str| TYPES.iter().chain(&MACROS).any(|(name, _)| *name == word);
        let (mut names, mut before) = (Vec::new(), ["", ""]);
        for (at, word) in words(text) {
            if is_known(word) {
                names.push((word, declares(text, at + word.len(), before)));
            }
            before = [before[1], word];
        }
        Self(names)
    }

    fn declares(&self, name: &str) -> bool {
        self.0.iter().any(|(known, is_declared)| *known == name && *is_declared)
    }

    /// Whether the source has the name and does not declare it.
    fn lacks(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == name) && !self.declares(name)
    }
}

/// Whether a word that ends at a place, behind two others, is being declared: `typedef .. word;`,
/// `using word =`, `#define word`, `const int word =`.
fn declares(text: &str, end: usize, before: [&str; 2]) -> bool {
    let behind = text[end..].trim_start();
    let statement = text[..end].rfind([';', '{', '}', '#']).map_or(0, |at| at + 1);
    let is_typedef = words(&text[statement..end]).next().is_some_and(|(_, word)| word == "typedef");
    let is_constant = behind.starts_with('=') && !behind.starts_with("==");
    is_typedef && behind.starts_with([';', ',', '['])
        || matches!(before[1], "using" | "define" | "undef" | "ifndef")
        || is_constant && !before[1].is_empty()
}

#[cfg(test)]
mod tests {
    use super::for_host;

    fn for_gpu(text: &str) -> String {
        super::for_gpu(text, |text| text.contains("#include"))
    }

    #[test]
    fn only_what_is_named_and_not_declared_is_added() {
        let added = for_gpu("uint32_t x = INT_MAX; // INFINITY uint8_t");
        assert!(added.contains("typedef unsigned int uint32_t;"), "{added}");
        assert!(added.contains("#define INT_MAX 2147483647"), "{added}");
        assert!(!added.contains("uint8_t") && !added.contains("INFINITY"), "{added}");
        assert_eq!(for_gpu("int x;"), "");
    }

    #[test]
    fn what_a_source_declares_is_its_own() {
        for text in [
            "typedef unsigned int uint32_t; uint32_t x;",
            "using uint32_t = unsigned;\nuint32_t x;",
            "#define uint32_t unsigned\nuint32_t x;",
            "#include \"types.h\"\nuint32_t x;",
            "#ifndef INFINITY\n#define INFINITY 1e300\n#endif\nfloat x = INFINITY;",
            "const float FLT_MAX = 3.0f;\nfloat y = FLT_MAX;",
        ] {
            assert_eq!(for_gpu(text), "", "{text}");
        }
        assert_ne!(for_gpu("x = y == FLT_MAX;"), "", "a use");
    }

    #[test]
    fn the_hosts_own_are_the_same_and_infinities_constants() {
        let text = "uint64_t x = INFINITY; const int INT_MAX = 3;";
        let host = for_host(text, |_| false);
        assert!(host.ends_with(&for_gpu(text)) && !host.contains("INT_MAX"), "{host}");
        assert!(host.starts_with("#ifndef INFINITY\n#define INFINITY __builtin_inff()"), "{host}");
        assert_eq!(for_host("float INFINITY = 1;", |_| false), "");
    }
}
