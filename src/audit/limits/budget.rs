//! Budgets: how much a piece of work may copy.

use crate::audit::captures::capture::{capture, capture_work};
use crate::audit::reports::report::Site;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::traffic::{Direction, Flow, grouped};
use resident_backend::call_site::{CallSite, call_site};

/// The most bytes that a piece of work may copy in each direction: a test that fails at the call
/// sites that spend too much. A direction without a limit is free.
///
/// Copies by calls of this thread count, and by those that run in a
/// [`scope`](crate::audit::scope()) of it, so that tests beside each other in one process do not
/// count for each other. What the work hands to other threads without a scope counts by
/// [`of_all_threads`](Self::of_all_threads).
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
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[must_use = "a budget holds while `enforce` runs"]
pub struct Budget {
    limits: [Limits; DIRECTIONS.len()],
    is_exact: bool,
    is_of_all_threads: bool,
    array: Option<String>,
    device: Option<String>,
}

/// The limits of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Limits {
    bytes: Option<u64>,
    copies: Option<u64>,
}

const DIRECTIONS: [Direction; 5] = [
    Direction::ToDevice,
    Direction::ToHost,
    Direction::BetweenDevices,
    Direction::Sent,
    Direction::Received,
];

impl Budget {
    /// A budget without limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the bytes that are copied from the host to devices.
    pub fn to_device(self, bytes: u64) -> Self {
        self.limit(Direction::ToDevice, |limits| limits.bytes = Some(bytes))
    }

    /// Limits the bytes that are copied from devices to the host.
    pub fn to_host(self, bytes: u64) -> Self {
        self.limit(Direction::ToHost, |limits| limits.bytes = Some(bytes))
    }

    /// Limits the bytes that are copied from one device to another.
    pub fn between_devices(self, bytes: u64) -> Self {
        self.limit(Direction::BetweenDevices, |limits| limits.bytes = Some(bytes))
    }

