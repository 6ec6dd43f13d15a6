//! What the checker of kernels reports.

use std::fmt;
use std::sync::Arc;

use crate::heap;

/// An error in a CUDA C body, found by a device with
/// [`Emulation::sanitize`](../struct.Emulation.html#method.sanitize).
///
/// Its `Display` is a sentence: `kernel "blur" reads element [1024] of `soft` (argument 1, array
/// "photo"), which is out of bounds: its shape is [1024] (4 bytes, block (4, 0, 0), thread
/// (0, 0, 0), blur.cu:7)`.
///
/// ```
/// use resident::{Device, Emulation, emulation::FindingKind};
///
/// let device = Device::emulated(Emulation::new().sanitize(true));
/// let log = device.emulation().expect("this device is emulated");
/// // ... launch kernels with bodies in CUDA C, and wait for them ...
/// assert!(log.findings().iter().all(|finding| finding.kind == FindingKind::Unwritten));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The kind of error.
    pub kind: FindingKind,
    /// The kernel's name.
    pub kernel: Arc<str>,
    /// The position of the array in the kernel's signature, from 0; scalars count. For an access
    /// that is out of bounds this is the nearest array. `None` for shared memory and global
    /// variables, and if no array is near.
    pub argument: Option<usize>,
    /// The name that the source gives that parameter. `None` if the compiled code does not say.
    pub parameter: Option<Arc<str>>,
    /// The array that the launch passes there, as errors name it.
    pub array: Option<Arc<str>>,
    /// The number of elements along each axis of what the launch passes there. A flat array has one
    /// axis.
    pub shape: Option<Vec<u64>>,
    /// The `__shared__` or `__device__` variable, if it is one; for memory that a kernel allocated,
    /// `malloc(8)` with its bytes, or `freed malloc(8)`. For a wrong format, what is wrong with it.
    pub variable: Option<Arc<str>>,
    /// The index of the element in the array's own shape. A flat array (a bare pointer) has one
    /// axis, and its index may be negative or too large. For a variable, the byte. `None` if the
    /// address is that of no element.
    pub element: Option<Vec<i64>>,
    /// The kernel whose launch left out the element of its `Out`, for a read of what was never
    /// written that is none of this launch's.
    pub left_out_by: Option<Arc<str>>,
    /// Whether the access writes.
    pub is_write: bool,
    /// Whether the source says `volatile` there, which orders nothing between threads.
    pub is_volatile: bool,
    /// The length of the value that the thread accesses, 0 if it is not known; for elements that
    /// are left unwritten, their length in all.
    pub len_bytes: usize,
    /// `blockIdx`: x, y, z.
    pub block: [u32; 3],
    /// `threadIdx`: x, y, z.
    pub thread: [u32; 3],
    /// The other thread, for a race, and for a barrier that it does not reach.
    pub other: Option<OtherThread>,
    /// The line at which that thread waits, if it waits at another barrier.
    pub other_line: Option<SourceLine>,
    /// The line of the source. `None` if the compiled code does not say.
    pub line: Option<SourceLine>,
}

/// How much of CUDA C bodies a device has checked. A device that checks nothing has zeros, which
/// tells of a misspelt `RESIDENT_SANITIZE`.
///
/// ```
/// use resident::{Device, Emulation, emulation::Checked};
///
/// let device = Device::emulated(Emulation::new().sanitize(true));
/// let log = device.emulation().expect("this device is emulated");
/// let Checked { launches, accesses, .. } = log.checked();
/// assert_eq!((launches, accesses), (0, 0)); // no kernel has run yet
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// Launches that have run, those that failed included.
    pub launches: u64,
    /// Accesses of memory by their threads.
    pub accesses: u64,
}

/// The kinds of [`Finding`]s.
///
/// ```
/// use resident::emulation::FindingKind;
///
/// assert!(FindingKind::Race.is_error() && !FindingKind::Unwritten.is_error());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FindingKind {
    /// An access to bytes that are no element of an argument, no shared memory of the block, and no
    /// variable of the thread or of the source.
    OutOfBounds,
    /// An access whose address is no multiple of the value's length. GPUs refuse it.
    Misaligned,
    /// A read of an element of an `Out`, or of shared memory, that no thread has written; or of
    /// any element that an earlier launch left out of its `Out` and that nothing wrote since.
    Uninitialised,
    /// A write to an element of an `In`.
    WriteToInput,
    /// Two threads access the same bytes, at least one writes, not both are atomic, and neither a
    /// barrier nor a fence with atomics orders them. Writes of equal values are no race.
    Race,
    /// A barrier that not all threads of the block reach, or an operation of a warp that not all
    /// lanes reach that its mask names. Threads that have left the kernel by
    /// `return` do not count, as on GPUs since Volta, unless the device is
    /// [`strict`](../struct.Emulation.html#method.strict).
    MissedBarrier,
    /// An operation of a warp whose mask does not name the lane that calls it, or a shuffle that
    /// reads a lane which does not take part: its result is open. `other` is that lane.
    /// `__shfl_down_sync` counts if the first lane reads such a one, and `__shfl_up_sync` if the
    /// last does: in a sum the others may, whose results nothing uses.
    InvalidMask,
    /// A division of an integer by zero, or the rest of one. A GPU goes on with some value.
    DivisionByZero,
    /// A call of `printf` whose format does not fit its values, or has a conversion that CUDA
    /// lacks. A literal is an error of the compiler.
    WrongFormat,
    /// Elements of an `Out` that no thread wrote. This is a note: it does not fail the launch.
    Unwritten,
    /// A local variable that the kernel reads before it writes it, as the compiler says. Values of
    /// single elements of local arrays, and of variables that some branch writes, are not followed.
    /// This is a note, for the thread may not come there.
    UninitialisedLocal,
    /// The launch has written all elements of an `InOut` and read none of them before: as an `Out`
    /// it would need no copy to the device. Other launches of the kernel may need one. This is a
    /// note.
    UnreadContents,
}

