//! The check of one launch: every access of its threads, against the areas that it may access.

mod stops;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::access::{Extent, MemoryAccess, Touch};
use super::area::{AccessFault, Area, Contents, Rights};
use super::argument::ArrayOfLaunch;
use super::collected::Collected;
use super::copied::UnwrittenRead;
use super::fast_path::{FastArea, FastPath};
use super::finding::{DYNAMIC_SHARED, Finding, FindingKind, OtherThread, Stop};
use super::image::{Image, Lines};
use super::left_out::LeftOut;
use super::order::{LANES, Order, OrderOfBlock, Stamp};
use super::parameters::ParameterNames;
use crate::heap;
use crate::meetings::Meeting;
use crate::runtime::LaunchParameters;
use crate::waiting::SHARED_BYTES_MAX;
use resident_backend::ParameterLayout;
use resident_backend::call_site::CallSite;
use resident_backend::failure::LeftOutBy;
use resident_core::Access;

/// The bytes of a unit of memory that has no elements of its own.
const UNIT_BYTES: usize = 4;

/// Memory of each block, which nothing has written when the block starts.
const OF_BLOCK: Rights = Rights { may_write: true, is_written: false };

/// After the first error, a launch goes on for so many accesses: it may have read what no bound
/// is.
const ACCESSES_AFTER_ERROR_MAX: u64 = 1 << 24;

/// The longest value whose write by two threads is compared.
const COMPARED_BYTES_MAX: usize = 64 << 10;

/// A place is that of the nearest array, unless it is as far away as a pointer that is none.
const NEAR_BYTES: usize = 1 << 31;

/// A thread of a launch: its block's number, and its own in the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Running {
    pub(super) block: u64,
    pub(super) thread: u32,
    /// The addresses of its stack, where its own variables are.
    pub(super) stack: (usize, usize),
}

/// A write of what another thread has written, whose value is compared after it.
#[derive(Debug)]
struct RacingWrite {
    by: Running,
    access: MemoryAccess,
    /// The place of the first byte that the other thread has written.
    address: usize,
    other: Stamp,
    before: Vec<u8>,
    /// Whether the thread has announced a read since: that of what it copies, as GCC announces a
    /// record that is written before the one that is read.
    is_behind_read: bool,
}

/// Where a library and its variables are.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) image: usize,
    /// The variables of the running thread of the machine.
    pub(super) of_thread: usize,
    pub(super) dynamic_shared: usize,
}

/// A launch of a kernel of a library.
#[derive(Clone, Copy)]
pub(super) struct LaunchOfKernel<'a> {
    pub(super) kernel: &'a Arc<str>,
    pub(super) launch: &'a LaunchParameters,
    pub(super) lines: &'a Lines,
    pub(super) image: &'a Image,
    pub(super) parameters: &'a ParameterNames,
    pub(super) layouts: &'a [ParameterLayout],
    /// The names of the arrays, if they are known.
    pub(super) array_names: &'a [String],
    pub(super) site: Option<CallSite>,
    /// What earlier launches left out.
    pub(super) left_out: &'a LeftOut,
    /// Whether writes of equal values are races.
    pub(super) is_strict: bool,
}

/// What is known of a block while others run. By default nothing.
#[derive(Default)]
pub(crate) struct CheckOfBlock {
    block: Option<u64>,
    order: OrderOfBlock,
    returned: HashSet<u32>,
    stopped: HashSet<u32>,
    /// Those of its own memory.
    areas: Vec<Area>,
}

