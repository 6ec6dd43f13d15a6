//! Programs of several processes, run under `mpirun`.

mod collectives;
mod exchange;
mod exchange_delays;
mod exchange_errors;
mod exchange_faults;
mod exchange_random;
mod exchange_unfinished;
mod failures;
mod file;
mod gather;
mod interposed;
mod launch;
#[cfg(feature = "nccl")]
mod nccl;
mod open_receives;
mod open_receives_random;
mod point_to_point;
mod random;
mod reports;
mod ring;
mod transport;
