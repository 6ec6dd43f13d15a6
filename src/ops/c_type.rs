//! The elements in CUDA C.

use super::language::Type;

/// Conversions between `float` and the types of two bytes, by their bits.
const HALF: &str = include_str!("half.cu");

/// Complex numbers.
const COMPLEX: &str = include_str!("complex.cu");

/// How CUDA C names an element, and computes with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CType {
    /// The type in memory.
    pub(super) memory: &'static str,
    /// The type in computations.
    pub(super) name: &'static str,
    /// The type whose sums and products wrap around: unsigned, for integers.
    pub(super) word: &'static str,
    /// The function from memory to computations, and back, if these types differ.
    pub(super) load: &'static str,
    pub(super) store: &'static str,
    kind: Kind,
    len_bytes: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Float,
    Signed,
    Unsigned,
    Complex,
}

impl CType {
    pub(super) const F32: Self = Self::new("float", "float", Kind::Float, 4);
    pub(super) const F64: Self = Self::new("double", "double", Kind::Float, 8);
    pub(super) const I32: Self = Self::new("int", "unsigned int", Kind::Signed, 4);
    pub(super) const I64: Self = Self::new("long long", "unsigned long long", Kind::Signed, 8);
    pub(super) const U32: Self = Self::new("unsigned int", "unsigned int", Kind::Unsigned, 4);
    pub(super) const U64: Self =
        Self::new("unsigned long long", "unsigned long long", Kind::Unsigned, 8);
    pub(super) const U16: Self = Self::new("unsigned short", "unsigned int", Kind::Unsigned, 2);
    pub(super) const F16: Self = Self::half("from_f16", "to_f16");
    pub(super) const BF16: Self = Self::half("from_bf16", "to_bf16");
    pub(super) const U8: Self = Self::new("unsigned char", "unsigned int", Kind::Unsigned, 1);
    pub(super) const C32: Self = Self::new("Complex<float>", "Complex<float>", Kind::Complex, 8);
    pub(super) const C64: Self = Self::new("Complex<double>", "Complex<double>", Kind::Complex, 16);

    const fn new(name: &'static str, word: &'static str, kind: Kind, len_bytes: u32) -> Self {
        Self { memory: name, name, load: "", store: "", word, kind, len_bytes }
    }

    /// A type of two bytes in memory, which CUDA C computes with as `float`.
    const fn half(load: &'static str, store: &'static str) -> Self {
        Self { memory: "unsigned short", load, store, ..Self::F32 }
    }

    /// What sources with these types need before all else.
    pub(super) fn preludes(types: impl IntoIterator<Item = Self>) -> String {
        let (mut has_half, mut has_complex) = (false, false);
        for one in types {
            has_half |= one.is_half();
            has_complex |= one.is_complex();
        }
        let half = if has_half { HALF } else { "" };
        if has_complex { format!("{COMPLEX}{half}") } else { half.into() }
    }

    pub(super) fn is_complex(&self) -> bool {
        self.kind == Kind::Complex
    }

    /// The type of the two parts of a complex number.
    fn part(&self) -> Option<Self> {
        let part = if self.len_bytes == 8 { Self::F32 } else { Self::F64 };
        self.is_complex().then_some(part)
    }

    /// Whether the type has two bytes in memory, and is a `float` in computations.
    pub(super) fn is_half(&self) -> bool {
        !self.load.is_empty()
    }

    /// The type of a value in a text.
    pub(super) fn of_text(&self) -> Type {
        match self.name {
            "float" => Type::F32,
            "double" => Type::F64,
            "int" => Type::I32,
            "long long" => Type::I64,
            "unsigned int" => Type::U32,
            "unsigned long long" => Type::U64,
            "Complex<float>" => Type::C32,
            "Complex<double>" => Type::C64,
            _ => Type::U8,
        }
    }

    pub(super) fn is_float(&self) -> bool {
        self.kind == Kind::Float
    }

    /// The quotient of `x` and `y`, which is defined for all values.
    pub(super) fn quotient(&self) -> &'static str {
        match self.kind {
            Kind::Float | Kind::Complex => "x / y",
            Kind::Signed => "y == 0 ? T(0) : y == T(-1) ? T(W(0) - W(x)) : T(x / y)",
            Kind::Unsigned => "y == 0 ? T(0) : T(x / y)",
        }
    }

    /// Rust's `x as ..` to this type, where `x` is a `from`. Of a complex number, a real one is the
    /// real part.
    pub(super) fn cast_of_x(&self, from: Self) -> String {
        let Some(of_from) = from.part() else {
            return match self.part() {
                Some(part) => format!("{}({})", self.name, part.cast("x", from)),
                None => self.cast("x", from),
            };
        };
        match self.part() {
            Some(part) => {
                let parts = ["x.re", "x.im"].map(|x| part.cast(x, of_from));
                format!("{}({})", self.name, parts.join(", "))
            }
            None => self.cast("x.re", of_from),
        }
    }

    /// A cast of `x` between real numbers. C++ leaves the value open if a float is outside the
    /// integers of the type.
    fn cast(&self, x: &str, from: Self) -> String {
        let name = self.name;
        if self.is_half() && from.len_bytes >= 4 && from.name != "float" {
            let is_long = from.len_bytes == 8;
            return format!("to_odd({}{x})", if is_long { "" } else { "(double)" });
        }
        if self.is_float() || !from.is_float() {
            return format!("({name}){x}");
        }
        let (min, max, below, above) = match (self.kind, self.len_bytes) {
            (Kind::Signed, 4) => ("-2147483647 - 1", "2147483647", "-2147483648.0", "2147483648.0"),
            (Kind::Signed, _) => (
                "-9223372036854775807ll - 1",
                "9223372036854775807ll",
                "-9223372036854775808.0",
                "9223372036854775808.0",
            ),
            (_, 1) => ("0", "255", "0.0", "256.0"),
            (_, 4) => ("0", "4294967295u", "0.0", "4294967296.0"),
            _ => ("0", "18446744073709551615ull", "0.0", "18446744073709551616.0"),
        };
        let float = from.name;
        format!(
            "{x} != {x} ? ({name})0 : {x} <= ({float}){below} ? ({name})({min}) \
             : {x} >= ({float}){above} ? ({name}){max} : ({name}){x}"
        )
    }
}