/// The state of the check of one launch.
pub(super) struct LaunchCheck<'a> {
    of: LaunchOfKernel<'a>,
    launch: &'a LaunchParameters,
    lines: &'a Lines,
    image: &'a Image,
    places: Places,
    arrays: Vec<ArrayOfLaunch>,
    rights: Vec<Rights>,
    /// In the order of their addresses.
    areas: Vec<Area>,
    /// The start and the length of each.
    bounds: Vec<(usize, usize)>,
    order: Order,
    /// The block whose threads run, if one has accessed anything.
    block: Option<u64>,
    racing_write: Option<RacingWrite>,
    /// What the last access, or the one before it, has read although nothing has written it.
    unwritten_read: Option<UnwrittenRead>,
    fast_path: &'a FastPath,
    /// For each of the areas.
    fast_areas: Vec<FastArea>,
    /// The accesses that have been told.
    accesses: u64,
    collected: Collected,
    /// The number of accesses at which the launch ends because of an error.
    accesses_max: u64,
    /// The threads of that block that have left the kernel by `return`.
    returned: HashSet<u32>,
    /// Those that were stopped.
    stopped: HashSet<u32>,
    /// The number of threads of all blocks that were stopped.
    stops: u32,
}

impl<'a> LaunchCheck<'a> {
    pub(super) fn new(
        of: LaunchOfKernel<'a>,
        places: Places,
        arrays: Vec<ArrayOfLaunch>,
        fast_path: &'a FastPath,
    ) -> Self {
        fast_path.begin();
        let LaunchOfKernel { launch, lines, image, .. } = of;
        let rights = arrays.iter().map(rights_of).collect();
        let mut areas = argument_areas(&arrays);
        areas.iter_mut().for_each(|area| area.find_left_out(of.left_out));
        areas.extend(variable_areas(image, &places));
        let shared_bytes = launch.shared_bytes as usize;
        if shared_bytes > 0 {
            let range = places.dynamic_shared..places.dynamic_shared + shared_bytes;
            areas.push(Area::new(range, UNIT_BYTES, Contents::DynamicShared, Some(OF_BLOCK)));
        }
        areas.sort_by_key(|area| area.start);
        let bounds = areas.iter().map(|area| (area.start, area.len_bytes)).collect();
        let fast_areas = areas.iter_mut().map(Area::fast).collect();
        Self {
            of,
            launch,
            lines,
            image,
            places,
            arrays,
            rights,
            areas,
            bounds,
            order: Order::default(),
            block: None,
            racing_write: None,
            unwritten_read: None,
            fast_path,
            fast_areas,
            accesses: 0,
            collected: Collected::default(),
            accesses_max: u64::MAX,
            returned: HashSet::new(),
            stopped: HashSet::new(),
            stops: 0,
        }
    }

    /// Checks an access before it happens. Says what must stop if it must not happen.
    pub(super) fn access(&mut self, me: Running, access: MemoryAccess) -> Option<Stop> {
        self.accesses += 1;
        let finding = self.judge(me, access);
        self.open_fast_path(me.thread);
        match finding {
            Some(finding) => Some(self.stop(me, *finding)),
            None if self.accesses > self.accesses_max => self.end(),
            None => None,
        }
    }

    /// Lets compiled code check simple accesses itself, unless the next one may be an error.
    fn open_fast_path(&self, thread: u32) {
        let can_open = self.racing_write.is_none() && self.collected.is_empty();
        match self.order.fast_stamps().filter(|_| can_open) {
            Some(stamps) => {
                self.fast_path.open(self.order.stamp(thread).0, stamps, &self.fast_areas);
            }
            None => self.fast_path.close(),
        }
    }

    /// The accesses until now.
    pub(super) fn accesses(&self) -> u64 {
        self.accesses + self.fast_path.accesses()
    }