    /// Limits the bytes that are sent to other processes, as far as they are recorded: by
    /// `resident-mpi`, or by NCCL.
    ///
    /// ```
    /// use resident::{Budget, Error};
    /// # use resident::internal::{Transfer, record_transfer};
    /// # let send = || record_transfer(Transfer::sent(800, "edge", 1));
    /// // `send` sends 800 bytes to another process.
    /// Budget::new().to_host(0).enforce(send)?;                  // messages are no copies
    /// let refused = Budget::new().sent(400).enforce(send);
    /// assert!(matches!(refused, Err(Error::OverBudget { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn sent(self, bytes: u64) -> Self {
        self.limit(Direction::Sent, |limits| limits.bytes = Some(bytes))
    }

    /// Limits the bytes that are received from other processes, as far as they are recorded.
    pub fn received(self, bytes: u64) -> Self {
        self.limit(Direction::Received, |limits| limits.bytes = Some(bytes))
    }

    /// Limits the number of copies in a direction, as [`Flow::count`](crate::Flow::count) counts
    /// them.
    ///
    /// ```
    /// use resident::{Budget, Device, SmartArray, audit::Direction};
    ///
    /// let array = SmartArray::from(vec![1_u8; 8]);
    /// let budget = Budget::new().copies(Direction::ToDevice, 1);
    /// budget.enforce(|| array.prefetch(&Device::cpu().stream()))??;
    /// # Ok::<(), resident::Error>(())
    /// ```
    pub fn copies(self, direction: Direction, count: u64) -> Self {
        self.limit(direction, |limits| limits.copies = Some(count))
    }

    /// All limits are exact: to copy less is an error too. A test that moves nothing, because it
    /// does not do what it should, fails then.
    ///
    /// ```
    /// use resident::{Budget, Error};
    ///
    /// let nothing = Budget::new().to_device(8).exactly().enforce(|| ());
    /// assert!(matches!(nothing, Err(Error::OverBudget { .. })));
    /// ```
    pub fn exactly(self) -> Self {
        Self { is_exact: true, ..self }
    }

    /// Copies by all threads count that are made meanwhile, but for those of threads that are in a
    /// [`capture`](crate::audit::capture()) or a budget of their own: so work that is handed to
    /// another thread does not get round the budget. It counts what unrelated threads copy too.
    ///
    /// ```
    /// use resident::{Budget, Device, Error, Result, SmartArray};
    ///
    /// // A function that lets another thread copy.
    /// fn upload(array: &SmartArray<u8, resident::ndarray::Ix1>) -> Result<()> {
    ///     let upload = || array.gpu_on(&Device::cpu().stream()).map(drop);
    ///     std::thread::scope(|threads| threads.spawn(upload).join().expect("no panic"))
    /// }
    ///
    /// let arrays = [0, 1].map(|byte| SmartArray::from(vec![byte; 100]).named("handed over"));
    /// let nothing = Budget::new().to_device(0).of_array("handed over");
    /// nothing.enforce(|| upload(&arrays[0]))??;
    /// let over = nothing.of_all_threads().enforce(|| upload(&arrays[1]));
    /// assert!(over.unwrap_err().to_string().contains("100 of them on other threads"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn of_all_threads(self) -> Self {
        Self { is_of_all_threads: true, ..self }
    }

    /// Only copies of the arrays with this name count.
    pub fn of_array(self, name: impl Into<String>) -> Self {
        Self { array: Some(name.into()), ..self }
    }

    /// Only copies to or from this device count.
    pub fn on_device(self, device: &Device) -> Self {
        Self { device: Some(device.name()), ..self }
    }

    fn limit(mut self, direction: Direction, set: impl FnOnce(&mut Limits)) -> Self {
        if let Some(index) = DIRECTIONS.iter().position(|known| *known == direction) {
            set(&mut self.limits[index]);
        }
        self
    }

    /// Runs `work` and returns its value, if no more than the budget was copied meanwhile. The
    /// copies are counted as by [`capture`], explicit ones too; the work is not interrupted. Copies
    /// by other threads count as [`Budget`] says. To refuse copies before they are made, use
    /// [`deny`](crate::audit::deny()).
    ///
    /// If `work` returns a `Result`, that is the value: `enforce(..)??` passes on both errors.
    ///
    /// # Errors
    ///
    /// [`Error::OverBudget`] if a limit is exceeded, or an exact one is not met; the value is
    /// dropped.
    ///
    /// # Panics
    ///
    /// If `work` panics; the panic is passed on.
    #[track_caller]
    pub fn enforce<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        let site = call_site();
        let (value, own, sites) = self.run(work);
        let over: Vec<(Direction, String)> = DIRECTIONS
            .into_iter()
            .zip(&self.limits)
            .flat_map(|(direction, limits)| self.misses(direction, *limits, &sites, &own))
            .collect();
        if over.is_empty() { Ok(value) } else { Err(over_budget(&over, sites, site)) }
    }

    /// Runs the work. Returns the copies of this thread, and all that count.
    fn run<T>(&self, work: impl FnOnce() -> T) -> (T, Vec<Site>, Vec<Site>) {
        let (value, own, all) = if self.is_of_all_threads {
            let (value, own, all) = capture_work(work);
            (value, own.sites(), all.sites())
        } else {
            let (value, report) = capture(work);
            (value, report.sites(), report.sites())
        };
        let of_budget = |mut sites: Vec<Site>| {
            sites.retain(|site| self.counts(site));
            sites
        };
        (value, of_budget(own), of_budget(all))
    }

    /// Whether the budget is for copies of this call site.
    fn counts(&self, site: &Site) -> bool {
        let is_device = |name: &String| site.device == *name || site.source.as_ref() == Some(name);
        self.array.as_ref().is_none_or(|name| site.array == *name)
            && self.device.as_ref().is_none_or(is_device)
    }

    /// The limits of a direction that are not kept, in words.
    fn misses(
        &self,
        direction: Direction,
        limits: Limits,
        sites: &[Site],
        own: &[Site],
    ) -> Vec<(Direction, String)> {
        let spent = total(sites, direction);
        let others = spent - total(own, direction);
        let relation = if self.is_exact { "instead of" } else { "of at most" };
        let is_missed = |spent: u64, limit: u64| spent > limit || self.is_exact && spent < limit;
        let missed = |spent: u64, others: u64, limit: Option<u64>, unit: &str| {
            let limit = limit.filter(|limit| is_missed(spent, *limit))?;
            let (spent, limit) = (grouped(spent), grouped(limit));
            let elsewhere = match others {
                0 => String::new(),
                _ => format!(" ({} of them on other threads)", grouped(others)),
            };
            Some((direction, format!("{spent} {unit} {direction}{elsewhere} {relation} {limit}")))
        };
        let bytes = missed(spent.bytes, others.bytes, limits.bytes, "bytes");
        let copies = missed(spent.count, others.count, limits.copies, "copies");
        bytes.into_iter().chain(copies).collect()
    }
}

/// The copies in a direction.
fn total(sites: &[Site], direction: Direction) -> Flow {
    let own = sites.iter().filter(|site| site.direction == direction);
    own.fold(Flow::default(), |total, site| total + site.flow)
}

fn over_budget(over: &[(Direction, String)], mut sites: Vec<Site>, call: CallSite) -> Error {
    sites.retain(|site| over.iter().any(|(direction, _)| *direction == site.direction));
    sites.sort_by_key(|site| std::cmp::Reverse(site.flow.bytes));
    let each: Vec<&str> = over.iter().map(|(_, text)| text.as_str()).collect();
    Error::OverBudget {
        spent: each.join(", and "),
        sites: sites.iter().map(Site::to_string).collect(),
        call: call.into(),
    }
}
