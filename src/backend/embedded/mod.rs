//! The embedded device: a real, asynchronous device made of this process's own memory and threads.
//!
//! It is the device where there is no GPU, and the place where everything above is tested. One
//! engine, two modes:
//!
//! | file | what it is |
//! |---|---|
//! | `device`, `queue`, `event` | the three traits of [`super`], thin: count, refuse, hand on |
//! | `lane` | what of a queue lives on when its handle is gone: the line of operations and how far it got |
//! | `progress` | how far a lane got, and who waits for it |
//! | `operation`, `execute` | what stands in the line, and how one piece of it is run, the same in both modes |
//! | `block`, `memory` | memory: one block; the address space, its pool and its limit |
//! | `time` | what transfers cost, and the clocks that events read |
//! | `workers`, `seeded` | who picks the next operation: a thread for each lane, or whoever waits, in an order drawn from a seed |
//! | `emulation`, `instruments`, `log` | what an emulated device is asked for, counts, fails and remembers |
//! | `tracker`, `hazard` | the check of ordering: histories of pending uses; what it reports |
//! | `usage`, `order`, `overlap`, `written` | its parts: who touches what; vector clocks; shared bytes; bytes ever written |
//!
//! Locks, taken in this order and never the other way: a world's turn, a world's state, a lane's
//! line, then any one of the leaves (an address space, a tracker, a log, the waiters of a
//! progress). User code (bodies, wakers, the drop of queued work) runs with no lock held but a
//! world's turn, which no call takes on a thread that runs queued work.

mod block;
mod device;
mod emulation;
mod event;
mod execute;
mod hazard;
mod instruments;
mod lane;
mod log;
mod memory;
mod operation;
mod order;
mod overlap;
mod progress;
mod queue;
mod seeded;
mod time;
mod tracker;
mod usage;
mod workers;
mod written;

#[cfg(test)]
mod tests;

pub use emulation::{Emulation, Fault, Link};
pub use hazard::{Hazard, HazardKind, HazardOperation, Touch};
pub use log::{Call, CallKind, EmulationLog, Outcome};

pub(crate) use device::EmbeddedDevice;
