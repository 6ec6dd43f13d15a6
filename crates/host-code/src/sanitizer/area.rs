//! One area of memory that a launch may access, and what is known of its units. Pure, but for
//! where the memory for that comes from (`cells`).

use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use super::access::{MemoryAccess, Touch};
use super::cells::Cells;
use super::fast_path::FastArea;
use super::left_out::{LeftOut, LeftOutBytes};
use super::order::{Order, Stamp};
use super::shadow::{self, Cell, UNTOUCHED};

/// What lies in an area.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Contents {
    /// Arguments, by index. There are several if the ranges of parts of one array overlap.
    Arguments(Vec<usize>),
    /// A `__shared__` variable.
    Shared(Arc<str>),
    /// The memory that the launch asks for: `extern __shared__`.
    DynamicShared,
    /// A `__device__` or `__constant__` variable.
    Global(Arc<str>),
}

impl Contents {
    /// Whether each block has such memory of its own, which nothing has written when it starts.
    fn is_of_block(&self) -> bool {
        matches!(self, Self::Shared(_) | Self::DynamicShared)
    }
}

/// What the elements of an argument allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rights {
    pub(super) may_write: bool,
    /// Whether the elements have contents when the launch starts.
    pub(super) is_written: bool,
}

impl Rights {
    /// Of an `In`.
    pub(super) const INPUT: Self = Self { may_write: false, is_written: true };
}

/// What is wrong with an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AccessFault {
    /// The bytes belong to no element.
    Gap,
    /// The argument is an `In`.
    ReadOnly,
    /// Nothing has written the bytes.
    Unwritten,
    /// Another thread's access conflicts.
    Race(Stamp),
    /// Another thread has written the bytes. That is no fault if this thread writes the same value.
    RacingWrite(Stamp),
}

/// A range of addresses with a cell for each of its units, which have `1 << shift` bytes.
#[derive(Debug)]
pub(super) struct Area {
    pub(super) start: usize,
    pub(super) len_bytes: usize,
    pub(super) contents: Contents,
    /// What all its bytes allow. `None` if it is that of the argument which they belong to.
    rights: Option<Rights>,
    shift: u32,
    /// Empty if all bytes may be read only, and have contents.
    cells: Cells,
    /// For each unit, which argument it belongs to: 0 if none. Empty if there are no gaps, and only
    /// one argument.
    owners: Vec<u8>,
    /// What earlier launches left out of these bytes.
    left_out: Vec<LeftOutBytes>,
    /// Whether a thread has read contents that were there when the launch started, and that it may
    /// overwrite.
    reads_contents: bool,
}

impl Area {
    /// An area with units of at most `unit_bytes`, a power of two.
    pub(super) fn new(
        range: Range<usize>,
        unit_bytes: usize,
        contents: Contents,
        rights: Option<Rights>,
    ) -> Self {
        let shift = unit_bytes.trailing_zeros().min(range.start.trailing_zeros()).min(3);
        let len_bytes = range.len();
        let units = if rights == Some(Rights::INPUT) { 0 } else { len_bytes.div_ceil(1 << shift) };
        let start = range.start;
        let cells = Cells::untouched(units);
        let owners = Vec::new();
        Self {
            start,
            len_bytes,
            contents,
            rights,
            shift,
            cells,
            owners,
            left_out: Vec::new(),
            reads_contents: false,
        }
    }

    /// Gives bytes to one of the arguments. All others become gaps.
    pub(super) fn give(&mut self, start: usize, len_bytes: usize, argument: usize) {
        if self.owners.is_empty() {
            self.owners = vec![0; self.cells.len()];
        }
        let owner = argument as u8 + 1;
        let units = self.units(start, len_bytes);
        self.owners[units].fill(owner);
    }

    /// Looks up what earlier launches left out.
    pub(super) fn find_left_out(&mut self, left_out: &LeftOut) {
        // What only `Out` arguments hold is unwritten anyway.
        if self.rights.is_none_or(|rights| rights.is_written) {
            self.left_out = left_out.within(&(self.start..self.start + self.len_bytes));
        }
    }

