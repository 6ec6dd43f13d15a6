//! One stream of a GPU.
//!
//! | file | contents |
//! |---|---|
//! | `gpu_stream` | what a stream's handles and events share: positions, recording, freeing |
//! | `in_flight` | operations in flight whose completion needs the host; data only |
//! | `completion` | waits, polls, and the host's part of finished operations |
//! | `fallible` | which work can fail although its device lives on |
//! | `submit` | checks work and queues it |
//! | `read`, `write` | copies of a few bytes |
//! | `chain` | chains: a graph, or their steps one by one |
//! | `managed_prefetch` | hints to move managed memory |
//! | `handle` | the [`RawStream`](resident_backend::RawStream) of a stream |
//! | `slices` | conversion between cudarc's slices and device memory |
//! | `driver_event`, `event` | the driver's events, reused; a recorded event |
//! | `reclaim` | allocation that reclaims freed memory if the device is full |
//! | `waker`, `wake_stream` | wakes tasks that wait for a stream; the driver's signal to do so |

mod chain;
mod completion;
mod driver_event;
mod event;
mod fallible;
mod gpu_stream;
mod handle;
mod in_flight;
mod managed_prefetch;
mod read;
mod reclaim;
#[cfg(feature = "cuda")]
mod slices;
mod submit;
mod wake_stream;
mod waker;
mod write;

pub(crate) use self::gpu_stream::{GpuStream, reap_all};
pub(crate) use driver_event::EventPool;
pub use handle::GpuStreamHandle;
pub(crate) use reclaim::{commit, reap_oldest, trim};
pub(crate) use wake_stream::WakeStreams;
