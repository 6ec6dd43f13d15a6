//! Fast paths for accesses of the whole array, and for writes of single elements on the host.

use super::ArrayState;
use crate::device::Stream;
use resident_backend::Position;
use resident_backend::call_site::CallSite;
use resident_core::Access;
use resident_core::coherence::{Content, Location, Region};
use resident_core::layout::MemoryOrder;
use resident_core::ordering::{Mark, StreamKey, UseEnd};

impl ArrayState {
    /// Records a launch of `stream` on the whole array if only its uses change, and returns the
    /// stream's key. `number` is that of the use. Otherwise changes nothing and returns `None`.
    pub(crate) fn record_whole(
        &mut self,
        stream: &Stream,
        location: Location,
        access: Access,
        position: Position,
        number: u64,
    ) -> Option<StreamKey> {
        let key = self.find_key(stream)?;
        if access.writes() && !self.coherence.uniform()?.is_only_at(location) {
            return None;
        }
        let copy = self.device_copies.get_mut(location.index().checked_sub(1)?)?;
        let uses = copy.uses.uniform_mut()?;
        let mark = if access.writes() {
            Mark::write(key, position)
        } else {
            Mark::lossless(key, UseEnd::at(position))
        };
        uses.record(access, mark);
        copy.last_use = number;
        Some(key)
    }

    /// Makes `location` the only holder of the whole array. Returns `false`, and changes nothing,
    /// if contents differ by region or stale copies must be filled with poison bytes.
    #[inline]
    pub(crate) fn become_only_holder(&mut self, location: Location, site: CallSite) -> bool {
        match self.coherence.uniform() {
            None => false,
            Some(content) if content.is_only_at(location) => true,
            Some(_) if self.has_poisoned_device() => false,
            Some(content) => {
                // This also writes the record of `location`, which has no effect while the array is
                // valid there.
                self.record_all_stale(content, site);
                self.coherence.apply_to_all(location, Access::Overwrite);
                true
            }
        }
    }

    /// Makes the host the only holder of a region, if the host holds its newest contents or nothing
    /// does, and no work uses the host memory. Returns `false`, and changes nothing, if that is not
    /// so, if the region has several contents, or if stale copies must be filled with poison bytes.
    pub(crate) fn overwrite_on_host(
        &mut self,
        memory_order: &MemoryOrder,
        region: &Region,
        site: CallSite,
    ) -> bool {
        let is_ready = self.has_writable_host() && self.is_host_idle() && !self.has_new_failures();
        if !is_ready || self.has_poisoned_device() {
            return false;
        }
        let (host, extents) = (self.host_location, memory_order.extents());
        let may_overwrite = |content| match content {
            Content::Stored(holders) => holders.contains(host),
            Content::Undefined(_) | Content::Constant { .. } => true,
        };
        let before = self.coherence.overwrite_common(extents, host, region, may_overwrite);
        if let Some(content) = before.filter(|content| !content.is_only_at(host)) {
            self.record_stale_part(region, content, host, site);
            self.coarsen_after_write(memory_order);
        }
        before.is_some()
    }

    /// Whether any device of this array fills stale copies with poison bytes.
    pub(crate) fn has_poisoned_device(&self) -> bool {
        self.device_copies.iter().any(|copy| copy.device.poison().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::super::failures::undisturbed;
    use super::ArrayState;
    use crate::device::Device;
    use resident_backend::call_site::call_site;
    use resident_core::Access;
    use resident_core::coherence::{Coherence, Location, Region, Span};
    use resident_core::layout::MemoryOrder;
    use resident_embedded::Emulation;

    /// An array of four elements that is valid on the host and on a device.
    fn on_both(device: &Device) -> (MemoryOrder, ArrayState, Location) {
        let (memory_order, _) = MemoryOrder::of(&[4], &[1], 4).expect("an order");
        let mut state = ArrayState::new(Coherence::stored(Location::HOST));
        let location = state.assign_location(device).expect("a location");
        state.coherence.apply_to_all(location, Access::Read);
        (memory_order, state, location)
    }

    #[test]
    fn a_write_of_the_whole_needs_no_walk_over_regions_if_all_are_alike() {
        let (memory_order, mut state, location) = on_both(&Device::cpu());
        let site = call_site();
        for place in [location, Location::HOST, Location::HOST, location] {
            assert!(state.become_only_holder(place, site));
            let content = state.coherence.uniform().expect("one content");
            assert!(content.is_only_at(place));
        }
        let first = Region::new(&[Span::single(0)]);
        let extents = memory_order.extents();
        state.coherence.apply(extents, Location::HOST, &first, Access::Overwrite);
        assert!(!state.become_only_holder(location, site), "two contents");
        assert!(state.coherence.uniform().is_none());
    }

    #[test]
    fn stale_copies_of_a_device_that_poisons_are_left_to_the_slow_path() {
        let device = Device::emulated(Emulation::new().poison(true));
        let (_, mut state, location) = on_both(&device);
        assert!(!state.become_only_holder(Location::HOST, call_site()));
        let content = state.coherence.uniform().expect("one content");
        assert!(content.is_valid(location) && content.is_valid(Location::HOST));
    }

    #[test]
    fn a_part_is_overwritten_on_the_host_if_nothing_else_has_it() {
        let (memory_order, mut state, location) = on_both(&Device::cpu());
        let (first, site) = (Region::new(&[Span::single(0)]), call_site());
        let overwrite = |state: &mut ArrayState| {
            undisturbed(|| {
                state.reconcile(&memory_order);
                state.overwrite_on_host(&memory_order, &first, site)
            })
        };
        assert!(!overwrite(&mut state), "there is no memory");
        let buffer = crate::storage::HostBuffer::zeroed::<u32>(4).expect("memory");
        state.host = Some(std::sync::Arc::new(buffer));
        assert!(overwrite(&mut state));
        assert!(state.coherence.is_only_at(Location::HOST, &first));
        assert!(overwrite(&mut state), "it is there alone");
        state.coherence.apply_to_all(location, Access::Overwrite);
        assert!(!overwrite(&mut state), "the device has the newest");
    }
}
