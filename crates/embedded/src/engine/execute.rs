//! Runs one piece of work (in both modes: worker threads and seeded), on a thread that is marked as
//! running queued work.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use smallvec::SmallVec;

use super::device_core::DeviceCore;
use crate::memory::{ALIGNMENT_BYTES, LocatedMemory, LockedAddresses};
use resident_backend::failure::LeftOut;
use resident_backend::grid::Grid;
use resident_backend::host_copy::{self, BoundedMemory, CopyFunction};
use resident_backend::panic_message::panic_message;
use resident_backend::sync;
use resident_backend::{
    Address, CopyBox, CopyWork, FillWork, Footprint, KernelBody, KernelCode, Memory,
    PackedArguments, PackedArray,
};
use resident_core::Access;

/// A chain's step looks for the memory of its arrays among that of so many arrays before them.
const ADDRESSES_COMPARED: usize = 8;

/// Shorter copies are made by one thread: waking another takes too long.
const PARALLEL_BYTES_MIN: u64 = 16 << 20;

/// Why work failed.
pub(super) struct Fault {
    pub(super) cause: String,
    pub(super) left_out: Option<Arc<LeftOut>>,
}

impl From<String> for Fault {
    fn from(cause: String) -> Self {
        Self { cause, left_out: None }
    }
}

impl From<LeftOut> for Fault {
    fn from(left_out: LeftOut) -> Self {
        Self { cause: left_out.to_string(), left_out: Some(Arc::new(left_out)) }
    }
}

impl Fault {
    /// The fault that an emulation injected with this call.
    pub(super) fn injected(call: u64) -> Self {
        format!("a fault injected by the emulation, at call {call}").into()
    }
}

/// Copies all parts, or none if the source's or the destination's memory does not exist. The copy
/// ends at a part that is out of range; the destination then has unspecified contents.
///
/// On a device that checks kernels, a copy to memory for which it keeps no account of contents
/// copies nothing if an element has none. A copy within the device copies that too.
pub(super) fn copy(
    source_device: &DeviceCore,
    device: &DeviceCore,
    work: &CopyWork,
) -> Result<(), Fault> {
    let sources = work.parts.iter().map(CopyBox::source);
    let (source, source_block) = locate_end(source_device, &work.source, sources)?;
    let destinations = work.parts.iter().map(CopyBox::destination);
    let (destination, destination_block) = locate_end(device, &work.destination, destinations)?;
    let is_within = std::ptr::eq(source_device, device)
        && source_block.is_some()
        && destination_block.as_ref().is_some_and(|block| !block.is_shared());
    if let (Memory::Device(address), false) = (&work.source, is_within) {
        let left_out = |part: &CopyBox| {
            source_device.memory.first_left_out(*address, source.start, &part.source())
        };
        if let Some(left_out) = work.parts.iter().find_map(left_out) {
            return Err(left_out.into());
        }
    }
    let copy = copy_function(work, destination_block.as_ref());
    for part in &work.parts {
        // SAFETY: source and destination are valid and initialised for their whole length while
        // `work` and the two blocks are alive (`locate_end`). The modules that use the backend
        // order work so that no other thread writes the source or accesses the destination
        // meanwhile (`backend`, contract). `copy_function` chose a copy that these memories allow.
        if !unsafe { host_copy::copy_box_within(copy, source, destination, part) } {
            return Err(format!(
                "a part of it leaves its memory ({} and {} bytes)",
                source.len_bytes, destination.len_bytes
            )
            .into());
        }
        let written = part.destination();
        device.memory.forget_left_out(destination.start, &written);
        if is_within {
            device.memory.copy_left_out(source.start, destination.start, part);
        }
        if let Some(block) = &destination_block {
            block.note_overwritten(&written);
        }
    }
    Ok(())
}

