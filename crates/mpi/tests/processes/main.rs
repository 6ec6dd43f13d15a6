//! Programs of several processes, run under `mpirun`.

mod collectives;
mod failures;
mod launch;
mod point_to_point;
