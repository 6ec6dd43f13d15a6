//! The behaviour that every backend must have, on the embedded device.

mod embedded;
mod suite;
