//! Tests of the core: spans, regions and maps against sets of cells; the protocol against a model
//! that knows only bytes.

mod cells;
mod coherence;
mod map;
mod model;
mod plan;
mod programs;
mod region;
mod span;
mod sweep;
