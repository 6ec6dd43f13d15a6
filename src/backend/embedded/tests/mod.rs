//! Tests of the embedded device, through the three traits that it implements.

mod allocations;
mod copies;
mod faults;
mod geometry;
mod hazards;
mod ordering;
mod scene;
mod seeds;
mod space;
mod timing;
mod waiting;
