//! The report of a capture: copies by call site, and totals.

use std::collections::BTreeMap;
use std::fmt;

use super::cause::Cause;
use super::copy_record::{CopyRecord, Staleness};
use crate::call_site::CallSite;
use crate::traffic::grouped;
use crate::traffic::{Direction, Flow, Traffic};

/// One line of a report: the copies of one array in one direction that one call needed for one
/// cause. Its `Display` is one line. The example of [`Report`] prints one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Site {
    /// The call that needed the bytes.
    pub location: CallSite,
    /// The array's name.
    pub array: String,
    /// The direction.
    pub direction: Direction,
    /// The device; for a copy between two devices, the destination.
    pub device: String,
    /// The source, if the copies went from one device to another.
    pub source: Option<String>,
    /// The kind of call that needed the bytes.
    pub cause: Cause,
    /// How many copies, and how many bytes.
    pub flow: Flow,
    /// The last call that made any of these bytes stale at their destination, or released them
    /// there. `None` if the bytes were never valid there; if the call is unknown, because more than
    /// a thousand parts each became stale by a different call; or if an `assign` copied from one
    /// device to another, which overwrites its destination.
    pub stale_since: Option<CallSite>,
    /// Whether none of these bytes was ever valid at the destination.
    pub never_there: bool,
}

/// `src/main.rs:9:15: "photo", 4_000 bytes in 1 copy to_device for launch, cpu:0, stale since
/// src/main.rs:8:11`.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { location, array, direction, cause, flow, .. } = self;
        write!(f, "{location}: \"{array}\", {flow} {direction} for {cause}, {}", self.devices())?;
        match (self.stale_since, self.never_there) {
            (Some(location), _) => write!(f, ", stale since {location}"),
            (None, true) => f.write_str(", never there"),
            (None, false) => Ok(()),
        }
    }
}

impl Site {
    fn devices(&self) -> String {
        self.source
            .as_ref()
            .map_or_else(|| self.device.clone(), |source| format!("{source} -> {}", self.device))
    }
}

/// What was copied during a [`capture`](super::capture), and why. Its `Display` is a table of call
/// sites, followed by totals.
///
/// ```
/// use resident::{Device, SmartArray, audit::{self, Cause, Direction}};
///
/// let _here = Device::cpu().enter();
/// let mut photo = SmartArray::from(vec![0_u8; 1000]).named("photo");
/// photo.gpu()?;
/// photo.host_mut()?[0] = 1;                                 // makes the device's copy stale
/// let (_, report) = audit::capture(|| photo.gpu().map(drop));
/// let sites = report.sites();
/// let site = &sites[0];
/// assert_eq!((site.array.as_str(), site.flow.bytes), ("photo", 1000));
/// assert_eq!((site.direction, site.cause), (Direction::ToDevice, Cause::Gpu));
/// assert!(site.stale_since.is_some_and(|line| line.line() + 1 == site.location.line()));
/// println!("{report}");
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Report {
    sites: BTreeMap<SiteKey, Flow>,
    traffic: Traffic,
    /// The part of `traffic` that launches caused.
    launched: Flow,
    padding: Flow,
    /// The number of uses of guards on streams other than their own, by array.
    foreign_uses: BTreeMap<String, u64>,
    /// What other threads copied meanwhile, which the report does not include.
    elsewhere: Flow,
}

/// The properties shared by the copies of one line. Their order is first by the file and line of
/// the call site.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct SiteKey {
    location: CallSite,
    array: String,
    direction: Direction,
    cause: Cause,
    device: String,
    source: Option<String>,
    staleness: Staleness,
}

impl SiteKey {
    fn of(record: &CopyRecord) -> Self {
        Self {
            location: record.site,
            array: record.array.to_string(),
            direction: record.direction,
            cause: record.cause,
            device: record.device.to_string(),
            source: record.source.as_deref().map(str::to_owned),
            staleness: record.staleness,
        }
    }

