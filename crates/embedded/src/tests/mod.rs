//! Tests of the embedded device, through the three traits that it implements.

mod allocations;
mod copies;
mod faults;
mod fixtures;
mod geometry;
mod hazards;
mod helping;
mod memory;
mod offers;
mod ordering;
mod own_copies;
mod seeds;
mod timing;
mod waiting;