    fn judge(&mut self, me: Running, access: MemoryAccess) -> Option<Box<Finding>> {
        self.compare_racing_write(Some(access.touch));
        let unwritten_read = self.settle_copy();
        let MemoryAccess { address, len_bytes, .. } = access;
        self.enter(me.block);
        if address.wrapping_sub(me.stack.0) < me.stack.1 - me.stack.0 {
            self.fast_path.set_stack(me.stack.0..me.stack.1);
            return None;
        }
        let Some(index) = self.area_of(address) else {
            return self.outside_of_areas(me, access);
        };
        let access = self.as_ordered(me, access);
        let area = &mut self.areas[index];
        if len_bytes > area.len_bytes - (address - area.start) {
            return Some(self.finding(FindingKind::OutOfBounds, me, access, None));
        }
        if access.is_number() && address & (len_bytes - 1) != 0 {
            return Some(self.finding(FindingKind::Misaligned, me, access, None));
        }
        if access.touch.is_atomic() {
            self.order.pass_atomic(me.thread, address, access.touch);
        }
        let stamp = self.order.stamp(me.thread);
        let swaps =
            access.is_swap && self.collected.swap(stamp, address) | area.forget_read(access, stamp);
        let rights = &self.rights;
        let rights = |argument: usize| rights[argument];
        // Written once more, it may be a sum, for which the read came too early.
        let copied = unwritten_read.filter(|_| area.is_unwritten_of_block(access, stamp));
        let outcome = area.access(access, stamp, &self.order, rights);
        let copied = copied.filter(|_| outcome.is_ok());
        self.unwritten_read = copied.and_then(|read| read.followed_by(stamp, access));
        self.fast_areas[index] = area.fast();
        match outcome {
            Ok(()) => None,
            // Others have read it to compare and swap it too.
            Err((_, AccessFault::Race(earlier))) if swaps && earlier.is_reading() => None,
            Err((address, fault)) => self.fault(fault, me, access, address),
        }
    }

    /// An access as it is ordered. A volatile read may be that of a flag, which conflicts with
    /// nothing but plain writes. A volatile write is one of a flag if it is the first behind a
    /// fence, and else a plain one.
    #[inline]
    fn as_ordered(&mut self, me: Running, access: MemoryAccess) -> MemoryAccess {
        let touch = match access.touch {
            Touch::Read if access.is_volatile => Touch::AtomicRead,
            Touch::Write if access.is_volatile && self.order.signals(me.thread) => {
                Touch::AtomicWrite
            }
            plain => plain,
        };
        MemoryAccess { touch, ..access }
    }

    #[cold]
    fn fault(
        &mut self,
        fault: AccessFault,
        me: Running,
        access: MemoryAccess,
        address: usize,
    ) -> Option<Box<Finding>> {
        let at = MemoryAccess { address, ..access };
        match fault {
            AccessFault::Gap => Some(self.finding(FindingKind::OutOfBounds, me, at, None)),
            AccessFault::ReadOnly => Some(self.finding(FindingKind::WriteToInput, me, at, None)),
            // A thread that was stopped may not have written it.
            AccessFault::Unwritten if self.stops > 0 => {
                self.accesses_max = 0;
                None
            }
            AccessFault::Unwritten => {
                let is_of_block = |index: usize| self.areas[index].is_of_block();
                let shared = self.area_of(address).filter(|index| is_of_block(*index));
                let stamp = self.order.stamp(me.thread);
                self.unwritten_read = shared.and_then(|_| UnwrittenRead::new(stamp, access));
                let mut finding = self.finding(FindingKind::Uninitialised, me, at, None);
                let area = self.area_of(address).map(|index| &self.areas[index]);
                finding.left_out_by = area.and_then(|area| area.left_out_by(address));
                self.collect(|all| all.add_early_read(*finding, stamp, address));
                None
            }
            AccessFault::RacingWrite(other)
                if !self.of.is_strict && access.len_bytes <= COMPARED_BYTES_MAX =>
            {
                let before = bytes_at(access.address, access.len_bytes);
                self.racing_write = Some(RacingWrite {
                    by: me,
                    access,
                    address,
                    other,
                    before,
                    is_behind_read: false,
                });
                None
            }
            AccessFault::Race(other) | AccessFault::RacingWrite(other) => {
                self.race(me, at, access.address + access.len_bytes, other);
                None
            }
        }
    }

