//! The language of the texts of [`Elementwise`](super::Elementwise) and
//! [`Reduction`](super::Reduction): a part of C without pointers, arrays and calls of functions
//! other than a list. A text is read and typed here, and CUDA C is written anew from what was read:
//! no character of a text reaches a compiler. What C++ leaves undefined has one value, which the
//! functions of `support.cu` compute. Complex numbers are those of `ops/complex.cu`.
//!
//! | file | purpose |
//! |---|---|
//! | `token`, `number` | words, numbers and symbols, each with its place |
//! | `types`, `value` | the types of C, their conversions; expressions in CUDA C |
//! | `names`, `functions` | which names there may be, and which functions there are |
//! | `nearest` | which name is meant by an unknown one |
//! | `parser`, `expression`, `statement` | reads a text |

mod expression;
mod functions;
mod names;
mod nearest;
mod number;
mod parser;
mod statement;
#[cfg(test)]
mod tests;
mod token;
mod types;
mod value;

#[cfg(all(test, feature = "nccl"))]
pub(in crate::ops) use functions::functions_of_floats;
pub(in crate::ops) use names::{Variable, c_name, check as check_names};
pub(in crate::ops) use statement::Statements;
pub(in crate::ops) use types::Type;

use parser::Parser;

/// The functions in CUDA C that what is written here calls.
pub(in crate::ops) const SUPPORT: &str = include_str!("support.cu");

/// Statements in CUDA C that read and assign variables, each called [`c_name`] of its name.
pub(in crate::ops) fn statements(text: &str, names: &[Variable<'_>]) -> Result<Statements, String> {
    Parser::new(text, names).and_then(Parser::statements).map_err(|fault| fault.to_string())
}

/// A value of type `to` in CUDA C.
pub(in crate::ops) fn expression(
    text: &str,
    names: &[Variable<'_>],
    to: Type,
) -> Result<String, String> {
    Parser::new(text, names)
        .and_then(|parser| parser.whole_expression(to))
        .map_err(|fault| fault.to_string())
}
