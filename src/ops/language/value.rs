//! Expressions in CUDA C, each with its type. An expression is written in parentheses, or needs
//! none, so that no operator's rank matters.

use super::number::Number;
use super::types::Type;
use resident_code::c_declaration::is_identifier;

/// How deep parentheses may be nested in what is written: Clang takes 256.
pub(super) const NESTING_MAX: usize = 200;

#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) c: String,
    pub(super) kind: Type,
    /// How deep parentheses are nested in `c`.
    pub(super) nesting: usize,
}

impl Value {
    /// A name, or something else without parentheses.
    pub(super) fn plain(c: impl Into<String>, kind: Type) -> Self {
        Self { c: c.into(), kind, nesting: 0 }
    }

    pub(super) fn number(number: Number) -> Self {
        let c = match number {
            Number::Integer(value, kind) => {
                let suffix = match kind {
                    Type::U32 => "u",
                    Type::I64 => "ll",
                    Type::U64 => "ull",
                    _ => "",
                };
                format!("{value}{suffix}")
            }
            // C has no literal of this number.
            Number::MinusLowest => {
                let lowest = Self::plain("(-9223372036854775807ll - 1)", Type::I64);
                return Self { nesting: 1, ..lowest };
            }
            // What Rust prints is read as the same number.
            Number::F32(value) => format!("{value:?}f"),
            Number::F64(value) => format!("{value:?}"),
        };
        Self::plain(c, number.kind())
    }

    /// The name, if the value is a variable's, for a message.
    pub(super) fn shown(&self) -> &str {
        let is_name = |name: &&str| is_identifier(name);
        self.c.strip_prefix("u_").filter(is_name).unwrap_or("..")
    }

    /// `text` around the values, in parentheses.
    fn around(c: String, kind: Type, values: &[&Self]) -> Self {
        let nesting = values.iter().map(|value| value.nesting).max().unwrap_or(0) + 1;
        Self { c, kind, nesting }
    }

    /// A call of a function.
    pub(super) fn call(function: &str, kind: Type, arguments: &[&Self]) -> Self {
        let list: Vec<&str> = arguments.iter().map(|argument| &*argument.c).collect();
        Self::around(format!("{function}({})", list.join(", ")), kind, arguments)
    }

    /// A member of a complex number.
    pub(super) fn member(z: &Self, member: &str, kind: Type) -> Self {
        Self::around(format!("{}.{member}", z.c), kind, &[z])
    }

    /// `a operator b` of C, for values of one type for which it is defined.
    fn infix(a: &Self, operator: &str, b: &Self, kind: Type) -> Self {
        Self::around(format!("({} {operator} {})", a.c, b.c), kind, &[a, b])
    }

    /// The value as another type. Floats beyond the integers of a type become the nearest, and NaN
    /// becomes 0, as Rust's `as` converts them. Callers refuse to make complex numbers real.
    pub(super) fn to(&self, kind: Type) -> Self {
        if self.kind == kind {
            return self.clone();
        }
        if kind == Type::Bool {
            return Self::around(format!("({} != 0)", self.c), kind, &[self]);
        }
        if self.kind.is_float() && kind < Type::F32 {
            return Self::call(&format!("text::to<{}>", kind.c()), kind, &[self]);
        }
        Self::around(format!("(({}){})", kind.c(), self.c), kind, &[self])
    }

    /// The value as a `float` that `half.cu` rounds to fewer digits as it would the value itself.
    pub(super) fn to_odd(&self) -> Self {
        match self.kind {
            Type::I32 | Type::U32 => Self::call("to_odd", Type::F32, &[&self.to(Type::F64)]),
            Type::I64 | Type::U64 | Type::F64 => Self::call("to_odd", Type::F32, &[self]),
            _ => self.to(Type::F32),
        }
    }

    /// Both as the type of an operation on them.
    pub(super) fn balanced(a: &Self, b: &Self) -> (Self, Self) {
        let kind = a.kind.common(b.kind);
        (a.to(kind), b.to(kind))
    }

    pub(super) fn negated(&self) -> Self {
        let value = self.to(self.kind.promoted());
        if value.kind >= Type::F32 {
            return Self::around(format!("(-{})", value.c), value.kind, &[&value]);
        }
        Self::call("text::negated", value.kind, &[&value])
    }

    /// Each bit changed. The caller has refused all but integers.
    pub(super) fn complement(&self) -> Self {
        let value = self.to(self.kind.promoted());
        Self::around(format!("(~{})", value.c), value.kind, &[&value])
    }

    pub(super) fn not(&self) -> Self {
        let value = self.to(Type::Bool);
        Self::around(format!("(!{})", value.c), Type::Bool, &[&value])
    }

    /// `condition ? a : b`.
    pub(super) fn choice(condition: &Self, a: &Self, b: &Self) -> Self {
        let condition = condition.to(Type::Bool);
        let (a, b) = if a.kind == b.kind { (a.clone(), b.clone()) } else { Self::balanced(a, b) };
        let c = format!("({} ? {} : {})", condition.c, a.c, b.c);
        Self::around(c, a.kind, &[&condition, &a, &b])
    }

    /// An operation on two values; `None` if it has no floats and one of them is a float, or no
    /// complex numbers and one of them is one.
    pub(super) fn binary(a: &Self, operator: &str, b: &Self) -> Option<Self> {
        if matches!(operator, "&&" | "||") {
            return Some(Self::infix(&a.to(Type::Bool), operator, &b.to(Type::Bool), Type::Bool));
        }
        if let "<<" | ">>" = operator {
            return Self::shift(a, operator, b);
        }
        let (a, b) = Self::balanced(a, b);
        let kind = a.kind;
        let function = match operator {
            "<" | "<=" | ">" | ">=" if kind.is_complex() => return None,
            "==" | "!=" | "<" | "<=" | ">" | ">=" => {
                return Some(Self::infix(&a, operator, &b, Type::Bool));
            }
            "+" | "-" | "*" | "/" if kind >= Type::F32 => {
                return Some(Self::infix(&a, operator, &b, kind));
            }
            _ if kind >= Type::F32 => return None,
            "+" => "text::sum",
            "-" => "text::difference",
            "*" => "text::product",
            "/" => "text::quotient",
            "%" => "text::remainder",
            _ => return Some(Self::infix(&a, operator, &b, kind)),
        };
        Some(Self::call(function, kind, &[&a, &b]))
    }

    /// A shift has the type of what is shifted. A negative distance is a large one.
    fn shift(a: &Self, operator: &str, b: &Self) -> Option<Self> {
        if a.kind.max(b.kind) >= Type::F32 {
            return None;
        }
        let (a, distance) = (a.to(a.kind.promoted()), b.to(Type::U64));
        let function = if operator == "<<" { "text::left" } else { "text::right" };
        Some(Self::call(function, a.kind, &[&a, &distance]))
    }
}
