//! The `cu*` functions, by chapter of CUDA's manual.

mod contexts;
mod copies;
mod devices;
mod events;
mod fills;
mod managed;
mod memory;
mod modules;
mod pools;
mod streams;
mod unsupported;
