//! Graphs of explicit nodes: the steps of a chain, as one operation of a stream.
//!
//! | file | contents |
//! |---|---|
//! | `executable` | the driver's objects of one graph |
//! | `nodes` | the nodes of a chain's steps, and what they do in the next replay |
//!
//! No stream is captured. Edges follow from [`ChainStep::after`](resident_backend::ChainStep). A
//! step is one node, or a few lines of bytes, each of which follows the one before it.

mod executable;
mod nodes;

pub(crate) use executable::Executable;
pub(crate) use nodes::ChainNodes;
