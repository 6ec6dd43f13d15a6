//! Programs of several processes, run under `mpirun`.

mod collectives;
mod launch;
mod point_to_point;