/// Several threads make the first large copy to new memory, so that clearing its pages, which the
/// system does at their first use, is not left to one of them. Later copies are as fast with one.
fn copy_function(work: &CopyWork, block: Option<&LocatedMemory>) -> CopyFunction {
    let has_host_end = |memory: &Memory| matches!(memory, Memory::Host(_));
    // Copies inside a device may overlap.
    let is_apart = has_host_end(&work.source) != has_host_end(&work.destination);
    if !is_apart || work.len_bytes() < PARALLEL_BYTES_MIN {
        return host_copy::copy_box;
    }
    let is_new = match &work.destination {
        Memory::Host(host) => host.take_new(),
        Memory::Device(_) => block.is_some_and(LocatedMemory::take_new),
    };
    if is_new { host_copy::copy_box_in_parallel } else { host_copy::copy_box }
}

/// Fills all parts. The fill ends at a part that is out of range.
pub(super) fn fill(device: &DeviceCore, work: &FillWork) -> Result<(), Fault> {
    let block = locate(device, work.address)?;
    let destination = block.bounded();
    expect_pages(device, work.address, &block, work.parts.iter().cloned())?;
    for part in &work.parts {
        // SAFETY: as for a copy's destination, above.
        if !unsafe { host_copy::fill_within(destination, part, &work.pattern) } {
            return Err(format!(
                "a part of it leaves its memory ({} bytes)",
                destination.len_bytes
            )
            .into());
        }
        device.memory.forget_left_out(destination.start, part);
        block.note_overwritten(part);
    }
    Ok(())
}

/// Runs a kernel body on the memory of its arguments.
pub(super) fn launch(
    device: &DeviceCore,
    code: &KernelCode,
    grid: Grid,
    words: &[u64],
    arrays: &[PackedArray],
) -> Result<(), Fault> {
    let mut located = LocatedArguments::default();
    located.add(&device.memory.lock_addresses(), words, arrays)?;
    launch_located(device, code, grid, words, arrays, located.all())
}

/// As [`launch`], on arguments that [`LocatedArguments`] has.
pub(super) fn launch_located(
    device: &DeviceCore,
    code: &KernelCode,
    grid: Grid,
    words: &[u64],
    arrays: &[PackedArray],
    located: Located<'_>,
) -> Result<(), Fault> {
    let KernelCode::Host(body) = code else {
        return Err("device code does not run on the embedded device".to_owned().into());
    };
    let poison = device.output_poison;
    if poison.is_some() || body.may_leave_out() {
        prepare_outputs(poison, words, arrays, located);
    }
    let knows_left_out = device.memory.knows_left_out();
    if knows_left_out {
        forget_shared(device, words, arrays, located);
    }
    sync::assert_none_held();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: each pointer leads to element 0, 0, ... in a block that `located` keeps alive,
        // and each footprint lies in that block (`add_array`). Blocks are always initialised
        // (`block`). The modules that use the backend order work so that meanwhile no other thread
        // writes bytes that the body reads, or accesses bytes that it writes (`backend`, contract).
        unsafe { body.run(grid, words, located.pointers) }
    }));
    if knows_left_out {
        forget_left_out(device, body.as_ref(), words, arrays, located);
    }
    outcome.map_err(|payload| panic_message(payload).into())
}

/// On a device that checks kernels, returns the first element without contents that a body which
/// keeps no account of contents would read. For steps of chains: before other launches, the host
/// waits and asks for such elements.
pub(super) fn expect_written(
    device: &DeviceCore,
    code: &KernelCode,
    arguments: &PackedArguments,
) -> Result<(), Fault> {
    let KernelCode::Host(body) = code else { return Ok(()) };
    if !device.memory.knows_left_out() || body.tracks_contents() {
        return Ok(());
    }
    for array in arguments.arrays.iter().filter(|array| array.access != Access::Overwrite) {
        let Some(block) = device.memory.locate(array.address) else { continue };
        let (start, footprint) = (block.bounded().start, arguments.footprint(array));
        if let Some(left_out) = device.memory.first_left_out(array.address, start, &footprint) {
            return Err(left_out.into());
        }
    }
    Ok(())
}

