//! Where the contents of an array are newest.

use crate::device::{Device, Stream};
use crate::transfer::access::request::StoredView;
use resident_core::coherence::{Content, Holders, Location};

/// The device where the first part of the view is newest that any device has. That part may be
/// valid on several devices: then `preferred`, if it is one of them. `None` if the contents are on
/// the host only, are constants, or were never written.
pub(crate) fn device_where_newest(view: &StoredView<'_>, preferred: &Device) -> Option<Device> {
    where_newest(view, Some(preferred))
}

/// The stream on which a device copies all elements of a view: one of the device where they are
/// newest, `asked` if it is one of its streams. If no device has them, nor the host memory for
/// them, as of a constant in an explicit array: one of a device that has memory. `None` if the host
/// copies.
pub(in crate::transfer) fn stream_where_newest(
    view: &StoredView<'_>,
    asked: Option<&Stream>,
) -> Option<Stream> {
    let preferred = asked.map(Stream::device_ref);
    let device = where_newest(view, preferred).or_else(|| {
        let state = view.storage.lock();
        let has_memory = |location| state.device_copy(location).has_memory();
        let devices = || state.devices().filter(|(location, _)| has_memory(*location));
        let first = devices().find(|(_, device)| Some(*device) == preferred);
        let found = first.or_else(|| devices().next()).map(|(_, device)| device.clone());
        found.filter(|_| view.storage.host_base().is_null())
    })?;
    Some(match asked {
        Some(stream) if *stream.device_ref() == device => stream.clone(),
        _ => device.current_stream(),
    })
}

fn where_newest(view: &StoredView<'_>, preferred: Option<&Device>) -> Option<Device> {
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
    let is_there = |preferred: &&Device| first == *preferred || devices.any(|it| it == *preferred);
    Some(preferred.filter(is_there).unwrap_or(first).clone())
}
