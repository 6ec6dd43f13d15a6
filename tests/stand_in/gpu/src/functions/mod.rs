//! What functions of CUDA and of HIP do that are alike but for their names, by chapter of the
//! manuals.

pub mod devices;
pub mod events;
pub mod graphs;
pub mod managed;
pub mod mappings;
pub mod memory;
pub mod modules;
pub mod pools;
pub mod streams;

use crate::code::Outcome;
use crate::context::Context;
use crate::interface::rules;

/// Rejects a call about any object, if the interface needs a current context for it.
fn check_current() -> Outcome {
    if rules().needs_current_context {
        Context::current()?;
    }
    Ok(())
}
