//! The report of a capture: copies by call site, and totals.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::audit::captures::latest::Records;
use crate::audit::recording::block::{CopyKey, MessageEvent, MessageKey, RecordBlock};
use crate::audit::recording::cause::Cause;
use crate::audit::recording::facts::Staleness;
use crate::audit::recording::launched_arrays::LaunchedArrays;
use crate::traffic::{Direction, Flow, Traffic};
use resident_backend::call_site::CallSite;
use resident_documents::{DocumentMemoryUse, DocumentStream, Waits, shown};

/// One line of a report: the copies of one array in one direction that one call needed for one
/// cause, or its messages to or from one other process. Its `Display` is one line. The example of
/// [`Report`] prints one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Site {
    /// The call that needed the bytes.
    pub location: CallSite,
    /// The array's name.
    pub array: String,
    /// The direction.
    pub direction: Direction,
    /// The device; for a copy between two devices, the destination; for a message, the device in
    /// whose memory it was, or `host`.
    pub device: String,
    /// The source, if the copies went from one device to another.
    pub source: Option<String>,
    /// The rank of the other process, for messages.
    pub peer: Option<u32>,
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
        let Self { location, direction, cause, flow, .. } = self;
        let array = shown(&self.array);
        write!(f, "{location}: \"{array}\", {flow} {direction} for {cause}, {}", self.devices())?;
        match (self.stale_since, self.never_there) {
            (Some(location), _) => write!(f, ", stale since {location}"),
            (None, true) => f.write_str(", never there"),
            (None, false) => Ok(()),
        }
    }
}

impl Site {
    pub(in crate::audit) fn devices(&self) -> String {
        let device = &self.device;
        let peer =
            self.peer.map_or_else(|| String::from("all ranks"), |rank| format!("rank {rank}"));
        match (&self.source, self.direction) {
            (Some(source), _) => format!("{source} -> {device}"),
            (None, Direction::Sent) => format!("{device} -> {peer}"),
            (None, Direction::Received) => format!("{peer} -> {device}"),
            (None, _) => device.clone(),
        }
    }
}

/// So many lines and streams are distinguished. What comes later counts to "(other arrays)" of its
/// line, and to "other streams" of its device, so that a report that is open for long is bounded.
const KEYS_MAX: usize = 1 << 16;

/// The number that stands for all streams beyond those.
const OTHER_STREAMS: u32 = u32::MAX;

/// A stream, by the order of devices and numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct StreamKey {
    device: Arc<str>,
    number: u32,
}

impl fmt::Display for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            OTHER_STREAMS => write!(f, "{} other streams", self.device),
            number => write!(f, "{} stream {number}", self.device),
        }
    }
}

/// What [`Report::group_by`] adds up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum GroupBy {
    /// The calls that needed the bytes.
    CallSite,
    /// The arrays, by their names.
    Array,
    /// The devices.
    Device,
    /// The streams that ran the copies.
    Stream,
}

/// What was copied during a [`capture`](crate::audit::capture), and why. Its `Display` is a table
/// of call sites, the largest first, followed by totals; it is at most 100 columns wide.
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
    sites: FxHashMap<SiteKey, Flow>,
    traffic: Traffic,
    /// Messages to and from other processes.
    sent: Flow,
    received: Flow,
    launched: LaunchedArrays,
    /// Whether contents were compared for some of what was recorded.
    compared_contents: bool,
    padding: Flow,
    /// The number of uses of guards on streams other than their own, by array.
    foreign_uses: BTreeMap<String, u64>,
    /// What other threads copied meanwhile, which the report does not include.
    elsewhere: Flow,
    /// The copies by the stream that ran them.
    streams: FxHashMap<StreamKey, Traffic>,
    /// What was in use of each memory.
    memory: Vec<DocumentMemoryUse>,
    pub(in crate::audit) records: Records,
}

/// The properties shared by the copies of one line. Their order is first by the file and line of
/// the call site.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct SiteKey {
    location: CallSite,
    array: Arc<str>,
    direction: Direction,
    cause: Cause,
    device: Arc<str>,
    source: Option<Arc<str>>,
    peer: Option<u32>,
    staleness: Staleness,
}

impl SiteKey {
    fn of(block: &RecordBlock, copy: &CopyKey) -> Self {
        Self {
            location: copy.site(),
            array: Arc::clone(&block.array(copy.array).name),
            direction: copy.direction,
            cause: copy.cause,
            device: Arc::clone(&block.stream(copy.stream).device),
            source: block.source(copy).cloned(),
            peer: None,
            staleness: copy.staleness(),
        }
    }

    fn of_message(block: &RecordBlock, message: &MessageKey) -> Self {
        Self {
            location: message.site(),
            array: Arc::clone(block.name_of(message)),
            direction: message.direction,
            cause: Cause::Mpi,
            device: Arc::clone(block.device_of(message)),
            source: None,
            peer: message.peer,
            staleness: Staleness::Unreported,
        }
    }

