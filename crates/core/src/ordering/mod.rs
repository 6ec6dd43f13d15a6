//! The order of accesses: the pending writers and readers of one copy of an array, region by
//! region, for which later accesses must wait.
//!
//! The rule is the usual one for a buffer that several CUDA streams use: a read runs after earlier
//! writes of the same bytes, and a write runs after earlier writes and reads of the same bytes. So
//! uses of disjoint regions never wait for each other. This module uses small keys instead of
//! streams; callers convert marks to waits.
//!
//! A [`Mark`] is one use. It ends at a position of its stream, or is *open*: a guard exists, and
//! until the guard drops, other code may queue *foreign work* on the stream. When the guard drops,
//! the mark gets a position.
//!
//! A mark contains two separate facts: when the use is complete (`end`), and which operation's
//! failure damages the bytes (`written_by`). They differ for guards: the use of a guard ends at a
//! position of foreign work, whose failure this library cannot see, but an operation of this
//! library that was queued earlier may still fail and damage the bytes.
//!
//! All readers are kept until they are known to be complete, or until a write is ordered after
//! them. Keeping only the last reader, as cudarc does, would let a write overtake a reader on
//! another stream.
//!
//! [`UniformUses`] has the uses of elements that were all used alike, usually of the whole array.
//! `PartUses` has uses by region.

mod by_region;
mod mark;
mod neighbours;
#[cfg(test)]
mod tests;
mod uniform;

use crate::Access;
use crate::Position;
use crate::coherence::Region;
use by_region::PartUses;
pub use mark::{Mark, StreamKey, UseEnd};
pub use neighbours::Known;
pub use uniform::UniformUses;

/// The pending uses of one copy of an array, by region.
///
/// Methods that may need the shape of the array take it as a parameter. The region `None` means the
/// whole array.
#[derive(Clone, Debug)]
pub enum Uses {
    /// Every element has the same uses: the usual case, which needs no region.
    Uniform(UniformUses),
    /// Uses by region. They are kept even if every element has the same uses again: they keep the
    /// memory of their boxes, so that repeated uses of a part allocate nothing.
    Parts(Box<PartUses>),
}

impl Default for Uses {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Uses {
    /// No pending uses.
    pub const EMPTY: Self = Self::Uniform(UniformUses::EMPTY);

    /// The uses of every element, if all elements have the same uses.
    #[inline]
    pub fn uniform(&self) -> Option<&UniformUses> {
        match self {
            Self::Uniform(uses) => Some(uses),
            Self::Parts(parts) => parts.uniform(),
        }
    }

    /// Like [`uniform`](Self::uniform), but mutable.
    #[inline]
    pub fn uniform_mut(&mut self) -> Option<&mut UniformUses> {
        match self {
            Self::Uniform(uses) => Some(uses),
            Self::Parts(parts) => parts.uniform_mut(),
        }
    }

    /// Visits the uses for which an `access` of `region` must wait, the writers first, some of them
    /// more than once. Visits a read only if `is_wanted` is true for it: this is asked before it is
    /// computed whether the read is pending in the region.
    #[inline]
    pub fn visit_conflicts(
        &self,
        region: Option<&Region>,
        access: Access,
        is_wanted: impl Fn(Mark) -> bool,
        visit: impl FnMut(Mark),
    ) {
        match self {
            Self::Parts(parts) if !parts.is_uniform() => {
                parts.visit_conflicts(region, access, is_wanted, visit);
            }
            _ => {
                if let Some(uses) = self.uniform() {
                    uses.visit_conflicts(access, visit);
                }
            }
        }
    }

    /// As [`UniformUses::conflicts_only_with`], for all of `region`. Also visits the writers of
    /// `region`.
    #[inline]
    pub fn conflicts_only_with(
        &mut self,
        region: Option<&Region>,
        access: Access,
        stream: StreamKey,
        mut visit_writer: impl FnMut(Mark),
    ) -> bool {
        match self {
            Self::Parts(parts) if !parts.is_uniform() => {
                parts.conflicts_only_with(region, access, stream, visit_writer)
            }
            _ => self.uniform().is_none_or(|uses| {
                uses.writer().into_iter().for_each(&mut visit_writer);
                uses.conflicts_only_with(access, stream)
            }),
        }
    }

