//! A stack on which threads of a block run.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hasher};

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult};

use super::faults::{Ended, RunningStack, while_running};
use super::launch_timeout;
use super::runtime::{BlockProgress, Exchanged};
use super::waiting::{Answer, SWITCH, Suspended, Switch, Wait};

/// The size of a stack, which local arrays may take. Pages are backed at first use.
const STACK_BYTES: usize = 1 << 20;

/// So many stacks are kept for later blocks on each thread of the machine: one for each thread of a
/// block.
const STACKS_KEPT_MAX: usize = 1 << 10;

thread_local! {
    /// Stacks that no fiber uses.
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A stack on which threads of a block run one after the other; from its first wait on it belongs
/// to the thread that waits.
pub(super) struct Fiber {
    coroutine: Coroutine<Answer, Wait, Ended, DefaultStack>,
    /// The way from this stack back to the scheduler, once the fiber has waited.
    switch: *const Switch,
    stack: RunningStack,
    progress: *const BlockProgress,
    /// The number of the thread that waits.
    pub(super) thread: u32,
    /// What the thread waits for; `None` if it does not wait, or has ended.
    pub(super) wait: Option<Wait>,
    /// What the lanes of its warp have passed, if the thread has exchanged values.
    values: Option<Box<Exchanged>>,
    /// What the thread kept when it last had a turn.
    kept: Option<u64>,
}

impl Fiber {
    /// A fiber that runs `code` once it is resumed, whose progress outlives it.
    pub(super) fn new(
        progress: *const BlockProgress,
        code: impl FnOnce() + 'static,
    ) -> Result<Self, String> {
        let memory = stack()?;
        let addresses = memory.limit().get()..memory.base().get();
        let coroutine = Coroutine::with_stack(memory, move |switch: &Switch, _start| {
            SWITCH.set(switch);
            code();
            Ended::Returned
        });
        let page_bytes = rustix::param::page_size();
        let trap = coroutine.trap_handler();
        let stack = RunningStack { addresses, page_bytes, trap };
        Ok(Self {
            coroutine,
            switch: std::ptr::null(),
            stack,
            progress,
            thread: 0,
            wait: None,
            values: None,
            kept: None,
        })
    }

    /// Runs until the code waits or ends.
    pub(super) fn resume(&mut self, answer: Answer) {
        SWITCH.set(self.switch);
        // SAFETY: the caller of `new` keeps the progress.
        unsafe { &*self.progress }.running.set(self.thread);
        self.wait = match while_running(&self.stack, || self.coroutine.resume(answer)) {
            CoroutineResult::Yield(Wait::Stopped) => None,
            CoroutineResult::Yield(wait) => {
                self.switch = SWITCH.get();
                Some(wait)
            }
            CoroutineResult::Return(Ended::Returned) => None,
            CoroutineResult::Return(ended) => Some(Wait::Failed(self.failure(ended))),
        };
    }

    /// Whether the checker has ended the thread.
    pub(super) fn is_stopped(&self) -> bool {
        self.wait.is_none() && !self.coroutine.done()
    }

    /// Why the launch fails whose thread ended so.
    #[cold]
    fn failure(&self, ended: Ended) -> String {
        match ended {
            Ended::OutOfTime => launch_timeout::text(),
            Ended::Trapped => String::from(
                "the kernel came to an instruction that ends it: code that cannot be reached, as \
                 behind `__builtin_unreachable()`, or that the compiler knows to be wrong",
            ),
            Ended::Refused => String::from(
                "the kernel accesses a value at an address that is no multiple of its length, or \
                 where no memory can be, which ends a launch on a GPU too: run it with \
                 RESIDENT_SANITIZE=1 in the environment, which names the line",
            ),
            Ended::Returned | Ended::Overflowed => self.overflow(),
        }
    }

    fn overflow(&self) -> String {
        // SAFETY: the caller of `new` keeps the progress.
        let block = unsafe { &*self.progress }.block.get();
        format!(
            "a thread of block {block} overflows its stack, which has {STACK_BYTES} bytes: make \
             its local arrays smaller, or let its functions recurse less deep"
        )
    }

    /// Whether the thread keeps something else in registers and on its stack than at the last call,
    /// if it waits for a turn.
    pub(super) fn has_changed(&mut self) -> bool {
        let Some(Wait::Turn(Suspended { stack_pointer })) = self.wait else { return false };
        let len_bytes = self.stack.addresses.end.wrapping_sub(stack_pointer);
        if !self.stack.addresses.contains(&stack_pointer) {
            return true;
        }
        let first = std::ptr::with_exposed_provenance::<u8>(stack_pointer);
        // SAFETY: this is the used part of the fiber's own stack, which has been written, and whose
        // code does not run.
        let bytes = unsafe { std::slice::from_raw_parts(first, len_bytes) };
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        let kept = Some(hasher.finish());
        std::mem::replace(&mut self.kept, kept) != kept
    }

    /// Keeps what the lanes of the thread's warp have passed.
    pub(super) fn keep_values(&mut self, values: &Exchanged) {
        **self.values.get_or_insert_with(|| Box::new(*values)) = *values;
    }

    /// Goes on with the values that were kept.
    pub(super) fn resume_with_values(&mut self) {
        let values = self.values.as_ref().map_or(std::ptr::null(), |values| values.as_ptr());
        self.resume(Answer::Lanes(values));
    }

    /// Ends the fiber. If its code has not ended, the rest of it does not run.
    pub(super) fn end(mut self) {
        if !self.coroutine.done() {
            // SAFETY: nothing on the stack must be dropped: the code owns plain data, and CUDA C
            // has no destructors that matter once a launch has failed.
            unsafe { self.coroutine.force_reset() };
        }
        let stack = self.coroutine.into_stack();
        // At the thread's end it is freed.
        let _freed = STACKS.try_with(|stacks| {
            let mut stacks = stacks.borrow_mut();
            if stacks.len() < STACKS_KEPT_MAX {
                stacks.push(stack);
            }
        });
    }
}

fn stack() -> Result<DefaultStack, String> {
    let kept = STACKS.try_with(|stacks| stacks.borrow_mut().pop());
    kept.ok().flatten().map_or_else(|| DefaultStack::new(STACK_BYTES), Ok).map_err(|fault| {
        format!(
            "the system has no memory for a stack of {STACK_BYTES} bytes: {fault}; use smaller \
             blocks, or raise the number of mappings (vm.max_map_count)"
        )
    })
}
