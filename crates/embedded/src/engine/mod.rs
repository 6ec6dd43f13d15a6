//! The engine: runs the operations of each stream in order, on the stream's worker thread, on
//! threads that wait for the stream, or under a seeded scheduler.

mod chain;
mod clock;
mod description;
mod device_core;
mod execute;
mod help;
mod operation;
mod progress;
mod stream;
mod streams;
mod worker;

pub(super) use chain::ChainRun;
pub(super) use clock::Timestamp;
pub(super) use device_core::{DeviceCore, Usable};
pub(super) use operation::{ControlOperation, Operation, QueuedOperation};
pub(super) use progress::{StreamProgress, wake_all};
pub(super) use stream::{EmbeddedStream, StreamPoint, StreamState};
pub(super) use streams::Streams;
