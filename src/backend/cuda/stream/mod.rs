//! One stream of a GPU.
//!
//! | file | contents |
//! |---|---|
//! | `core` | what a stream's handles and events share: positions, recording, freeing |
//! | `in_flight` | operations in flight whose completion the host has to act on; plain data |
//! | `completion` | waits, polls, and the host's part of finished operations |
//! | `submit` | how work is checked and queued |
//! | `queue` | the [`Queue`](crate::backend::Queue) of a stream |
//! | `slices` | cudarc's slices taken over as device memory, and given back |
//! | `driver_event`, `event` | the driver's events, reused; a recorded event |
//! | `reclaim` | allocation that reclaims freed memory where there is no room |
//! | `waker` | wakes tasks that wait for a stream |

mod completion;
mod core;
mod driver_event;
mod event;
mod in_flight;
mod queue;
mod reclaim;
mod slices;
mod submit;
mod waker;

pub(crate) use self::core::{StreamCore, reap_all};
pub(crate) use driver_event::EventPool;
pub(crate) use queue::CudaQueue;
pub(crate) use reclaim::trim;