    fn site(&self, flow: Flow) -> Site {
        let Self { location, array, direction, cause, device, source, staleness } = self.clone();
        Site {
            location,
            array,
            direction,
            device,
            source,
            cause,
            flow,
            stale_since: staleness.since(),
            never_there: staleness == Staleness::NeverThere,
        }
    }
}

impl Report {
    /// The totals of the capture.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Whether nothing was copied.
    ///
    /// ```
    /// use resident::{Device, Result, SmartArray, audit};
    ///
    /// fn halve(array: &mut SmartArray<f32, resident::ndarray::Ix1>) -> Result<()> {
    ///     array.host_mut()?.mapv_inplace(|x| x / 2.0);
    ///     Ok(())
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// // As a test: `halve` copies nothing of an array that is valid on the host.
    /// let mut array = SmartArray::from(vec![1.0_f32; 1000]);
    /// array.gpu_on(&Device::cpu().stream())?;
    /// let (outcome, report) = audit::capture(|| halve(&mut array));
    /// outcome?;
    /// assert!(report.is_empty(), "it moved\n{report}");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// The copies by call site, array, direction, device, cause and the call that made the bytes
    /// stale, in the order of files and lines. The example of [`Report`] prints them.
    #[must_use]
    pub fn sites(&self) -> Vec<Site> {
        self.sites.iter().map(|(key, flow)| key.site(*flow)).collect()
    }

    /// The copies that a simple launcher would have made at the launches of this capture: each
    /// array argument once in each direction. Numba's launcher does this with host arrays.
    ///
    /// ```
    /// use resident::{Device, Grid, InOut, Kernel, SmartArray, audit};
    ///
    /// let double = Kernel::<(InOut<f32>,)>::new("double")
    ///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
    /// let _here = Device::cpu().enter();
    /// let mut array = SmartArray::from(vec![1.0_f32; 1000]);
    /// let (_, report) = audit::capture(|| {
    ///     (0..10).try_for_each(|_| double.launch(Grid::cover(1000), (&mut array,)))
    /// });
    /// assert_eq!(report.traffic().to_device.bytes, 4000);      // once
    /// assert_eq!(report.conservative().bytes, 10 * 2 * 4000);  // ten launches, in and out
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn conservative(&self) -> Flow {
        let mut flow = self.launched;
        flow += self.traffic.avoided;
        flow
    }

    /// The copied bytes that were up to date at their destination. Many small stale parts of an
    /// array are copied together with what lies between them where that is cheaper: a plan of more
    /// than 1,024 copies to a device, or an array with 16,384 parts. The bytes are included in
    /// [`traffic`](Self::traffic); the host's memory is never written where it is up to date.
    ///
    /// ```
    /// use resident::ndarray::Ix1;
    /// use resident::{Device, SmartArray, audit};
    ///
    /// let stream = Device::cpu().stream();
    /// let mut array = SmartArray::<f32, Ix1>::zeros(4_000);
    /// array.gpu_on(&stream)?;
    /// for index in 0..2_000 {
    ///     array.set(2 * index, 1.0)?;
    /// }
    /// let (guard, report) = audit::capture(|| array.gpu_on(&stream).map(drop));
    /// guard?;
    /// let copied = report.traffic().to_device.bytes;
    /// assert_eq!(copied - report.padding().bytes, 2_000 * 4);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn padding(&self) -> Flow {
        self.padding
    }

    /// For each array, how often cudarc, or a library built on it, used one of its guards on
    /// another stream than the one for which the guard was made. The list is in the order of names.
    /// For each of these uses the library waits for the other stream, before and after the use. To
    /// avoid the waits, make guards on the stream that uses them (`gpu_on`, `Stream::adopt`).
    #[must_use]
    pub fn waited_for(&self) -> Vec<(&str, u64)> {
        self.foreign_uses.iter().map(|(array, count)| (array.as_str(), *count)).collect()
    }

    #[cfg(feature = "cuda")]
    pub(super) fn add_foreign_use(&mut self, array: &str) {
        *self.foreign_uses.entry(array.to_owned()).or_default() += 1;
    }

    pub(super) fn add_copy(&mut self, record: &CopyRecord) {
        self.traffic += Traffic::of(record.direction, record.bytes);
        if record.cause == Cause::Launch {
            self.launched += Flow::of(record.bytes);
        }
        if record.padding > 0 {
            self.padding += Flow::of(record.padding);
        }
        *self.sites.entry(SiteKey::of(record)).or_default() += Flow::of(record.bytes);
    }

    pub(super) fn set_elsewhere(&mut self, flow: Flow) {
        self.elsewhere = flow;
    }

    pub(super) fn add_avoided(&mut self, flow: Flow) {
        self.traffic.avoided += flow;
    }
}

