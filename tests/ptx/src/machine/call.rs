//! Calls of functions.

use super::block::Block;
use super::thread::{Frame, Thread};
use crate::Outcome;
use crate::module::{FUNCTIONS_START, Instruction, Module, Operand, Slot};

impl Block<'_> {
    /// `call (results), function, (arguments)`. The results are handed back when it ends.
    pub(super) fn call(&mut self, thread: &mut Thread, instruction: &Instruction) -> Outcome {
        let [_, callee, arguments] = &*instruction.operands else {
            return Err(instruction.not_supported());
        };
        let address = self.get(thread, callee)?;
        let index = address.wrapping_sub(FUNCTIONS_START) as usize;
        let function = self.module.functions.get(index);
        let function = function.ok_or_else(|| instruction.fault("no function is there"))?;
        if function.is_external {
            // The text is not compared.
            return if function.name == "vprintf" {
                Ok(())
            } else {
                Err(instruction.fault("a function outside the module"))
            };
        }
        let caller_at = thread.frame.stack_at;
        thread.enter(index, function).map_err(|what| instruction.fault(&what))?;
        let callee_at = thread.frame.stack_at;
        for (slot, offset) in function.parameters.iter().zip(offsets(arguments)) {
            copy(&mut thread.stack, caller_at + offset, callee_at, *slot);
        }
        Ok(())
    }
}

/// Copies what a function that has ended returns into the frame of its caller.
pub(super) fn hand_back(module: &Module, thread: &mut Thread, ended: Frame) {
    let caller = &module.functions[thread.frame.function];
    let instruction = &caller.code[thread.frame.next - 1];
    let Some(results) = instruction.operands.first() else { return };
    let function = &module.functions[ended.function];
    for (slot, offset) in function.results.iter().zip(offsets(results)) {
        let from = ended.stack_at + slot.offset as usize;
        let to = thread.frame.stack_at + offset;
        thread.stack.copy_within(from..from + slot.len_bytes as usize, to);
    }
}

fn copy(stack: &mut [u8], from: usize, callee_at: usize, slot: Slot) {
    stack.copy_within(from..from + slot.len_bytes as usize, callee_at + slot.offset as usize);
}

/// Where the values of a list are in the frame of the caller.
fn offsets(list: &Operand) -> impl Iterator<Item = usize> {
    let operands = match list {
        Operand::List(operands) => operands.as_slice(),
        _ => &[],
    };
    operands.iter().filter_map(|operand| match operand {
        Operand::Frame(offset) => Some(*offset as usize),
        _ => None,
    })
}
