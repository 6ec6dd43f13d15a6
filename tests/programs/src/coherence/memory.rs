//! One array's coherence state, compared with a model that has the memory of each location and
//! performs plans cell by cell.

use arbitrary::Arbitrary;

use super::space::{Box, Mask, Space};
use resident_core::Access;
use resident_core::coherence::{
    Coherence, ConstantId, Content, CopyCosts, Holders, Location, LocationSet, LossId, PlannedCopy,
    Region, Source, Undefined, UndefinedRead,
};

/// The largest number of locations in a program.
pub(super) const LOCATIONS_MAX: usize = 5;

/// The initial contents of an array.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Start {
    Undefined,
    Constant,
    Stored,
}

/// The true state of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Undefined(Undefined),
    Constant(ConstantId),
    Stored(u64),
}

/// A cell, and the contents of its memory at each location.
#[derive(Clone)]
struct Cell {
    truth: Truth,
    is_fresh: [bool; LOCATIONS_MAX],
    memory: [u64; LOCATIONS_MAX],
}

/// The cost of a copy from each location.
struct Costs([u8; LOCATIONS_MAX]);

impl CopyCosts for Costs {
    fn cost(&self, from: Location) -> u32 {
        u32::from(self.0[from.index()])
    }
}

/// The state, and the model.
pub(super) struct Memory {
    state: Coherence,
    cells: Vec<Cell>,
    costs: Costs,
    stamp: u64,
}

fn constant_value(id: ConstantId) -> u64 {
    1 << 40 | u64::from(id.0)
}

impl Cell {
    /// The content that the core must report for the cell.
    fn content(&self) -> Content {
        let fresh = (0..LOCATIONS_MAX)
            .filter(|location| self.is_fresh[*location])
            .filter_map(Location::slot);
        let locations = fresh.fold(LocationSet::empty(), LocationSet::with);
        match self.truth {
            Truth::Undefined(why) => Content::Undefined(why),
            Truth::Constant(value) => Content::Constant { value, filled: locations },
            Truth::Stored(_) => Content::Stored(
                Holders::from_locations(locations).expect("a stored cell is fresh somewhere"),
            ),
        }
    }

    /// The source that a copy of the cell must use.
    fn source(&self, costs: &Costs) -> Source {
        let fresh = (0..LOCATIONS_MAX).filter(|location| self.is_fresh[*location]);
        match self.truth {
            Truth::Constant(id) => Source::Constant(id),
            _ => Source::Location(
                fresh
                    .min_by_key(|location| costs.0[*location])
                    .and_then(Location::slot)
                    .expect("a stored cell is fresh somewhere"),
            ),
        }
    }

    /// The cell's value; `None` if it is undefined.
    fn value(&self) -> Option<u64> {
        match self.truth {
            Truth::Undefined(_) => None,
            Truth::Constant(id) => Some(constant_value(id)),
            Truth::Stored(stamp) => Some(stamp),
        }
    }

    /// Replaces a cell's true state. It becomes valid at one location or at none, and its memory at
    /// other locations gets unique garbage.
    fn write(&mut self, truth: Truth, at: Option<Location>, garbage: u64) {
        self.truth = truth;
        self.is_fresh = [false; LOCATIONS_MAX];
        self.memory = std::array::from_fn(|location| garbage + location as u64);
        if let (Some(at), Some(value)) = (at, self.value()) {
            self.is_fresh[at.index()] = true;
            self.memory[at.index()] = value;
        }
    }
}

impl Memory {
    pub(super) fn new(space: &Space, start: Start, costs: [u8; LOCATIONS_MAX]) -> Self {
        let blank = Cell {
            truth: Truth::Undefined(Undefined::Never),
            is_fresh: [false; LOCATIONS_MAX],
            memory: [0; LOCATIONS_MAX],
        };
        let costs = Costs(costs);
        let mut cells = vec![blank; space.len()];
        let state = match start {
            Start::Undefined => Coherence::UNDEFINED,
            Start::Constant => {
                cells
                    .iter_mut()
                    .for_each(|cell| cell.write(Truth::Constant(ConstantId(0)), None, 1));
                Coherence::constant(ConstantId(0))
            }
            Start::Stored => {
                cells
                    .iter_mut()
                    .for_each(|cell| cell.write(Truth::Stored(0), Some(Location::HOST), 1));
                Coherence::stored(Location::HOST)
            }
        };
        Self { state, cells, costs, stamp: 0 }
    }

    fn inside<'a>(&'a mut self, mask: &'a Mask) -> impl Iterator<Item = &'a mut Cell> {
        self.cells.iter_mut().zip(mask).filter(|(_, inside)| **inside).map(|(cell, _)| cell)
    }

    /// A number that was not used before, which serves as a new value or as unique garbage.
    fn next_stamp(&mut self) -> (u64, u64) {
        self.stamp += 1;
        (self.stamp, 1 << 50 | self.stamp << 8)
    }

    pub(super) fn access(&mut self, space: &Space, at: Location, part: &Box, access: Access) {
        let Some((region, mask)) = space.resolve_inside(part) else { return };
        self.check_answers(space, at, &region, &mask);
        let mut copies = vec![PlannedCopy { source: Source::Location(at), region }];
        let outcome = self.state.plan(at, &region, access, &self.costs, &mut copies);
        let undefined: Vec<Undefined> = self.undefined(&mask);
        if access == Access::Overwrite {
            assert!(outcome.is_ok() && copies.is_empty());
        } else if undefined.is_empty() {
            assert_eq!(outcome, Ok(()));
            self.copy(space, at, &mask, &copies);
        } else {
            let undefined_read = outcome.expect_err("part of it is undefined");
            assert!(copies.is_empty());
            return self.check_undefined_read(space, &mask, &undefined_read, &undefined);
        }
        self.state.apply(&space.shape, at, &region, access);
        if access != Access::Read {
            let (stamp, garbage) = self.next_stamp();
            self.inside(&mask).for_each(|cell| cell.write(Truth::Stored(stamp), Some(at), garbage));
        }
        self.check(space);
        assert!(self.state.is_valid(at, &region));
    }

