//! What the lanes of a warp do together: shuffles, votes, and their like.

use super::block::Block;
use super::thread::{State, Thread};
use crate::Outcome;
use crate::module::Instruction;
use crate::words::{Mode, Opcode};

/// What one lane gets: the result, and the second one.
type Results = (u64, u64);

impl Block<'_> {
    pub(super) fn wait_for_warp(
        &mut self,
        thread: &mut Thread,
        instruction: &Instruction,
    ) -> Outcome {
        let mask_at = match instruction.opcode {
            Opcode::Activemask => {
                thread.state = State::AsksWhoIsActive;
                return Ok(());
            }
            Opcode::Shfl => 4,
            Opcode::Bar | Opcode::Barrier => 0,
            _ => 2,
        };
        let mask = self.operand(thread, instruction, mask_at)? as u32;
        if mask >> thread.lane() & 1 == 0 {
            return Err(instruction.fault("the mask does not have the lane that calls"));
        }
        thread.state = State::InWarp(mask);
        Ok(())
    }

    /// Executes what all lanes of a mask have come to. Lanes that have ended are not waited for.
    pub(super) fn complete_warps(&mut self, threads: &mut [Thread]) -> Outcome<bool> {
        let mut moved = false;
        for first in 0..threads.len() {
            let State::InWarp(mask) = threads[first].state else { continue };
            let start = first / 32 * 32;
            let end = (start + 32).min(threads.len());
            let instruction = self.waits_at(&threads[first]);
            let is_missing = |thread: &&Thread| {
                let is_there = thread.state == State::InWarp(mask)
                    && std::ptr::eq(self.waits_at(thread), instruction);
                mask >> thread.lane() & 1 == 1 && thread.state != State::Done && !is_there
            };
            if threads[start..end].iter().any(|thread| is_missing(&thread)) {
                continue;
            }
            let is_member = |thread: &Thread| {
                thread.state == State::InWarp(mask) && mask >> thread.lane() & 1 == 1
            };
            let lanes: Vec<usize> =
                (start..end).filter(|index| is_member(&threads[*index])).collect();
            self.together(threads, &lanes, instruction)?;
            moved = true;
        }
        Ok(moved)
    }

    fn together(
        &mut self,
        threads: &mut [Thread],
        lanes: &[usize],
        instruction: &Instruction,
    ) -> Outcome {
        let mut values = [None; 32];
        let is_barrier = matches!(instruction.opcode, Opcode::Bar | Opcode::Barrier);
        for index in lanes {
            let thread = &threads[*index];
            let value = if is_barrier { 0 } else { self.operand(thread, instruction, 1)? };
            values[thread.lane() as usize] = Some(value & instruction.ty.mask());
        }
        for index in lanes {
            let thread = &mut threads[*index];
            thread.state = State::Ready;
            if is_barrier {
                continue;
            }
            let (first, second) = self.result(thread, instruction, &values)?;
            let to = &instruction.operands[0];
            self.put(thread, to, first)?;
            self.put_second(thread, to, second)?;
        }
        Ok(())
    }

    fn result(
        &self,
        thread: &Thread,
        instruction: &Instruction,
        values: &[Option<u64>; 32],
    ) -> Outcome<Results> {
        let lane = thread.lane();
        let result = match instruction.opcode {
            Opcode::Shfl => {
                let by = self.operand(thread, instruction, 2)? as u32;
                let clamp = self.operand(thread, instruction, 3)? as u32;
                shuffle(instruction, values, lane, by, clamp)
            }
            Opcode::Vote => vote(instruction, values),
            Opcode::Match => Ok(matched(instruction, values, lane)),
            _ => reduced(instruction, values),
        };
        result.map_err(|what| instruction.fault(&what))
    }

    /// Lets threads go on that ask who is active: those of a warp at one instruction are. This is
    /// asked once no thread can go on otherwise.
    pub(super) fn answer_active(&mut self, threads: &mut [Thread]) -> Outcome<bool> {
        let mut moved = false;
        for first in 0..threads.len() {
            if threads[first].state != State::AsksWhoIsActive {
                continue;
            }
            let instruction = self.waits_at(&threads[first]);
            let start = first / 32 * 32;
            let end = (start + 32).min(threads.len());
            let is_with = |index: &usize| {
                let thread = &threads[*index];
                thread.state == State::AsksWhoIsActive
                    && std::ptr::eq(self.waits_at(thread), instruction)
            };
            let lanes: Vec<usize> = (start..end).filter(is_with).collect();
            let mask = lanes.iter().fold(0, |mask, index| mask | 1 << (index - start));
            for index in lanes {
                threads[index].state = State::Ready;
                self.put(&mut threads[index], &instruction.operands[0], mask)?;
            }
            moved = true;
        }
        Ok(moved)
    }
}

