//! Tests of the embedded device, through the three traits that it implements.

mod allocations;
mod brief_launches;
mod copies;
mod faults;
mod fixtures;
mod geometry;
mod hazards;
mod helping;
mod memory;
mod ordering;
mod own_copies;
mod reservations;
mod seeds;
mod timing;
mod waiting;