    fn undefined(&mut self, mask: &Mask) -> Vec<Undefined> {
        let why =
            |cell: &mut Cell| if let Truth::Undefined(why) = cell.truth { Some(why) } else { None };
        self.inside(mask).filter_map(why).collect()
    }

    /// Checks that an undefined read names cells that are undefined for the given reason, and that
    /// lost cells are reported before unwritten ones.
    fn check_undefined_read(
        &mut self,
        space: &Space,
        mask: &Mask,
        undefined_read: &UndefinedRead,
        undefined: &[Undefined],
    ) {
        let named = space.disjoint(&[undefined_read.region]);
        assert!(named.iter().zip(mask).all(|(named, inside)| !named || *inside));
        assert!(
            self.inside(&named)
                .all(|cell| cell.truth == Truth::Undefined(undefined_read.undefined))
        );
        let is_lost = |why: &Undefined| matches!(why, Undefined::Lost(_));
        assert_eq!(is_lost(&undefined_read.undefined), undefined.iter().any(is_lost));
    }

    /// Performs a plan, and checks that it copies exactly the needed elements that are not valid at
    /// the destination, each once.
    fn copy(&mut self, space: &Space, at: Location, mask: &Mask, copies: &[PlannedCopy]) {
        let lower_bound =
            self.inside(mask).filter(|cell| !cell.is_fresh[at.index()]).count() as u64;
        let copied: u64 = copies.iter().map(|copy| copy.region.len()).sum();
        assert_eq!(copied, lower_bound, "elements copied and elements needed");
        for copy in copies {
            let target = space.disjoint(&[copy.region]);
            self.cells
                .iter_mut()
                .zip(&target)
                .filter(|(_, inside)| **inside)
                .for_each(|(cell, _)| copy_cell(cell, at, copy, &self.costs));
        }
        for cell in self.inside(mask) {
            assert!(cell.is_fresh[at.index()], "an element was not copied");
            assert_eq!(Some(cell.memory[at.index()]), cell.value());
        }
    }

    pub(super) fn write_constant(&mut self, space: &Space, part: &Box, id: ConstantId) {
        let Some((region, mask)) = space.resolve_inside(part) else { return };
        let (_, garbage) = self.next_stamp();
        self.state.write_constant(&space.shape, &region, id);
        self.inside(&mask).for_each(|cell| cell.write(Truth::Constant(id), None, garbage));
        self.check(space);
    }

    pub(super) fn invalidate(&mut self, space: &Space, at: Location, part: &Box, loss: LossId) {
        let Some((region, mask)) = space.resolve_inside(part) else { return };
        let (_, garbage) = self.next_stamp();
        self.state.invalidate(&space.shape, at, &region, loss);
        for cell in self.inside(&mask) {
            let was_fresh = std::mem::take(&mut cell.is_fresh[at.index()]);
            cell.memory[at.index()] = garbage;
            if was_fresh && matches!(cell.truth, Truth::Stored(_)) && !cell.is_fresh.contains(&true)
            {
                cell.truth = Truth::Undefined(Undefined::Lost(loss));
            }
        }
        self.check(space);
    }

    /// Checks that the state agrees with the model about each cell.
    fn check(&self, space: &Space) {
        let mut parts = Vec::new();
        self.state.visit_contents(&space.whole(), |part, content| parts.push((*part, content)));
        let regions: Vec<Region> = parts.iter().map(|(region, _)| *region).collect();
        assert!(space.disjoint(&regions).iter().all(|seen| *seen));
        for (region, content) in parts {
            let mask = space.mask(&region);
            let described = self.cells.iter().zip(mask).filter(|(_, inside)| *inside);
            described.for_each(|(cell, _)| assert_eq!(content, cell.content()));
        }
        let first = self.cells.first().map(Cell::content);
        let is_uniform = self.cells.iter().all(|cell| Some(cell.content()) == first);
        assert!(self.cells.is_empty() || is_uniform == self.state.uniform().is_some());
        assert!(!is_uniform || first.is_none() || self.state.uniform() == first);
    }

    /// Checks the results of queries to the state.
    fn check_answers(&mut self, space: &Space, at: Location, region: &Region, mask: &Mask) {
        let is_fresh = |cell: &Cell| cell.is_fresh[at.index()];
        let only = |cell: &Cell| cell.content().is_only_at(at);
        assert_eq!(
            self.state.valid_elements(&space.shape, at),
            self.cells.iter().filter(|cell| is_fresh(cell)).count() as u64
        );
        assert_eq!(self.state.is_valid(at, region), self.inside(mask).all(|cell| is_fresh(cell)));
        assert_eq!(self.state.is_only_at(at, region), self.inside(mask).all(|cell| only(cell)));
    }
}

/// Copies one element to its destination.
fn copy_cell(cell: &mut Cell, at: Location, copy: &PlannedCopy, costs: &Costs) {
    let value = match copy.source {
        Source::Constant(id) => {
            assert_eq!(cell.truth, Truth::Constant(id));
            constant_value(id)
        }
        Source::Location(from) => cell.memory[from.index()],
    };
    assert!(!cell.is_fresh[at.index()], "an element is copied twice, or was valid");
    assert_eq!(copy.source, cell.source(costs), "a copy does not come from the cheapest location");
    cell.memory[at.index()] = value;
    cell.is_fresh[at.index()] = true;
}
