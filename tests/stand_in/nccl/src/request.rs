//! What a rank asks of its world, which is in the process that made the unique id: the same
//! requests within that process and, as bytes on a socket, from others.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::collective::{Collective, Contribution};
use crate::elements::Element;
use crate::status::Status;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Join {
        device: i32,
    },
    Abort,
    /// Whether there is an asynchronous error.
    Error,
    Post {
        message: Message,
        element: Element,
        bytes: Vec<u8>,
    },
    /// Waits for the message.
    Take {
        message: Message,
        element: Element,
        len_bytes: usize,
    },
    /// Waits until the message was taken.
    Confirm {
        message: Message,
    },
    Contribute {
        number: u64,
        contribution: Contribution,
    },
    /// Waits for the contributions of all ranks.
    Result {
        number: u64,
        collective: Collective,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Done,
    Bytes(Vec<u8>),
    /// The calls of two ranks do not fit together.
    Misfit,
    /// The rank was aborted before.
    Aborted,
    Status(Status),
}

/// The n-th message from one rank to another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) number: u64,
}

/// A request of another process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Envelope {
    /// The number of the unique id within its process.
    pub(crate) world: u64,
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    pub(crate) request: Request,
}

/// Writes a value: its length in bytes, then the bytes.
pub(crate) fn write(socket: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_stdvec(value).map_err(io::Error::other)?;
    socket.write_all(&(bytes.len() as u64).to_le_bytes())?;
    socket.write_all(&bytes)
}

/// Reads a value that [`write`] has written.
pub(crate) fn read<T: DeserializeOwned>(socket: &mut impl Read) -> io::Result<T> {
    let mut len = [0; 8];
    socket.read_exact(&mut len)?;
    let mut bytes = Vec::new();
    let len = u64::from_le_bytes(len);
    if socket.take(len).read_to_end(&mut bytes)? as u64 != len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}
