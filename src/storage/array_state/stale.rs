//! Updates the stale records of all copies when contents change, and looks them up for reports of
//! transfers. `stale_record` stores these records; only reports depend on them.

use super::stale_record::{StaleOrigin, StaleRecord};
use super::{ArrayState, DeviceCopy};
use crate::call_site::CallSite;
use crate::coherence::{Content, Location, LocationSet, Region};
use crate::layout::{MemoryOrder, Selection};

impl ArrayState {
    /// Records that the call at `site` makes `newest` the only holder of the selection, or makes
    /// the selection a constant. Either makes the copies at other locations stale. Called before
    /// the change.
    pub(crate) fn record_stale(
        &mut self,
        memory_order: &MemoryOrder,
        selection: &Selection,
        newest: Option<Location>,
        site: CallSite,
    ) {
        if let (Selection::Whole, Some(content)) = (selection, self.coherence.uniform()) {
            return self.record_all_stale(content, site);
        }
        let elsewhere = |content| {
            newest.map_or_else(|| readable(content), |newest| readable(content).without(newest))
        };
        selection.for_each(memory_order, |region| self.record_stale_parts(region, elsewhere, site));
    }

    /// For a whole array with this content: records, for each location where it is valid, that it
    /// becomes stale there.
    #[inline]
    pub(super) fn record_all_stale(&mut self, content: Content, site: CallSite) {
        let locations = readable(content);
        if locations.contains(Location::HOST) {
            self.host_stale.record_all(site);
        }
        for (index, copy) in self.device_copies.iter_mut().enumerate() {
            if Location::slot(index + 1).is_some_and(|location| locations.contains(location)) {
                copy.stale.record_all(site);
            }
        }
    }

    /// As [`record_stale`](Self::record_stale), for a region that all has this content.
    pub(super) fn record_stale_part(
        &mut self,
        region: &Region,
        content: Content,
        newest: Location,
        site: CallSite,
    ) {
        for location in readable(content).without(newest).iter() {
            record_mut(&mut self.host_stale, &mut self.device_copies, location)
                .record(region, site);
        }
    }

    /// For each part of a region: records that it becomes stale at the locations that the function
    /// `locations` returns for the part's contents.
    fn record_stale_parts(
        &mut self,
        region: &Region,
        locations: impl Fn(Content) -> LocationSet,
        site: CallSite,
    ) {
        let Self { coherence, host_stale, device_copies, .. } = self;
        let mut record = |part: &Region, content| {
            for location in locations(content).iter() {
                record_mut(host_stale, device_copies, location).record(part, site);
            }
        };
        match coherence.common_content(region) {
            Some(content) => record(region, content),
            None => coherence.visit_contents(region, record),
        }
    }

    /// Records that the valid elements of a region at one location become stale there. Called
    /// before the change.
    pub(super) fn record_withdrawn(&mut self, location: Location, region: &Region, site: CallSite) {
        let is_whole = *region == Region::whole(self.coherence.shape());
        match self.coherence.uniform().filter(|_| is_whole) {
            Some(content) if content.is_valid(location) => {
                record_mut(&mut self.host_stale, &mut self.device_copies, location)
                    .record_all(site);
            }
            Some(_) => {}
            None => {
                let there = |content: Content| match content.is_valid(location) {
                    true => LocationSet::of(location),
                    false => LocationSet::empty(),
                };
                self.record_stale_parts(region, there, site);
            }
        }
    }

    /// The last call that made any of these regions stale at `location`. Called before the regions
    /// are copied there; valid parts are ignored.
    pub(crate) fn stale_since(&self, location: Location, regions: &[Region]) -> StaleOrigin {
        let record = match location {
            Location::HOST => &self.host_stale,
            device => &self.device_copy(device).stale,
        };
        let mut latest: Option<StaleOrigin> = None;
        for region in regions {
            self.coherence.visit_contents(region, |part, content| {
                if !content.is_valid(location) {
                    let origin = record.latest(part);
                    latest = Some(latest.map_or(origin, |latest| latest.or_later(origin)));
                }
            });
        }
        latest.unwrap_or(StaleOrigin::Unreported)
    }
}

/// The locations that get a stale record when these elements become stale. For a constant this
/// includes the host even if its memory is not filled yet, because the program set it on the host.
#[inline]
fn readable(content: Content) -> LocationSet {
    match content {
        Content::Undefined(_) => LocationSet::empty(),
        Content::Constant { filled, .. } => filled.with(Location::HOST),
        Content::Stored(holders) => holders.locations(),
    }
}

#[inline]
fn record_mut<'a>(
    host: &'a mut StaleRecord,
    copies: &'a mut [DeviceCopy],
    location: Location,
) -> &'a mut StaleRecord {
    if location == Location::HOST { host } else { &mut copies[location.index() - 1].stale }
}
