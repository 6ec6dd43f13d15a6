//! Updates the stale records of all copies when contents change, and looks them up for reports of
//! transfers. `stale_log` stores these records; only reports depend on them.

use super::cold_state::ColdState;
use super::stale_log::{StaleLog, StaleOrigin};
use super::{ArrayState, DeviceCopy};
use resident_backend::call_site::CallSite;
use resident_core::coherence::{Content, Location, LocationSet, Region};
use resident_core::layout::{MemoryOrder, Selection};

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
        selection.for_each_region(memory_order, |region| {
            self.record_stale_parts(region, elsewhere, site);
        });
    }

    /// For a whole array with this content: records, for each location where it is valid, that it
    /// becomes stale there.
    #[inline]
    pub(super) fn record_all_stale(&mut self, content: Content, site: CallSite) {
        let locations = readable(content);
        if locations.contains(Location::HOST) {
            self.host_stale_site = Some(site);
        }
        for (index, copy) in self.device_copies.iter_mut().enumerate() {
            if Location::slot(index + 1).is_some_and(|location| locations.contains(location)) {
                copy.stale_site = Some(site);
            }
        }
        if let Some(cold) = &mut self.cold {
            let logs = cold.stale_logs.iter_mut();
            logs.filter(|(location, _)| locations.contains(*location))
                .for_each(|(_, log)| log.record_all(site));
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
        let mut logs = self.stale_logs();
        for location in readable(content).without(newest).iter() {
            logs.at(location).record(region, site);
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
        let Self { coherence, host_stale_site, device_copies, cold, .. } = self;
        let mut logs = StaleLogs { host_site: *host_stale_site, device_copies, cold };
        let mut record = |part: &Region, content| {
            for location in locations(content).iter() {
                logs.at(location).record(part, site);
            }
        };
        match coherence.common_content(region) {
            Some(content) => record(region, content),
            None => coherence.visit_contents(region, record),
        }
    }

    /// Records that the valid elements of a region at one location become stale there. Called
    /// before the change.
    pub(super) fn record_withdrawn(
        &mut self,
        memory_order: &MemoryOrder,
        location: Location,
        region: &Region,
        site: CallSite,
    ) {
        let is_whole = region.is_whole(memory_order.extents());
        match self.coherence.uniform().filter(|_| is_whole) {
            Some(content) if content.is_valid(location) => {
                self.record_stale_at(location, site);
            }
            Some(_) => {}
            None => {
                let (here, nowhere) = (LocationSet::of(location), LocationSet::empty());
                let there =
                    |content: Content| if content.is_valid(location) { here } else { nowhere };
                self.record_stale_parts(region, there, site);
            }
        }
    }

    /// Records that all elements become stale at one location.
    fn record_stale_at(&mut self, location: Location, site: CallSite) {
        match location {
            Location::HOST => self.host_stale_site = Some(site),
            device => self.device_copy_mut(device).stale_site = Some(site),
        }
        let logs = self.cold.iter_mut().flat_map(|cold| &mut cold.stale_logs);
        logs.filter(|(known, _)| *known == location).for_each(|(_, log)| log.record_all(site));
    }

    /// Makes the records of one location those of another.
    pub(super) fn move_stale_sites(&mut self, from: Location, to: Location) {
        let site = self.stale_site(from);
        match to {
            Location::HOST => self.host_stale_site = site,
            device => self.device_copy_mut(device).stale_site = site,
        }
        self.forget_stale_log(to);
        let logs = self.cold.iter_mut().flat_map(|cold| &mut cold.stale_logs);
        logs.filter(|(known, _)| *known == from).for_each(|(known, _)| *known = to);
    }

    /// Forgets the log of a location that another device gets.
    pub(super) fn forget_stale_log(&mut self, location: Location) {
        if let Some(cold) = &mut self.cold {
            cold.stale_logs.retain(|(known, _)| *known != location);
        }
    }

    fn stale_logs(&mut self) -> StaleLogs<'_> {
        let Self { host_stale_site, device_copies, cold, .. } = self;
        StaleLogs { host_site: *host_stale_site, device_copies, cold }
    }

    fn stale_site(&self, location: Location) -> Option<CallSite> {
        match location {
            Location::HOST => self.host_stale_site,
            device => self.device_copy(device).stale_site,
        }
    }

    fn stale_log(&self, location: Location) -> Option<&StaleLog> {
        let logs = &self.cold.as_ref()?.stale_logs;
        logs.iter().find(|(known, _)| *known == location).map(|(_, log)| log)
    }

    /// The last call that made any element stale at `location`, where all are stale.
    pub(crate) fn all_stale_since(
        &self,
        location: Location,
        memory_order: &MemoryOrder,
    ) -> StaleOrigin {
        match self.stale_log(location) {
            None => StaleOrigin::of_whole(self.stale_site(location)),
            Some(log) => log.latest(&memory_order.whole()),
        }
    }

    /// The last call that made any of these regions stale at `location`. Called before the regions
    /// are copied there; valid parts are ignored.
    pub(crate) fn stale_since(&self, location: Location, regions: &[Region]) -> StaleOrigin {
        let log = self.stale_log(location);
        let of_whole = StaleOrigin::of_whole(self.stale_site(location));
        let mut latest: Option<StaleOrigin> = None;
        for region in regions {
            self.coherence.visit_contents(region, |part, content| {
                if !content.is_valid(location) {
                    let origin = log.map_or(of_whole, |log| log.latest(part));
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

/// The logs of an array, made when parts first become stale.
struct StaleLogs<'a> {
    host_site: Option<CallSite>,
    device_copies: &'a [DeviceCopy],
    cold: &'a mut Option<Box<ColdState>>,
}

impl StaleLogs<'_> {
    fn at(&mut self, location: Location) -> &mut StaleLog {
        let logs = &mut self.cold.get_or_insert_default().stale_logs;
        let index = logs.iter().position(|(known, _)| *known == location).unwrap_or_else(|| {
            let whole = match location.index().checked_sub(1) {
                None => self.host_site,
                Some(copy) => self.device_copies[copy].stale_site,
            };
            logs.push((location, StaleLog::new(whole)));
            logs.len() - 1
        });
        &mut logs[index].1
    }
}