    /// The kernel whose launch left out the bytes at an address.
    pub(super) fn left_out_by(&self, address: usize) -> Option<Arc<str>> {
        let bytes = self.left_out.iter().find(|bytes| bytes.range.contains(&address));
        bytes.map(|bytes| Arc::clone(&bytes.output.launch.kernel))
    }

    /// Whether an earlier launch left out all of these bytes, and this launch has written none of
    /// them. Others of a record may be padding.
    fn is_left_out(&self, access: MemoryAccess) -> bool {
        let MemoryAccess { address, len_bytes, touch, .. } = access;
        let is_it = |bytes: &LeftOutBytes| {
            bytes.range.contains(&address) && len_bytes <= bytes.range.end - address
        };
        let cells = || self.cells.get(self.units(address, len_bytes)).unwrap_or_default();
        touch.reads() && self.left_out.iter().any(is_it) && cells().iter().all(|cell| cell[0] == 0)
    }

    #[inline]
    pub(super) fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.len_bytes
    }

    /// The argument that an address of this area belongs to.
    pub(super) fn argument_at(&self, address: usize) -> Option<usize> {
        let Contents::Arguments(arguments) = &self.contents else { return None };
        match self.owners.get((address - self.start) >> self.shift) {
            None => arguments.first().copied(),
            Some(owner) => usize::from(*owner).checked_sub(1),
        }
    }

    /// What compiled code needs to check accesses itself. It writes the units until this area is
    /// accessed here, or told again.
    pub(super) fn fast(&mut self) -> FastArea {
        let Some(rights) = self.rights.filter(|_| self.left_out.is_empty()) else {
            return FastArea::NONE;
        };
        let is_input = rights == Rights::INPUT;
        FastArea {
            start: self.start,
            len_bytes: self.len_bytes >> self.shift << self.shift,
            units: if is_input { std::ptr::null_mut() } else { self.cells.as_mut_ptr() },
            unit_bytes: 1 << self.shift,
            may_read_contents: rights.is_written && self.reads_contents,
            is_of_block: self.contents.is_of_block(),
        }
    }

    /// Checks an access to bytes of this area, and records it. The address of a fault is returned
    /// with it.
    #[inline]
    pub(super) fn access(
        &mut self,
        access: MemoryAccess,
        me: Stamp,
        order: &Order,
        rights: impl Fn(usize) -> Rights,
    ) -> Result<(), (usize, AccessFault)> {
        let MemoryAccess { address, len_bytes, touch, .. } = access;
        let is_left_out = !self.left_out.is_empty() && self.is_left_out(access);
        if self.rights == Some(Rights::INPUT) {
            return match (touch.writes(), is_left_out) {
                (true, _) => Err((address, AccessFault::ReadOnly)),
                (false, true) => Err((address, AccessFault::Unwritten)),
                (false, false) => Ok(()),
            };
        }
        let unit_bytes = 1 << self.shift;
        if (address | len_bytes) & (unit_bytes - 1) != 0 {
            self.divide(address | len_bytes);
        }
        let (mut racing, mut unwritten, mut written) = (Ok(()), Ok(()), 0);
        for unit in self.units(address, len_bytes) {
            match self.access_unit(unit, touch, me, order, &rights) {
                Ok(()) => written += 1,
                Err(fault @ AccessFault::RacingWrite(_)) => {
                    racing = Err((self.address(unit), fault));
                }
                // It may be padding.
                Err(fault @ AccessFault::Unwritten) if access.is_record() => {
                    unwritten = unwritten.and(Err((self.address(unit), fault)));
                }
                Err(fault) => return Err((self.address(unit), fault)),
            }
        }
        if is_left_out {
            unwritten = Err((address, AccessFault::Unwritten));
        }
        if written == 0 || is_left_out { racing.and(unwritten) } else { racing }
    }

    #[inline]
    fn access_unit(
        &mut self,
        unit: usize,
        touch: Touch,
        me: Stamp,
        order: &Order,
        rights: &impl Fn(usize) -> Rights,
    ) -> Result<(), AccessFault> {
        let rights = match (self.rights, self.owners.get(unit)) {
            (Some(rights), _) => rights,
            (None, None | Some(0)) => return Err(AccessFault::Gap),
            (None, Some(owner)) => rights(usize::from(*owner) - 1),
        };
        let is_of_block = self.contents.is_of_block();
        let cell = &mut self.cells[unit];
        if is_of_block && is_of_other_block(cell, me) {
            *cell = UNTOUCHED;
        }
        if touch.writes() && !rights.may_write {
            return Err(AccessFault::ReadOnly);
        }
        if touch.reads() && !rights.is_written && cell[0] == 0 {
            // A later write by another thread conflicts with it.
            shadow::record(cell, touch, me, order);
            return Err(AccessFault::Unwritten);
        }
        self.reads_contents |= touch.reads() && cell[0] == 0;
        let earlier = shadow::conflict(cell, touch, me, order);
        // Two plain writes may write the same value.
        let is_of_writes = touch == Touch::Write
            && earlier.is_some_and(|earlier| earlier.0 == cell[0] && !earlier.is_atomic());
        shadow::record(cell, touch, me, order);
        match earlier {
            None => Ok(()),
            Some(earlier) if is_of_writes => Err(AccessFault::RacingWrite(earlier)),
            Some(earlier) => Err(AccessFault::Race(earlier)),
        }
    }

    /// Whether each block has such memory of its own.
    pub(super) fn is_of_block(&self) -> bool {
        self.contents.is_of_block()
    }

    /// Whether the bytes are memory of the block of this thread that it has not written.
    pub(super) fn is_unwritten_of_block(&self, access: MemoryAccess, me: Stamp) -> bool {
        let is_unwritten = |cell: &Cell| cell[0] == 0 || Stamp(cell[0]).block() != me.block();
        let cells = self.cells.get(self.units(access.address, access.len_bytes));
        self.is_of_block() && cells.is_some_and(|cells| cells.iter().all(is_unwritten))
    }

    /// What has been written there counts as nothing.
    pub(super) fn forget_write(&mut self, address: usize, len_bytes: usize) {
        let units = self.units(address, len_bytes);
        self.cells[units].iter_mut().for_each(|cell| cell[0] = 0);
    }

    /// The thread turns out to read the bytes only to compare and swap them. Returns whether it has
    /// read them.
    pub(super) fn forget_read(&mut self, access: MemoryAccess, me: Stamp) -> bool {
        let units = self.units(access.address, access.len_bytes);
        let cells = self.cells.get_mut(units).unwrap_or_default();
        // All of them, so without `any`.
        cells.iter_mut().map(|cell| shadow::forget_read(cell, me)).max() == Some(true)
    }

    /// The lowest address of an element's byte of this argument that no thread has written, and
    /// their number.
    pub(super) fn unwritten(&self, argument: usize) -> Option<(usize, usize)> {
        let is_it = |unit: &usize| self.cells[*unit][0] == 0 && self.is_owned(*unit, argument);
        let mut units = (0..self.cells.len()).filter(is_it);
        let first = units.next()?;
        Some((self.address(first), (1 + units.count()) << self.shift))
    }

    /// The runs of an argument's bytes that no thread has written.
    pub(super) fn unwritten_runs(&self, argument: usize) -> Vec<Range<usize>> {
        self.runs(|unit, cell| cell[0] == 0 && self.is_owned(unit, argument))
    }

    /// The runs of what earlier launches left out, and a thread of this one has written.
    pub(super) fn written_of_left_out(&self) -> impl Iterator<Item = Range<usize>> {
        let is_any = !self.left_out.is_empty();
        let runs = is_any.then(|| self.runs(|_, cell| cell[0] != 0));
        runs.into_iter().flatten()
    }

    /// The runs of units that are such.
    fn runs(&self, is_such: impl Fn(usize, &Cell) -> bool) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for (unit, _) in self.cells.iter().enumerate().filter(|(unit, cell)| is_such(*unit, cell)) {
            let start = self.address(unit);
            let end = start + (1 << self.shift);
            match runs.last_mut() {
                Some(run) if run.end == start => run.end = end,
                _ => runs.push(start..end),
            }
        }
        runs
    }

    fn is_owned(&self, unit: usize, argument: usize) -> bool {
        match self.owners.get(unit) {
            None => true,
            Some(owner) => usize::from(*owner) == argument + 1,
        }
    }

    /// Whether threads have written all bytes of this argument, and read none before.
    pub(super) fn needs_no_contents(&self, argument: usize) -> bool {
        !self.cells.is_empty() && !self.reads_contents && self.unwritten(argument).is_none()
    }

    fn address(&self, unit: usize) -> usize {
        self.start + (unit << self.shift)
    }

    /// The units that hold some bytes.
    #[inline]
    fn units(&self, start: usize, len_bytes: usize) -> Range<usize> {
        let offset = start - self.start;
        offset >> self.shift..(offset + len_bytes).div_ceil(1 << self.shift)
    }

    /// Divides the units, so that those of another size or alignment consist of whole ones.
    #[cold]
    fn divide(&mut self, sizes: usize) {
        let by = self.shift - sizes.trailing_zeros().min(self.shift);
        self.shift -= by;
        self.cells.divide(1 << by);
        self.owners = self.owners.iter().flat_map(|owner| repeat_n(*owner, 1 << by)).collect();
        let units = self.len_bytes.div_ceil(1 << self.shift);
        self.cells.truncate(units);
        self.owners.truncate(units);
    }
}

