//! Tests of the core: spans, regions and maps are compared with sets of cells, and `Coherence` with
//! a model that stores only bytes.

mod cells;
mod coherence;
mod map;
mod model;
mod plan;
mod region;
mod span;
mod sweep;
