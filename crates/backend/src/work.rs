//! The kinds of work of a stream: copies, fills and launches, as plain data with lengths in bytes.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Address, DeviceKind, FailureKind, KernelCode, Label, Position, StreamId};
use crate::call_site::CallSite;
use crate::grid::Grid;
use resident_core::Access;
use resident_core::layout::{CopyBox, Footprint};

/// The bytes of a value, as a fill pattern.
pub type Bytes = SmallVec<[u8; 16]>;

/// The operations whose results an operation reads. If one of them failed, the operation does not
/// run. There is room for a tile, and for the nine tiles of another array that its border touches.
pub type Dependencies = SmallVec<[(StreamId, Position); 10]>;

/// Pageable or pinned host memory that queued work accesses. The work keeps this memory alive.
///
/// # Safety
///
/// `base()` points to `len_bytes()` initialised bytes, which stay allocated at this address while
/// the value lives. The order of work ensures that threads and devices access these bytes without
/// conflicts: see DESIGN.md, "Soundness".
pub unsafe trait HostMemory: Send + Sync + Debug {
    fn base(&self) -> *mut u8;
    fn len_bytes(&self) -> usize;
    /// Whether devices of this kind access the memory directly.
    fn is_pinned_for(&self, _kind: DeviceKind) -> bool {
        false
    }
    /// Whether this is the first call for memory that the system has not backed by pages yet.
    fn take_new(&self) -> bool {
        false
    }
    /// Whether this is staging memory of a backend, which no array owns.
    fn is_staging(&self) -> bool {
        false
    }
    /// Records that the backend will never release this memory, because the device died during work
    /// with it.
    fn mark_leaked(&self) {}
}

/// The source or the destination of a copy.
#[derive(Clone, Debug)]
pub enum Memory {
    Host(Arc<dyn HostMemory>),
    /// Memory of the device whose stream gets the work. A source may also be memory of
    /// `CopyWork::source_device`.
    Device(Address),
}

/// A copy of boxes between two memories. `loss` says what a failure loses: `Copy` if the contents
/// remain at the source, `Contents` if this copy should have created them, as in an assignment.
#[derive(Clone, Debug)]
pub struct CopyWork {
    pub source: Memory,
    pub destination: Memory,
    /// The device of `source`, if it is another device that `Backend::can_access_peer` allows.
    pub source_device: Option<Arc<dyn SourceDevice>>,
    pub parts: SmallVec<[CopyBox; 1]>,
    /// Whether the copy may also read the source bytes between the boxes, and discard them, if that
    /// takes fewer calls. If so, these bytes are initialised, and no other work writes them
    /// meanwhile.
    pub may_read_between: bool,
    pub loss: FailureKind,
    pub depends: Dependencies,
    pub label: Label,
}

impl CopyWork {
    /// A copy of staging memory to device memory, as [`RawStream::write`](crate::RawStream::write)
    /// makes.
    pub fn of_staged(from: Arc<dyn HostMemory>, to: Address, label: &Label) -> Self {
        let run = Footprint::run(0, from.len_bytes() as u64);
        Self {
            source: Memory::Host(from),
            destination: Memory::Device(to),
            source_device: None,
            parts: SmallVec::from_elem(run.copy_to_same_offsets(), 1),
            may_read_between: false,
            loss: FailureKind::Copy,
            depends: Dependencies::new(),
            label: label.clone(),
        }
    }

    /// The number of bytes that the copy moves, saturating.
    pub fn len_bytes(&self) -> u64 {
        self.parts.iter().map(CopyBox::len_bytes).fold(0, u64::saturating_add)
    }

    /// If the copy exceeds the bounds of the host memory that is its source or destination, a text
    /// that says so. Backends check the bounds of device memory themselves.
    pub fn host_overrun(&self) -> Option<String> {
        let overrun = |memory: &Memory, end_bytes: fn(&CopyBox) -> Option<u64>| {
            let Memory::Host(host) = memory else { return None };
            let len_bytes = host.len_bytes() as u64;
            let is_outside = |end: &Option<u64>| end.is_none_or(|end| end > len_bytes);
            let end = self.parts.iter().map(end_bytes).find(is_outside)?;
            Some(format!("a part ends at byte {end:?} of host memory that has {len_bytes}"))
        };
        overrun(&self.source, CopyBox::source_end_bytes)
            .or_else(|| overrun(&self.destination, CopyBox::destination_end_bytes))
    }
}

/// Which thread may make a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Maker {
    /// The stream: not the calling thread.
    Stream,
    /// The calling thread, if threads of this process run the stream and it is idle; else the
    /// stream.
    CallerOrStream,
    /// The calling thread, if it can; else the copy is declined.
    Caller,
}

/// What became of a copy.
#[must_use = "the stream's later work waits for a copy of the caller's"]
pub enum Copying {
    Queued(Position),
    /// The calling thread makes it, as soon as it holds no lock and before it waits for anything.
    Own(OwnCopy),
    Declined,
}

impl Copying {
    /// The copy's position; `START` if it was declined.
    #[inline]
    pub fn position(&self) -> Position {
        match self {
            Self::Queued(position) | Self::Own(OwnCopy { position, .. }) => *position,
            Self::Declined => Position::START,
        }
    }

    /// Makes the copy if the calling thread is to make it, which holds no lock. Afterwards its
    /// position has completed.
    pub fn run(self) {
        if let Self::Own(own) = self {
            (own.run)();
        }
    }
}

/// A copy that has its position on a stream and that the calling thread makes. Later work of the
/// stream waits for it.
pub struct OwnCopy {
    position: Position,
    run: Box<dyn FnOnce()>,
}

