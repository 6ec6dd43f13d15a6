//! What instructions compute from the bits of their operands.

pub(crate) mod bits;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod float;
pub(crate) mod half;
pub(crate) mod integer;

use crate::Outcome;
use crate::module::Instruction;
use crate::words::{Opcode, Type};

/// The result of an instruction of three operands or less, `lop3`, `bfi` and their like aside.
/// `carry` is the thread's flag.
pub(crate) fn compute(
    instruction: &Instruction,
    operands: [u64; 4],
    carry: &mut bool,
) -> Outcome<u64> {
    let is_float = instruction.ty.is_float();
    match instruction.opcode {
        Opcode::Cvt => convert::convert(instruction, operands),
        Opcode::Testp => compare::test(instruction, operands[0]),
        Opcode::Copysign => Ok(copy_sign(instruction.ty, operands)),
        Opcode::And | Opcode::Or | Opcode::Xor | Opcode::Not | Opcode::Cnot => {
            bits::logic(instruction, operands)
        }
        _ if instruction.ty.is_half() => half::compute(instruction, operands),
        _ if is_float => float::compute(instruction, operands),
        _ => match bits::compute(instruction, operands) {
            Some(result) => Ok(result),
            None => integer::compute(instruction, operands, carry),
        },
    }
}

/// The sign of the first operand, and the size of the second.
fn copy_sign(ty: Type, [sign, size, ..]: [u64; 4]) -> u64 {
    let of_sign = 1 << (ty.bits() - 1);
    (sign & of_sign) | (size & (of_sign - 1))
}
