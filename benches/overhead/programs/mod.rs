//! Programs for a driver that does nothing, each written with this library and by hand.

#![cfg(feature = "cuda")]

pub mod by_hand;
pub mod kernels;
pub mod ours;
pub mod tiles;
