//! A thread: its program counter, registers and memory.

use crate::Outcome;
use crate::memory::grow;
use crate::module::{Function, Module, STACK_BYTES_MAX, STACK_START};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Ready,
    /// At `bar.sync` and its like: the barrier's number, and the predicate that it passes.
    AtBarrier(u64, bool),
    /// Waits for the lanes of a mask.
    InWarp(u32),
    /// Asks which lanes are with it.
    AsksWhoIsActive,
    Done,
}

/// A call of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) function: usize,
    /// The next instruction.
    pub(super) next: usize,
    /// Where its registers begin.
    pub(super) registers_at: usize,
    /// Where its memory begins in that of the thread.
    pub(super) stack_at: usize,
}

#[derive(Debug)]
pub(super) struct Thread {
    pub(super) index: u32,
    pub(super) place: [u32; 3],
    pub(super) state: State,
    pub(super) frame: Frame,
    pub(super) callers: Vec<Frame>,
    pub(super) registers: Vec<u64>,
    pub(super) stack: Vec<u8>,
    pub(super) carry: bool,
}

impl Thread {
    pub(super) fn new(module: &Module, entry: usize, index: u32, extent: [u32; 3]) -> Self {
        let [x, y, _] = extent;
        let frame = Frame { function: entry, next: 0, registers_at: 0, stack_at: 0 };
        let function = &module.functions[entry];
        let mut stack = Vec::new();
        grow(&mut stack, function.frame_bytes as usize);
        Self {
            index,
            place: [index % x, index / x % y, index / x / y],
            state: State::Ready,
            frame,
            callers: Vec::new(),
            registers: vec![0; function.registers],
            stack,
            carry: false,
        }
    }

    pub(super) fn lane(&self) -> u32 {
        self.index % 32
    }

    pub(super) fn warp(&self) -> u32 {
        self.index / 32
    }

    pub(super) fn get(&self, register: u32) -> u64 {
        self.registers[self.frame.registers_at + register as usize]
    }

    pub(super) fn set(&mut self, register: u32, value: u64) {
        self.registers[self.frame.registers_at + register as usize] = value;
    }

    /// The generic address of a variable of the function that runs.
    pub(super) fn frame_address(&self, offset: u64) -> u64 {
        STACK_START + self.frame.stack_at as u64 + offset
    }

    /// Begins a function. Its memory is new.
    pub(super) fn enter(&mut self, index: usize, function: &Function) -> Outcome {
        let stack_at = self.stack.len().next_multiple_of(16);
        let end = stack_at + function.frame_bytes as usize;
        if end as u64 > STACK_BYTES_MAX || self.callers.len() > 100_000 {
            return Err(format!("too many calls within another, the last of {}", function.name));
        }
        self.callers.push(self.frame);
        let registers_at = self.registers.len();
        self.registers.resize(registers_at + function.registers, 0);
        grow(&mut self.stack, end);
        self.frame = Frame { function: index, next: 0, registers_at, stack_at };
        Ok(())
    }

    /// Ends a function, or the thread.
    pub(super) fn leave(&mut self, module: &Module) {
        let Some(caller) = self.callers.pop() else {
            self.state = State::Done;
            return;
        };
        let ended = std::mem::replace(&mut self.frame, caller);
        super::call::hand_back(module, self, ended);
        self.registers.truncate(ended.registers_at);
        self.stack.truncate(ended.stack_at);
    }
}