impl OwnCopy {
    pub fn new(position: Position, run: impl FnOnce() + 'static) -> Self {
        Self { position, run: Box::new(run) }
    }
}

/// The device of a copy's source: any `Backend`.
pub trait SourceDevice: Any + Debug + Send + Sync {}

impl dyn SourceDevice {
    /// This backend as a `T`, if that is its type.
    pub fn downcast_ref<T: SourceDevice>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// Repeats a pattern over boxes of device memory. If `loss` is `Poison`, the pattern does not count
/// as contents: reading these bytes is still an error.
#[derive(Clone, Debug)]
pub struct FillWork {
    pub address: Address,
    /// The length of each run is a multiple of the pattern's length.
    pub parts: SmallVec<[Footprint; 1]>,
    pub pattern: Bytes,
    pub loss: FailureKind,
    pub depends: Dependencies,
    pub label: Label,
}

/// One array of a launch: its memory, and the words of `PackedArguments` that describe the bytes
/// which the body may access. This type is small, because launches are moved.
#[derive(Clone, Copy, Debug)]
pub struct PackedArray {
    pub address: Address,
    /// The byte offset of the element with index 0, 0, ..., or of the lowest element of a flat
    /// array (a slice).
    pub origin_bytes: u64,
    pub element_bytes: u32,
    /// The index of the array's first word.
    pub at_word: u32,
    /// A flat array (a slice) is contiguous and starts at the origin; its single word is the length
    /// in elements. The words of a sized array (an ndarray view) are the number of dimensions, the
    /// shape, and the strides in elements.
    pub is_flat: bool,
    pub access: Access,
}

/// The arguments of one launch as the signature packed them: `words` holds scalars, shapes and
/// strides in parameter order, `arrays` the memory.
#[derive(Clone, Debug, Default)]
pub struct PackedArguments {
    pub words: SmallVec<[u64; 24]>,
    pub arrays: SmallVec<[PackedArray; 8]>,
}

impl PackedArguments {
    /// The bytes of one of `arrays` that the body may access.
    pub fn footprint(&self, array: &PackedArray) -> Footprint {
        array.footprint(&self.words)
    }
}

impl PackedArray {
    /// The bytes that the body may access, by the words of its launch. Empty if those are too few.
    pub fn footprint(&self, words: &[u64]) -> Footprint {
        let element = u64::from(self.element_bytes);
        let words = words.get(self.at_word as usize..).unwrap_or_default();
        let Some((&first, rest)) = words.split_first() else { return Footprint::empty() };
        if self.is_flat {
            return Footprint::run(self.origin_bytes, first.saturating_mul(element));
        }
        let ndim = first as usize;
        match (rest.get(..ndim), rest.get(ndim..2 * ndim)) {
            (Some(shape), Some(strides)) => {
                Footprint::of_view(self.origin_bytes, element, shape, strides)
            }
            _ => Footprint::empty(),
        }
    }
}

/// A kernel launch whose arguments the caller keeps.
#[derive(Debug)]
pub struct LaunchCall<'a> {
    pub code: &'a KernelCode,
    pub grid: &'a Grid,
    /// As [`PackedArguments::words`], except that device code gets the address of a flat array
    /// instead of its length. The backend may overwrite them.
    pub words: &'a mut [u64],
    /// For device code only the sized arrays.
    pub arrays: &'a [PackedArray],
    pub depends: &'a [(StreamId, Position)],
    pub site: CallSite,
    /// Whether the body takes microseconds and is none of the program's. The calling thread may
    /// then run it, before the call returns.
    pub is_brief: bool,
}

impl LaunchCall<'_> {
    /// The launch with arguments of its own, to be kept until it runs.
    #[inline]
    pub fn to_work(&self) -> LaunchWork {
        let (words, arrays) = (SmallVec::from_slice(self.words), SmallVec::from_slice(self.arrays));
        LaunchWork {
            code: self.code.clone(),
            grid: *self.grid,
            arguments: PackedArguments { words, arrays },
            depends: SmallVec::from_slice(self.depends),
            site: self.site,
        }
    }
}

/// A kernel launch.
#[derive(Clone, Debug)]
pub struct LaunchWork {
    pub code: KernelCode,
    pub grid: Grid,
    pub arguments: PackedArguments,
    pub depends: Dependencies,
    pub site: CallSite,
}

impl LaunchWork {
    #[inline]
    pub fn as_call(&mut self) -> LaunchCall<'_> {
        LaunchCall {
            code: &self.code,
            grid: &self.grid,
            words: &mut self.arguments.words,
            arrays: &self.arguments.arrays,
            depends: &self.depends,
            site: self.site,
            is_brief: false,
        }
    }
}

/// An operation of a stream.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "queueing a launch must not allocate")]
pub enum Work {
    Copy(Box<CopyWork>),
    Fill(Box<FillWork>),
    Launch(LaunchWork),
}

impl Work {
    /// The call that queued it, or recorded it for a chain.
    pub fn site(&self) -> Option<CallSite> {
        match self {
            Self::Copy(copy) => copy.label.site,
            Self::Fill(fill) => fill.label.site,
            Self::Launch(launch) => Some(launch.site),
        }
    }

    /// Its name in messages, as a step of a chain: `kernel "blur" of chain "two steps"`.
    pub fn name_in(&self, chain: &str) -> String {
        match self {
            Self::Launch(launch) => format!("kernel \"{}\" of {chain}", launch.code.name()),
            Self::Copy(copy) => format!("{} of {chain}", copy.label.text),
            Self::Fill(fill) => format!("{} of {chain}", fill.label.text),
        }
    }
}
