//! Converts errors of the coherence core or of a backend to errors that name the array, and records
//! what a refused write leaves: a backend may make several driver calls for one piece of work, and
//! refuse it after some of them.

use std::sync::Arc;

use super::request::Request;
use crate::device::{self, Device, Stream};
use crate::error::{CalledAt, Error};
use crate::storage::{ArrayState, Storage, UseKind, notify_watchers};
use resident_backend::failure::LeftOut;
use resident_backend::{BackendError, BackendErrorKind, FailureKind, FailureRecord};
use resident_core::coherence::{Location, Region, Span, Undefined, UndefinedRead};
use resident_core::layout::Selection;

/// The error of a plan for bytes of which some have no contents.
pub(in crate::transfer) fn undefined(
    request: &Request<'_>,
    state: &ArrayState,
    read: &UndefinedRead,
) -> Error {
    match read.undefined {
        Undefined::Never => Error::Uninitialised {
            call: request.site.into(),
            array: request.storage.named(),
            operation: String::from(request.operation),
            part: part(request, &read.region),
            left_out_by: None,
        },
        Undefined::Lost(loss) => match state.loss(loss) {
            Some(record) => lost(request.storage, record).at(request.site),
            None => unreachable!("a loss without a record"),
        },
    }
}

fn lost(storage: &Storage, record: &Arc<FailureRecord>) -> Error {
    if record.kind == FailureKind::Device {
        return Error::DeviceLost {
            call: CalledAt::UNKNOWN,
            device: String::from("the device that held the newest contents"),
            operation: String::from(record.operation.as_str()),
            cause: String::from(record.cause.as_str()),
        };
    }
    if let Some(left_out) = &record.left_out {
        return device::uninitialised(&record.operation, left_out);
    }
    Error::Lost {
        array: storage.named(),
        operation: String::from(record.operation.as_str()),
        site: record.site.into(),
        cause: String::from(record.cause.as_str()),
    }
}

/// A region as text: its indices in memory order, which for most arrays is the order of the axes.
fn part(request: &Request<'_>, region: &Region) -> String {
    if matches!(request.selection, Selection::Whole)
        && region.len() == request.storage.memory_order().len()
    {
        return "all".to_owned();
    }
    let memory_order = request.storage.memory_order();
    let axes = memory_order.element_extents().len();
    let spans: Vec<String> = region.spans()[..axes].iter().map(indices).collect();
    let elements = format!("[{}]", spans.join(", "));
    let is_field = region.spans().get(axes).filter(|bytes| **bytes != memory_order.byte_axis());
    match is_field {
        Some(bytes) => format!("bytes {} of the elements {elements}", indices(bytes)),
        None => elements,
    }
}

fn indices(span: &Span) -> String {
    match span.step() {
        1 => format!("{}..{}", span.start(), span.end()),
        step => format!("{}..{};{step}", span.start(), span.end()),
    }
}

/// The index of the element with this byte of an array, as [`part`] writes it.
fn index_of(storage: &Storage, offset_bytes: u64) -> String {
    let memory_order = storage.memory_order();
    let element_bytes = memory_order.len_bytes() / memory_order.elements().max(1);
    let mut rest = offset_bytes / element_bytes.max(1);
    let mut index: Vec<u64> = Vec::new();
    for extent in memory_order.element_extents().iter().rev() {
        index.push(rest % extent);
        rest /= extent;
    }
    index.reverse();
    format!("{index:?}")
}

impl Request<'_> {
    /// The error of queued work of this request that failed.
    pub(in crate::transfer) fn late_error(&self, stream: &Stream, record: &FailureRecord) -> Error {
        match &record.left_out {
            Some(left_out) => self.left_out_error(left_out),
            None => device::late_error(stream.device_ref(), record).at(self.site),
        }
    }

    /// The error of a read of an element that a launch left out. The caller holds no lock.
    pub(in crate::transfer) fn left_out_error(&self, left_out: &LeftOut) -> Error {
        let mut error = device::uninitialised(self.operation, left_out).at(self.site);
        if let Error::Uninitialised { array, part, .. } = &mut error {
            *array = self.storage.named();
            let len_bytes = self.storage.memory_order().len_bytes();
            let offset = self.storage.lock().device_addresses().find_map(|start| {
                left_out.address.0.checked_sub(start.0).filter(|offset| *offset < len_bytes)
            });
            if let Some(offset_bytes) = offset {
                *part = index_of(self.storage, offset_bytes);
            }
        }
        error
    }

    /// The error of a backend call that failed during this request.
    pub(in crate::transfer) fn call_error(
        &self,
        device: &Device,
        doing: &str,
        error: &BackendError,
    ) -> Error {
        match error.kind {
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
                error,
            )
            .at(self.site),
        }
    }

    /// The error of a refused write of the elements at `location`. The caller holds no lock.
    ///
    /// If the work was refused after some of its driver calls, the elements there are a mixture of
    /// old and new ones. Where they were valid, `location` becomes their only holder, since no
    /// other copy has the mixture; the error counts the bytes. Elsewhere contents are as they were.
    pub(in crate::transfer) fn write_error(
        &self,
        stream: &Stream,
        location: Location,
        doing: &str,
        error: &BackendError,
    ) -> Error {
        let refused = self.call_error(stream.device_ref(), doing, error);
        if !matches!(error.kind, BackendErrorKind::Partial { .. }) {
            return refused;
        }
        let mut state = self.storage.lock();
        let mixed = state.regions_where(self.storage.memory_order(), self.selection, |content| {
            content.is_valid(location)
        });
        if mixed.is_empty() {
            return refused.with_contents_unchanged();
        }
        let mixed = Selection::Boxes(mixed);
        let request = self.of(&mixed);
        request.record_write(&mut state, location);
        state.note_use(UseKind::Write, &mixed);
        drop(state);
        notify_watchers();
        refused
    }

    pub(in crate::transfer) fn inside_kernel(&self, waits_for: &str) -> Error {
        Error::InsideKernel {
            call: self.site.into(),
            operation: format!("{} of {}", self.operation, self.storage.named()),
            waits_for: String::from(waits_for),
        }
    }

    pub(in crate::transfer) fn no_location(&self, device: &Device) -> Error {
        Error::TooManyDevices {
            call: self.site.into(),
            array: self.storage.named(),
            device: device.name(),
        }
    }
}

/// The error if the host has too little memory for an array.
pub(crate) fn host_full(storage: &Storage) -> Error {
    Error::host_full(&storage.named(), storage.memory_order().len_bytes())
}

/// The error if work on another device, or the host, needs a device array.
pub(crate) fn wrong_device(
    storage: &Storage,
    home: &Device,
    operation: &str,
    other: String,
) -> Error {
    Error::WrongDevice {
        call: CalledAt::UNKNOWN,
        array: storage.named(),
        home: home.name(),
        operation: operation.to_owned(),
        other,
    }
}

/// The error if one copy was declared as changed although other copies have newer contents.
pub(crate) fn lost_update(storage: &Storage, changed: String, newest: String) -> Error {
    Error::LostUpdate { call: CalledAt::UNKNOWN, array: storage.named(), changed, newest }
}