    /// Nothing orders an access, up to an address, and an earlier one.
    fn race(&mut self, me: Running, at: MemoryAccess, end: usize, earlier: Stamp) {
        let MemoryAccess { address, touch, code, .. } = at;
        let is_beside_atomics = !touch.is_atomic() && earlier.is_atomic();
        if is_beside_atomics && self.order.is_behind_updates(address, me.thread) {
            return;
        }
        if touch.writes() && self.is_late(me, address..end, earlier) {
            return;
        }
        let finding = *self.finding(FindingKind::Race, me, at, Some(earlier));
        let stamp = self.order.stamp(me.thread);
        if is_beside_atomics && touch == Touch::Read && at.is_number() {
            self.collect(|all| all.add_read_beside_atomics(finding, stamp, address, code));
        } else {
            self.collect(|all| all.add(finding));
        }
    }

    /// Whether a write that nothing orders makes a race of an early read, or of a write behind one.
    fn is_late(&mut self, me: Running, written: Range<usize>, earlier: Stamp) -> bool {
        let (block, thread) = self.indices(me.block, me.thread);
        self.collected.write_late(earlier, &written, OtherThread { block, thread })
    }

    /// Keeps an error. The launch goes on for a while.
    fn collect(&mut self, add: impl FnOnce(&mut Collected)) {
        if self.collected.is_empty() {
            self.accesses_max = self.accesses + ACCESSES_AFTER_ERROR_MAX;
        }
        add(&mut self.collected);
    }

    /// What has been collected.
    pub(super) fn errors(&mut self) -> Vec<Finding> {
        self.compare_racing_write(None);
        self.settle_copy();
        self.collected.errors()
    }

    /// The last write of what another thread had written is an error, unless it wrote the same.
    #[cold]
    fn compare_racing_write(&mut self, next: Option<Touch>) {
        let Some(write) = self.racing_write.take() else { return };
        let is_other = bytes_at(write.access.address, write.access.len_bytes) != write.before;
        if !is_other && next == Some(Touch::Read) && !write.is_behind_read {
            self.racing_write = Some(RacingWrite { is_behind_read: true, ..write });
            return;
        }
        let RacingWrite { by, access, address, other, .. } = write;
        let written = address..access.address + access.len_bytes;
        if is_other && !self.is_late(by, written, other) {
            let at = MemoryAccess { address, ..access };
            let finding = *self.finding(FindingKind::Race, by, at, Some(other));
            self.collect(|all| all.add(finding));
        }
    }

    /// Looks whether the last two accesses were a copy, now that both have happened. If not, the
    /// next one may still make it one.
    fn settle_copy(&mut self) -> Option<UnwrittenRead> {
        let read = self.unwritten_read.take()?;
        let Some(written) = read.written else { return Some(read) };
        if bytes_at(read.address, read.len_bytes) == bytes_at(written, read.len_bytes) {
            self.collected.copy_early_read(read.address);
            if let Some(index) = self.area_of(written) {
                self.areas[index].forget_write(written, read.len_bytes);
                self.fast_areas[index] = self.areas[index].fast();
            }
        }
        None
    }

    /// An access to none of the areas: to a variable of the library, or out of bounds.
    fn outside_of_areas(&self, me: Running, access: MemoryAccess) -> Option<Box<Finding>> {
        let MemoryAccess { address, len_bytes, touch, .. } = access;
        let holds = |range: &Range<usize>, offset: usize| {
            range.contains(&offset) && len_bytes <= range.end - offset
        };
        let of_thread = address.wrapping_sub(self.places.of_thread);
        let offset = address.wrapping_sub(self.places.image);
        let is_variable = self.image.pointers.iter().any(|range| holds(range, of_thread));
        let is_constant = holds(&self.image.of_header, of_thread)
            || self.image.constants.iter().any(|range| holds(range, offset));
        let is_constant = is_constant && !touch.writes();
        if is_variable || is_constant || heap::holds(address, len_bytes) {
            None
        } else {
            Some(self.finding(FindingKind::OutOfBounds, me, access, None))
        }
    }