impl FindingKind {
    /// Whether such a finding fails the launch.
    #[must_use]
    pub fn is_error(self) -> bool {
        !self.is_note()
    }

    /// Whether it is about no place in memory.
    fn is_of_no_memory(self) -> bool {
        let is_of_threads = matches!(self, Self::MissedBarrier | Self::InvalidMask);
        is_of_threads || matches!(self, Self::DivisionByZero | Self::WrongFormat)
    }

    /// Whether it concerns the launch, and no thread of it.
    fn is_note(self) -> bool {
        matches!(self, Self::Unwritten | Self::UninitialisedLocal | Self::UnreadContents)
    }
}

/// A second thread of a [`Finding`].
///
/// ```
/// use resident::emulation::Finding;
///
/// fn is_between_blocks(race: &Finding) -> bool {
///     race.other.is_some_and(|other| other.block != race.block)
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct OtherThread {
    /// `blockIdx`: x, y, z.
    pub block: [u32; 3],
    /// `threadIdx`: x, y, z.
    pub thread: [u32; 3],
}

/// A line of a kernel's source. Its `Display` is `blur.cu:7`.
///
/// ```
/// fn number(finding: &resident::emulation::Finding) -> Option<u32> {
///     finding.line.as_ref().map(|line| line.number)
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct SourceLine {
    /// The file; for a source in a string the kernel's name with `.cu`.
    pub file: Arc<str>,
    /// The line, from 1.
    pub number: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.number)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel \"{}\" ", self.kernel)?;
        match self.kind {
            FindingKind::MissedBarrier => f.write_str("waits at a barrier")?,
            FindingKind::InvalidMask if self.other.is_some() => {
                f.write_str("shuffles from a lane")?;
            }
            FindingKind::InvalidMask => f.write_str("calls an operation of a warp")?,
            FindingKind::DivisionByZero => f.write_str("divides an integer by zero")?,
            FindingKind::WrongFormat => f.write_str("calls `printf` wrongly: ")?,
            FindingKind::Unwritten => f.write_str("leaves unwritten ")?,
            FindingKind::UnreadContents => f.write_str("overwrites all ")?,
            _ => f.write_str(if self.is_write { "writes " } else { "reads " })?,
        }
        if !self.kind.is_of_no_memory() {
            self.fmt_place(f)?;
        }
        if let (FindingKind::WrongFormat, Some(reason)) = (self.kind, &self.variable) {
            f.write_str(reason)?;
        }
        f.write_str(self.ending())?;
        if let Some(kernel) = &self.left_out_by {
            write!(f, " since kernel \"{kernel}\" left it out of its `Out`")?;
        }
        if let (FindingKind::OutOfBounds, Some(shape)) = (self.kind, &self.shape) {
            write!(f, ": its shape is {shape:?}")?;
        }
        if let Some(other) = self.other {
            write!(f, " block {}, thread {}", Triple(other.block), Triple(other.thread))?;
        }
        if let Some(line) = &self.other_line {
            write!(f, ", which waits at the one in {line}")?;
        }
        let len = (self.len_bytes > 0).then(|| format!("{} bytes", self.len_bytes));
        let threads = || format!("block {}, thread {}", Triple(self.block), Triple(self.thread));
        let thread = (!self.kind.is_note()).then(threads);
        let line = self.line.as_ref().map(SourceLine::to_string);
        let parts: Vec<String> = [len, thread, line].into_iter().flatten().collect();
        write!(f, " ({})", parts.join(", "))?;
        match self.remedy() {
            "" => Ok(()),
            remedy => write!(f, "; {remedy}"),
        }
    }
}

/// What must not go on after an error.
pub(super) enum Stop {
    /// The thread, whose error is kept. The others go on, to find theirs.
    Thread,
    /// The launch, because of this error.
    Launch(Box<Finding>),
}

/// How a thread's own variables are called.
pub(super) const LOCAL_VARIABLE: &str = "local variable";

/// How dynamic shared memory is called.
pub(super) const DYNAMIC_SHARED: &str = "extern __shared__";

