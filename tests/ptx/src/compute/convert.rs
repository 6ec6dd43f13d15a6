//! Conversions.

use super::compare::value;
use super::float::{bits_of, flushed, saturated};
use crate::Outcome;
use crate::module::Instruction;
use crate::rounding::{Approximation, Format, NAN_F64};
use crate::words::{Rounding, Type};

pub(super) fn convert(instruction: &Instruction, [a, b, ..]: [u64; 4]) -> Outcome<u64> {
    let (to, from) = (instruction.ty, instruction.from);
    match (to.is_float(), from.is_float()) {
        (false, false) => Ok(between_integers(instruction, a)),
        (true, false) => from_integer(instruction, a),
        (false, true) => Ok(to_integer(instruction, a)),
        // The first operand is the upper half.
        (true, true) if to.is_pair() => {
            let parts = [b, a].map(|bits| between_floats(instruction, bits));
            let [low, high] = parts;
            Ok(high? << 16 | low?)
        }
        (true, true) => between_floats(instruction, a),
    }
}

fn between_integers(instruction: &Instruction, bits: u64) -> u64 {
    let (to, number) = (instruction.ty, instruction.from.number(bits));
    let number = if instruction.saturates { clamped(to, number) } else { number };
    // A register may be wider than the type: numbers with a sign fill it.
    to.number(number as u64) as u64
}

fn clamped(ty: Type, number: i128) -> i128 {
    let (low, high) = limits(ty);
    number.clamp(low, high)
}

fn limits(ty: Type) -> (i128, i128) {
    let bits = ty.bits();
    if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

fn from_integer(instruction: &Instruction, bits: u64) -> Outcome<u64> {
    let number = instruction.from.number(bits);
    let high = (number >> 32 << 32) as f64;
    let value = Approximation::sum(high, (number - (number >> 32 << 32)) as f64);
    let rounding = instruction.rounding.unwrap_or(Rounding::Nearest);
    if instruction.ty == Type::F64 {
        return Ok(value.rounded(rounding).to_bits());
    }
    let format = Format::of(instruction.ty).ok_or_else(|| instruction.not_supported())?;
    Ok(format.bits(value.odd(), rounding))
}

fn between_floats(instruction: &Instruction, bits: u64) -> Outcome<u64> {
    let (to, from) = (instruction.ty, instruction.from);
    let mut number = value(from, bits, instruction.flushes);
    let rounding = instruction.rounding.unwrap_or(Rounding::Nearest);
    if instruction.to_integer {
        number = whole(number, rounding);
    }
    if instruction.saturates {
        number = saturated(number);
    }
    if instruction.relu && number < 0.0 {
        number = 0.0;
    }
    match (to, Format::of(to)) {
        (Type::F32, Some(format)) => {
            let float = f32::from_bits(format.bits(number, rounding) as u32);
            Ok(bits_of(flushed(float, instruction.flushes)))
        }
        (_, Some(format)) => Ok(format.bits(number, rounding)),
        _ if number.is_nan() => Ok(NAN_F64),
        _ => Ok(number.to_bits()),
    }
}

fn whole(number: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => number.round_ties_even(),
        Rounding::Zero => number.trunc(),
        Rounding::Down => number.floor(),
        Rounding::Up => number.ceil(),
    }
}

fn to_integer(instruction: &Instruction, bits: u64) -> u64 {
    let (to, from) = (instruction.ty, instruction.from);
    let number = value(from, bits, instruction.flushes);
    if number.is_nan() {
        // The highest bit, if one of the two types has 64 bits.
        let has_64_bits = from == Type::F64 || to.bits() == 64;
        let highest = if has_64_bits { 1 << (to.bits() - 1) } else { 0 };
        return to.number(highest) as u64;
    }
    let number = whole(number, instruction.rounding.unwrap_or(Rounding::Zero));
    // A cast to `i128` saturates.
    clamped(to, number as i128) as u64
}
