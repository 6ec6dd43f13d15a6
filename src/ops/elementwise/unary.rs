//! The functions of [`map`](crate::ops::map).

/// A function of one number, for [`map`](crate::ops::map).
///
/// All are defined for `f32` and `f64`, with the values of Rust's methods. `Neg`, `Abs`, `Sign`,
/// `Square` and the roundings are also defined for integers, which `Neg`, `Abs` and `Square` wrap
/// around and which the roundings leave as they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Unary {
    /// `-x`.
    Neg,
    /// The absolute value. That of the smallest `i32` or `i64` is itself.
    Abs,
    /// -1, 0 or 1, as NumPy's `sign`: zeros keep their sign, and NaN stays NaN.
    Sign,
    /// `x * x`.
    Square,
    /// `1 / x`.
    Reciprocal,
    /// The square root.
    Sqrt,
    /// `e` to the power of `x`.
    Exp,
    /// 2 to the power of `x`.
    Exp2,
    /// The natural logarithm: Rust's `ln`, NumPy's `log`.
    Log,
    /// The logarithm to the base 2.
    Log2,
    /// The logarithm to the base 10.
    Log10,
    /// The sine, of radians.
    Sin,
    /// The cosine, of radians.
    Cos,
    /// The tangent, of radians.
    Tan,
    /// The hyperbolic tangent.
    Tanh,
    /// The largest integer that is not greater.
    Floor,
    /// The smallest integer that is not less.
    Ceil,
    /// The nearest integer, halves away from zero, as Rust's `round`. (NumPy rounds halves to even
    /// integers.)
    Round,
    /// The integer part.
    Trunc,
}

impl Unary {
    /// Whether integers have the function too.
    pub(in crate::ops) fn is_for_integers(self) -> bool {
        use Unary::{Abs, Ceil, Floor, Neg, Round, Sign, Square, Trunc};
        matches!(self, Neg | Abs | Sign | Square | Floor | Ceil | Round | Trunc)
    }

    /// The value for `x` in CUDA C, for floats.
    pub(in crate::ops) fn of_floats(self) -> &'static str {
        match self {
            Self::Neg => "-x",
            Self::Abs => "fabs(x)",
            Self::Sign => "x > 0 ? T(1) : x < 0 ? T(-1) : x",
            Self::Square => "x * x",
            Self::Reciprocal => "1 / x",
            Self::Sqrt => "sqrt(x)",
            Self::Exp => "exp(x)",
            Self::Exp2 => "exp2(x)",
            Self::Log => "log(x)",
            Self::Log2 => "log2(x)",
            Self::Log10 => "log10(x)",
            Self::Sin => "sin(x)",
            Self::Cos => "cos(x)",
            Self::Tan => "tan(x)",
            Self::Tanh => "tanh(x)",
            Self::Floor => "floor(x)",
            Self::Ceil => "ceil(x)",
            Self::Round => "round(x)",
            Self::Trunc => "trunc(x)",
        }
    }

    /// The value for `x` in CUDA C, for integers whose unsigned type is `W`.
    pub(in crate::ops) fn of_integers(self) -> &'static str {
        match self {
            Self::Neg => "W(0) - W(x)",
            Self::Abs => "x < 0 ? T(W(0) - W(x)) : x",
            Self::Sign => "(x > 0) - (x < 0)",
            Self::Square => "W(x) * W(x)",
            _ => "x",
        }
    }

    /// The name of the kernel.
    pub(in crate::ops) fn title(self) -> &'static str {
        match self {
            Self::Neg => "ops::map(Neg)",
            Self::Abs => "ops::map(Abs)",
            Self::Sign => "ops::map(Sign)",
            Self::Square => "ops::map(Square)",
            Self::Reciprocal => "ops::map(Reciprocal)",
            Self::Sqrt => "ops::map(Sqrt)",
            Self::Exp => "ops::map(Exp)",
            Self::Exp2 => "ops::map(Exp2)",
            Self::Log => "ops::map(Log)",
            Self::Log2 => "ops::map(Log2)",
            Self::Log10 => "ops::map(Log10)",
            Self::Sin => "ops::map(Sin)",
            Self::Cos => "ops::map(Cos)",
            Self::Tan => "ops::map(Tan)",
            Self::Tanh => "ops::map(Tanh)",
            Self::Floor => "ops::map(Floor)",
            Self::Ceil => "ops::map(Ceil)",
            Self::Round => "ops::map(Round)",
            Self::Trunc => "ops::map(Trunc)",
        }
    }
}
