//! Tests of the core: its algebra against sets of cells, its protocol against a model that knows
//! only bytes.

mod cells;
mod coherence;
mod map;
mod model;
mod plan;
mod programs;
mod region;
mod set;
mod span;
mod sweep;
