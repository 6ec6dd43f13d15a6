//! Where the memory of messages is: on the host, or on a device, if MPI can use that.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use resident::{Device, DeviceKind, Stream};

use crate::error::{Error, Result};
use crate::nccl::Wish;

/// Chooses the transport.
const VARIABLE: &str = "RESIDENT_MPI";

/// How the elements of a message get from a device to MPI, and from MPI to a device.
///
/// `RESIDENT_MPI=host`, `device` or `nccl` chooses. Otherwise NCCL is used with feature `nccl` if
/// each process has an NVIDIA GPU of its own as its current device and finds the library. Device
/// memory is used for other messages if the MPI library says that it can
/// (`MPIX_Query_cuda_support`, `MPIX_Query_rocm_support`), and a message of the current device's
/// memory from a process to itself arrives. [`init`](crate::init) starts the program anew to see
/// that, of which nothing but the test runs, so that a library that crashes or hangs does no harm.
/// `{:?}` of an [`Mpi`](crate::Mpi) says what was chosen and why, as does an event of `tracing`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Transport {
    /// MPI reads and writes host memory. Packed elements are downloaded, received ones uploaded.
    Host,
    /// MPI reads and writes device memory, of elements that are newest there, or that are received
    /// to arrays that have a copy there. Nothing moves between device and host. Collective
    /// operations and files use host memory all the same.
    Device,
    /// NCCL moves the elements of exchanges and of collective operations on arrays between the GPUs
    /// of the processes, on a stream of its own. Other messages are as with `Host` or `Device`.
    Nccl,
}

/// A transport, and why it was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Choice {
    pub(crate) transport: Transport,
    pub(crate) reason: &'static str,
}

/// `host memory`, `device memory`, `NCCL`
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Host => "host memory",
            Self::Device => "device memory",
            Self::Nccl => "NCCL",
        })
    }
}

/// The memory that MPI can use: that of the host, and of devices if the transport says so.
#[derive(Clone)]
pub(crate) struct Reachable {
    transport: Transport,
    streams: Rc<Streams>,
}

/// A stream for each device, with no work: the host orders them after the work that it waits for.
/// So it waits for no other work, and takes no failure that the program is to be told of.
#[derive(Default)]
struct Streams(RefCell<Vec<Stream>>);

impl Reachable {
    pub(crate) fn new(transport: Transport) -> Self {
        Self { transport, streams: Rc::default() }
    }

    /// Only the host's.
    pub(crate) fn host_only(&self) -> Self {
        Self { transport: Transport::Host, ..self.clone() }
    }

    pub(crate) fn is_host_only(&self) -> bool {
        self.transport == Transport::Host
    }

    /// Whether MPI may be given addresses of this device's memory. Those of an emulated device are
    /// no pointers.
    pub(crate) fn has(&self, device: &Device) -> bool {
        let has_pointers = device.kind() != DeviceKind::Cpu || *device == Device::cpu();
        !self.is_host_only() && has_pointers
    }

    /// The stream on which the host waits for this device.
    pub(crate) fn stream_of(&self, device: &Device) -> Result<Stream> {
        let mut streams = self.streams.0.borrow_mut();
        if let Some(stream) = streams.iter().find(|stream| stream.device() == *device) {
            return Ok(stream.clone());
        }
        let stream = device.new_stream()?;
        streams.push(stream.clone());
        Ok(stream)
    }
}

impl Choice {
    /// What `RESIDENT_MPI` says of the memory of messages, if it does, and of NCCL.
    pub(crate) fn of(value: Option<&str>) -> Result<(Option<Self>, Wish)> {
        let (transport, reason) = match value {
            None => return Ok((None, Wish::IfPossible)),
            Some("nccl") => return Ok((None, Wish::Always)),
            Some("host") => (Transport::Host, "RESIDENT_MPI is `host`"),
            Some("device") => (Transport::Device, "RESIDENT_MPI is `device`"),
            Some(other) => {
                let text = format!("{VARIABLE} is {other:?}, expected `host`, `device` or `nccl`");
                return Err(Error::Argument { operation: "init", text });
            }
        };
        Ok((Some(Self { transport, reason }), Wish::Never))
    }
}
