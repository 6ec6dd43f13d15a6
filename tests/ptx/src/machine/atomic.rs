//! Atomic operations. No other thread runs meanwhile.

use super::block::Block;
use super::thread::Thread;
use crate::Outcome;
use crate::compute::compute;
use crate::memory::number;
use crate::module::{Instruction, Operand};
use crate::words::{Mode, Opcode, Type};

impl Block<'_> {
    /// `atom`, or `red`, which has no result.
    pub(super) fn atomic(&mut self, thread: &mut Thread, instruction: &Instruction) -> Outcome {
        let (result, operands) = match (instruction.opcode, &*instruction.operands) {
            (Opcode::Atom, [result, operands @ ..]) => (result, operands),
            (_, operands) => (&Operand::None, operands),
        };
        let [address, values @ ..] = operands else { return Err(instruction.not_supported()) };
        if instruction.vector > 1 {
            return Err(instruction.not_supported());
        }
        let access = self.access(thread, instruction, address)?;
        let mut given = [0; 2];
        for (given, value) in given.iter_mut().zip(values) {
            *given = self.get(thread, value)? & instruction.ty.mask();
        }
        let written = self.memory.write(&mut thread.stack, access);
        let bytes = written.map_err(|what| instruction.fault(&what))?;
        let old = number(bytes);
        let new = combined(instruction, old, given)?;
        bytes.copy_from_slice(&new.to_le_bytes()[..bytes.len()]);
        self.put(thread, result, old)
    }
}

fn combined(instruction: &Instruction, old: u64, [b, c]: [u64; 2]) -> Outcome<u64> {
    let ty = instruction.ty;
    let mode = instruction.mode.ok_or_else(|| instruction.not_supported())?;
    let order = ty.number(b).cmp(&ty.number(old));
    Ok(match mode {
        Mode::Add => return sum(instruction, old, b),
        Mode::Min | Mode::Max if ty.is_float() => return Err(instruction.not_supported()),
        Mode::Min if order.is_lt() => b,
        Mode::Max if order.is_gt() => b,
        Mode::Min | Mode::Max => old,
        Mode::And => old & b,
        Mode::Or => old | b,
        Mode::Xor => old ^ b,
        Mode::Exch => b,
        Mode::Cas if old == b => c,
        Mode::Cas => old,
        Mode::Inc if old >= b => 0,
        Mode::Inc => old + 1,
        Mode::Dec if old == 0 || old > b => b,
        Mode::Dec => old - 1,
        _ => return Err(instruction.not_supported()),
    })
}

fn sum(instruction: &Instruction, old: u64, b: u64) -> Outcome<u64> {
    match instruction.ty {
        Type::B16 | Type::B32 | Type::B64 => Err(instruction.not_supported()),
        ty if ty.is_float() => compute(&instruction.as_addition(), [old, b, 0, 0], &mut false),
        ty => Ok(old.wrapping_add(b) & ty.mask()),
    }
}
