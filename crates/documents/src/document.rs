//! Reports as plain data, as they are in files.

use std::fmt;

use crate::totals::{Flow, Waits};

/// A report as plain data: what [`Report::to_json`](struct.Report.html#method.to_json) writes, key
/// for field. Times are nanoseconds since the start of the capture. With the feature `serde` it can
/// be read back, and with the feature `schema` it has a JSON schema (`schemars`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Document {
    /// The version of the schema: 1. It rises when keys change their meaning or go.
    pub version: u32,
    /// Copies from the host to devices.
    pub to_device: Flow,
    /// Copies from devices to the host.
    pub to_host: Flow,
    /// Copies from one device to another.
    pub between_devices: Flow,
    /// What launches saved: [`conservative`](Self::conservative), minus the copies of the arrays of
    /// launches, whatever call made them.
    pub avoided: Flow,
    /// The copied bytes that had not changed: what lies between small stale parts, as in
    /// [`Report::padding`](struct.Report.html#method.padding).
    pub padding: Flow,
    /// The number of launches.
    pub launches: u64,
    /// Waits of threads for devices.
    pub waits: Waits,
    /// Allocations of device memory for arrays.
    pub allocations: Flow,
    /// Copies of arrays that were freed to make room for other arrays.
    pub evictions: Flow,
    /// The time from the start of the capture to the report.
    pub duration_ns: u64,
    /// The copies by call site, exact, in the order of files and lines.
    pub sites: Vec<DocumentSite>,
    /// The copies by the stream that ran them, exact, in the order of devices and streams. Optional
    /// in version 1: reports of earlier libraries do not have it, and reading one leaves it empty.
    pub streams: Vec<DocumentStream>,
    /// The arrays that the records name.
    pub arrays: Vec<DocumentArray>,
    /// The latest records, in the order in which work was queued or waits began.
    pub records: Vec<DocumentRecord>,
    /// How many earlier records made room for later ones.
    pub records_forgotten: u64,
    /// What could be saved, the largest first.
    pub findings: Vec<DocumentFinding>,
    /// The kernels that the checker of CUDA C has checked in the process, in the order of their
    /// names; `None` if no device checks kernels, and in reports that the program makes itself.
    /// Optional in version 1.
    pub checked: Option<Vec<DocumentChecked>>,
    /// Messages to other processes. This and the fields behind it are optional in version 1.
    pub sent: Flow,
    /// Messages from other processes.
    pub received: Flow,
    /// Waits of threads for other processes, as far as they were recorded.
    pub peer_waits: Waits,
    /// The rank of the process in its job, if it is known.
    pub rank: Option<u32>,
    /// The number of processes of the job, if it is known.
    pub ranks: Option<u32>,
    /// The name of the host that ran the process, if it is known.
    pub host: Option<String>,
    /// When the capture began by the host's clock: nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// What a launcher would have moved that copies each array argument in and out.
    pub conservative: Flow,
    /// Whether contents were compared for some of the records: see
    /// [`compare_contents`](fn.compare_contents.html). `None` if that is not known.
    pub compared_contents: Option<bool>,
    /// The program that made the report. `None` if that is not known.
    pub process: Option<DocumentProcess>,
    /// When the report was made by the host's clock: nanoseconds since 1970.
    pub written_unix_ns: u64,
    /// The memory of each device that had any while the capture ran, and pinned memory of the host.
    pub memory: Vec<DocumentMemoryUse>,
}

/// The program that made a report.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentProcess {
    /// The path of its file, if that is known.
    pub program: Option<String>,
    /// Its arguments. They may contain secrets, such as passwords. `None` if the word
    /// `no-arguments` of `RESIDENT_AUDIT` leaves them out.
    pub arguments: Option<Vec<String>>,
    /// Its number on its host.
    pub id: u32,
    /// When it began: nanoseconds since 1970, to a hundredth of a second. `None` if the system does
    /// not tell.
    pub started_unix_ns: Option<u64>,
    /// The version of the library.
    pub library_version: String,
}

/// The bytes in use in one memory while a capture ran, by the calls of all threads.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentMemoryUse {
    /// The device, or `host` for the pinned memory of the host.
    pub device: String,
    /// The bytes that were in use when the capture began.
    pub before: u64,
    /// The bytes in use at its end.
    pub in_use: u64,
    /// When most bytes were in use: the first such moment.
    pub peak: DocumentMemoryMoment,
    /// When memory was refused for the last time, unless it never was.
    pub out_of_memory: Option<DocumentMemoryMoment>,
    /// The bytes in use after changes, in the order of time: at most 1,024, of which each is the
    /// most of its part of the time.
    pub series: Vec<DocumentMemoryPoint>,
}

