//! The work that a queue takes: copies, fills and launches, as plain data with lengths in bytes.

use std::fmt::Debug;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Address, DeviceKind, FailureKind, KernelCode, Position, QueueId};
use crate::access::Access;
use crate::call_site::CallSite;
use crate::grid::Grid;

/// The bytes of a value, as a fill pattern.
pub(crate) type Bytes = SmallVec<[u8; 16]>;

/// The operations whose results an operation reads. If one of them failed, it does not run.
pub(crate) type Dependencies = SmallVec<[(QueueId, Position); 4]>;

/// Which bytes of one allocation: `run_bytes` bytes at `offset_bytes`, repeated along `axes`
/// (count, stride in bytes), slowest first. No two repetitions overlap. Strides are above zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Footprint {
    pub(crate) offset_bytes: u64,
    pub(crate) run_bytes: u64,
    pub(crate) axes: SmallVec<[(u64, u64); 3]>,
}

/// Pageable or pinned host memory that queued work accesses. The work holds a reference to it.
///
/// # Safety
///
/// `base()` points to `len_bytes()` initialised bytes, which stay allocated at this address while
/// the value lives. The order of work decides which thread or device accesses which bytes when: see
/// DESIGN.md, "Why it is sound".
pub(crate) unsafe trait HostMemory: Send + Sync + Debug {
    fn base(&self) -> *mut u8;
    fn len_bytes(&self) -> usize;
    /// Whether devices of this kind access it directly.
    fn is_pinned_for(&self, _kind: DeviceKind) -> bool {
        false
    }
    /// Whether this is staging memory of a backend, which no array owns.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "the embedded device never dies"))]
    fn is_staging(&self) -> bool {
        false
    }
    /// Notes that the backend leaks its reference: the device died during work with this memory.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "the embedded device never dies"))]
    fn mark_leaked(&self) {}
}

/// The source or the destination of a copy.
#[derive(Clone, Debug)]
pub(crate) enum Memory {
    Host(Arc<dyn HostMemory>),
    /// Memory of the device whose queue gets the work. As a source it may belong to
    /// `CopyWork::source_device`.
    Device(Address),
}

/// One box of a copy: equal counts and runs at both ends, strides of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CopyBox {
    pub(crate) run_bytes: u64,
    pub(crate) source_offset_bytes: u64,
    pub(crate) destination_offset_bytes: u64,
    /// (count, source stride, destination stride) in bytes, slowest first.
    pub(crate) axes: SmallVec<[(u64, u64, u64); 3]>,
}

/// The name of an operation in errors, hazards and logs.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    /// `upload of "photo"`, `kernel "blur"`.
    pub(crate) text: Arc<str>,
    pub(crate) site: Option<CallSite>,
}

/// A copy of boxes between two memories. `loss` is the meaning of a failure: `Copy` if the contents
/// remain at the source, `Contents` if this copy was to create them, as an assignment does.
#[derive(Debug)]
pub(crate) struct CopyWork {
    pub(crate) source: Memory,
    pub(crate) destination: Memory,
    /// The device of `source`, if it is another one that `Backend::can_access_peer` allows.
    pub(crate) source_device: Option<Arc<dyn super::Backend>>,
    pub(crate) parts: SmallVec<[CopyBox; 1]>,
    /// Whether the copy may also read the bytes between the boxes in the source, and discard them,
    /// where that takes fewer calls: they are written, and no other work writes them meanwhile.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "the embedded device ignores it"))]
    pub(crate) may_read_between: bool,
    pub(crate) loss: FailureKind,
    pub(crate) depends: Dependencies,
    pub(crate) label: Label,
}

/// Repeats a pattern over boxes of device memory. Where `loss` is `Poison`, the pattern is not
/// contents, and later reads of these bytes are still reads of stale or unwritten memory.
#[derive(Debug)]
pub(crate) struct FillWork {
    pub(crate) address: Address,
    /// Each run is a multiple of the pattern's length.
    pub(crate) parts: SmallVec<[Footprint; 1]>,
    pub(crate) pattern: Bytes,
    pub(crate) loss: FailureKind,
    pub(crate) depends: Dependencies,
    pub(crate) label: Label,
}

