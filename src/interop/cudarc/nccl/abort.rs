//! The end of a communicator whose ranks do not all come.

use std::sync::Arc;

use cudarc::nccl::Comm;

use crate::device::Stream;
use crate::error::{AtCall, Error, Result};
use resident_backend::call_site::call_site;
use resident_backend::{BackendError, FailureKind, FailureRecord, Position, failure};

/// Gives a communicator up: ends its operations that wait for other ranks, as `ncclCommAbort` does.
/// What its stream's unfinished work was to write is lost: reads of it, and of what later work made
/// of it, are [`Error::Lost`](crate::Error::Lost) with this `cause`. So no one reads what a message
/// that never came has left in memory. What other streams do is not touched.
///
/// Does not wait. Any thread may call it, so a program can watch its operations: send the
/// communicator to that thread in a `Mutex<Option<Comm>>` (it is `Send` for a program that promises
/// so, as NCCL lets one thread at a time use it), and abort it once an
/// [`Event`](crate::Event) behind an operation takes too long.
///
/// ```no_run
/// # fn example(comm: resident::nccl::Comm) -> resident::Result<()> {
/// use resident::{Error, SmartArray, nccl};
///
/// let mut halo = SmartArray::<f32, _>::zeros(100);
/// nccl::recv(&comm, &mut halo, 1)?;          // rank 1 never sends
/// nccl::abort(comm, "rank 1 did not answer")?;
/// assert!(matches!(halo.host(), Err(Error::Lost { .. })));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Foreign`](crate::Error::Foreign) if the communicator's stream is not one of its GPU's
/// primary context, and [`Error::Backend`](crate::Error::Backend) if the driver cannot tell what is
/// finished. It is aborted all the same.
#[track_caller]
pub fn abort(comm: Comm, cause: &str) -> Result<()> {
    let site = call_site();
    let recorded = Stream::adopt(comm.stream()).and_then(|stream| {
        let record = FailureRecord {
            kind: FailureKind::Contents,
            operation: String::from("an operation of NCCL"),
            site: Some(site),
            cause: String::from(cause),
            inherited: false,
            left_out: None,
        };
        record_unfinished(&stream, record).map_err(|error| refused(&stream, &error))
    });
    // cudarc calls `ncclCommAbort`. The failures are recorded before the work can be over.
    drop(comm);
    recorded.at(site)
}

/// Records that all work of the stream that is not over has failed.
fn record_unfinished(stream: &Stream, record: FailureRecord) -> Result<(), BackendError> {
    let (raw, record) = (stream.raw(), Arc::new(record));
    let tail = raw.tail();
    if raw.poll(tail)? {
        return Ok(());
    }
    for position in raw.completed().0 + 1..=tail.0 {
        failure::record(raw.id(), Position(position), Arc::clone(&record));
    }
    Ok(())
}

fn refused(stream: &Stream, error: &BackendError) -> Error {
    Error::Backend {
        call: crate::error::CalledAt::UNKNOWN,
        device: stream.device_ref().name(),
        operation: String::from("`nccl::abort`"),
        cause: error.to_string(),
    }
}
