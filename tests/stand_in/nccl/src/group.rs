//! Operations until the end of their group, and the kernels that are queued for them.

use std::cell::RefCell;
use std::sync::Arc;

use crate::collective::{Collective, Contribution};
use crate::communicator::Communicator;
use crate::elements::Element;
use crate::kernels::{Kernel, Memory, Task};
use crate::link::Link;
use crate::request::{Answer, Message, Request};
use crate::status::{Outcome, Status};
use resident_stand_in_client::Fault;

/// A call, to be queued.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) communicator: Arc<Communicator>,
    pub(crate) stream: u64,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Send { message: Message, element: Element, from: u64, len_bytes: usize },
    Receive { message: Message, element: Element, to: u64, len_bytes: usize },
    Collective { number: u64, collective: Collective, from: u64, to: u64 },
}

/// The group of a thread.
#[derive(Default)]
struct Group {
    depth: usize,
    operations: Vec<Operation>,
    error: Option<Status>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

pub(crate) fn start() {
    GROUP.with_borrow_mut(|group| group.depth += 1);
}

/// Queues the operations of the outermost group, if no call of it failed.
pub(crate) fn end() -> Outcome {
    let group = GROUP.with_borrow_mut(|group| {
        group.depth = group.depth.checked_sub(1).ok_or(Status::INVALID_USAGE)?;
        Ok(if group.depth == 0 { std::mem::take(group) } else { Group::default() })
    })?;
    group.error.map_or(Ok(()), Err)?;
    queue(&group.operations)
}

/// Adds the operation to the thread's group, or queues it. An error is that of the group, too.
pub(crate) fn add(operation: Outcome<Operation>) -> Outcome {
    let alone = GROUP.with_borrow_mut(|group| {
        if group.depth == 0 {
            return operation.map(Some);
        }
        match operation {
            Ok(operation) => group.operations.push(operation),
            Err(status) => {
                group.error.get_or_insert(status);
                return Err(status);
            }
        }
        Ok(None)
    })?;
    alone.map_or(Ok(()), |operation| queue(&[operation]))
}

/// All that reads first, so that no rank waits for another one whose sends are behind its receives.
fn queue(operations: &[Operation]) -> Outcome {
    operations.iter().try_for_each(Operation::queue_post)?;
    operations.iter().try_for_each(Operation::queue_take)?;
    operations.iter().try_for_each(Operation::queue_confirmation)
}

impl Operation {
    fn queue_post(&self) -> Outcome {
        let link = self.link();
        match self.kind {
            Kind::Send { message, element, from, len_bytes } => {
                let post = move |memory: Memory<'_>| {
                    link.ask(Request::Post { message, element, bytes: memory.read().to_vec() });
                    Ok(())
                };
                self.launch(Kernel::Post, Some((from, len_bytes)), Box::new(post))
            }
            Kind::Receive { .. } => Ok(()),
            Kind::Collective { number, collective, from, .. } => {
                let read = collective.read_bytes(link.rank, link.ranks);
                let contribute = move |memory: Memory<'_>| {
                    let bytes = memory.read().to_vec();
                    let contribution = Contribution { collective, bytes };
                    link.ask(Request::Contribute { number, contribution });
                    Ok(())
                };
                let memory = read.map(|len_bytes| (from, len_bytes));
                self.launch(Kernel::Post, memory, Box::new(contribute))
            }
        }
    }

    fn queue_take(&self) -> Outcome {
        let link = self.link();
        match self.kind {
            Kind::Send { .. } => Ok(()),
            Kind::Receive { message, element, to, len_bytes } => {
                let take = move |memory: Memory<'_>| {
                    write(memory, link.ask(Request::Take { message, element, len_bytes }))
                };
                self.launch(Kernel::Take, Some((to, len_bytes)), Box::new(take))
            }
            Kind::Collective { number, collective, to, .. } => {
                let written = collective.written_bytes(link.rank, link.ranks);
                let take = move |memory: Memory<'_>| {
                    write(memory, link.ask(Request::Result { number, collective }))
                };
                let memory = written.map(|len_bytes| (to, len_bytes));
                self.launch(Kernel::Take, memory, Box::new(take))
            }
        }
    }

    fn queue_confirmation(&self) -> Outcome {
        let Kind::Send { message, .. } = self.kind else { return Ok(()) };
        let link = self.link();
        let confirm =
            move |memory: Memory<'_>| write(memory, link.ask(Request::Confirm { message }));
        self.launch(Kernel::Wait, None, Box::new(confirm))
    }

    /// What kernels own. They do not own the communicator: its context is not given back inside a
    /// kernel.
    fn link(&self) -> Arc<Link> {
        Arc::clone(&self.communicator.link)
    }

    /// Without bytes, the kernel is one without memory.
    fn launch(&self, kernel: Kernel, memory: Option<(u64, usize)>, task: Task) -> Outcome {
        let memory = memory.filter(|(_, len_bytes)| *len_bytes > 0);
        let kernel = if memory.is_some() { kernel } else { Kernel::Wait };
        self.communicator.context.launch(kernel, self.stream, memory, task)
    }
}

impl<'a> Memory<'a> {
    fn read(self) -> &'a [u8] {
        match self {
            Self::Read(bytes) => bytes,
            Self::None | Self::Write(_) => &[],
        }
    }
}

/// Writes what came to the memory, if it is written.
fn write(memory: Memory<'_>, answer: Answer) -> Result<(), Fault> {
    match (answer, memory) {
        (Answer::Misfit, _) => Err(Fault::Failed),
        (Answer::Bytes(bytes), Memory::Write(place)) => {
            place.copy_from_slice(&bytes);
            Ok(())
        }
        _ => Ok(()),
    }
}