    /// As [`visit_conflicts`](Self::visit_conflicts), of a region whose boxes may be known, without
    /// reads on `stream`.
    #[inline]
    pub fn visit_known_conflicts(
        &mut self,
        region: &Region,
        known: Known,
        access: Access,
        stream: StreamKey,
        visit: impl FnMut(Mark),
    ) {
        match self {
            Self::Parts(parts) if !parts.is_uniform() => {
                parts.visit_known_conflicts(region, known, access, stream, visit);
            }
            _ => {
                let is_other = |mark: Mark| mark.stream != stream;
                self.visit_conflicts(Some(region), access, is_other, visit);
            }
        }
    }

    /// Whether all uses are on `stream`, which runs work in order. May be `false` although they
    /// are.
    #[inline]
    pub fn are_only_on(&mut self, stream: StreamKey) -> bool {
        match self {
            Self::Parts(parts) if !parts.is_uniform() => parts.are_only_on(stream),
            _ => {
                let uses = self.uniform();
                uses.is_none_or(|uses| uses.conflicts_only_with(Access::Overwrite, stream))
            }
        }
    }

    /// Visits the writers of `region`.
    #[inline]
    pub fn visit_writers(&self, region: Option<&Region>, visit: impl FnMut(Mark)) {
        self.visit_conflicts(region, Access::Read, |_| true, visit);
    }

    /// Visits all writers, with the regions that they wrote.
    pub fn visit_written_regions(&self, shape: &[u64], mut visit: impl FnMut(&Region, Mark)) {
        match self {
            Self::Parts(parts) if !parts.is_uniform() => parts.visit_written_regions(visit),
            _ => {
                let writer = self.uniform().and_then(UniformUses::writer);
                writer.into_iter().for_each(|mark| visit(&Region::whole(shape), mark));
            }
        }
    }

    /// Adds a use of `region`.
    #[inline]
    pub fn record(&mut self, shape: &[u64], region: Option<&Region>, access: Access, mark: Mark) {
        self.change(
            shape,
            region,
            |uses| uses.record(access, mark),
            |parts, region| parts.record(region, access, mark),
        );
    }

    /// As [`record`](Self::record), of a region whose boxes may be known. Sets `known` to the box
    /// of the use, if there is one.
    #[inline]
    pub fn record_known(
        &mut self,
        shape: &[u64],
        region: &Region,
        known: &mut Known,
        access: Access,
        mark: Mark,
    ) {
        match self {
            Self::Parts(parts) if !parts.is_uniform() => {
                parts.record_known(region, known, access, mark);
            }
            _ => self.record(shape, Some(region), access, mark),
        }
    }

    /// The box of earlier uses that is equal to `region`, for later calls with `known`.
    #[inline]
    pub fn find(&self, region: &Region) -> Option<Known> {
        match self {
            Self::Parts(parts) if !parts.is_uniform() => parts.find(region),
            _ => None,
        }
    }

    /// The number of boxes of uses by region.
    pub fn box_count(&self) -> usize {
        match self {
            Self::Parts(parts) if !parts.is_uniform() => parts.box_count(),
            _ => 0,
        }
    }

    /// Closes an open write: its guard was dropped, and the foreign work (queued by other code)
    /// ends before `position`.
    #[inline]
    pub fn close(
        &mut self,
        shape: &[u64],
        region: Option<&Region>,
        stream: StreamKey,
        position: Position,
    ) {
        let close = |writer: &mut Mark| {
            if writer.stream == stream && writer.end == UseEnd::OPEN {
                writer.end = UseEnd::at(position);
            }
        };
        self.change_writers(shape, region, close);
    }