/// A line for each [`Site`], then the totals. If there is no site, although other threads copied
/// something meanwhile, the last line says so.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header =
            ["call site", "array", "direction", "device", "cause", "count", "bytes", "stale since"]
                .map(String::from);
        let rows: Vec<[String; COLUMNS]> =
            std::iter::once(header).chain(self.sites().iter().map(row)).collect();
        let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        });
        for (number, row) in rows.iter().enumerate() {
            write_row(f, row, &widths)?;
            if number == 0 {
                writeln!(f, "{}", "-".repeat(widths.iter().sum::<usize>() + 2 * (COLUMNS - 1)))?;
            }
        }
        self.write_totals(f)
    }
}

const COLUMNS: usize = 8;

fn row(site: &Site) -> [String; COLUMNS] {
    [
        site.location.to_string(),
        site.array.clone(),
        site.direction.as_str().to_owned(),
        site.devices(),
        site.cause.as_str().to_owned(),
        site.flow.count.to_string(),
        grouped(site.flow.bytes),
        site.stale_since.map_or_else(
            || if site.never_there { "never there" } else { "-" }.to_owned(),
            ToString::to_string,
        ),
    ]
}

fn write_row(
    f: &mut fmt::Formatter<'_>,
    row: &[String; COLUMNS],
    widths: &[usize; COLUMNS],
) -> fmt::Result {
    let [site, array, direction, device, cause, count, bytes, stale] = row;
    let [w0, w1, w2, w3, w4, w5, w6, _] = widths;
    writeln!(
        f,
        "{site:<w0$}  {array:<w1$}  {direction:<w2$}  {device:<w3$}  {cause:<w4$}  \
         {count:>w5$}  {bytes:>w6$}  {stale}"
    )
}

impl Report {
    fn write_totals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traffic { to_device, to_host, between_devices, avoided } = self.traffic;
        let lines = [
            ("to devices", to_device),
            ("to the host", to_host),
            ("between devices", between_devices),
            ("avoided at launches", avoided),
            ("a launcher that copies every argument in and out", self.conservative()),
        ];
        writeln!(f)?;
        let width = lines.iter().map(|(_, flow)| grouped(flow.bytes).len()).max().unwrap_or(0);
        for (name, flow) in lines {
            let copies = if flow.count == 1 { "copy" } else { "copies" };
            writeln!(
                f,
                "{:>width$} bytes in {:>4} {copies:<6}  {name}",
                grouped(flow.bytes),
                flow.count
            )?;
        }
        if self.padding.bytes > 0 {
            let padding = grouped(self.padding.bytes);
            writeln!(f, "{padding:>width$} bytes to devices were padding between stale parts")?;
        }
        for (array, count) in &self.foreign_uses {
            let uses = if *count == 1 { "use" } else { "uses" };
            writeln!(f, "{count} {uses} of {array} on foreign streams, waited for")?;
        }
        if self.is_empty() && self.elsewhere.count > 0 {
            writeln!(
                f,
                "other threads copied {} meanwhile, which do not count here: use \
                 `audit::capture_all`, or run them in an `audit::scope` of this capture",
                self.elsewhere
            )?;
        }
        Ok(())
    }
}