/// What was in use at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentMemoryMoment {
    /// When it was: nanoseconds since the capture began.
    pub at_ns: u64,
    /// The bytes in use.
    pub bytes: u64,
    /// The bytes that were refused then.
    pub refused: Option<u64>,
    /// Whose they were, the largest first: at most 64, and what is left as `(others)`.
    pub holders: Vec<DocumentMemoryHolder>,
}

/// Arrays of one name whose memory one call allocated.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentMemoryHolder {
    /// The name when the memory was allocated.
    pub array: String,
    /// The call that allocated it: `file:line:column`. `None` if that was before the capture.
    pub site: Option<String>,
    /// The number of allocations.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The bytes in use at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentMemoryPoint {
    /// Nanoseconds since the capture began.
    pub at_ns: u64,
    /// The bytes in use.
    pub bytes: u64,
}

/// A kernel that was checked: one element of [`Document::checked`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentChecked {
    /// Its name; `(other kernels)` for all after the first 1,024 together.
    pub kernel: String,
    /// The number of its checked launches.
    pub launches: u64,
    /// The number of accesses of memory that were checked. Optional in version 1.
    #[cfg_attr(feature = "serde", serde(default))]
    pub accesses: u64,
    /// The number of findings that are errors.
    pub errors: u64,
    /// The number of findings that are no errors.
    pub notes: u64,
}

/// One element of [`Document::sites`]: see [`Site`](struct.Site.html).
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the fields of `Site`")]
pub struct DocumentSite {
    /// The call that needed the bytes: `file:line:column`.
    pub site: String,
    pub array: String,
    /// `to_device`, `to_host`, `between_devices`, `sent` or `received`.
    pub direction: String,
    pub device: String,
    pub source: Option<String>,
    /// The rank of the other process, for messages of two; other sites have no such key.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub peer: Option<u32>,
    pub cause: String,
    pub count: u64,
    pub bytes: u64,
    pub stale_since: Option<String>,
    pub never_there: bool,
}

/// The copies that one stream ran: one element of [`Document::streams`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentStream {
    /// The device; for copies between two devices, the destination.
    pub device: String,
    /// Its number on its device; `None` for all streams after the first 65,536 together.
    pub stream: Option<u32>,
    /// Copies from the host to the device.
    pub to_device: Flow,
    /// Copies from the device to the host.
    pub to_host: Flow,
    /// Copies from another device to this one.
    pub between_devices: Flow,
}

/// An array that records name.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentArray {
    /// Its number, unique in the process.
    pub id: u64,
    /// Its name when it was last recorded.
    pub name: String,
    /// The type of its elements.
    pub element: String,
    /// The number of elements along each axis.
    pub shape: Vec<usize>,
}

/// One record. `queued_ns` is when the host queued the work, or when a wait began; `started_ns` and
/// `finished_ns` are when the device ran it, `None` if it had not finished or if the device does
/// not tell (GPUs do while [`time_device`](fn.time_device.html) asks them).
///
/// `use_number` counts the uses of the array by all threads, modulo 65,536: where it has a gap, the
/// report does not know of a use. It is `None` for copies that only an event of `tracing` reported.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the fields of sites and of the other records")]
#[non_exhaustive]
pub enum DocumentRecord {
    /// A copy of an array's bytes.
    Copy {
        queued_ns: u64,
        started_ns: Option<u64>,
        finished_ns: Option<u64>,
        thread: String,
        device: String,
        stream: u32,
        site: String,
        array: u64,
        name: String,
        direction: String,
        source: Option<String>,
        bytes: u64,
        padding: u64,
        cause: String,
        stale_since: Option<String>,
        /// The launch that needed it.
        launch: Option<u64>,
        #[cfg_attr(feature = "serde", serde(default))]
        use_number: Option<u16>,
        /// How many of the bytes have other values than before at the destination, if
        /// [`compare_contents`](fn.compare_contents.html) found out.
        #[cfg_attr(feature = "serde", serde(default))]
        changed_bytes: Option<u64>,
        /// A hash of the bytes of an upload of a whole array, if contents were compared.
        #[cfg_attr(feature = "serde", serde(default))]
        contents_hash: Option<u64>,
        /// How long the calling thread was busy with queueing it, if that is known: with packing
        /// pageable memory, above all.
        #[cfg_attr(feature = "serde", serde(default))]
        host_ns: Option<u64>,
        /// Whether it is between a GPU and pageable memory of the host.
        #[cfg_attr(feature = "serde", serde(default))]
        is_pageable: bool,
    },
    /// A launch of a kernel.
    Launch {
        id: u64,
        /// When the program called it, unless that is not known.
        #[cfg_attr(feature = "serde", serde(default))]
        called_ns: Option<u64>,
        queued_ns: u64,
        started_ns: Option<u64>,
        finished_ns: Option<u64>,
        thread: String,
        device: String,
        stream: u32,
        site: String,
        name: String,
        arguments: Vec<DocumentArgument>,
    },
    /// A wait of a thread for a stream. The `reason` is `synchronize`, `contents` (the call needed
    /// contents, or memory that work still used), `host_function` (the call needed its result) or
    /// `other_kind` (a stream waits for an event of another kind of device: then the host waits).
    Wait {
        queued_ns: u64,
        finished_ns: u64,
        thread: String,
        device: String,
        stream: u32,
        site: String,
        reason: String,
    },
    /// An allocation of device memory for an array.
    Allocation(DocumentMemory),
    /// A copy of an array that was freed to make room for another array.
    Eviction(DocumentMemory),
    /// A copy of an array to memory outside it (a snapshot) that was dropped before anybody took
    /// it. The `site` is the call that asked for it.
    Discard(DocumentMemory),
    /// An access that is no launch: a guard, an `assign`, a fill, and `discard`, which is `out` on
    /// the host. Guards that read what others have read there since the last change are no records.
    Access(DocumentAccess),
    /// A message to or from another process, which a crate beside the library made.
    Message(DocumentMessage),
    /// A barrier of all processes of the job, which this one left at `queued_ns`.
    Barrier(DocumentBarrier),
}

