//! Comparisons, whose results are masks, and logic on masks.

pub(super) mod functions;

use ndarray::{ArrayViewD, ArrayViewMutD};

use super::arithmetic::Arithmetic;
use super::c_type::CType;
use super::call::Call;
use super::elementwise::host::each_of_one;
use super::elementwise::of_one;
use super::right::{Described, Right, RightSide, apply};
use crate::array::{AnyView, AnyViewMut};
use crate::error::Result;

/// How two numbers, or two elements of masks, become an element of a mask.
#[derive(Clone, Copy)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
    Xor,
}

impl Relation {
    /// The name; where the right operand is a number, another, since the kernel is another.
    fn titles(self) -> [&'static str; 2] {
        match self {
            Self::Equal => ["ops::equal", "ops::equal, of a number"],
            Self::NotEqual => ["ops::not_equal", "ops::not_equal, of a number"],
            Self::Less => ["ops::less", "ops::less, of a number"],
            Self::LessEqual => ["ops::less_equal", "ops::less_equal, of a number"],
            Self::Greater => ["ops::greater", "ops::greater, of a number"],
            Self::GreaterEqual => ["ops::greater_equal", "ops::greater_equal, of a number"],
            Self::And => ["ops::logical_and", "ops::logical_and, of a number"],
            Self::Or => ["ops::logical_or", "ops::logical_or, of a number"],
            Self::Xor => ["ops::logical_xor", "ops::logical_xor, of a number"],
        }
    }

    /// The value in CUDA C.
    fn value(self) -> &'static str {
        match self {
            Self::Equal => "x == y",
            Self::NotEqual => "x != y",
            Self::Less => "x < y",
            Self::LessEqual => "x <= y",
            Self::Greater => "x > y",
            Self::GreaterEqual => "x >= y",
            Self::And => "x != 0 && y != 0",
            Self::Or => "x != 0 || y != 0",
            Self::Xor => "(x != 0) != (y != 0)",
        }
    }

    fn holds<T: Arithmetic>(self, x: T, y: T) -> bool {
        let is_true = |x: T| x != T::zeroed();
        match self {
            Self::Equal => x == y,
            Self::NotEqual => x != y,
            Self::Less => x.is_less(y),
            Self::LessEqual => x.is_less(y) || x == y,
            Self::Greater => y.is_less(x),
            Self::GreaterEqual => y.is_less(x) || x == y,
            Self::And => is_true(x) && is_true(y),
            Self::Or => is_true(x) || is_true(y),
            Self::Xor => is_true(x) != is_true(y),
        }
    }

    /// Calls `run` with the comparison, in a closure of its own for each relation, so that its
    /// loop is vectorised.
    fn each<T: Arithmetic>(
        self,
        a: ArrayViewD<'_, T>,
        b: RightSide<'_, T>,
        out: ArrayViewMutD<'_, u8>,
    ) {
        macro_rules! each {
            ($($relation:ident),+) => {
                match self {
                    $(Self::$relation => {
                        b.each(a, out, |x, y| u8::from(Self::$relation.holds(x, y)));
                    })+
                }
            };
        }
        each!(Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, And, Or, Xor);
    }
}

/// `out = a relation b`.
pub(super) fn compare<T: Arithmetic>(
    call: &Call<'_>,
    relation: Relation,
    a: &impl AnyView<T>,
    b: &impl Right<T>,
    out: &mut impl AnyViewMut<u8>,
) -> Result<()> {
    let (titles, value) = (relation.titles(), relation.value());
    let described = Described { titles, value, names: ["x", "y"], result: CType::U8 };
    apply(call, &described, a, b, out, move |a, b, out| relation.each(a, b, out))
}

/// `out = !a`.
pub(super) fn not(
    call: &Call<'_>,
    a: &impl AnyView<u8>,
    out: &mut impl AnyViewMut<u8>,
) -> Result<()> {
    of_one(
        call,
        "ops::logical_not",
        a,
        out,
        [CType::U8; 2],
        || "x == 0".into(),
        |a, out| {
            each_of_one(a, out, |a, out| *out = u8::from(a == 0));
        },
    )
}
