//! What a call returns when it fails.

use std::fmt;
use std::time::Duration;

/// The lower or the upper end of an axis.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Towards smaller indices.
    Low,
    /// Towards larger indices.
    High,
}

impl Side {
    /// The other end.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Low => Self::High,
            Self::High => Self::Low,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Low => "low",
            Self::High => "high",
        })
    }
}

/// Why a call failed.
///
/// Prints, by `Debug` too, a sentence that names the rank and, for an exchange, axis and side.
#[derive(Clone)]
#[non_exhaustive]
pub enum Error {
    /// A process did not answer within the time-out. The job ends when the last handle of MPI is
    /// dropped; until then all calls return this error.
    TimedOut {
        /// The function of this crate that waited.
        operation: &'static str,
        /// The process that was waited for; `None` if it is not one alone.
        rank: Option<usize>,
        /// The processes that were waited for: of a collective operation, those that have not
        /// come, or do not answer. Empty if that is not known.
        missing: Vec<usize>,
        /// The axis of the face that is missing, in an exchange.
        axis: Option<usize>,
        /// The side of that face.
        side: Option<Side>,
        /// How long the call waited: `RESIDENT_MPI_TIMEOUT`.
        after: Duration,
    },
    /// Two processes described a message differently: its element type, shape or width.
    Mismatch {
        /// The function of this crate that found it.
        operation: &'static str,
        /// The process whose message does not fit.
        rank: usize,
        /// The axis of the face, in an exchange.
        axis: Option<usize>,
        /// The side of that face.
        side: Option<Side>,
        /// What this process expected.
        expected: String,
        /// What the other process sent.
        found: String,
    },
    /// An argument that cannot work: a grid, a width, a rank or a tag.
    Argument {
        /// The function of this crate.
        operation: &'static str,
        /// What was seen, what was expected, and what to do.
        text: String,
    },
    /// A function of MPI returned an error code.
    Mpi {
        /// The function.
        call: &'static str,
        /// Its error code.
        code: i32,
        /// MPI's text for it.
        text: String,
    },
    /// An error of an array or of a device.
    Resident(resident::Error),
}

/// What calls of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<resident::Error> for Error {
    fn from(error: resident::Error) -> Self {
        Self::Resident(error)
    }
}

/// Where a face lies: nothing for messages that are not of an exchange.
struct Place<'a>(&'a Option<usize>, &'a Option<Side>);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (Some(axis), Some(side)) => write!(f, ", axis {axis}, {side} side"),
            (Some(axis), None) => write!(f, ", axis {axis}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut { operation, missing, axis, side, after, .. } => {
                let (who, which) = match &**missing {
                    [] => (String::from("another process"), "that process"),
                    [rank] => (format!("rank {rank}{}", Place(axis, side)), "that process"),
                    ranks => (ranks_text(ranks), "these processes"),
                };
                write!(
                    f,
                    "`{operation}`: {who} did not answer within {after:?}; look at {which}, or set \
                     RESIDENT_MPI_TIMEOUT to more seconds"
                )
            }
            Self::Mismatch { operation, rank, axis, side, expected, found } => write!(
                f,
                "`{operation}`: rank {rank}{} sent {found}, expected {expected}; both processes \
                 must describe the same message",
                Place(axis, side)
            ),
            Self::Argument { operation, text } => write!(f, "`{operation}`: {text}"),
            Self::Mpi { call, code, text } => write!(f, "{call} returned {code}: {text}"),
            Self::Resident(error) => error.fmt(f),
        }
    }
}

/// The first of several ranks, and how many there are.
fn ranks_text(ranks: &[usize]) -> String {
    const NAMED_MAX: usize = 8;
    let named: Vec<String> = ranks.iter().take(NAMED_MAX).map(usize::to_string).collect();
    match ranks.len() - named.len() {
        0 => format!("ranks {}", named.join(", ")),
        more => format!("ranks {} and {more} more", named.join(", ")),
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Resident(error) => Some(error),
            _ => None,
        }
    }
}
