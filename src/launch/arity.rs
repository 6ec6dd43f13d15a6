//! Macros for tuples of 1 to 16 parameters.

/// Expands a macro once for each number of parameters from 1 to 16. The macro gets, per parameter,
/// the name of its type, the name of its argument's type, and its index in the tuple.
macro_rules! for_each_arity {
    ($macro:ident) => {
        for_each_arity!($macro [] P0 A0 0, P1 A1 1, P2 A2 2, P3 A3 3, P4 A4 4, P5 A5 5, P6 A6 6,
            P7 A7 7, P8 A8 8, P9 A9 9, P10 A10 10, P11 A11 11, P12 A12 12, P13 A13 13, P14 A14 14,
            P15 A15 15,);
    };
    ($macro:ident [$($shorter:tt)*]) => {};
    ($macro:ident [$($shorter:tt)*] $p:ident $a:ident $index:tt, $($rest:tt)*) => {
        $macro!($($shorter)* $p $a $index);
        for_each_arity!($macro [$($shorter)* $p $a $index,] $($rest)*);
    };
}

pub(crate) use for_each_arity;
