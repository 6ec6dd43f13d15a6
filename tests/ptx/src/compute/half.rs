//! Arithmetic of numbers of two bytes, alone or in pairs: by doubles, rounded once.

use super::float::{in_doubles, saturated};
use crate::Outcome;
use crate::module::Instruction;
use crate::rounding::Format;
use crate::words::{Opcode, Rounding};

pub(super) fn compute(instruction: &Instruction, operands: [u64; 4]) -> Outcome<u64> {
    let count = if instruction.ty.is_pair() { 2 } else { 1 };
    (0..count).try_fold(0, |result, at| {
        let part = one(instruction, operands.map(|bits| bits >> (16 * at) & 0xffff))?;
        Ok(result | part << (16 * at))
    })
}

fn one(instruction: &Instruction, operands: [u64; 4]) -> Outcome<u64> {
    let format = Format::of(instruction.ty).ok_or_else(|| instruction.not_supported())?;
    match instruction.opcode {
        Opcode::Abs => return Ok(operands[0] & 0x7fff),
        Opcode::Neg => return Ok(operands[0] ^ 0x8000),
        _ => {}
    }
    let [a, b, c, _] = operands.map(|bits| format.value(bits));
    let mut result = in_doubles(instruction, a, b, c)?;
    if instruction.saturates {
        result = saturated(result);
    }
    if instruction.relu && result < 0.0 {
        result = 0.0;
    }
    Ok(format.bits(result, instruction.rounding.unwrap_or(Rounding::Nearest)))
}
