//! Conversion of a backend's errors and failures to the library's [`Error`].

use super::Device;
use crate::error::{CalledAt, Error, NOTHING_QUEUED, Shortage};
use resident_backend::failure::LeftOut;
use resident_backend::{BackendError, BackendErrorKind, FailureKind, FailureRecord};

/// The error of a call of a backend that failed: nothing was queued, or the error says how many
/// bytes were written.
pub(crate) fn call_error(
    device: &Device,
    object: &str,
    operation: &str,
    error: &BackendError,
) -> Error {
    match error.kind {
        BackendErrorKind::OutOfMemory { requested, free, .. } => Error::OutOfMemory {
            call: CalledAt::UNKNOWN,
            array: String::from(object),
            device: device.name(),
            shortage: Shortage {
                requested,
                free,
                in_use: device.memory().in_use,
                limit: device.backend().memory_limit(),
            },
            in_use_by: None,
        },
        BackendErrorKind::OutOfHostMemory { requested } => Error::host_full(object, requested),
        _ => backend_error(&device.name(), operation, error),
    }
}

pub(crate) fn backend_error(device: &str, operation: &str, error: &BackendError) -> Error {
    match error.kind {
        BackendErrorKind::InsideKernel => Error::InsideKernel {
            call: CalledAt::UNKNOWN,
            operation: String::from(operation),
            waits_for: format!("work queued on {device}"),
        },
        BackendErrorKind::DeviceLost => Error::DeviceLost {
            call: CalledAt::UNKNOWN,
            device: String::from(device),
            operation: String::from(operation),
            cause: error.to_string(),
        },
        BackendErrorKind::Forked => refusal(device, operation, error, ""),
        BackendErrorKind::Partial { written_bytes } => {
            refusal(device, operation, error, "").after_writing(written_bytes)
        }
        _ => refusal(device, operation, error, NOTHING_QUEUED),
    }
}

fn refusal(device: &str, operation: &str, error: &BackendError, consequence: &str) -> Error {
    Error::Backend {
        call: CalledAt::UNKNOWN,
        device: String::from(device),
        operation: String::from(operation),
        cause: format!("{error}{consequence}"),
    }
}

/// The labels, in messages and call logs, of fills with constants and of fills with poison bytes.
pub(crate) const FILL: &str = "fill of";
pub(crate) const POISON: &str = "poison of the stale copy of";

/// The error of queued work that failed.
pub(crate) fn late_error(device: &Device, record: &FailureRecord) -> Error {
    let site = record.site.map_or_else(String::new, |site| format!(" queued at {site}"));
    if let Some(left_out) = &record.left_out {
        return uninitialised(&format!("{}{site}", record.operation), left_out);
    }
    let consequence = match record.kind {
        FailureKind::Constant => {
            "the elements still have that constant, and the next use fills them again"
        }
        FailureKind::Poison | FailureKind::Copy => {
            "its source is unchanged, and the next read copies again"
        }
        FailureKind::Contents => {
            "the contents that it should have written are lost until they are overwritten"
        }
        FailureKind::Device => {
            return Error::DeviceLost {
                call: CalledAt::UNKNOWN,
                device: device.name(),
                operation: format!("{}{site}", record.operation),
                cause: String::from(record.cause.as_str()),
            };
        }
    };
    Error::Backend {
        call: CalledAt::UNKNOWN,
        device: device.name(),
        operation: format!("{}{site}", record.operation),
        cause: format!("{}; {consequence}", record.cause),
    }
}

/// The error of an operation that was to read an element which a launch left out. The array and the
/// index are those of the launch: the caller may know better.
pub(crate) fn uninitialised(operation: &str, left_out: &LeftOut) -> Error {
    Error::Uninitialised {
        call: CalledAt::UNKNOWN,
        array: match &*left_out.array {
            "" => String::from("an array"),
            array => String::from(array),
        },
        operation: String::from(operation),
        part: left_out.index.clone(),
        left_out_by: Some(left_out.launch.to_string().into()),
    }
}

impl Error {
    /// The error with the name by which the caller knows the array that was read.
    pub(crate) fn of_array(mut self, name: &str) -> Self {
        if let Self::Uninitialised { array, .. } = &mut self {
            *array = String::from(name);
        }
        self
    }

    pub(crate) fn no_device(wanted: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::NoDevice { call: CalledAt::UNKNOWN, wanted: wanted.into(), reason: reason.into() }
    }
}