/// A message to or from another process.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the fields of the other records")]
pub struct DocumentMessage {
    /// When it was recorded.
    pub queued_ns: u64,
    /// How long the thread had waited for it then.
    pub waited_ns: u64,
    pub thread: String,
    /// Whose memory it was in: a device's, or `host`.
    pub device: String,
    pub site: String,
    pub name: String,
    /// `sent` or `received`.
    pub direction: String,
    /// The rank of the other process; `None` for collective operations.
    pub peer: Option<u32>,
    pub bytes: u64,
    pub cause: String,
}

/// A barrier.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the fields of the other records")]
pub struct DocumentBarrier {
    pub queued_ns: u64,
    /// How long the thread was in it.
    pub waited_ns: u64,
    pub thread: String,
    pub site: String,
    /// How many this process had left before.
    pub number: u64,
}

/// An access of an array on the host or on a device.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the fields of the other records")]
pub struct DocumentAccess {
    pub queued_ns: u64,
    pub thread: String,
    /// `None` for the host's copy.
    pub device: Option<String>,
    pub site: String,
    pub array: u64,
    pub name: String,
    /// `in`, `in_out` or `out`.
    pub access: String,
    /// Whether it is the whole array.
    pub is_whole: bool,
    pub use_number: u16,
}

/// Memory of an array on a device that was allocated or freed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the fields of the other records")]
pub struct DocumentMemory {
    pub queued_ns: u64,
    pub thread: String,
    pub device: String,
    pub site: String,
    pub bytes: u64,
    pub array: u64,
    pub name: String,
}

/// An array argument of a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentArgument {
    /// The array's number.
    pub array: u64,
    /// `in`, `in_out` or `out`.
    pub access: String,
    /// Whether it is the whole array.
    pub is_whole: bool,
    /// As in [`DocumentRecord`].
    #[cfg_attr(feature = "serde", serde(default))]
    pub use_number: Option<u16>,
    /// How many bytes of an `in_out` argument the launch has changed, if
    /// [`compare_contents`](fn.compare_contents.html) found out.
    #[cfg_attr(feature = "serde", serde(default))]
    pub changed_bytes: Option<u64>,
}

/// Something that could be saved.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DocumentFinding {
    /// What it is: one of the kinds that
    /// [`Report::findings`](struct.Report.html#method.findings) lists.
    pub kind: String,
    /// What happens, and where.
    pub message: String,
    /// What to change.
    pub change: String,
    /// The calls: `file:line:column`.
    pub sites: Vec<String>,
    /// The array, if it is about one.
    pub array: Option<String>,
    /// How many copies the change would save.
    pub count: u64,
    /// How many bytes the change would save.
    pub bytes: u64,
    /// How much time of the device or of the host it would save, where that is known.
    pub nanoseconds: Option<u64>,
    /// How many bytes of the host's memory it would free earlier. Optional in version 1.
    #[cfg_attr(feature = "serde", serde(default))]
    pub host_memory_bytes: u64,
}

/// What happens, and what to change.
impl fmt::Display for DocumentFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.kind, self.message, self.change)
    }
}
