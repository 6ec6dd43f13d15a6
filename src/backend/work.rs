//! What can be queued: copies, fills and launches, as plain data in bytes.

use std::fmt::Debug;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Address, DeviceKind, FailureKind, KernelCode, Position, QueueId};
use crate::access::Access;
use crate::call_site::CallSite;
use crate::grid::Grid;
use crate::layout::{CopyBox, Footprint};

/// A value's bytes, as a fill pattern.
pub(crate) type Bytes = SmallVec<[u8; 16]>;

/// Work whose failure spoils what this work reads.
pub(crate) type Dependencies = SmallVec<[(QueueId, Position); 4]>;

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

impl CopyWork {
    /// How the copy would leave the host memory at one of its ends, in words. Backends check the
    /// bounds of device memory themselves.
    pub(crate) fn host_overrun(&self) -> Option<String> {
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
        let Some((&first, rest)) = words.split_first() else { return Footprint::empty() };
        if array.is_flat {
            return Footprint::run(array.origin_bytes, first.saturating_mul(element));
        }
        let ndim = first as usize;
        match (rest.get(..ndim), rest.get(ndim..2 * ndim)) {
            (Some(shape), Some(strides)) => {
                Footprint::of_view(array.origin_bytes, element, shape, strides)
            }
            _ => Footprint::empty(),
        }
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
