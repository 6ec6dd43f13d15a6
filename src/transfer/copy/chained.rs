//! Copies as steps of chains.

use crate::transfer::access::request::StoredView;
use resident_backend::{Address, CopyWork, Dependencies, FailureKind, Label, Memory, Work};

/// A copy of all elements between two views of one shape and element size, within a device. Each
/// replay sets the addresses of the two arrays.
pub(crate) fn copy_step(
    source: &StoredView<'_>,
    destination: &StoredView<'_>,
    label: Label,
) -> Work {
    let element_bytes = u64::from(source.element_bytes);
    Work::Copy(Box::new(CopyWork {
        source: Memory::Device(Address(0)),
        destination: Memory::Device(Address(0)),
        source_device: None,
        parts: source.view.copies_of_all_to(&destination.view, element_bytes),
        may_read_between: false,
        loss: FailureKind::Contents,
        depends: Dependencies::new(),
        label,
    }))
}
