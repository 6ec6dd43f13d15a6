//! Tests of the core: spans, regions and maps are compared with sets of cells, and the protocol
//! with a model that contains only bytes.

mod cells;
mod coherence;
mod map;
mod model;
mod plan;
mod programs;
mod region;
mod span;
mod sweep;