    /// Says in a finding which of the launch's arrays it is about.
    #[cold]
    fn name_array(&self, finding: &mut Finding, array: Option<usize>) {
        let LaunchOfKernel { parameters, layouts, array_names, .. } = self.of;
        let parameter = array.map(|index| self.arrays[index].parameter);
        let name = |index| parameters.name(index, layouts.len());
        finding.argument = parameter.map(|index| {
            let of_signature = |layout: &&ParameterLayout| **layout != ParameterLayout::Length;
            layouts[..index].iter().filter(of_signature).count()
        });
        finding.parameter = parameter.and_then(name);
        finding.array = array.and_then(|index| array_names.get(index)).map(|name| (**name).into());
        finding.shape = array.map(|index| self.arrays[index].shape.clone());
    }

    /// All threads of a block, whose number is given, have come to a barrier.
    pub(super) fn pass_barrier(&mut self, block: u64) {
        self.fast_path.close();
        self.enter(block);
        self.order.pass_barrier();
    }

    pub(super) fn pass_warp_barrier(&mut self, block: u64, warp: u32, mask: u32) {
        self.fast_path.close();
        self.enter(block);
        self.order.pass_warp_barrier(warp, mask);
    }

    pub(super) fn pass_fence(&mut self, me: Running) {
        self.fast_path.close();
        self.enter(me.block);
        self.order.pass_fence(me.thread);
    }

    /// Some threads wait at a barrier that others do not reach.
    pub(super) fn missed_barrier(&self, waiting: Running, code: usize, other: u32) -> Box<Finding> {
        let mut finding = self.of_no_memory(FindingKind::MissedBarrier, waiting, code);
        let (block, thread) = self.indices(waiting.block, other);
        finding.other = Some(OtherThread { block, thread });
        finding
    }

    /// Lanes of a warp have met. Lanes that their mask names and that have come to the kernel's end
    /// without them are an error; in strict checks those too that left it by `return`.
    pub(super) fn judge_meeting(&mut self, block: u64, meeting: &Meeting) {
        self.enter(block);
        let Meeting { warp, came, mask, code, .. } = *meeting;
        let first = warp * LANES + came.trailing_zeros();
        let absent = (0..LANES).filter(|lane| (mask & !came) >> lane & 1 == 1);
        let threads_of_block = self.launch.threads();
        let mut threads =
            absent.map(|lane| warp * LANES + lane).filter(|thread| *thread < threads_of_block);
        if let Some(missing) = threads.find(|thread| !self.is_excused(*thread)) {
            let me = Running { block, thread: first, stack: (0, 0) };
            let finding = *self.missed_barrier(me, code, missing);
            self.collect(|all| all.add(finding));
        }
    }

    /// A finding at a place in the code that is about no memory.
    fn of_no_memory(&self, kind: FindingKind, me: Running, code: usize) -> Box<Finding> {
        let access = MemoryAccess {
            address: 0,
            len_bytes: 0,
            touch: Touch::Read,
            extent: Extent::Bytes,
            is_volatile: false,
            is_swap: false,
            code,
        };
        let mut finding = self.finding(kind, me, access, None);
        self.name_array(&mut finding, None);
        finding.variable = None;
        finding.element = None;
        finding
    }

    /// The thread leaves the kernel by `return`, and so does not count at later barriers.
    pub(super) fn pass_return(&mut self, me: Running) {
        self.enter(me.block);
        self.returned.insert(me.thread);
    }

    /// Whether a thread of the running block need not come to a barrier: it has left the kernel by
    /// `return`, or was stopped.
    pub(super) fn is_excused(&self, thread: u32) -> bool {
        self.stopped.contains(&thread) || !self.of.is_strict && self.returned.contains(&thread)
    }

    /// The lines of the source.
    pub(super) fn lines(&self) -> &Lines {
        self.lines
    }

