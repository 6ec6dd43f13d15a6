//! Programs of several processes, run under `mpirun`.

mod launch;
mod point_to_point;
