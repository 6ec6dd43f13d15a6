//! The error type of this crate, with its messages.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Deref;
use std::panic::Location;
use std::sync::Arc;

use resident_backend::call_site::CallSite;

pub(crate) mod fitting;

/// The result of every operation of this crate that can fail.
///
/// ```
/// use resident::{Result, SmartArray};
///
/// fn mean(values: Vec<f32>) -> Result<f32> {
///     let array = SmartArray::from(values);
///     Ok(array.host()?.mean().unwrap_or(f32::NAN))
/// }
/// assert_eq!(mean(vec![1.0, 3.0])?, 2.0);
/// # Ok::<(), resident::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an allocation failed, in bytes. For host memory only `requested` is known; the other
/// fields are 0 and `None`.
///
/// ```
/// use resident::{Device, Emulation, Error, SmartArray};
///
/// let device = Device::emulated(Emulation::new().memory(1 << 10));
/// let array = SmartArray::<f64, _>::ones(1000);
/// let Err(Error::OutOfMemory { shortage, .. }) = array.gpu_on(&device.stream()) else {
///     panic!("8,000 bytes do not fit")
/// };
/// assert_eq!((shortage.requested, shortage.in_use, shortage.limit), (8000, 0, Some(1 << 10)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Shortage {
    /// Bytes requested.
    pub requested: u64,
    /// Bytes free on the device, after waiting for queued frees and trimming the pool.
    pub free: u64,
    /// Bytes that live arrays of this library take.
    pub in_use: u64,
    /// The limit that is set, if there is one; `free` is then the memory that the limit leaves.
    pub limit: Option<u64>,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { free, in_use, limit, .. } = *self;
        write!(f, "{free} are free and live arrays hold {in_use}")?;
        limit.map_or(Ok(()), |limit| write!(f, " of at most {limit}"))
    }
}

/// The name of the host's memory in errors.
const HOST: &str = "the host";

/// The device, and how much room it has. Of the host's memory this is not known.
fn with_room(device: &str, shortage: &Shortage) -> String {
    if device == HOST { device.to_owned() } else { format!("{device}, where {shortage}") }
}

/// What is in use on a device, and how it can be evicted.
fn used(in_use_by: Option<&String>) -> String {
    in_use_by.map_or_else(String::new, |in_use_by| {
        format!(
            "; in use: {in_use_by}; drop guards, or make coherent arrays of device arrays \
             (`SmartArray::from_device`), and they can be evicted"
        )
    })
}

/// Why an element is uninitialised, and what to do: the launch that left it out, if one did.
fn unwritten(left_out_by: Option<&str>) -> String {
    match left_out_by {
        Some(launch) => format!(
            "{launch} left out of its `Out`; write all elements there, write the rest before this \
             call, or read only what is written"
        ),
        None => String::from(
            "was never written; write it first, or use an overwriting access (`Out`, \
             `host_overwrite`, `gpu_overwrite`) if this call is to write it",
        ),
    }
}

/// The file, line and column of the call that failed, and how much it had written by then.
///
/// ```
/// use resident::{Error, SmartArray};
///
/// let Err(Error::Uninitialised { call, .. }) = SmartArray::<f32, _>::uninit(3).host() else {
///     panic!("never written")
/// };
/// assert_eq!(call.location().map(|location| location.line()), Some(line!() - 3));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CalledAt {
    site: Option<CallSite>,
    /// `None` if nothing was written.
    written_bytes: Option<NonZeroU64>,
}

impl CalledAt {
    /// A site without a source position, which [`Error::at`] sets later.
    pub(crate) const UNKNOWN: Self = Self { site: None, written_bytes: None };

    /// The call's source position; `None` for calls without one, such as a poll by an executor.
    #[must_use]
    pub const fn location(&self) -> Option<&'static Location<'static>> {
        self.site
    }

    /// How many bytes of its destination the call had written, or had queued to be written, before
    /// it failed. 0 if contents are as they were, which is so for all calls but copies, assignments
    /// and fills that take several operations.
    #[must_use]
    pub const fn written_bytes(&self) -> u64 {
        match self.written_bytes {
            Some(bytes) => bytes.get(),
            None => 0,
        }
    }
}

impl From<CallSite> for CalledAt {
    fn from(site: CallSite) -> Self {
        Self { site: Some(site), written_bytes: None }
    }
}

impl fmt::Display for CalledAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(bytes) = self.written_bytes {
            write!(f, "; {bytes} bytes were already written, so repeat the call")?;
        }
        self.site.map_or(Ok(()), |site| write!(f, " (called at {site})"))
    }
}