    /// As [`close`](Self::close), for foreign work that this library is told of if it fails: the
    /// bytes are damaged if the operation at `position` fails.
    pub fn close_fallible(
        &mut self,
        shape: &[u64],
        region: Option<&Region>,
        stream: StreamKey,
        position: Position,
    ) {
        let close = |writer: &mut Mark| {
            if writer.stream == stream && writer.end == UseEnd::OPEN {
                *writer = Mark::write(stream, position);
            }
        };
        self.change_writers(shape, region, close);
    }

    /// Closes all open reads on `stream`, whose guards have dropped: the foreign work ends before
    /// `position`.
    pub fn close_reads(&mut self, stream: StreamKey, position: Position) {
        match self {
            Self::Parts(parts) if !parts.is_uniform() => parts.close_reads(stream, position),
            _ => {
                if let Some(uses) = self.uniform_mut() {
                    uses.close_reads(stream, position);
                }
            }
        }
    }

    /// Forgets which operation wrote `region`, since the failure of that operation has been
    /// handled. The use stays pending until it is complete.
    pub fn forget_write_failure(&mut self, shape: &[u64], region: &Region) {
        self.change_writers(shape, Some(region), |writer| writer.written_by = Position::START);
    }

    /// Removes the uses of `region` that are complete. A use of a larger region may be kept.
    pub fn retire(
        &mut self,
        shape: &[u64],
        region: Option<&Region>,
        is_done: impl Fn(Mark) -> bool,
    ) {
        if !self.is_empty() {
            self.change(
                shape,
                region,
                |uses| uses.retire(&is_done),
                |parts, region| parts.retire(region, &is_done),
            );
        }
    }

    /// Removes the complete uses of all elements.
    pub fn retire_all(&mut self, is_done: impl Fn(Mark) -> bool) {
        match self {
            Self::Parts(parts) if !parts.is_uniform() => parts.retire(&parts.whole(), &is_done),
            _ => {
                if let Some(uses) = self.uniform_mut() {
                    uses.retire(&is_done);
                }
            }
        }
    }

    /// Whether there are so many uses by region that it is time to [`retire`](Self::retire) the
    /// complete ones. This is so each time their number has doubled.
    #[inline]
    pub fn is_overgrown(&self) -> bool {
        matches!(self, Self::Parts(parts) if parts.is_overgrown())
    }

    /// Whether no use is pending.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.uniform().is_some_and(UniformUses::is_empty)
    }

    /// Whether any use is open.
    pub fn has_open(&self) -> bool {
        let is_open = |mark: Mark| mark.end == UseEnd::OPEN;
        let mut has_open = false;
        let visit = |mark| has_open |= is_open(mark);
        self.visit_conflicts(None, Access::Overwrite, is_open, visit);
        has_open
    }

    #[inline]
    fn change_writers(
        &mut self,
        shape: &[u64],
        region: Option<&Region>,
        change: impl Fn(&mut Mark),
    ) {
        self.change(
            shape,
            region,
            |uses| uses.change_writer(&change),
            |parts, region| parts.change_writers(region, &change),
        );
    }

    /// Changes the uses of `region` by `to_uniform` if all elements have the same uses and `region`
    /// is the whole array, otherwise by `to_parts`.
    #[inline]
    fn change(
        &mut self,
        shape: &[u64],
        region: Option<&Region>,
        to_uniform: impl FnOnce(&mut UniformUses),
        to_parts: impl FnOnce(&mut PartUses, &Region),
    ) {
        let is_part = |region: &&Region| region.len() != shape.iter().product::<u64>();
        match (self.uniform_mut(), region.filter(is_part)) {
            (Some(uses), None) => to_uniform(uses),
            (_, Some(region)) => to_parts(self.parts(shape), region),
            (None, None) => to_parts(self.parts(shape), &Region::whole(shape)),
        }
    }

    /// The uses by region.
    fn parts(&mut self, shape: &[u64]) -> &mut PartUses {
        if let Self::Uniform(uses) = self {
            *self = Self::Parts(Box::new(PartUses::new(shape, std::mem::take(uses))));
        }
        match self {
            Self::Parts(parts) => {
                parts.separate();
                parts
            }
            Self::Uniform(_) => unreachable!("the uses were just made uses by region"),
        }
    }
}
