//! What can be queued: copies, fills and launches, as plain data in bytes.

use std::fmt::Debug;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Address, DeviceKind, FailureKind, KernelCode, Position, QueueId};
use crate::access::Access;
use crate::call_site::CallSite;
use crate::grid::Grid;

/// A value's bytes, as a fill pattern.
pub(crate) type Bytes = SmallVec<[u8; 16]>;

/// Work whose failure spoils what this work reads.
pub(crate) type Dependencies = SmallVec<[(QueueId, Position); 4]>;

/// Which bytes of one allocation: `run_bytes` bytes at `offset_bytes`, repeated along `axes`
/// (count, stride in bytes), slowest first. No two repetitions overlap. Strides are above zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Footprint {
    pub(crate) offset_bytes: u64,
    pub(crate) run_bytes: u64,
    pub(crate) axes: SmallVec<[(u64, u64); 3]>,
}

/// Ordinary or page-locked host memory that work may touch; the work keeps it alive.
///
/// # Safety
///
/// Implementors promise that `base()` points to `len_bytes()` initialised bytes which stay put and
/// allocated while the value lives. Who may touch which bytes when is kept by the order of work:
/// see DESIGN.md, "Why it is sound".
pub(crate) unsafe trait HostMemory: Send + Sync + Debug {
    fn base(&self) -> *mut u8;
    fn len_bytes(&self) -> usize;
    /// Whether devices of this kind reach it by themselves, without the host's help.
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

/// One end of a copy.
#[derive(Clone, Debug)]
pub(crate) enum Memory {
    Host(Arc<dyn HostMemory>),
    /// Memory of the device whose queue gets the work, or, as source of a copy between devices, of
    /// `QueueId`'s device.
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

/// What a piece of work is called in errors, hazards and logs.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    /// `upload of "photo"`, `kernel "blur"`.
    pub(crate) text: Arc<str>,
    pub(crate) site: Option<CallSite>,
}

/// A copy of any number of boxes between two memories. `loss` says what its failure means: `Copy`
/// where the contents can be had again from their source, `Body` where this copy was to make them,
/// as an assignment does.
#[derive(Debug)]
pub(crate) struct CopyWork {
    pub(crate) source: Memory,
    pub(crate) destination: Memory,
    /// Set when `source` is memory of another device, which `Backend::can_access_peer`.
    pub(crate) source_device: Option<Arc<dyn super::Backend>>,
    pub(crate) parts: SmallVec<[CopyBox; 1]>,
    /// What lies between the parts in the source may be read too where that is cheaper, and is
    /// thrown away: it was written, and nobody writes it meanwhile.
    #[cfg_attr(
        not(feature = "cuda"),
        allow(dead_code, reason = "the embedded device has no calls to spare")
    )]
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

/// One array of a launch: its memory, and where `Arguments::words` says which bytes of it the body
/// may touch. Small, since launches are moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrayArgument {
    pub(crate) address: Address,
    /// Byte offset of the element with index 0, 0, ...; for a flat array of the lowest.
    pub(crate) origin_bytes: u64,
    pub(crate) element_bytes: u32,
    /// Where its words start.
    pub(crate) at_word: u32,
    /// Flat: one word, the length in elements, unbroken from the origin on. Sized: the number of
    /// dimensions, shape, strides in elements.
    pub(crate) is_flat: bool,
    pub(crate) access: Access,
}

/// Arguments of one launch as the signature packed them: `words` holds scalars, shapes and strides
/// in parameter order, `arrays` the memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) words: SmallVec<[u64; 24]>,
    pub(crate) arrays: SmallVec<[ArrayArgument; 6]>,
}

impl Arguments {
    /// The bytes that the body may touch of one of `arrays`. Words that are missing stand for no
    /// bytes at all.
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

/// A kernel's body on the host, with its types erased.
///
/// # Safety
///
/// `run` gets one pointer per array, in order, to the element with index 0, 0, ... of memory that
/// is initialised, lives for the call, and which nobody else writes (reads of it) or touches
/// (writes) during the call. An implementor reads `words` as the same signature packed them and
/// touches nothing outside the declared footprints.
pub(crate) unsafe trait KernelBody: Send + Sync + Debug {
    fn name(&self) -> &Arc<str>;
    /// # Safety
    ///
    /// As the trait says; the caller is a backend that resolved `pointers` from the arguments it
    /// was submitted with.
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

/// Anything that can be queued.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a launch is queued without an allocation")]
pub(crate) enum Work {
    Copy(Box<CopyWork>),
    Fill(Box<FillWork>),
    Launch(LaunchWork),
}
