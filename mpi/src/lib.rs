//! Arrays of `resident` across processes, through MPI.
//!
//! [`init`] initialises MPI and returns [`Mpi`], of which all else is made:
//!
//! - Messages: [`Mpi::send`], [`Mpi::recv`], [`Mpi::isend`], [`Mpi::irecv`]; they take arrays and
//!   parts of any layout, with contents on the host or on devices ([`Part`]).
//! - All processes at once: [`Mpi::barrier`], [`Mpi::all_reduce`], [`Mpi::all_reduce_value`],
//!   [`Mpi::broadcast`].
//! - Arrays that are divided among processes: [`Mpi::grid`], [`Decomposition`], [`Exchange`].
//!
//! ```
//! use resident::{SmartArray, ndarray::{Ix2, s}};
//! use resident_mpi::Reduce;
//!
//! fn main() -> resident_mpi::Result<()> {
//!     let mpi = resident_mpi::init()?;
//!     let mut field = SmartArray::<f64, Ix2>::full((100, 100), mpi.rank() as f64);
//!     let next = (mpi.rank() + 1) % mpi.size();
//!     let last = (mpi.rank() + mpi.size() - 1) % mpi.size();
//!     let sending = mpi.isend(&field.slice(s![.., 99]), next, 0)?; // sends 800 bytes
//!     mpi.recv(&mut field.slice_mut(s![.., 0]), last, 0)?;
//!     sending.wait()?;
//!     println!("{}", mpi.all_reduce_value(Reduce::Sum, field.sum()?)?);
//!     Ok(())
//! }
//! ```
//!
//! Parts are packed where their contents are newest, after the work that writes them, and only they
//! move. A message has memory of its own, so that safe code cannot read it before it has arrived,
//! whatever it drops or forgets.
//!
//! Waits end: a process that is gone or silent is [`Error::TimedOut`] after `RESIDENT_MPI_TIMEOUT`
//! seconds (300 by default), and the job then ends in all processes. Processes that describe a
//! message or a collective operation differently get [`Error::Mismatch`], which says both.
//!
//! MPI reads and writes the memory of a device itself if the library can ([`Transport`]).
//!
//! | variable | what it chooses | without it |
//! |---|---|---|
//! | `RESIDENT_MPI_TIMEOUT` | seconds that a call waits for other processes | 300 |
//! | `RESIDENT_MPI` | memory that MPI reads and writes: `host`, `device` | found by a test |
//! | `RESIDENT_DEVICE` | the device, as in `resident` | a GPU by the rank on the node, else `cpu` |
//!
//! Run programs with the launcher of the MPI library: `mpirun -n 4 target/release/program`. Without
//! it there is one process.
#![deny(missing_docs)]

mod agreement;
mod audit;
mod awaited;
mod before_main;
mod call;
mod collectives;
mod decomposition;
mod description;
mod ending;
mod error;
mod exchange;
mod file;
mod gather;
mod grid;
mod header;
mod inbox;
mod initialise;
mod local;
mod message;
mod nccl;
mod packed;
mod part;
mod point_to_point;
mod progress;
mod roll_call;
mod self_test;
mod transfer;
mod transport;
mod waiting;
mod watchdog;
mod world;

pub use audit::{Flow, Traffic};
pub use call::{Number, Reduce};
pub use decomposition::Cells;
pub use error::{Error, Result, Side};
pub use exchange::{Elements, Exchange, Field, FieldMut, Fields, FieldsMut, Going};
pub use grid::GridBuilder;
pub use initialise::init;
pub use local::Decomposition;
pub use part::{Part, PartMut};
pub use point_to_point::{Receiving, Sending};
pub use transport::Transport;
pub use world::Mpi;

#[doc = include_str!("../docs/more_than_one_machine.md")]
pub mod more_than_one_machine {}

#[doc = include_str!("../docs/weak_scaling.md")]
pub mod weak_scaling {}
