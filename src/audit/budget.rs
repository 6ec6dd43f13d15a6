//! Budgets: how much a piece of work may copy.

use super::capture::capture;
use super::report::{Report, Site};
use crate::call_site::{CallSite, call_site};
use crate::error::{Error, Result};
use crate::traffic::{Direction, grouped};

/// The most bytes that a piece of work may copy in each direction: a test that fails at the call
/// sites that spend too much. A direction without a limit is free.
///
/// ```
/// use resident::{Budget, Device, Error, SmartArray};
///
/// let device = Device::cpu();
/// let photo = SmartArray::from(vec![0_u8; 1000]).named("photo");
/// let budget = Budget::new().to_device(1000).to_host(0);
/// let len = budget.enforce(|| photo.gpu_on(&device.stream()).map(|there| there.len()))??;
/// assert_eq!(len, 1000);
///
/// let work = || SmartArray::from(vec![0_u8; 1001]).gpu_on(&device.stream()).map(drop);
/// let Err(Error::OverBudget { sites, .. }) = budget.enforce(work) else { panic!("too much") };
/// assert!(sites[0].contains("1_001 bytes in 1 copy to_device for gpu"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[must_use = "a budget holds for what it is told to enforce"]
pub struct Budget {
    to_device: Option<u64>,
    to_host: Option<u64>,
    between_devices: Option<u64>,
}

impl Budget {
    /// A budget without limits.
    pub const fn new() -> Self {
        Self { to_device: None, to_host: None, between_devices: None }
    }

    /// Limits the bytes that are copied from the host to devices.
    pub const fn to_device(self, bytes: u64) -> Self {
        Self { to_device: Some(bytes), ..self }
    }

    /// Limits the bytes that are copied from devices to the host.
    pub const fn to_host(self, bytes: u64) -> Self {
        Self { to_host: Some(bytes), ..self }
    }

    /// Limits the bytes that are copied from one device to another.
    pub const fn between_devices(self, bytes: u64) -> Self {
        Self { between_devices: Some(bytes), ..self }
    }

    /// Runs `work` and returns its value, if the calls of this thread, and those that run in a
    /// [`scope`](super::scope()) of it, copied no more than the budget. The copies are counted as
    /// by [`capture`], explicit ones too; the work is not interrupted. To refuse copies before
    /// they are made, use [`deny`](super::deny()).
    ///
    /// If `work` returns a `Result`, that is the value: `enforce(..)??` passes on both errors.
    ///
    /// # Errors
    ///
    /// [`Error::OverBudget`] if a direction is over its limit; the value is dropped.
    ///
    /// # Panics
    ///
    /// If `work` panics; the panic is passed on.
    #[track_caller]
    pub fn enforce<T>(self, work: impl FnOnce() -> T) -> Result<T> {
        let site = call_site();
        let (value, report) = capture(work);
        match self.over(&report) {
            over if over.is_empty() => Ok(value),
            over => Err(over_budget(&over, &report, site)),
        }
    }

    /// The directions in which more was copied than the limit, each with its limit.
    fn over(self, report: &Report) -> Vec<(Direction, u64)> {
        let limits = [
            (Direction::ToDevice, self.to_device),
            (Direction::ToHost, self.to_host),
            (Direction::BetweenDevices, self.between_devices),
        ];
        let is_over = |(direction, limit): &(Direction, u64)| spent(report, *direction) > *limit;
        let limited = limits.into_iter().filter_map(|(direction, limit)| Some((direction, limit?)));
        limited.filter(is_over).collect()
    }
}

fn spent(report: &Report, direction: Direction) -> u64 {
    let traffic = report.traffic();
    match direction {
        Direction::ToDevice => traffic.to_device.bytes,
        Direction::ToHost => traffic.to_host.bytes,
        Direction::BetweenDevices => traffic.between_devices.bytes,
    }
}

fn over_budget(over: &[(Direction, u64)], report: &Report, site: CallSite) -> Error {
    let mut sites = report.sites();
    sites.retain(|site| over.iter().any(|(direction, _)| *direction == site.direction));
    sites.sort_by_key(|site| std::cmp::Reverse(site.flow.bytes));
    let each = over.iter().map(|(direction, limit)| {
        let bytes = grouped(spent(report, *direction));
        format!("{bytes} bytes {direction} of at most {}", grouped(*limit))
    });
    Error::OverBudget {
        spent: each.collect::<Vec<_>>().join(", and "),
        sites: sites.iter().map(Site::to_string).collect(),
        call: site.into(),
    }
}
