//! The one error of this crate.

mod text;

use std::fmt;
use std::sync::Arc;

pub use text::Text;

/// The result of everything here that can fail.
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

/// What stood against an allocation, in bytes. Of the host's own memory only `requested` is known,
/// and the rest is 0.
///
/// ```
/// use resident::{Device, Emulation, Error, SmartArray};
///
/// let device = Device::emulated(Emulation::new().memory(1 << 10));
/// let array = SmartArray::<f64, _>::ones(1000);
/// let Err(Error::OutOfMemory { shortage, .. }) = array.gpu_on(&device.stream()) else { panic!("it cannot fit") };
/// assert_eq!((shortage.requested, shortage.in_use, shortage.limit), (8000, 0, Some(1 << 10)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Shortage {
    /// Asked for.
    pub requested: u64,
    /// Free on the device after queued frees were waited for and kept memory was given back.
    pub free: u64,
    /// Held by live arrays of this library.
    pub in_use: u64,
    /// The most that may be held there, by this library or at all, where that is bounded: `free`
    /// counts up to it then.
    pub limit: Option<u64>,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { free, in_use, limit, .. } = *self;
        write!(f, "{free} are free and {in_use} are held by live arrays")?;
        limit.map_or(Ok(()), |limit| write!(f, ", of {limit} that may be held there"))
    }
}