/// Tells the checker what a body that it does not see has written, or may have.
fn forget_left_out(
    device: &DeviceCore,
    body: &dyn KernelBody,
    words: &[u64],
    arrays: &[PackedArray],
    located: Located<'_>,
) {
    if body.tracks_contents() {
        return forget_shared(device, words, arrays, located);
    }
    for (array, block) in arrays.iter().zip(located.blocks()) {
        if let (true, Some(block)) = (array.access.writes(), block) {
            device.memory.forget_left_out(block.bounded().start, &array.footprint(words));
        }
    }
}

/// Others may write memory that they share, without the checker.
fn forget_shared(device: &DeviceCore, words: &[u64], arrays: &[PackedArray], located: Located<'_>) {
    for (array, block) in arrays.iter().zip(located.blocks()) {
        if let Some(block) = block.filter(|block| block.is_shared()) {
            device.memory.forget_left_out(block.bounded().start, &array.footprint(words));
        }
    }
}

/// Fills the elements that a body is to overwrite: with poison, so that tests detect those that it
/// leaves out, or else with zeros where they may be those of an array that was freed.
fn prepare_outputs(
    poison: Option<u8>,
    words: &[u64],
    arrays: &[PackedArray],
    located: Located<'_>,
) {
    for (array, block) in arrays.iter().zip(located.blocks()) {
        if let (Access::Overwrite, Some(block)) = (array.access, block) {
            if poison.is_none() && !block.may_have_leftovers() {
                continue;
            }
            let footprint = array.footprint(words);
            if poison.is_none() && !block.may_have_leftovers_in(&footprint) {
                continue;
            }
            let byte = [poison.unwrap_or(0)];
            // SAFETY: as for the body's own writes, in `launch`. The footprint consists of the
            // elements of the argument, and lies in the block (`add_array`).
            if unsafe { host_copy::fill_within(block.bounded(), &footprint, &byte) } {
                block.note_overwritten(&footprint);
            }
        }
    }
}

/// The memory at one end of a copy, and its block, if that is device memory.
type CopyEnd = (BoundedMemory, Option<LocatedMemory>);

/// The memory is valid and initialised while the work and the block are alive: device memory always
/// is (see `block`), and host memory is by the contract of `HostMemory`.
fn locate_end(
    device: &DeviceCore,
    memory: &Memory,
    footprints: impl Iterator<Item = Footprint>,
) -> Result<CopyEnd, String> {
    match memory {
        Memory::Host(host) => {
            let (start, len_bytes) = (host.base(), host.len_bytes() as u64);
            Ok((BoundedMemory { start, len_bytes }, None))
        }
        Memory::Device(address) => {
            let block = locate(device, *address)?;
            expect_pages(device, *address, &block, footprints)?;
            Ok((block.bounded(), Some(block)))
        }
    }
}

/// Refuses footprints of which a page has no memory. They are relative to `address`, at which
/// `located` was found.
fn expect_pages(
    device: &DeviceCore,
    address: Address,
    located: &LocatedMemory,
    mut footprints: impl Iterator<Item = Footprint>,
) -> Result<(), String> {
    if located.has_all_pages() {
        return Ok(());
    }
    let addresses = device.memory.lock_addresses();
    let missing = footprints.find_map(|footprint| addresses.first_uncommitted(address, &footprint));
    missing.map_or(Ok(()), |page| Err(no_memory_of_page(page)))
}

fn no_memory_of_page(page: Address) -> String {
    format!("the page at device address {:#x} is reserved, but has no memory", page.0)
}

fn locate(device: &DeviceCore, address: Address) -> Result<LocatedMemory, String> {
    device.memory.locate(address).ok_or_else(|| no_memory_at(address))
}

