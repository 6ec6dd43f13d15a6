//! Loads and stores.

use super::block::Block;
use super::thread::Thread;
use crate::Outcome;
use crate::memory::{Access, number};
use crate::module::{Instruction, Operand};

impl Block<'_> {
    pub(super) fn load(&mut self, thread: &mut Thread, instruction: &Instruction) -> Outcome {
        let [to, from] = &*instruction.operands else { return Err(instruction.not_supported()) };
        let access = self.access(thread, instruction, from)?;
        let read = self.memory.read(&thread.stack, access);
        let bytes = read.map_err(|what| instruction.fault(&what))?;
        let len = instruction.ty.len_bytes() as usize;
        let mut values = [0; 4];
        for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(len)) {
            // A register may be wider than the type: numbers with a sign fill it.
            *value = instruction.ty.number(number(bytes)) as u64;
        }
        match (to, instruction.vector) {
            (Operand::List(parts), 2..) => {
                parts.iter().zip(values).try_for_each(|(part, value)| self.put(thread, part, value))
            }
            _ => self.put(thread, to, values[0]),
        }
    }

    pub(super) fn store(&mut self, thread: &mut Thread, instruction: &Instruction) -> Outcome {
        let [to, from] = &*instruction.operands else { return Err(instruction.not_supported()) };
        let access = self.access(thread, instruction, to)?;
        let mut values = [0; 4];
        match (from, instruction.vector) {
            (Operand::List(parts), 2..) => {
                for (value, part) in values.iter_mut().zip(parts) {
                    *value = self.get(thread, part)?;
                }
            }
            _ => values[0] = self.get(thread, from)?,
        }
        let written = self.memory.write(&mut thread.stack, access);
        let bytes = written.map_err(|what| instruction.fault(&what))?;
        let len = instruction.ty.len_bytes() as usize;
        for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(len)) {
            bytes.copy_from_slice(&value.to_le_bytes()[..len]);
        }
        Ok(())
    }

    /// The memory that an instruction accesses.
    pub(super) fn access(
        &self,
        thread: &Thread,
        instruction: &Instruction,
        operand: &Operand,
    ) -> Outcome<Access> {
        let address = self.address(thread, operand).map_err(|what| instruction.fault(&what))?;
        let len_bytes = instruction.ty.len_bytes() * instruction.vector as u64;
        Ok(Access { address, len_bytes, space: instruction.space })
    }
}