/// Whether the last accesses are those of an earlier block.
fn is_of_other_block(cell: &Cell, me: Stamp) -> bool {
    cell.iter().any(|word| *word != 0 && Stamp(*word).block() != me.block())
}

#[cfg(test)]
mod tests {
    use super::{AccessFault, Area, Contents, MemoryAccess, Order, Rights, Touch};
    use crate::sanitizer::access::Extent;

    const OUT: Rights = Rights { may_write: true, is_written: false };

    fn access(
        area: &mut Area,
        address: usize,
        len_bytes: usize,
        touch: Touch,
        thread: u32,
    ) -> Option<AccessFault> {
        let mut order = Order::default();
        order.start_block(0);
        let me = order.stamp(thread);
        let (extent, is_volatile, is_swap) = (Extent::Value, false, false);
        let access =
            MemoryAccess { address, len_bytes, touch, extent, is_volatile, is_swap, code: 0 };
        let outcome = area.access(access, me, &order, |_| OUT);
        outcome.err().map(|(_, fault)| fault)
    }

    #[test]
    fn units_are_divided_at_the_first_access_to_less_than_one() {
        let mut area = Area::new(0x1000..0x1010, 4, Contents::Arguments(vec![0]), Some(OUT));
        assert_eq!(access(&mut area, 0x1000, 4, Touch::Write, 1), None);
        assert_eq!(access(&mut area, 0x1004, 1, Touch::Write, 1), None);
        assert_eq!(access(&mut area, 0x1005, 1, Touch::Write, 2), None, "another byte");
        assert_eq!(access(&mut area, 0x1003, 1, Touch::Read, 1), None, "of the first write");
        assert_eq!(access(&mut area, 0x1006, 1, Touch::Read, 1), Some(AccessFault::Unwritten));
        assert_eq!(area.unwritten(0), Some((0x1006, 10)));
    }

    #[test]
    fn bytes_between_elements_belong_to_no_argument() {
        let mut area = Area::new(0x1000..0x1014, 4, Contents::Arguments(vec![0, 3]), None);
        area.give(0x1000, 4, 0);
        area.give(0x1008, 4, 3);
        area.give(0x1010, 4, 0);
        assert_eq!(access(&mut area, 0x1004, 4, Touch::Write, 0), Some(AccessFault::Gap));
        assert_eq!(access(&mut area, 0x1008, 4, Touch::Write, 0), None);
        assert_eq!(area.argument_at(0x1008), Some(3));
        assert_eq!(area.argument_at(0x100c), None);
        assert_eq!(area.unwritten(0), Some((0x1000, 8)));
        assert_eq!(area.unwritten(3), None);
    }
}