impl fmt::Debug for CalledAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.site {
            Some(site) => fmt::Display::fmt(site, f),
            None => f.write_str("unknown"),
        }
    }
}

/// The line that queued the failed operation. Dereferences to a `str`.
///
/// ```
/// use resident::{Device, Emulation, Error, Grid, InOut, Kernel, SmartArray};
///
/// let _here = Device::emulated(Emulation::new().seed(1)).enter();
/// let panics = Kernel::<(InOut<u32>,)>::new("panics").host(|_grid, _xs| panic!("no"));
/// let mut array = SmartArray::<u32, _>::zeros(4);
/// panics.launch(Grid::cover(4), (&mut array,))?;
/// let Err(Error::Lost { site, .. }) = array.host() else { panic!("its contents are lost") };
/// assert!(site.starts_with(file!()));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct QueuedAt {
    line: String,
    /// The call that reported the loss.
    call: CalledAt,
}

impl From<Option<CallSite>> for QueuedAt {
    fn from(site: Option<CallSite>) -> Self {
        let line = site.map_or_else(|| "an unknown line".to_owned(), ToString::to_string);
        Self { line, call: CalledAt::UNKNOWN }
    }
}

impl Deref for QueuedAt {
    type Target = str;

    fn deref(&self) -> &str {
        &self.line
    }
}

impl fmt::Display for QueuedAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl fmt::Debug for QueuedAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.line, f)
    }
}

