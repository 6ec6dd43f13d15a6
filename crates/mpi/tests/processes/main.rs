//! Programs of several processes, run under `mpirun`.

mod exchange;
mod exchange_random;
mod gather;
mod launch;
mod point_to_point;
mod random;