/// One array of a launch: its memory, and the words of `Arguments` that describe the bytes which the
/// body may access. Small, because launches are moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrayArgument {
    pub(crate) address: Address,
    /// The byte offset of the element with index 0, 0, ..., for a flat array of the lowest one.
    pub(crate) origin_bytes: u64,
    pub(crate) element_bytes: u32,
    /// The index of its first word.
    pub(crate) at_word: u32,
    /// Flat: contiguous from the origin on; one word, the length in elements. Sized: the words are
    /// the number of dimensions, the shape, and the strides in elements.
    pub(crate) is_flat: bool,
    pub(crate) access: Access,
}

/// The arguments of one launch as the signature packed them: `words` holds scalars, shapes and
/// strides in parameter order, `arrays` the memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) words: SmallVec<[u64; 24]>,
    pub(crate) arrays: SmallVec<[ArrayArgument; 6]>,
}

impl Arguments {
    /// The bytes of one of `arrays` that the body may access. Empty if words are missing.
    pub(crate) fn footprint(&self, array: &ArrayArgument) -> Footprint {
        let element = u64::from(array.element_bytes);
        let words = self.words.get(array.at_word as usize..).unwrap_or_default();
        let Some((&first, rest)) = words.split_first() else { return Footprint::nothing() };
        if array.is_flat {
            return Footprint {
                offset_bytes: array.origin_bytes,
                run_bytes: first.saturating_mul(element),
                axes: SmallVec::new(),
            };
        }
        let ndim = first as usize;
        match (rest.get(..ndim), rest.get(ndim..2 * ndim)) {
            (Some(shape), Some(strides)) => {
                Footprint::strided(array.origin_bytes, element, shape, strides)
            }
            _ => Footprint::nothing(),
        }
    }
}

impl Footprint {
    fn nothing() -> Self {
        Self { offset_bytes: 0, run_bytes: 0, axes: SmallVec::new() }
    }

    /// The bytes of a view: shape, and strides in elements as ndarray keeps them, an `i64` in a
    /// `u64`.
    fn strided(origin_bytes: u64, element_bytes: u64, shape: &[u64], strides: &[u64]) -> Self {
        if shape.contains(&0) {
            return Self::nothing();
        }
        let mut offset_bytes = origin_bytes;
        let mut axes: SmallVec<[(u64, u64); 3]> = SmallVec::new();
        for (count, stride) in shape.iter().zip(strides).filter(|(count, _)| **count > 1) {
            let stride_bytes = (*stride as i64).unsigned_abs().saturating_mul(element_bytes);
            if (*stride as i64) < 0 {
                offset_bytes =
                    offset_bytes.saturating_sub((count - 1).saturating_mul(stride_bytes));
            }
            axes.push((*count, stride_bytes));
        }
        axes.sort_by_key(|(_, stride_bytes)| std::cmp::Reverse(*stride_bytes));
        let mut run_bytes = element_bytes;
        while axes.last().is_some_and(|(_, stride_bytes)| *stride_bytes == run_bytes) {
            run_bytes = run_bytes.saturating_mul(axes.pop().map_or(1, |(count, _)| count));
        }
        Self { offset_bytes, run_bytes, axes }
    }
}

/// The host body of a kernel, with its types erased.
///
/// # Safety
///
/// An implementor reads `words` as its own signature packed them, and accesses no bytes outside
/// `Arguments::footprint` of its arrays.
pub(crate) unsafe trait KernelBody: Send + Sync + Debug {
    fn name(&self) -> &Arc<str>;
    /// # Safety
    ///
    /// * `words` are those of the arguments that the same signature packed. `pointers` has one
    ///   pointer per array of them, in order, to the element with index 0, 0, ...
    /// * The footprint of each array is initialised memory that outlives the call. During the call
    ///   no other thread writes the bytes that the body reads, or accesses the bytes that it
    ///   writes.
    unsafe fn run(&self, grid: Grid, words: &[u64], pointers: &[*mut u8]);
}

/// A kernel launch.
#[derive(Debug)]
pub(crate) struct LaunchWork {
    pub(crate) code: KernelCode,
    pub(crate) grid: Grid,
    pub(crate) arguments: Arguments,
    pub(crate) depends: Dependencies,
    pub(crate) site: CallSite,
}

/// An operation of a queue.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "queueing a launch must not allocate")]
pub(crate) enum Work {
    Copy(Box<CopyWork>),
    Fill(Box<FillWork>),
    Launch(LaunchWork),
}