/// Why an operation failed.
///
/// On `Err` nothing is queued and array contents are unchanged; transfers made before the error
/// stay valid and are counted. A copy, an assignment or a fill that takes several operations may
/// fail after some of them: the message then says how many bytes were already written
/// ([`CalledAt::written_bytes`]), and a repeated call writes all.
///
/// `Debug` prints what `Display` prints, so that a program with `fn main() -> resident::Result<()>`
/// ends with a readable message: the object, the values seen and expected, the next step, and the
/// line of the call.
///
/// Match on the variant. The fields are parts of the message. A named array appears as its name in
/// quotation marks (`"table"`), any other as its type, shape and the line that made it.
///
/// ```
/// use resident::{Error, SmartArray};
///
/// let table = SmartArray::<f32, _>::uninit((3, 4)).named("table");
/// match table.host() {
///     Err(Error::Uninitialised { array, .. }) => assert_eq!(array, "\"table\""),
///     other => panic!("{other:?}"),
/// }
/// let message = table.get([3, 0]).unwrap_err().to_string();
/// assert!(message.starts_with(
///     "shape: get of \"table\" expects an index below its shape [3, 4] but got [3, 0]"
/// ));
/// assert!(message.contains(file!()));
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A requested device cannot be used. Returned by [`Device::cuda`](crate::Device::cuda), by
    /// calls that need a current device while `RESIDENT_DEVICE` names one that is absent, and by
    /// calls that exist only for GPUs.
    #[non_exhaustive]
    #[error("no device for {wanted}: {reason}{call}")]
    NoDevice {
        /// The requested device, and where it was requested.
        wanted: String,
        /// Where the library searched, what it found, and what to do.
        reason: String,
        /// The call that failed.
        call: CalledAt,
    },
    /// A device or the host has too little memory for an array: on a device, even after all copies
    /// gave way that are not in use. In use are arguments of this call and of calls that other
    /// threads make now, copies with a guard, and device arrays. To work on a large array in parts,
    /// use smaller ones. Use of a part allocates memory for the whole array if that is small (less
    /// than 16 of the device's pages), or if the device has no pages: then copy each part to a
    /// separate array, by `part.try_clone()` or `tile.assign(&part)`, and use that.
    #[non_exhaustive]
    #[error(
        "out of memory: {array} needs {} bytes on {}{}; drop arrays that are not needed there; \
         use smaller parts, or copies of parts (`part.try_clone()`, `tile.assign(&part)`) of \
         arrays that have memory as a whole{call}",
        .shortage.requested, with_room(device, shortage), used(in_use_by.as_deref())
    )]
    OutOfMemory {
        /// The array.
        array: String,
        /// The device, or the host.
        device: String,
        /// The bytes.
        shortage: Shortage,
        /// The largest copies that the device cannot evict: the arrays' names and bytes, what uses
        /// them (a guard, a call, a device array), and the lines that made the arrays.
        in_use_by: Option<Arc<String>>,
        /// The call that failed.
        call: CalledAt,
    },
    /// The host, a kernel or a copy would have read elements that were never written. Write them
    /// first, or use an access that overwrites.
    ///
    /// An element of an `Out` that a body in CUDA C left unwritten is such an element on devices
    /// that check kernels ([`Emulation::sanitize`](crate::Emulation::sanitize)). Other elements of
    /// the array can be read, and all of them once it is written.
    #[non_exhaustive]
    #[error(
        "uninitialised: {operation} reads {part} of {array}, which {}{call}",
        unwritten(left_out_by.as_deref())
    )]
    Uninitialised {
        /// The array.
        array: String,
        /// The operation that reads.
        operation: String,
        /// The first region without contents, or the first element that a launch left out.
        part: String,
        /// The kernel that was to write the element and did not, and the line of its launch.
        left_out_by: Option<Box<str>>,
        /// The call that failed.
        call: CalledAt,
    },
    /// The program declared a copy as changed that was not the newest, so the newest update would
    /// have been lost.
    #[non_exhaustive]
    #[error(
        "lost update: {array} was declared changed on {changed}, but its newest contents are \
         {newest}, and this call would lose them; read them to that side first (`host_mut`, \
         `gpu_mut`), or discard them with `host_overwrite` or `gpu_overwrite`{call}"
    )]
    LostUpdate {
        /// The array.
        array: String,
        /// The copy that was declared changed.
        changed: String,
        /// Where the newest contents are (`on cpu:0`), or a description of them (`a constant that
        /// is not in memory there yet`).
        newest: String,
        /// The call that failed.
        call: CalledAt,
    },
    /// The newest contents are lost: the operation that should have written them failed, or an
    /// operation on which it depended failed. Every read returns this error until the contents are
    /// overwritten.
    #[error(
        "lost: contents of {array} are lost, because {operation} at {site}, which was to write \
         them or data they depend on, failed: {cause}; write them again with an overwriting \
         access{}",
        .site.call
    )]
    Lost {
        /// The array.
        array: String,
        /// The operation that failed first.
        operation: String,
        /// The line that queued it.
        site: QueuedAt,
        /// Why it failed.
        cause: String,
    },
    /// A device died: its driver fails every further call. Arrays whose newest contents are on the
    /// host stay usable.
    #[non_exhaustive]
    #[error(
        "device lost: {device} died at {operation}: {cause}; arrays whose newest contents are on \
         the host stay usable; continue there or on another device{call}"
    )]
    DeviceLost {
        /// The device.
        device: String,
        /// The operation that detected it.
        operation: String,
        /// The driver's text.
        cause: String,
        /// The call that failed.
        call: CalledAt,
    },
    /// A kernel has no body that this device can run.
    #[non_exhaustive]
    #[error("no kernel body: kernel {kernel} has none for {device}; add one with {method}{call}")]
    NoKernelBody {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// The method of `Kernel` that adds one.
        method: String,
        /// The launch.
        call: CalledAt,
    },
    /// A `require` of a kernel is not fulfilled. Nothing was copied.
    #[non_exhaustive]
    #[error(
        "requirement: kernel {kernel} requires \"{requirement}\", but got {arguments}; nothing was \
         moved; pass arguments that fulfil it{call}"
    )]
    Requirement {
        /// The kernel.
        kernel: String,
        /// The text of the `require`.
        requirement: String,
        /// The arguments: values of scalars, shapes of arrays.
        arguments: String,
        /// The launch.
        call: CalledAt,
    },
    /// A part whose memory has gaps was passed to cudarc, or for a flat parameter of a kernel,
    /// which the body gets as a slice.
    #[non_exhaustive]
    #[error(
        "not contiguous: {parameter} is flat and needs contiguous memory, but {array} has \
         {layout}; {instead}{call}"
    )]
    NotContiguous {
        /// The array.
        array: String,
        /// The kernel and parameter.
        parameter: String,
        /// Shape and strides in elements.
        layout: String,
        /// What to do instead.
        instead: String,
        /// The call that failed.
        call: CalledAt,
    },
    /// Arrays with different axis orders were passed for flat parameters (slices) of one launch.
    /// Nothing was copied.
    #[non_exhaustive]
    #[error(
        "layout mismatch: flat arguments of kernel {kernel} correspond by position in memory, but \
         {first} and {second}; give both one axis order, or make the parameters sized \
         (`In<T, Ix2>`){call}"
    )]
    LayoutMismatch {
        /// The kernel.
        kernel: String,
        /// One array and its axis order.
        first: String,
        /// Another array and its axis order.
        second: String,
        /// The launch.
        call: CalledAt,
    },
    /// A shape is not the expected one, or an index is out of bounds.
    #[non_exhaustive]
    #[error("shape: {operation} expects {expected} but got {seen}; {instead}{call}")]
    Shape {
        /// The operation.
        operation: String,
        /// The expected shape, and the object that should have it.
        expected: String,
        /// The actual shape, and the object that has it.
        seen: String,
        /// What to do instead.
        instead: Cow<'static, str>,
        /// The call that failed.
        call: CalledAt,
    },
    /// A grid that this device, or any device, cannot launch.
    #[non_exhaustive]
    #[error("grid: kernel {kernel} was launched on {grid}, which {fault}{call}")]
    Grid {
        /// The kernel.
        kernel: String,
        /// Blocks and threads.
        grid: String,
        /// What is wrong with the grid, and how to correct it.
        fault: String,
        /// The launch.
        call: CalledAt,
    },
    /// A kernel's device code could not be compiled or loaded.
    #[non_exhaustive]
    #[error("compile: kernel {kernel} is not ready on {device}; nothing was queued: {log}{call}")]
    Compile {
        /// The kernel, or the variable of the source.
        kernel: String,
        /// The device.
        device: String,
        /// What is wrong and what to do: the compiler's log, or parameters that differ from the
        /// signature, or a missing function or library.
        log: String,
        /// The launch.
        call: CalledAt,
    },
    /// A call inside a kernel body would have to wait, possibly for that same body. Make the call
    /// before or after the launch.
    #[non_exhaustive]
    #[error(
        "inside a kernel body: {operation} would wait for {waits_for}, which may wait for this \
         body; make the call before the launch or after it{call}"
    )]
    InsideKernel {
        /// The operation.
        operation: String,
        /// What the call would wait for.
        waits_for: String,
        /// The call that failed.
        call: CalledAt,
    },
    /// A launch, `host`, `gpu` or one of their variants would have to copy, which
    /// [`audit::deny`](crate::audit::deny()) denies on this thread. Nothing was copied for it.
    #[non_exhaustive]
    #[error("denied: {operation} would copy {transfer}; {denied}{call}")]
    Denied {
        /// The array.
        array: String,
        /// The call: `host`, `kernel "blur"`.
        operation: String,
        /// The bytes, the array, the destination, and since which line the bytes are stale there.
        transfer: String,
        /// The line that denies it, and what to do.
        denied: String,
        /// The call that failed.
        call: CalledAt,
    },
    /// A piece of work copied more than its [`Budget`](crate::Budget). The copies were made, and
    /// arrays are as the work left them.
    #[non_exhaustive]
    #[error(
        "over budget: {spent}; copy less at these call sites, or raise the budget{call}:\n  {}",
        .sites.join("\n  ")
    )]
    OverBudget {
        /// The bytes and the limit, for each direction over its limit.
        spent: String,
        /// The call sites that copied in these directions, the largest first, each as the
        /// [`Site`](crate::audit::Site)'s text.
        sites: Vec<String>,
        /// The call of `enforce`.
        call: CalledAt,
    },
    /// A device array is needed on another device than its own, or on the host. It moves only when
    /// the program says so.
    #[non_exhaustive]
    #[error(
        "wrong device: {array} is a device array on {home}, but {operation} is on {other}; copy it \
         to an array there with `copy_from_device`, or to the host with `copy_to_host`{call}"
    )]
    WrongDevice {
        /// The array.
        array: String,
        /// The device that has it.
        home: String,
        /// The operation.
        operation: String,
        /// The device of the operation.
        other: String,
        /// The call that failed.
        call: CalledAt,
    },
    /// One array cannot have copies on more than 63 devices. A device of which the program has
    /// dropped all handles, streams and events gives way to another: what only it has is copied to
    /// the host first. [`release_on`](crate::SmartArray::release_on) gives the place of a device to
    /// another; a clone ([`try_clone`](crate::SmartArray::try_clone)) has all 63 places.
    #[non_exhaustive]
    #[error(
        "too many devices: {array} has copies on 63 devices, the most for one array, and cannot \
         have one on {device}; free one of them (`release_on`), or use a clone (`try_clone`), \
         which has no copies on devices that it does not need{call}"
    )]
    TooManyDevices {
        /// The array.
        array: String,
        /// The device.
        device: String,
        /// The call that failed.
        call: CalledAt,
    },
    /// A stream, slice or context of another library cannot be used.
    #[non_exhaustive]
    #[error("foreign: {seen}; expected {expected}{call}")]
    Foreign {
        /// The object, and its actual owner.
        seen: String,
        /// The owner that the object must have, and how to get such an object.
        expected: String,
        /// The call that failed.
        call: CalledAt,
    },
    /// A backend refused a call, or queued work failed. For example, `synchronize` returns this
    /// error if a kernel body panicked. A failed copy loses no contents and can be repeated.
    #[non_exhaustive]
    #[error("{device} failed at {operation}: {cause}{call}")]
    Backend {
        /// The device.
        device: String,
        /// The operation.
        operation: String,
        /// What the backend reports.
        cause: String,
        /// The call that failed.
        call: CalledAt,
    },
}