/// Blocks and pointers of the arrays of one launch.
#[derive(Clone, Copy)]
pub(super) struct Located<'a> {
    memory: &'a [LocatedMemory],
    arrays: &'a [Option<u32>],
    pointers: &'a [*mut u8],
}

impl<'a> Located<'a> {
    fn blocks(self) -> impl Iterator<Item = Option<&'a LocatedMemory>> {
        self.arrays.iter().map(move |index| index.map(|index| &self.memory[index as usize]))
    }
}

/// Blocks and pointers of launches, which keep the memory; up to eight arrays need no heap.
#[derive(Default)]
pub(super) struct LocatedArguments {
    /// The memory at each of the addresses.
    memory: SmallVec<[LocatedMemory; 8]>,
    addresses: SmallVec<[Address; 8]>,
    /// For each array its memory, by the index; `None` if it needs none.
    arrays: SmallVec<[Option<u32>; 8]>,
    pointers: SmallVec<[*mut u8; 8]>,
}

impl LocatedArguments {
    /// Locates the arrays of a further launch.
    pub(super) fn add(
        &mut self,
        addresses: &LockedAddresses<'_>,
        words: &[u64],
        arrays: &[PackedArray],
    ) -> Result<(), String> {
        arrays.iter().try_for_each(|array| self.add_array(addresses, words, array))
    }

    fn add_array(
        &mut self,
        addresses: &LockedAddresses<'_>,
        words: &[u64],
        array: &PackedArray,
    ) -> Result<(), String> {
        let footprint = array.footprint(words);
        let end_bytes = footprint.end_bytes();
        let Some(index) = self.index_of(addresses, array.address) else {
            if end_bytes != Some(0) {
                return Err(no_memory_at(array.address));
            }
            // An array of 0 bytes needs no memory: the body gets an aligned pointer that must not
            // be read.
            self.arrays.push(None);
            self.pointers.push(std::ptr::without_provenance_mut(ALIGNMENT_BYTES));
            return Ok(());
        };
        let located = &self.memory[index];
        if !located.has_all_pages()
            && let Some(page) = addresses.first_uncommitted(array.address, &footprint)
        {
            return Err(no_memory_of_page(page));
        }
        let BoundedMemory { start, len_bytes } = located.bounded();
        let is_within = end_bytes.is_some_and(|end_bytes| end_bytes <= len_bytes);
        if !is_within || array.origin_bytes > len_bytes {
            return Err(format!(
                "an array argument leaves its memory of {len_bytes} bytes: {footprint:?}"
            ));
        }
        self.arrays.push(Some(index as u32));
        self.pointers.push(start.wrapping_add(array.origin_bytes as usize));
        Ok(())
    }

    /// The index of the memory at an address, if there is any. Most steps of a chain use arrays
    /// that the steps before them use.
    fn index_of(&mut self, addresses: &LockedAddresses<'_>, address: Address) -> Option<usize> {
        let first = self.addresses.len().saturating_sub(ADDRESSES_COMPARED);
        if let Some(index) = self.addresses[first..].iter().rposition(|known| *known == address) {
            return Some(first + index);
        }
        self.memory.push(addresses.locate(address)?);
        self.addresses.push(address);
        Some(self.memory.len() - 1)
    }

    /// The number of arrays.
    pub(super) fn len(&self) -> usize {
        self.pointers.len()
    }

    pub(super) fn all(&self) -> Located<'_> {
        self.range(0..self.len())
    }

    /// Those of one launch, by the numbers of its arrays among all.
    pub(super) fn range(&self, range: Range<usize>) -> Located<'_> {
        let (arrays, pointers) = (&self.arrays[range.clone()], &self.pointers[range]);
        Located { memory: &self.memory, arrays, pointers }
    }
}

fn no_memory_at(address: Address) -> String {
    format!(
        "there is no memory at device address {:#x}: it was freed, or belongs to another device",
        address.0
    )
}