/// `shfl.sync`, as the PTX manual defines it.
fn shuffle(
    instruction: &Instruction,
    values: &[Option<u64>; 32],
    lane: u32,
    by: u32,
    clamp: u32,
) -> Outcome<Results> {
    let by = by & 31;
    let segment = clamp >> 8 & 31;
    let last = lane & segment | clamp & 31 & !segment;
    let first = lane & segment;
    let (from, is_within) = match instruction.mode {
        Some(Mode::Up) => (lane.wrapping_sub(by), lane as i32 - by as i32 >= last as i32),
        Some(Mode::Down) => (lane + by, lane + by <= last),
        Some(Mode::Bfly) => (lane ^ by, lane ^ by <= last),
        Some(Mode::Idx) => {
            let from = first | by & !segment;
            (from, from <= last)
        }
        _ => return Err("not supported".to_owned()),
    };
    let from = if is_within { from } else { lane };
    // What a lane that is not there would pass is not defined; here it is 0.
    let value = values.get(from as usize).copied().flatten().unwrap_or(0);
    Ok((value, is_within.into()))
}

fn vote(instruction: &Instruction, values: &[Option<u64>; 32]) -> Outcome<Results> {
    let there = values.iter().flatten().count();
    let ones = values.iter().flatten().filter(|value| *value & 1 == 1).count();
    let ballot = (0..32).filter(|lane| values[*lane].is_some_and(|value| value & 1 == 1));
    let result = match instruction.mode {
        Some(Mode::Ballot) => ballot.fold(0, |mask, lane| mask | 1 << lane),
        Some(Mode::All) => u64::from(ones == there),
        Some(Mode::Any) => u64::from(ones > 0),
        Some(Mode::Uni) => u64::from(ones == 0 || ones == there),
        _ => return Err("not supported".to_owned()),
    };
    Ok((result, 0))
}

fn matched(instruction: &Instruction, values: &[Option<u64>; 32], lane: u32) -> Results {
    let own = values[lane as usize];
    let mask = |is_in: &dyn Fn(Option<u64>) -> bool| {
        (0..32).filter(|lane| is_in(values[*lane])).fold(0, |mask, lane| mask | 1_u64 << lane)
    };
    let (same, all) = (mask(&|value| value == own), mask(&|value| value.is_some()));
    match instruction.mode {
        Some(Mode::Any) => (same, 0),
        _ if same == all => (all, 1),
        _ => (0, 0),
    }
}

fn reduced(instruction: &Instruction, values: &[Option<u64>; 32]) -> Outcome<Results> {
    let ty = instruction.ty;
    let combine = |a: u64, b: u64| match instruction.mode {
        Some(Mode::Add) => a.wrapping_add(b),
        Some(Mode::And) => a & b,
        Some(Mode::Or) => a | b,
        Some(Mode::Xor) => a ^ b,
        Some(Mode::Min) => ty.number(a).min(ty.number(b)) as u64,
        _ => ty.number(a).max(ty.number(b)) as u64,
    };
    let result = values.iter().flatten().copied().reduce(combine).unwrap_or(0);
    Ok((result & ty.mask(), 0))
}