    /// What the launch wrote is left out no longer, and what it did not write of an `Out` is from
    /// now on.
    pub(super) fn tell_left_out(&self) {
        let LaunchOfKernel { left_out, kernel, site, array_names, .. } = self.of;
        for (index, array) in self.arrays.iter().enumerate() {
            let Some(area) = self.area_of_array(index) else { continue };
            match array.access {
                Access::Read => {}
                Access::ReadWrite => {
                    area.written_of_left_out().for_each(|run| left_out.forget(run));
                }
                Access::Overwrite => {
                    self.forget(array);
                    let name = array_names.get(index).cloned().unwrap_or_default();
                    let launch = LeftOutBy { kernel: Arc::clone(kernel), site };
                    left_out.add(&area.unwritten_runs(index), launch, name, array);
                }
            }
        }
    }

    /// The contents of a launch that failed are lost.
    pub(super) fn forget_left_out(&self) {
        self.arrays.iter().filter(|array| array.access.writes()).for_each(|one| self.forget(one));
    }

    fn forget(&self, array: &ArrayOfLaunch) {
        array.for_each_run(&mut |start, len| self.of.left_out.forget(start..start + len));
    }

    fn area_of_array(&self, index: usize) -> Option<&Area> {
        let is_its = |area: &&Area| match &area.contents {
            Contents::Arguments(arguments) => arguments.contains(&index),
            _ => false,
        };
        self.areas.iter().find(is_its)
    }

    /// The notes at the end of the launch: elements of an `Out` that no thread wrote, an `InOut`
    /// whose contents no thread needed, and local variables that the kernel reads too early.
    pub(super) fn notes(&self) -> Vec<Finding> {
        let arrays = self.arrays.iter().enumerate();
        let of_arrays = arrays.filter_map(|(index, array)| self.note(index, array));
        let function = self.of.parameters.function();
        let locals = self.image.unset_locals.iter().filter(|local| local.is_of(function));
        let of_locals = locals.map(|local| Finding {
            variable: Some(Arc::clone(&local.name)),
            line: Some(local.line.clone()),
            ..Finding::new(FindingKind::UninitialisedLocal, self.of.kernel)
        });
        of_arrays.chain(of_locals).collect()
    }

    fn note(&self, index: usize, array: &ArrayOfLaunch) -> Option<Finding> {
        let area = self.area_of_array(index)?;
        let (kind, element, len_bytes) = match array.access {
            Access::Overwrite => {
                let (address, len_bytes) = area.unwritten(index)?;
                (FindingKind::Unwritten, array.index_of(address), len_bytes)
            }
            Access::ReadWrite if area.needs_no_contents(index) => {
                (FindingKind::UnreadContents, None, array.len_bytes())
            }
            _ => return None,
        };
        let mut note = Finding {
            is_write: kind == FindingKind::UnreadContents,
            element,
            len_bytes,
            ..Finding::new(kind, self.of.kernel)
        };
        self.name_array(&mut note, Some(index));
        Some(note)
    }

    /// Another block runs, of which so much is known. Returns what is known of this one.
    pub(super) fn exchange_block(&mut self, other: CheckOfBlock) -> CheckOfBlock {
        // The bytes that these look at may be those of this block's memory.
        self.compare_racing_write(None);
        self.settle_copy();
        let mut of_this = other;
        let is_of_block =
            |area: &Area| matches!(area.contents, Contents::Shared(_) | Contents::DynamicShared);
        let areas = self.areas.iter_mut().filter(|area| is_of_block(area));
        if of_this.areas.is_empty() {
            of_this.areas.extend(areas.map(|area| {
                let range = area.start..area.start + area.len_bytes;
                let new = Area::new(range, UNIT_BYTES, area.contents.clone(), Some(OF_BLOCK));
                std::mem::replace(area, new)
            }));
        } else {
            areas.zip(&mut of_this.areas).for_each(|(area, other)| std::mem::swap(area, other));
        }
        std::mem::swap(&mut self.block, &mut of_this.block);
        std::mem::swap(&mut self.returned, &mut of_this.returned);
        std::mem::swap(&mut self.stopped, &mut of_this.stopped);
        of_this.order = self.order.exchange_block(of_this.order);
        self.fast_path.close();
        self.fast_areas = self.areas.iter_mut().map(Area::fast).collect();
        of_this
    }

