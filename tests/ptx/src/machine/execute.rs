//! One instruction of one thread.

use super::block::Block;
use super::thread::{State, Thread};
use crate::Outcome;
use crate::compute::{compare, compute};
use crate::memory::is_in;
use crate::module::{Base, Instruction, Operand};
use crate::words::{Mode, Opcode, Space, Special, Type};

impl Block<'_> {
    pub(super) fn execute(&mut self, thread: &mut Thread, instruction: &Instruction) -> Outcome {
        match instruction.opcode {
            Opcode::Ld | Opcode::Ldu => self.load(thread, instruction),
            Opcode::St => self.store(thread, instruction),
            Opcode::Atom | Opcode::Red => self.atomic(thread, instruction),
            Opcode::Mov => self.move_(thread, instruction),
            Opcode::Setp | Opcode::Set => self.compare(thread, instruction),
            Opcode::Selp | Opcode::Slct => self.select(thread, instruction),
            Opcode::Bra => {
                thread.frame.next = instruction.target;
                Ok(())
            }
            Opcode::Brx => self.branch_by_index(thread, instruction),
            Opcode::Call => self.call(thread, instruction),
            Opcode::Ret => {
                thread.leave(self.module);
                Ok(())
            }
            Opcode::Exit => {
                thread.state = State::Done;
                Ok(())
            }
            Opcode::Trap | Opcode::Brkpt => Err(instruction.fault("the kernel stops here")),
            Opcode::Membar
            | Opcode::Fence
            | Opcode::Nanosleep
            | Opcode::Prefetch
            | Opcode::Prefetchu => Ok(()),
            Opcode::Bar | Opcode::Barrier => self.wait_at_barrier(thread, instruction),
            Opcode::Shfl | Opcode::Vote | Opcode::Match | Opcode::Redux | Opcode::Activemask => {
                self.wait_for_warp(thread, instruction)
            }
            Opcode::Isspacep => {
                let space = instruction.space.unwrap_or(Space::Global);
                let address = self.operand(thread, instruction, 1)?;
                self.put(thread, &instruction.operands[0], is_in(space, address).into())
            }
            // Addresses of all memories are generic ones.
            Opcode::Cvta => {
                let address = self.operand(thread, instruction, 1)?;
                self.put(thread, &instruction.operands[0], address)
            }
            _ => self.compute(thread, instruction),
        }
    }

    fn compute(&mut self, thread: &mut Thread, instruction: &Instruction) -> Outcome {
        let mut values = [0; 4];
        for (value, operand) in values.iter_mut().zip(&instruction.operands[1..]) {
            *value = self.get(thread, operand).map_err(|what| instruction.fault(what))?;
        }
        let mut carry = thread.carry;
        let result = compute(instruction, values, &mut carry)?;
        thread.carry = carry;
        self.put(thread, &instruction.operands[0], result)
    }

    /// The value of one operand of an instruction.
    pub(super) fn operand(
        &self,
        thread: &Thread,
        instruction: &Instruction,
        index: usize,
    ) -> Outcome<u64> {
        let operand = instruction.operands.get(index);
        let operand = operand.ok_or_else(|| instruction.not_supported())?;
        self.get(thread, operand).map_err(|what| instruction.fault(what))
    }

    #[inline]
    pub(super) fn get(&self, thread: &Thread, operand: &Operand) -> Result<u64, &'static str> {
        Ok(match operand {
            Operand::Register(register) => thread.get(*register),
            Operand::Not(register) => thread.get(*register) & 1 ^ 1,
            Operand::Constant(value) => *value,
            Operand::Frame(offset) => thread.frame_address(*offset),
            Operand::Special(special) => self.special(thread, *special),
            Operand::Pair(pair) => self.get(thread, &pair.0)?,
            _ => return Err("this operand has no value"),
        })
    }

    pub(super) fn put(&self, thread: &mut Thread, operand: &Operand, value: u64) -> Outcome {
        match operand {
            Operand::Register(register) => thread.set(*register, value),
            Operand::Pair(pair) => self.put(thread, &pair.0, value)?,
            Operand::None => {}
            _ => return Err("this operand takes no result".to_owned()),
        }
        Ok(())
    }

    /// Puts the second result of an instruction, if it has one.
    pub(super) fn put_second(&self, thread: &mut Thread, operand: &Operand, value: u64) -> Outcome {
        match operand {
            Operand::Pair(pair) => self.put(thread, &pair.1, value),
            _ => Ok(()),
        }
    }

    pub(super) fn address(&self, thread: &Thread, operand: &Operand) -> Outcome<u64> {
        let Operand::Address(base, offset) = operand else {
            return Err("an address in brackets is missing".to_owned());
        };
        let base = match base {
            Base::Zero => 0,
            Base::Register(register) => thread.get(*register),
            Base::Frame => thread.frame_address(0),
            Base::Name(name) => return Err(format!("there is no {name}")),
        };
        Ok(base.wrapping_add_signed(*offset))
    }

    /// `mov`, which also joins and divides words.
    fn move_(&mut self, thread: &mut Thread, instruction: &Instruction) -> Outcome {
        let [to, from] = &*instruction.operands else { return Err(instruction.not_supported()) };
        let ty = instruction.ty;
        if let Operand::List(parts) = from {
            let bits = ty.bits() / parts.len().max(1) as u32;
            let mut joined = 0;
            for part in parts.iter().rev() {
                let value = self.get(thread, part)? & (u64::MAX >> (64 - bits));
                joined = joined << (bits % 64) | value;
            }
            return self.put(thread, to, joined);
        }
        let value = self.get(thread, from)? & ty.mask();
        let Operand::List(parts) = to else { return self.put(thread, to, value) };
        let bits = ty.bits() / parts.len().max(1) as u32;
        for (index, part) in parts.iter().enumerate() {
            let shifted = value >> (bits * index as u32);
            self.put(thread, part, shifted & (u64::MAX >> (64 - bits)))?;
        }
        Ok(())
    }

    fn compare(&mut self, thread: &mut Thread, instruction: &Instruction) -> Outcome {
        let is_set = instruction.opcode == Opcode::Set;
        let ty = if is_set { instruction.from } else { instruction.ty };
        let a = self.operand(thread, instruction, 1)?;
        let b = self.operand(thread, instruction, 2)?;
        let other = match instruction.operands.get(3) {
            Some(operand) => Some(self.get(thread, operand)? & 1 == 1),
            None => None,
        };
        let result = |at: u32, negated: bool| {
            let holds = compare::holds(instruction, ty, a >> (16 * at), b >> (16 * at))?;
            compare::combined(instruction, holds != negated, other)
        };
        let to = &instruction.operands[0];
        if is_set {
            let value = set_value(instruction, &result)?;
            return self.put(thread, to, value);
        }
        let second = if ty.is_pair() { result(1, false)? } else { result(0, true)? };
        self.put(thread, to, result(0, false)?.into())?;
        self.put_second(thread, to, second.into())
    }

    fn select(&mut self, thread: &mut Thread, instruction: &Instruction) -> Outcome {
        let decides = self.operand(thread, instruction, 3)?;
        let is_first = match (instruction.opcode, instruction.from) {
            (Opcode::Selp, _) => decides & 1 == 1,
            (_, Type::F32) => f32::from_bits(decides as u32) >= 0.0,
            (_, ty) => ty.number(decides) >= 0,
        };
        let value = self.operand(thread, instruction, if is_first { 1 } else { 2 })?;
        self.put(thread, &instruction.operands[0], value)
    }

    fn branch_by_index(&mut self, thread: &mut Thread, instruction: &Instruction) -> Outcome {
        let index = self.operand(thread, instruction, 0)?;
        let table = &self.module.functions[thread.frame.function].tables[instruction.target];
        let target = usize::try_from(index & 0xffff_ffff).ok().and_then(|index| table.get(index));
        thread.frame.next = *target.ok_or_else(|| instruction.fault("no target has this index"))?;
        Ok(())
    }

    fn wait_at_barrier(&mut self, thread: &mut Thread, instruction: &Instruction) -> Outcome {
        let operands = &instruction.operands;
        match instruction.mode {
            Some(Mode::Warp) => return self.wait_for_warp(thread, instruction),
            None if operands.len() == 1 => {
                let number = self.operand(thread, instruction, 0)?;
                thread.state = State::AtBarrier(number, false);
            }
            Some(Mode::Popc | Mode::And | Mode::Or) if operands.len() == 3 => {
                let number = self.operand(thread, instruction, 1)?;
                let predicate = self.operand(thread, instruction, 2)? & 1 == 1;
                thread.state = State::AtBarrier(number, predicate);
            }
            _ => return Err(instruction.not_supported()),
        }
        Ok(())
    }

    fn special(&self, thread: &Thread, special: Special) -> u64 {
        let lane = thread.lane();
        let below = (1_u32 << lane) - 1;
        let [block, grid] = [self.launch.block, self.launch.grid];
        match special {
            Special::ThreadX => thread.place[0].into(),
            Special::ThreadY => thread.place[1].into(),
            Special::ThreadZ => thread.place[2].into(),
            Special::ThreadsX => block[0].into(),
            Special::ThreadsY => block[1].into(),
            Special::ThreadsZ => block[2].into(),
            Special::BlockX => self.place[0].into(),
            Special::BlockY => self.place[1].into(),
            Special::BlockZ => self.place[2].into(),
            Special::BlocksX => grid[0].into(),
            Special::BlocksY => grid[1].into(),
            Special::BlocksZ => grid[2].into(),
            Special::Lane => lane.into(),
            Special::Warp => thread.warp().into(),
            Special::Warps => block.iter().product::<u32>().div_ceil(32).into(),
            Special::Processor => 0,
            Special::Processors => 1,
            Special::Clock => self.executed & 0xffff_ffff,
            Special::Clock64 | Special::Timer => self.executed,
            Special::MaskEqual => 1 << lane,
            Special::MaskBelow => below.into(),
            Special::MaskUpTo => (below | 1 << lane).into(),
            Special::MaskAbove => (!(below | 1 << lane)).into(),
            Special::MaskFrom => (!below).into(),
            Special::DynamicSharedBytes => self.launch.shared_bytes.into(),
            Special::SharedBytes => self.memory.shared_bytes(),
        }
    }
}

/// What `set` puts: all ones or 1.0, for each number of a pair.
fn set_value(
    instruction: &Instruction,
    result: &dyn Fn(u32, bool) -> Outcome<bool>,
) -> Outcome<u64> {
    let one = match instruction.ty {
        Type::F32 => 0x3f80_0000,
        Type::F16 | Type::F16x2 => 0x3c00,
        Type::Bf16 | Type::Bf16x2 => 0x3f80,
        _ if instruction.from.is_pair() => 0xffff,
        ty => ty.mask(),
    };
    let mut value = if result(0, false)? { one } else { 0 };
    if instruction.from.is_pair() && result(1, false)? {
        value |= one << 16;
    }
    Ok(value)
}
