//! From refusals of the coherence core or a backend to errors that name the array.

use std::sync::Arc;

use super::request::Request;
use crate::backend::{BackendError, BackendErrorKind, FailureKind, FailureRecord};
use crate::coherence::{Region, Undefined, UndefinedRead};
use crate::device::{self, Device};
use crate::error::{Error, Shortage, Text};
use crate::layout::Selection;
use crate::storage::{ArrayState, Storage};

/// A plan that was refused: bytes without contents.
pub(super) fn undefined(
    request: &Request<'_>,
    state: &ArrayState,
    refusal: &UndefinedRead,
) -> Error {
    match refusal.undefined {
        Undefined::Never => Error::Uninitialised {
            array: Text::new(request.storage.named()),
            operation: Text::new(request.operation),
            part: Text::new(part(request, &refusal.region)),
        },
        Undefined::Lost(loss) => match state.loss(loss) {
            Some(record) => lost(request.storage, record),
            None => unreachable!("a loss without a record"),
        },
    }
}

fn lost(storage: &Storage, record: &Arc<FailureRecord>) -> Error {
    if record.kind == FailureKind::Device {
        return Error::DeviceLost {
            device: Text::new("the device that held the newest contents"),
            operation: Text::new(record.operation.as_str()),
            cause: Text::new(record.cause.as_str()),
        };
    }
    Error::Lost {
        array: Text::new(storage.named()),
        operation: Text::new(record.operation.as_str()),
        site: Text::new(
            record.site.map_or_else(|| "an unknown line".to_owned(), ToString::to_string),
        ),
        cause: Text::new(record.cause.as_str()),
    }
}

/// A region in words: in memory order, which for the usual array is index order.
fn part(request: &Request<'_>, region: &Region) -> String {
    if matches!(request.selection, Selection::Whole)
        && region.len() == request.storage.memory_order().len()
    {
        return "all".to_owned();
    }
    let spans: Vec<String> = region
        .spans()
        .iter()
        .map(|span| match span.step() {
            1 => format!("{}..{}", span.start(), span.end()),
            step => format!("{}..{};{step}", span.start(), span.end()),
        })
        .collect();
    format!("[{}]", spans.join(", "))
}

impl Request<'_> {
    /// A backend call that was refused while serving this request.
    pub(super) fn refused(&self, device: &Device, doing: &str, refusal: &BackendError) -> Error {
        match refusal.kind {
            BackendErrorKind::InsideKernel => {
                self.inside_kernel(&format!("work queued on {device}"))
            }
            _ => device::call_error(
                device,
                &self.storage.named(),
                &format!(
                    "{doing} {} for {} at {}",
                    self.storage.named(),
                    self.operation,
                    self.site
                ),
                refusal,
            ),
        }
    }

    pub(super) fn inside_kernel(&self, waits_for: &str) -> Error {
        Error::InsideKernel {
            operation: Text::new(format!("{} of {}", self.operation, self.storage.named())),
            waits_for: Text::new(waits_for),
        }
    }

    pub(super) fn no_location(&self, device: &Device) -> Error {
        Error::TooManyDevices {
            array: Text::new(self.storage.named()),
            device: Text::new(device.name()),
        }
    }
}

/// The host has no room for an array.
pub(crate) fn host_full(storage: &Storage) -> Error {
    host_full_for(&storage.named(), storage.memory_order().len_bytes())
}

pub(super) fn host_full_for(array: &str, requested: u64) -> Error {
    Error::OutOfMemory {
        array: Text::new(array),
        device: Text::new("the host"),
        shortage: Arc::new(Shortage { requested, ..Shortage::default() }),
    }
}

/// One side was declared changed, and others hold newer contents.
pub(crate) fn lost_update(storage: &Storage, changed: String, newest: String) -> Error {
    Error::LostUpdate {
        array: Text::new(storage.named()),
        changed: Text::new(changed),
        newest: Text::new(newest),
    }
}
