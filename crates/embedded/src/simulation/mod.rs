//! The features of emulated devices: settings, a seeded scheduler, injected faults, and a log of
//! calls and hazards.

mod call_log;
mod emulation;
mod faults;
mod instruments;
mod seeded;

pub use call_log::{Call, CallKind, EmulationLog, Outcome};
pub(crate) use emulation::PAGE_BYTES;
pub use emulation::{Emulation, Link};
pub use faults::Fault;

pub(super) use call_log::CallDraft;
pub(super) use instruments::Instruments;
pub(super) use seeded::Simulation;