impl Finding {
    /// A finding of a kernel that says nothing else yet.
    pub(super) fn new(kind: FindingKind, kernel: &Arc<str>) -> Self {
        Self {
            kind,
            kernel: Arc::clone(kernel),
            argument: None,
            parameter: None,
            array: None,
            shape: None,
            variable: None,
            element: None,
            left_out_by: None,
            is_write: false,
            is_volatile: false,
            len_bytes: 0,
            block: [0; 3],
            thread: [0; 3],
            other: None,
            other_line: None,
            line: None,
        }
    }

    fn fmt_place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.element, self.argument, &self.variable) {
            (Some(element), Some(argument), _) => {
                write!(f, "element {element:?} of ")?;
                self.fmt_argument(f, argument)
            }
            (None, Some(argument), _) => {
                let is_note = self.kind.is_note();
                f.write_str(if is_note { "elements of " } else { "bytes near " })?;
                self.fmt_argument(f, argument)
            }
            (Some(element), None, Some(name)) => write!(f, "byte {} of `{name}`", element[0]),
            (None, None, Some(name)) if **name == *LOCAL_VARIABLE => {
                f.write_str("memory beyond the end of a local variable")
            }
            (None, None, Some(name)) => write!(f, "`{name}`"),
            (_, None, None) => f.write_str("bytes that are no argument's"),
        }
    }

    /// An argument, by all names that are known: `` `x` (argument 0, array "photo")``.
    fn fmt_argument(&self, f: &mut fmt::Formatter<'_>, argument: usize) -> fmt::Result {
        match (&self.parameter, &self.array) {
            (Some(name), Some(array)) => write!(f, "`{name}` (argument {argument}, array {array})"),
            (Some(name), None) => write!(f, "`{name}` (argument {argument})"),
            (None, Some(array)) => write!(f, "argument {argument} (array {array})"),
            (None, None) => write!(f, "argument {argument}"),
        }
    }

    /// What to do.
    fn remedy(&self) -> &'static str {
        let is_shared = self.argument.is_none();
        match self.kind {
            FindingKind::OutOfBounds if self.variable.as_deref() == Some(DYNAMIC_SHARED) => {
                "compare the index with the launch's `Grid::shared_bytes`, or raise them"
            }
            FindingKind::OutOfBounds if is_shared && self.variable.is_none() => {
                "look where the pointer comes from: it is that of no array of the launch"
            }
            FindingKind::OutOfBounds if self.variable.as_deref().is_some_and(is_freed) => {
                "free the memory behind its last use"
            }
            FindingKind::OutOfBounds => "compare the index with the length first",
            FindingKind::Misaligned => "align the address, or access the bytes one by one",
            FindingKind::Uninitialised if self.left_out_by.is_some() => "write all elements there",
            FindingKind::Uninitialised if is_shared => "write it first",
            FindingKind::Uninitialised => "write it first, or pass the array as `InOut`",
            FindingKind::WriteToInput => "pass the array as `InOut`",
            FindingKind::Race if self.is_volatile => {
                "`volatile` orders no threads: put `__syncwarp()` or `__syncthreads()` between \
                 them, or use atomic operations"
            }
            FindingKind::Race if self.is_between_blocks() => {
                "nothing orders blocks: use atomic operations, or a launch of its own"
            }
            FindingKind::Race => "put `__syncthreads()` between them, or use atomic operations",
            FindingKind::MissedBarrier => {
                "let all of them reach the same one, or name others in the mask"
            }
            FindingKind::InvalidMask if self.other.is_some() => {
                "let the lane come, or read one that the mask names"
            }
            FindingKind::InvalidMask => "name all lanes in the mask that call it",
            FindingKind::UninitialisedLocal => "initialise it",
            FindingKind::Unwritten => "write all, or pass the array as `InOut`",
            FindingKind::DivisionByZero => "compare the divisor with zero first",
            FindingKind::UnreadContents | FindingKind::WrongFormat => "",
        }
    }

    fn is_between_blocks(&self) -> bool {
        self.other.is_some_and(|other| other.block != self.block)
    }

    fn ending(&self) -> &'static str {
        match self.kind {
            FindingKind::OutOfBounds => ", which is out of bounds",
            FindingKind::Misaligned => ", at a misaligned address, no multiple of the length",
            FindingKind::Uninitialised => ", which no thread has written",
            FindingKind::WriteToInput => ", which the signature passes as `In`",
            FindingKind::Race => ", and nothing orders that and an access by",
            FindingKind::MissedBarrier => " that not all threads reach that it concerns, such as",
            FindingKind::InvalidMask if self.other.is_some() => " that does not take part:",
            FindingKind::InvalidMask => " whose mask does not name its own lane",
            FindingKind::DivisionByZero => ", whose result is any number",
            FindingKind::WrongFormat => "",
            FindingKind::UninitialisedLocal => ", a local variable, before it is written",
            FindingKind::Unwritten => ", which the signature passes as `Out`",
            FindingKind::UnreadContents => {
                " without reading any before, so the signature may pass it as `Out`, not `InOut`"
            }
        }
    }
}

/// Whether a variable is memory that a kernel has freed.
fn is_freed(variable: &str) -> bool {
    variable.starts_with(heap::FREED)
}

/// An index in three dimensions.
struct Triple([u32; 3]);

impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "({x}, {y}, {z})")
    }
}