/// What the message of a refused call says about contents.
pub(crate) const NOTHING_QUEUED: &str = "; nothing was queued, the call can be repeated";
const NOTHING_CHANGED: &str = "; no contents have changed, the call can be repeated";

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// The host has too little memory for an array.
    pub(crate) fn host_full(array: &str, requested: u64) -> Self {
        Self::OutOfMemory {
            call: CalledAt::UNKNOWN,
            array: String::from(array),
            device: String::from(HOST),
            shortage: Shortage { requested, ..Shortage::default() },
            in_use_by: None,
        }
    }

    /// The same error with the line of the call.
    #[cold]
    pub(crate) fn at(mut self, site: CallSite) -> Self {
        self.call_mut().site = Some(site);
        self
    }

    /// The same error, of a call that had written this number of bytes more.
    #[cold]
    pub(crate) fn after_writing(mut self, bytes: u64) -> Self {
        let call = self.call_mut();
        call.written_bytes = NonZeroU64::new(call.written_bytes().saturating_add(bytes));
        if call.written_bytes.is_some() {
            self.replace_consequence("");
        }
        self
    }

    /// The same error, of a call that has written no element, whatever it has written besides.
    #[cold]
    pub(crate) fn with_contents_unchanged(mut self) -> Self {
        if self.call_mut().written_bytes.take().is_some() {
            self.replace_consequence(NOTHING_CHANGED);
        }
        self
    }

    /// Replaces what the message of a refused call says about contents.
    fn replace_consequence(&mut self, consequence: &str) {
        if let Self::Backend { cause, .. } = self {
            let reason = cause.strip_suffix(NOTHING_QUEUED).unwrap_or(cause);
            *cause = format!("{reason}{consequence}");
        }
    }

    fn call_mut(&mut self) -> &mut CalledAt {
        match self {
            Self::NoDevice { call, .. }
            | Self::OutOfMemory { call, .. }
            | Self::Uninitialised { call, .. }
            | Self::LostUpdate { call, .. }
            | Self::DeviceLost { call, .. }
            | Self::NoKernelBody { call, .. }
            | Self::Requirement { call, .. }
            | Self::NotContiguous { call, .. }
            | Self::LayoutMismatch { call, .. }
            | Self::Shape { call, .. }
            | Self::Grid { call, .. }
            | Self::Compile { call, .. }
            | Self::InsideKernel { call, .. }
            | Self::Denied { call, .. }
            | Self::OverBudget { call, .. }
            | Self::WrongDevice { call, .. }
            | Self::TooManyDevices { call, .. }
            | Self::Foreign { call, .. }
            | Self::Backend { call, .. } => call,
            Self::Lost { site, .. } => &mut site.call,
        }
    }
}

impl Error {
    /// The error of a kernel at this place: ` of chain "two steps"`.
    pub(crate) fn of_kernel_in(mut self, place: &str) -> Self {
        match &mut self {
            Self::NoKernelBody { kernel, .. }
            | Self::Requirement { kernel, .. }
            | Self::LayoutMismatch { kernel, .. }
            | Self::Grid { kernel, .. }
            | Self::Compile { kernel, .. } => kernel.push_str(place),
            Self::NotContiguous { parameter, .. } => parameter.push_str(place),
            _ => {}
        }
        self
    }
}

/// Adds the line of the call to an error before the caller gets it.
pub(crate) trait AtCall {
    fn at(self, site: CallSite) -> Self;
}

impl<T> AtCall for Result<T> {
    #[inline]
    fn at(self, site: CallSite) -> Self {
        self.map_err(|error| error.at(site))
    }
}

const _: () = assert!(size_of::<Error>() < 128, "clippy's `result_large_err`");
