//! Runs the PTX that NVRTC makes of CUDA C, on the host and without a GPU, one thread after the
//! other. README.md says what it is for and what it cannot.
//!
//! | file | purpose |
//! |---|---|
//! | `recorded` | a launch with the memory before it and after it, as tests write it |
//! | `replay`, `compare` | the same launch as PTX; the elements that differ |
//! | `words`, `module` | what PTX consists of |
//! | `parse/` | from text to a module |
//! | `memory` | memory, with a check of each access |
//! | `rounding` | numbers with a fraction |
//! | `compute/` | what an instruction makes of the bits of its operands |
//! | `machine/` | threads, blocks and the grid: who runs, who waits |

pub mod compare;
mod compute;
mod machine;
mod memory;
mod module;
mod parse;
pub mod recorded;
pub mod replay;
mod rounding;
mod words;

pub use machine::{Launch, Order, run};
pub use module::Module;
pub use parse::parse;

/// What is made, or what is wrong, in words.
pub type Outcome<T = ()> = Result<T, String>;
