//! Refuses copies that a thread denies, before anything of its call is copied.

use super::request::{Regions, Request};
use crate::audit::{self, Direction, Implicit};
use crate::error::{Error, Result};
use crate::storage::{ArrayState, StaleOrigin};
use crate::traffic::grouped;
use crate::transfer::copy::plan::{Route, RoutedCopies, routed};
use resident_backend::call_site::CallSite;
use resident_core::coherence::{Location, Source};

impl Request<'_> {
    /// Refuses the request if it needs copies to `location` that the thread denies. Changes
    /// nothing. Costs one test of a thread-local if the thread denies none.
    #[inline]
    pub(in crate::transfer) fn expect_allowed(
        &self,
        state: &ArrayState,
        location: Location,
    ) -> Result<()> {
        if audit::may_be_denied(self.cause) {
            return self.expect_none_denied(state, location);
        }
        Ok(())
    }

    #[cold]
    fn expect_none_denied(&self, state: &ArrayState, location: Location) -> Result<()> {
        let copies = self.plan(state, location)?;
        let (mut regions, mut directions, mut denier) = (Regions::new(), Implicit::default(), None);
        for copies in &routed(state, location, &copies) {
            let needed = directions_of(copies, state.host_location(), location);
            if let Some(site) = audit::denied_at(needed) {
                regions.extend(copies.regions.iter().copied());
                directions |= needed;
                denier = denier.or(Some(site));
            }
        }
        denier.map_or(Ok(()), |denied_at| {
            Err(self.denied(state, location, &regions, directions, denied_at))
        })
    }

    fn denied(
        &self,
        state: &ArrayState,
        location: Location,
        regions: &Regions,
        directions: Implicit,
        denied_at: CallSite,
    ) -> Error {
        let array = self.storage.named();
        let bytes = grouped(self.bytes_of(regions));
        let is_to_host =
            directions.contains(Implicit::TO_HOST) && location == state.host_location();
        let (place, prefetch) = if is_to_host {
            ("the host".to_owned(), "prefetch_host")
        } else {
            (state.device_copy(location).device.name(), "prefetch")
        };
        let since = match state.stale_since(location, regions) {
            StaleOrigin::Never => "where they never were".to_owned(),
            StaleOrigin::Unreported => "where they are stale".to_owned(),
            StaleOrigin::Call { site, .. } => format!("where they are stale since {site}"),
        };
        Error::Denied {
            operation: String::from(self.operation),
            transfer: format!("{bytes} bytes of {array} to {place}, {since}"),
            array,
            denied: format!(
                "`audit::deny` at {denied_at} denies that; copy them before, by `{prefetch}`, or \
                 allow it, by `audit::allow({})`",
                directions.path()
            ),
            call: self.site.into(),
        }
    }
}

/// The directions of the copies that carry out a planned copy.
fn directions_of(copies: &RoutedCopies, host: Location, to: Location) -> Implicit {
    match copies.source {
        Source::Constant(_) => Implicit::default(),
        Source::Location(_) if to == host => Implicit::of(Direction::ToHost),
        Source::Location(from) if from == host => Implicit::of(Direction::ToDevice),
        Source::Location(_) if copies.route == Route::ThroughHost => Implicit::ALL,
        Source::Location(_) => Implicit::of(Direction::BetweenDevices),
    }
}