    #[inline]
    fn enter(&mut self, block: u64) {
        if self.block != Some(block) {
            self.block = Some(block);
            self.returned.clear();
            self.stopped.clear();
            self.order.start_block(block);
        }
    }

    #[inline(always)]
    fn area_of(&self, address: usize) -> Option<usize> {
        self.bounds.iter().position(|(start, len)| address.wrapping_sub(*start) < *len)
    }

    #[cold]
    fn finding(
        &self,
        kind: FindingKind,
        me: Running,
        access: MemoryAccess,
        other: Option<Stamp>,
    ) -> Box<Finding> {
        let (block, thread) = self.indices(me.block, me.thread);
        let (array, variable, element) = self.place(access.address);
        let other = other.map(|other| {
            let (block, thread) = self.indices(other.block(), other.thread());
            OtherThread { block, thread }
        });
        let mut finding = Box::new(Finding {
            variable,
            element,
            is_write: access.touch.writes(),
            is_volatile: access.is_volatile,
            len_bytes: access.len_bytes,
            block,
            thread,
            other,
            line: self.lines.at(access.code),
            ..Finding::new(kind, self.of.kernel)
        });
        self.name_array(&mut finding, array);
        finding
    }

    /// Which of the arrays, or the variable, is at an address or nearest to it, and the element
    /// there.
    fn place(&self, address: usize) -> (Option<usize>, Option<Arc<str>>, Option<Vec<i64>>) {
        let distance = |range: Range<usize>| {
            range.start.saturating_sub(address).max(address.saturating_sub(range.end - 1))
        };
        let of_area = |area: &&Area| distance(area.start..area.start + area.len_bytes);
        let dynamic = address.wrapping_sub(self.places.dynamic_shared);
        if dynamic < SHARED_BYTES_MAX {
            return (None, Some(DYNAMIC_SHARED.into()), Some(vec![dynamic as i64]));
        }
        let areas = self.areas.iter().filter(|area| area.len_bytes > 0);
        let near = areas.filter(|area| of_area(area) < NEAR_BYTES).min_by_key(of_area);
        let of_heap = heap::near(address)
            .filter(|heap| near.as_ref().is_none_or(|area| of_area(area) >= heap.distance));
        if let Some(heap) = of_heap {
            return (None, Some(heap.name.into()), Some(vec![heap.byte]));
        }
        let Some(area) = near else { return (None, None, None) };
        let offset = address.wrapping_sub(area.start) as i64;
        match &area.contents {
            Contents::Shared(name) | Contents::Global(name) => {
                (None, Some(Arc::clone(name)), Some(vec![offset]))
            }
            Contents::DynamicShared => (None, Some(DYNAMIC_SHARED.into()), Some(vec![offset])),
            Contents::Arguments(arguments) => {
                let own = area.contains(address).then(|| area.argument_at(address)).flatten();
                let nearest = || {
                    arguments
                        .iter()
                        .copied()
                        .min_by_key(|index| distance(self.arrays[*index].range()))
                };
                let array = own.or_else(nearest);
                let element = array.and_then(|index| self.arrays[index].index_of(address));
                (array, None, element)
            }
        }
    }

    /// `blockIdx` and `threadIdx`.
    fn indices(&self, block: u64, thread: u32) -> ([u32; 3], [u32; 3]) {
        let split = |number: u64, [width, height, _]: [u32; 3]| {
            let width = u64::from(width);
            let height = u64::from(height);
            [number % width, number / width % height, number / width / height].map(|of| of as u32)
        };
        (split(block, self.launch.grid), split(u64::from(thread), self.launch.block))
    }
}