/// Why an operation was not done.
///
/// `Err` means that nothing was queued and that every array holds what it held; copies that were
/// made already stay, and are counted. Messages name the object, the values seen and expected, and
/// the next step. Match on the variant; the fields are texts that read as `str`, and pieces of the
/// message: a name that was given stands in quotation marks there (`"table"`), and an array without
/// one is told by its type, shape and line.
///
/// ```
/// use resident::{Error, SmartArray};
///
/// let table = SmartArray::<f32, _>::uninit((3, 4)).named("table");
/// match table.host() {
///     Err(Error::Uninitialised { array, .. }) => assert_eq!(array, "\"table\""),
///     other => panic!("{other:?}"),
/// }
/// assert_eq!(table.get([3, 0]).unwrap_err().to_string(),
///     "shape: get of \"table\" expects an index within [3, 4], and was given [3, 0]; pass one that fits, or a slice that does");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A device that was asked for cannot be used: by [`Device::cuda`](crate::Device::cuda), by
    /// whatever needs a current device while `RESIDENT_DEVICE` names one that is not there, and by
    /// what is for GPUs alone.
    #[non_exhaustive]
    NoDevice {
        /// What was asked for, and where.
        wanted: Text,
        /// What was looked for, what was found, what to do.
        reason: Text,
    },
    /// A device, or the host, has no room for an array. A part takes room for its whole array: to
    /// work on a large one bit by bit, copy a part to an array of its own, by `part.try_clone()` or
    /// `tile.assign(&part)`, and let that go to the device.
    #[non_exhaustive]
    OutOfMemory {
        /// The array that needed it.
        array: Text,
        /// Where.
        device: Text,
        /// The bytes.
        shortage: Arc<Shortage>,
    },
    /// Elements that were never written were to be read, by the host, a kernel or a copy. Write
    /// them first, or use an overwriting access.
    #[non_exhaustive]
    Uninitialised {
        /// The array.
        array: Text,
        /// What wanted to read.
        operation: Text,
        /// The first part without contents.
        part: Text,
    },
    /// A side was declared changed that was not the newest: the other side's update would be lost.
    #[non_exhaustive]
    LostUpdate {
        /// The array.
        array: Text,
        /// The side that was declared changed.
        changed: Text,
        /// Where the newest contents are, or what they are: `on cpu:0`, `a constant that is not in
        /// memory there yet`.
        newest: Text,
    },
    /// Elements were to be read whose newest contents a failure took: a kernel body that panicked,
    /// an assignment that failed, or a copy that was to bring a kernel what it reads, so that the
    /// kernel did not run. Each read says so until an overwriting access.
    Lost {
        /// The array.
        array: Text,
        /// The operation that failed first: what was to write the elements, or what it was to read.
        operation: Text,
        /// The line that queued it.
        site: Text,
        /// Why it failed.
        cause: Text,
    },
    /// A device died: its driver says that every further call fails. Any call that reaches a device
    /// may return this. Arrays whose newest contents are on the host stay usable.
    #[non_exhaustive]
    DeviceLost {
        /// The device.
        device: Text,
        /// What it was to do.
        operation: Text,
        /// What its driver says.
        cause: Text,
    },
    /// A kernel has no body that this device can run.
    #[non_exhaustive]
    NoKernelBody {
        /// The kernel.
        kernel: Text,
        /// The device.
        device: Text,
        /// The method of `Kernel` that gives it one.
        method: Text,
    },
    /// A kernel's `require` does not hold. Nothing moved.
    #[non_exhaustive]
    Requirement {
        /// The kernel.
        kernel: Text,
        /// The text of the `require`.
        requirement: Text,
        /// The arguments: scalars with values, arrays with shapes.
        arguments: Text,
    },
    /// A flat parameter of a kernel, or cudarc, was given a part whose memory has gaps.
    #[non_exhaustive]
    NotContiguous {
        /// The array.
        array: Text,
        /// The kernel and parameter.
        parameter: Text,
        /// Shape and strides in elements.
        layout: Text,
    },
    /// Flat parameters of one launch were given arrays of different axis orders. Nothing moved.
    #[non_exhaustive]
    LayoutMismatch {
        /// The kernel.
        kernel: Text,
        /// One array and its order.
        first: Text,
        /// Another, and its order.
        second: Text,
    },
    /// Shapes do not fit together.
    #[non_exhaustive]
    Shape {
        /// What was to be done.
        operation: Text,
        /// The shape expected, and of what.
        expected: Text,
        /// The shape seen, and of what.
        seen: Text,
    },
    /// A grid that no device, or not this one, can launch.
    #[non_exhaustive]
    Grid {
        /// The kernel.
        kernel: Text,
        /// Blocks and threads.
        grid: Text,
        /// What is wrong with them, and what to do.
        fault: Text,
    },
    /// A kernel's device code could not be made ready for a device.
    #[non_exhaustive]
    Compile {
        /// The kernel.
        kernel: Text,
        /// The device.
        device: Text,
        /// What is wrong and what to do: the compiler's log, parameters that do not fit the
        /// signature, a function or a library that is missing.
        log: Text,
    },
    /// A call inside a kernel body would have to wait, perhaps for this very body. Do it before the
    /// launch or after it.
    #[non_exhaustive]
    InsideKernel {
        /// The call.
        operation: Text,
        /// What it would wait for.
        waits_for: Text,
    },
    /// One array would have to live on more than 63 devices.
    #[non_exhaustive]
    TooManyDevices {
        /// The array.
        array: Text,
        /// The device that found no place.
        device: Text,
    },
    /// A stream, slice or context of another library cannot be worked with.
    #[non_exhaustive]
    Foreign {
        /// What was given, and what it belongs to.
        seen: Text,
        /// What it must belong to, and how to come by such a one.
        expected: Text,
    },
    /// A backend refused a call, or queued work failed for a reason of its own: a kernel body that
    /// panicked, when a `synchronize` finds it; a copy that did not arrive, which loses nothing and
    /// can be repeated.
    #[non_exhaustive]
    Backend {
        /// The device.
        device: Text,
        /// What was to be done.
        operation: Text,
        /// What the backend says.
        cause: Text,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDevice { wanted, reason } => write!(f, "no device for {wanted}: {reason}"),
            Self::OutOfMemory { array, device, shortage } => write!(
                f,
                "out of memory: {array} needs {} bytes on {device}, where {shortage}; drop arrays that are not needed there; \
                 a part takes room for its whole array, so copy it to an array of its own (`part.try_clone()`, `tile.assign(&part)`)",
                shortage.requested
            ),
            Self::Uninitialised { array, operation, part } => write!(
                f,
                "uninitialised: {operation} reads {part} of {array}, which was never written; write it first, or use an overwriting access \
                 (`Out`, `host_overwrite`, `gpu_overwrite`) if this call is to write it"
            ),
            Self::LostUpdate { array, changed, newest } => write!(
                f,
                "lost update: {array} was declared changed on {changed}, but its newest contents are {newest}, and this would lose them; \
                 read them to that side first (`host_mut`, `gpu_mut`), or discard them with `host_overwrite` or `gpu_overwrite`"
            ),
            Self::Lost { array, operation, site, cause } => write!(
                f,
                "lost: {array} has no newest contents, since {operation} at {site} failed, which was to write them or something that they \
                 are made from: {cause}; write them again with an overwriting access"
            ),
            Self::DeviceLost { device, operation, cause } => write!(
                f,
                "device lost: {device} died at {operation}: {cause}; arrays whose newest contents are on the host stay usable, \
                 go on there or on another device"
            ),
            Self::NoKernelBody { kernel, device, method } => {
                write!(
                    f,
                    "no kernel body: kernel {kernel} has none for {device}; give it one with {method}"
                )
            }
            Self::Requirement { kernel, requirement, arguments } => write!(
                f,
                "requirement: kernel {kernel} requires that {requirement}, and was given {arguments}; nothing was moved, \
                 pass arguments that fit"
            ),
            Self::NotContiguous { array, parameter, layout } => write!(
                f,
                "not contiguous: {parameter} is flat and needs unbroken memory, but {array} has {layout}; \
                 make the parameter sized (`In<T, Ix2>`), or pass a part without gaps"
            ),
            Self::LayoutMismatch { kernel, first, second } => write!(
                f,
                "layout mismatch: flat arguments of kernel {kernel} correspond by position in memory, but {first} and {second}; \
                 give both one axis order, or make the parameters sized (`In<T, Ix2>`)"
            ),
            Self::Shape { operation, expected, seen } => {
                write!(
                    f,
                    "shape: {operation} expects {expected}, and was given {seen}; pass one that fits, or a slice that does"
                )
            }
            Self::Grid { kernel, grid, fault } => {
                write!(f, "grid: kernel {kernel} was launched on {grid}, which {fault}")
            }
            Self::Compile { kernel, device, log } => {
                write!(
                    f,
                    "compile: kernel {kernel} is not ready on {device}, nothing was queued: {log}"
                )
            }
            Self::InsideKernel { operation, waits_for } => write!(
                f,
                "inside a kernel body: {operation} would wait for {waits_for}, which may wait for this very body; \
                 do it before the launch or after it"
            ),
            Self::TooManyDevices { array, device } => write!(
                f,
                "too many devices: {array} lives on 63 devices already, the most for one array, and has no place for {device}; \
                 use a copy of it (`try_clone`) for more devices"
            ),
            Self::Foreign { seen, expected } => write!(f, "foreign: {seen}; {expected}"),
            Self::Backend { device, operation, cause } => {
                write!(f, "{device} failed at {operation}: {cause}")
            }
        }
    }
}

impl std::error::Error for Error {}

const _: () = assert!(size_of::<Error>() <= 24, "an error is at most three machine words");
