//! The types of C that a text has, and which type an operation on two of them has.

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::ops) enum Type {
    Bool,
    U8,
    // From here on in the order in which the type of an operation is chosen.
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    C32,
    C64,
}

impl Type {
    /// The name in CUDA C. `long` has another size on other systems, and is no type here.
    pub(in crate::ops) fn c(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "unsigned char",
            Self::I32 => "int",
            Self::U32 => "unsigned int",
            Self::I64 => "long long",
            Self::U64 => "unsigned long long",
            Self::F32 => "float",
            Self::F64 => "double",
            Self::C32 => "Complex<float>",
            Self::C64 => "Complex<double>",
        }
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    pub(super) fn is_complex(self) -> bool {
        matches!(self, Self::C32 | Self::C64)
    }

    /// The complex type whose parts are of this type, or the nearest to it.
    pub(super) fn complex(self) -> Self {
        if matches!(self, Self::F32 | Self::C32) { Self::C32 } else { Self::C64 }
    }

    /// The type of the parts of a complex number.
    pub(super) fn part(self) -> Self {
        if self == Self::C32 { Self::F32 } else { Self::F64 }
    }

    /// The type with which C computes.
    pub(super) fn promoted(self) -> Self {
        self.max(Self::I32)
    }

    /// The type of an operation on both: C's usual arithmetic conversions.
    pub(super) fn common(self, other: Self) -> Self {
        let (narrow, wide) = (self.min(other).promoted(), self.max(other).promoted());
        // As C's `double` and `float complex`.
        if (narrow, wide) == (Self::F64, Self::C32) { Self::C64 } else { wide }
    }

    /// The type in which a function such as `sqrt` computes: `float` if an argument is `float` and
    /// none is `double`, as CUDA's overloads do.
    pub(super) fn of_function(arguments: impl Iterator<Item = Self>) -> Self {
        let widest = arguments.max().unwrap_or(Self::F64);
        if widest == Self::F32 { Self::F32 } else { Self::F64 }
    }
}
