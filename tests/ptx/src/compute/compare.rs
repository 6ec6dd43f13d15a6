//! Comparisons, and tests of one number.

use std::cmp::Ordering;

use super::float::float;
use crate::Outcome;
use crate::module::Instruction;
use crate::rounding::Format;
use crate::words::{Mode, Type};

/// The value of a number with a fraction, which is exact.
pub(crate) fn value(ty: Type, bits: u64, flushes: bool) -> f64 {
    match (ty, Format::of(ty)) {
        (Type::F32, _) => float(bits, flushes).into(),
        (_, Some(format)) => format.value(bits & 0xffff),
        _ => f64::from_bits(bits),
    }
}

/// Whether a comparison holds for numbers of a type.
pub(crate) fn holds(instruction: &Instruction, ty: Type, a: u64, b: u64) -> Outcome<bool> {
    let mode = instruction.mode.ok_or_else(|| instruction.not_supported())?;
    let order = if ty.is_float() {
        let flushes = instruction.flushes;
        value(ty, a, flushes).partial_cmp(&value(ty, b, flushes))
    } else if matches!(mode, Mode::Lo | Mode::Ls | Mode::Hi | Mode::Hs) {
        Some((a & ty.mask()).cmp(&(b & ty.mask())))
    } else {
        Some(ty.number(a).cmp(&ty.number(b)))
    };
    decide(mode, order).ok_or_else(|| instruction.not_supported())
}

/// `order` is `None` if one number is NaN. `None` if the mode compares nothing.
fn decide(mode: Mode, order: Option<Ordering>) -> Option<bool> {
    let is = |accepted: fn(Ordering) -> bool| order.is_some_and(accepted);
    let is_or_nan = |accepted: fn(Ordering) -> bool| order.is_none_or(accepted);
    Some(match mode {
        Mode::Eq => is(Ordering::is_eq),
        Mode::Ne => is(Ordering::is_ne),
        Mode::Lt | Mode::Lo => is(Ordering::is_lt),
        Mode::Le | Mode::Ls => is(Ordering::is_le),
        Mode::Gt | Mode::Hi => is(Ordering::is_gt),
        Mode::Ge | Mode::Hs => is(Ordering::is_ge),
        Mode::Equ => is_or_nan(Ordering::is_eq),
        Mode::Neu => is_or_nan(Ordering::is_ne),
        Mode::Ltu => is_or_nan(Ordering::is_lt),
        Mode::Leu => is_or_nan(Ordering::is_le),
        Mode::Gtu => is_or_nan(Ordering::is_gt),
        Mode::Geu => is_or_nan(Ordering::is_ge),
        Mode::Num => order.is_some(),
        Mode::Nan => order.is_none(),
        _ => return None,
    })
}

/// A result of a comparison together with another predicate, as in `setp.lt.and`.
pub(crate) fn combined(
    instruction: &Instruction,
    result: bool,
    other: Option<bool>,
) -> Outcome<bool> {
    let (Some(other), mode) = (other, instruction.second_mode) else { return Ok(result) };
    match mode {
        Some(Mode::And) => Ok(result && other),
        Some(Mode::Or) => Ok(result || other),
        Some(Mode::Xor) => Ok(result != other),
        _ => Err(instruction.not_supported()),
    }
}

/// `testp`
pub(super) fn test(instruction: &Instruction, bits: u64) -> Outcome<u64> {
    let class = match instruction.ty {
        Type::F32 => f32::from_bits(bits as u32).classify(),
        Type::F64 => f64::from_bits(bits).classify(),
        _ => return Err(instruction.not_supported()),
    };
    use std::num::FpCategory::{Infinite, Nan, Normal, Subnormal};
    let holds = match instruction.mode {
        Some(Mode::Finite) => !matches!(class, Nan | Infinite),
        Some(Mode::Infinite) => class == Infinite,
        Some(Mode::Number) => class != Nan,
        Some(Mode::NotANumber) => class == Nan,
        Some(Mode::Normal) => class == Normal,
        Some(Mode::Subnormal) => class == Subnormal,
        _ => return Err(instruction.not_supported()),
    };
    Ok(holds.into())
}
