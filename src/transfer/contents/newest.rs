//! Where the contents of an array are newest.

use crate::device::Device;
use crate::transfer::access::request::StoredView;
use resident_core::coherence::{Content, Holders, Location};

/// The device where the first part of the view is newest that any device has. That part may be
/// valid on several devices: then `preferred`, if it is one of them. `None` if the contents are on
/// the host only, are constants, or were never written.
pub(crate) fn device_where_newest(view: &StoredView<'_>, preferred: &Device) -> Option<Device> {
    let memory_order = view.storage.memory_order();
    let mut state = view.storage.lock();
    state.reconcile(memory_order);
    let is_device = |location: &Location| *location != Location::HOST;
    let mut found: Option<Holders> = None;
    view.with_selection(|selection| {
        selection.for_each_region(memory_order, |region| {
            state.coherence.visit_contents(region, |_, content| {
                if let (None, Content::Stored(holders)) = (found, content)
                    && holders.locations().iter().any(|location| is_device(&location))
                {
                    found = Some(holders);
                }
            });
        });
    });
    let locations = found?.locations().iter().filter(is_device);
    let mut devices = locations.map(|location| &*state.device_copy(location).device);
    let first = devices.next()?;
    let is_preferred = first == preferred || devices.any(|device| device == preferred);
    Some(if is_preferred { preferred } else { first }.clone())
}
