//! Runs the threads of a block, each with a program counter of its own.

use super::thread::{State, Thread};
use super::{Launch, Order};
use crate::Outcome;
use crate::memory::Memory;
use crate::module::{Instruction, Module};
use crate::words::Mode;

/// How many instructions a thread executes before another one runs, so that a thread may wait in a
/// loop for others.
const TURN: usize = 1_000;

#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) module: &'a Module,
    pub(super) launch: &'a Launch,
    pub(super) memory: Memory,
    /// Its place in the grid.
    pub(super) place: [u32; 3],
    pub(super) executed: u64,
}

impl<'a> Block<'a> {
    pub(super) fn new(module: &'a Module, launch: &'a Launch, memory: Memory) -> Self {
        Self { module, launch, memory, place: [0; 3], executed: 0 }
    }

    pub(super) fn run(&mut self, entry: usize, place: [u32; 3]) -> Outcome {
        self.place = place;
        self.memory.begin_block();
        let count: u32 = self.launch.block.iter().product();
        let new = |index| Thread::new(self.module, entry, index, self.launch.block);
        let mut threads: Vec<Thread> = (0..count).map(new).collect();
        while threads.iter().any(|thread| thread.state != State::Done) {
            let moved = self.run_ready(&mut threads)?
                | self.complete_warps(&mut threads)?
                | self.complete_barrier(&mut threads)?;
            if !moved && !self.answer_active(&mut threads)? {
                return Err(self.deadlock(&threads));
            }
        }
        Ok(())
    }

    /// Runs each thread that does not wait. Returns whether there was one.
    fn run_ready(&mut self, threads: &mut [Thread]) -> Outcome<bool> {
        let mut has_run = false;
        let count = threads.len();
        for index in 0..count {
            let index = match self.launch.order {
                Order::Ascending => index,
                Order::Descending => count - 1 - index,
            };
            let thread = &mut threads[index];
            if thread.state == State::Ready {
                has_run = true;
                self.turn(thread).map_err(|what| self.at_thread(&what, &threads[index]))?;
            }
        }
        Ok(has_run)
    }

    /// Runs a thread until it waits, ends, or has had its turn.
    fn turn(&mut self, thread: &mut Thread) -> Outcome {
        let module = self.module;
        for _ in 0..TURN {
            let function = &module.functions[thread.frame.function];
            match function.code.get(thread.frame.next) {
                None => thread.leave(module),
                Some(instruction) => {
                    thread.frame.next += 1;
                    self.executed += 1;
                    let guard = instruction.guard;
                    if guard
                        .is_none_or(|(register, value)| thread.get(register) & 1 == value.into())
                    {
                        self.execute(thread, instruction)?;
                    }
                }
            }
            if thread.state != State::Ready {
                break;
            }
        }
        if self.executed > self.launch.instructions_max {
            return Err(format!("more than {} instructions", self.launch.instructions_max));
        }
        Ok(())
    }

    /// The instruction at which a thread waits.
    pub(super) fn waits_at(&self, thread: &Thread) -> &'a Instruction {
        &self.module.functions[thread.frame.function].code[thread.frame.next - 1]
    }

    /// Lets the threads go on that wait at a barrier, once no other thread runs or waits elsewhere.
    fn complete_barrier(&mut self, threads: &mut [Thread]) -> Outcome<bool> {
        let mut numbers = threads.iter().filter_map(|thread| match thread.state {
            State::AtBarrier(number, predicate) => Some((number, predicate)),
            _ => None,
        });
        let Some((number, first)) = numbers.next() else { return Ok(false) };
        let (mut ones, mut count) = (u64::from(first), 1);
        for (other, predicate) in numbers {
            if other != number {
                return Ok(false);
            }
            (ones, count) = (ones + u64::from(predicate), count + 1);
        }
        let is_waiting = |state| matches!(state, State::AtBarrier(..) | State::Done);
        if !threads.iter().all(|thread| is_waiting(thread.state)) {
            return Ok(false);
        }
        for thread in threads.iter_mut().filter(|thread| thread.state != State::Done) {
            thread.state = State::Ready;
            let instruction = self.waits_at(thread);
            let result = match instruction.mode {
                Some(Mode::Popc) => ones,
                Some(Mode::And) => u64::from(ones == count),
                Some(Mode::Or) => u64::from(ones > 0),
                _ => continue,
            };
            self.put(thread, &instruction.operands[0], result)?;
        }
        Ok(true)
    }

    #[cold]
    fn deadlock(&self, threads: &[Thread]) -> String {
        let mut waiting = threads.iter().filter(|thread| thread.state != State::Done);
        let count = waiting.clone().count();
        match waiting.next() {
            Some(thread) => {
                let what = self.waits_at(thread).fault("deadlock");
                self.at_thread(&format!("{what}, {count} threads wait"), thread)
            }
            None => "deadlock".to_owned(),
        }
    }

    #[cold]
    fn at_thread(&self, what: &str, thread: &Thread) -> String {
        format!("{what}, in block {:?}, thread {:?}", self.place, thread.place)
    }
}