    fn site(&self, flow: Flow) -> Site {
        let Self { location, array, direction, cause, device, source, peer, staleness } =
            self.clone();
        Site {
            location,
            array: array.to_string(),
            direction,
            device: device.to_string(),
            source: source.as_deref().map(str::to_owned),
            peer,
            cause,
            flow,
            stale_since: staleness.since(),
            never_there: staleness == Staleness::NeverThere,
        }
    }
}

impl Report {
    /// The totals of the capture: copies between the host and devices.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        Traffic { avoided: self.launched.avoided(), ..self.traffic }
    }

    /// Messages to other processes, which are none of the copies of
    /// [`traffic`](Self::traffic).
    #[must_use]
    pub fn sent(&self) -> Flow {
        self.sent
    }

    /// Messages from other processes.
    #[must_use]
    pub fn received(&self) -> Flow {
        self.received
    }

    /// The copies by call site, by array, by device or by stream, the largest first. Arrays count
    /// under the names that they had; unnamed arrays of one type and shape that one line made count
    /// together, so a line that makes a buffer in each round of a loop is one group. A copy between
    /// two devices counts to its destination. Messages between processes do not count.
    ///
    /// ```
    /// use resident::{Device, SmartArray, audit::{self, GroupBy}};
    ///
    /// let stream = Device::cpu().stream();
    /// let ((), report) = audit::capture(|| {
    ///     for _ in 0..3 {
    ///         let buffer = SmartArray::from(vec![0_u8; 100]);
    ///         buffer.prefetch(&stream).expect("there is memory");
    ///     }
    /// });
    /// let arrays = report.group_by(GroupBy::Array);
    /// assert_eq!(arrays.len(), 1);
    /// assert_eq!((arrays[0].1.to_device.count, arrays[0].1.to_device.bytes), (3, 300));
    /// ```
    #[must_use]
    pub fn group_by(&self, key: GroupBy) -> Vec<(String, Traffic)> {
        let mut groups: BTreeMap<String, Traffic> = BTreeMap::new();
        if key == GroupBy::Stream {
            groups.extend(self.streams.iter().map(|(key, traffic)| (key.to_string(), *traffic)));
        } else {
            for (site, flow) in self.sites.iter().filter(|(site, _)| site.cause != Cause::Mpi) {
                let name = match key {
                    GroupBy::Array => site.array.to_string(),
                    GroupBy::Device => site.device.to_string(),
                    GroupBy::CallSite | GroupBy::Stream => site.location.to_string(),
                };
                *groups.entry(name).or_default() += Traffic::of_flow(site.direction, *flow);
            }
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, traffic)| Reverse(traffic.moved().bytes));
        groups
    }

    /// Whether nothing was copied, sent or received.
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
        let mut sites: Vec<_> = self.sites.iter().collect();
        sites.sort_by_key(|(key, _)| *key);
        sites.into_iter().map(|(key, flow)| key.site(*flow)).collect()
    }

    /// The copies by the device and the number of the stream that ran them, in that order. The
    /// number is `None` for all streams beyond [`KEYS_MAX`].
    pub(in crate::audit) fn streams(&self) -> Vec<DocumentStream> {
        let mut streams: Vec<_> = self.streams.iter().collect();
        streams.sort_by_key(|(key, _)| *key);
        let document = |(key, traffic): (&StreamKey, &Traffic)| DocumentStream {
            device: key.device.to_string(),
            stream: (key.number != OTHER_STREAMS).then_some(key.number),
            to_device: traffic.to_device,
            to_host: traffic.to_host,
            between_devices: traffic.between_devices,
        };
        streams.into_iter().map(document).collect()
    }

    /// The copies that a simple launcher would have made at the launches of this capture: each
    /// array argument once in each direction. Numba's launcher does this with host arrays.
    /// Explicit arrays ([`DeviceArray`](crate::DeviceArray)) are not among them. What launches
    /// saved, [`Traffic::avoided`], is this minus the copies of the arrays of launches, whatever
    /// call made them. Beyond 65,536 arrays all copies count as such.
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
    /// assert_eq!(report.traffic().avoided.bytes, 19 * 4000);   // all but that one
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn conservative(&self) -> Flow {
        self.launched.launcher()
    }

    /// The copied bytes that had not changed. Many small stale parts of an array are copied
    /// together with what lies between them where that is cheaper: a plan of more than 1,024 copies
    /// to a device, or an array with 16,384 parts. What lies between is up to date on both sides.
    /// It is made stale on the device first, so that no copy writes bytes that are up to date at
    /// its destination. The bytes are included in [`traffic`](Self::traffic). The host's memory is
    /// never padded.
    ///
    /// ```
    /// use resident::ndarray::Ix1;
    /// use resident::{Device, SmartArray, audit};
    ///
    /// let stream = Device::cpu().stream();
    /// let mut array = SmartArray::<f32, Ix1>::zeros(6_000);
    /// array.gpu_on(&stream)?;
    /// for index in 0..2_000 {
    ///     array.set(3 * index + index % 2, 1.0)?;
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

    /// The number of launches.
    #[must_use]
    pub fn launches(&self) -> u64 {
        self.records.launches
    }

    /// The waits of threads for devices: in `synchronize`, and where the host needs contents.
    #[must_use]
    pub fn waits(&self) -> Waits {
        self.records.waits
    }

    /// The waits of threads for other processes, for messages and at barriers, as far as they were
    /// recorded.
    #[must_use]
    pub fn peer_waits(&self) -> Waits {
        self.records.peer_waits
    }

    /// Allocations of device memory for arrays.
    #[must_use]
    pub fn allocations(&self) -> Flow {
        self.records.allocations
    }

    /// Copies of arrays that were freed to make room for other arrays on a full device.
    #[must_use]
    pub fn evictions(&self) -> Flow {
        self.records.evictions
    }

    /// The memory of arrays on each device, and pinned memory of the host: what was in use, by the
    /// calls of all threads, at the peak by array and by the call that allocated it. Places of
    /// which nothing was in use are left out, and so is what devices keep for reuse. Reports of a
    /// [`Ledger`](crate::audit::Ledger) that is a layer have none.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray, audit};
    ///
    /// let stream = Device::emulated(Emulation::new()).stream();
    /// let (outcome, report) = audit::capture(|| {
    ///     for _ in 0..3 {
    ///         SmartArray::from(vec![0_u8; 1000]).named("frame").prefetch(&stream)?;
    ///     }
    ///     stream.synchronize()
    /// });
    /// outcome?;
    /// assert_eq!(report.allocations().bytes, 3000);
    /// let name = stream.device().name();
    /// let memory = report.memory().iter().find(|memory| memory.device == name).unwrap();
    /// assert_eq!((memory.in_use, memory.peak.bytes), (0, 1000));      // one at a time
    /// assert_eq!(memory.peak.holders[0].array, "frame");
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn memory(&self) -> &[DocumentMemoryUse] {
        &self.memory
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
    pub(in crate::audit) fn add_foreign_use(&mut self, array: &str) {
        *self.foreign_uses.entry(array.to_owned()).or_default() += 1;
    }

    pub(in crate::audit) fn add(&mut self, block: &Arc<RecordBlock>) {
        self.launched.add(block);
        self.compared_contents |= block.compares_contents;
        let mut flows: FxHashMap<&CopyKey, Flow> = FxHashMap::default();
        for copy in block.copies() {
            *flows.entry(&copy.key).or_default() += Flow::of(copy.bytes);
            if copy.padding > 0 {
                self.padding += Flow::of(copy.padding);
            }
        }
        flows.into_iter().for_each(|(key, flow)| self.add_flow(block, key, flow));
        block.messages().iter().for_each(|message| self.add_message(block, message));
        self.records.add(block);
    }

    /// Takes over the times of the records, and what was in use of memory.
    pub(in crate::audit) fn close(&mut self, memory: Vec<DocumentMemoryUse>) {
        self.records.close();
        self.memory = memory;
    }

    /// Adds copies that have their properties in common.
    fn add_flow(&mut self, block: &RecordBlock, copy: &CopyKey, flow: Flow) {
        let traffic = Traffic::of_flow(copy.direction, flow);
        self.traffic += traffic;
        self.add_to_site(SiteKey::of(block, copy), flow);
        let stream = block.stream(copy.stream);
        let mut stream = StreamKey { device: Arc::clone(&stream.device), number: stream.number };
        if self.streams.len() >= KEYS_MAX && !self.streams.contains_key(&stream) {
            stream.number = OTHER_STREAMS;
        }
        *self.streams.entry(stream).or_default() += traffic;
    }

    fn add_message(&mut self, block: &RecordBlock, message: &MessageEvent) {
        let flow = Flow::of(message.bytes);
        let total = match message.key.direction {
            Direction::Sent => &mut self.sent,
            _ => &mut self.received,
        };
        *total += flow;
        self.add_to_site(SiteKey::of_message(block, &message.key), flow);
    }

    fn add_to_site(&mut self, mut key: SiteKey, flow: Flow) {
        if self.sites.len() >= KEYS_MAX && !self.sites.contains_key(&key) {
            key.array = "(other arrays)".into();
        }
        *self.sites.entry(key).or_default() += flow;
    }

    pub(in crate::audit) fn set_elsewhere(&mut self, flow: Flow) {
        self.elsewhere = flow;
    }

    pub(super) fn compared_contents(&self) -> bool {
        self.compared_contents
    }

    /// What other threads copied meanwhile, if this report has no copy.
    pub(in crate::audit) fn missed(&self) -> Option<Flow> {
        (self.traffic.moved().count == 0 && self.elsewhere.count > 0).then_some(self.elsewhere)
    }
}