impl Drop for LaunchCheck<'_> {
    fn drop(&mut self) {
        // It points to the areas.
        self.fast_path.close();
    }
}

fn rights_of(array: &ArrayOfLaunch) -> Rights {
    Rights { may_write: array.access.writes(), is_written: array.access != Access::Overwrite }
}

/// One area for each group of arguments whose ranges overlap.
fn argument_areas(arrays: &[ArrayOfLaunch]) -> Vec<Area> {
    let mut order: Vec<usize> =
        (0..arrays.len()).filter(|index| !arrays[*index].range().is_empty()).collect();
    order.sort_by_key(|index| arrays[*index].range().start);
    let mut groups: Vec<(Range<usize>, Vec<usize>)> = Vec::new();
    for index in order {
        let range = arrays[index].range();
        match groups.last_mut() {
            Some((group, members)) if range.start < group.end => {
                group.end = group.end.max(range.end);
                members.push(index);
            }
            _ => groups.push((range, vec![index])),
        }
    }
    groups.into_iter().map(|(range, members)| argument_area(arrays, range, members)).collect()
}

fn argument_area(arrays: &[ArrayOfLaunch], range: Range<usize>, members: Vec<usize>) -> Area {
    let element = |index: &usize| 1_usize << arrays[*index].element_bytes.trailing_zeros().min(3);
    let unit_bytes = members.iter().map(element).min().unwrap_or(1);
    let has_no_gap = members.len() == 1 && arrays[members[0]].has_no_gap();
    let rights = has_no_gap.then(|| rights_of(&arrays[members[0]]));
    let mut area = Area::new(range, unit_bytes, Contents::Arguments(members.clone()), rights);
    if !has_no_gap {
        for index in members {
            arrays[index].for_each_run(&mut |start, len_bytes| area.give(start, len_bytes, index));
        }
    }
    area
}

/// The areas of a library's variables.
fn variable_areas(image: &Image, places: &Places) -> Vec<Area> {
    let shifted = |range: &Range<usize>, by: usize| range.start + by..range.end + by;
    let shared = image.shared.iter().map(|variable| {
        let range = shifted(&variable.range, places.of_thread);
        Area::new(range, UNIT_BYTES, Contents::Shared(Arc::clone(&variable.name)), Some(OF_BLOCK))
    });
    let globals = image.globals.iter().map(|variable| {
        let range = shifted(&variable.range, places.image);
        let rights = Rights { may_write: true, is_written: true };
        Area::new(range, UNIT_BYTES, Contents::Global(Arc::clone(&variable.name)), Some(rights))
    });
    shared.chain(globals).collect()
}

/// The bytes at an address of one of the launch's areas.
fn bytes_at(address: usize, len_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; len_bytes];
    let from: *const u8 = std::ptr::with_exposed_provenance(address);
    // SAFETY: the range lies in an area of the launch, whose memory is initialised and alive until
    // the launch has run (`KernelBody::run`), and a checked launch runs on one thread. The pointers
    // of arguments are exposed (`body`), those of variables come from compiled code.
    unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), len_bytes) };
    bytes
}

#[cfg(test)]
mod tests {
    use super::{ArrayOfLaunch, argument_areas};
    use resident_core::Access;

    #[test]
    fn arguments_that_overlap_share_an_area_and_others_have_their_own() {
        let line = |parameter, start, len| {
            ArrayOfLaunch::new(parameter, Access::Read, 4, start, vec![len], vec![1])
        };
        let arrays = [line(0, 0x300, 4), line(1, 0x100, 4), line(2, 0x108, 8), line(3, 0x128, 4)];
        let areas = argument_areas(&arrays);
        let ranges: Vec<_> = areas.iter().map(|area| (area.start, area.len_bytes)).collect();
        assert_eq!(ranges, [(0x100, 0x28), (0x128, 0x10), (0x300, 0x10)]);
    }
}
