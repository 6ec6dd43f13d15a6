//! One array's state beside actual memory at each location: plans are carried out on it, byte for
//! byte.

use arbitrary::Arbitrary;

use super::space::{Box, Mask, Space};
use crate::access::Access;
use crate::coherence::{
    Coherence, ConstantId, Content, CopyCosts, Holders, Location, LocationSet, LossId, PlannedCopy,
    Refusal, Region, Source, Undefined,
};

/// Places that a program can have.
pub(super) const PLACES_MAX: usize = 5;

/// What an array starts as.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Start {
    Undefined,
    Constant,
    Stored,
}

/// What is true of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Undefined(Undefined),
    Constant(ConstantId),
    Stored(u64),
}

/// A cell, and the memory that it has at each location.
#[derive(Clone)]
struct Cell {
    truth: Truth,
    is_fresh: [bool; PLACES_MAX],
    memory: [u64; PLACES_MAX],
}

/// CopyCosts as they are drawn.
struct Drawn {
    costs: [u8; PLACES_MAX],
    bridged_max: u64,
}

impl CopyCosts for Drawn {
    fn cost(&self, from: Location) -> u32 {
        u32::from(self.costs[from.index()])
    }

    fn bridges(&self, gap_elements: u64) -> bool {
        gap_elements <= self.bridged_max
    }
}

/// The state, and the model.
pub(super) struct Memory {
    state: Coherence,
    cells: Vec<Cell>,
    costs: Drawn,
    stamp: u64,
}

fn constant_value(id: ConstantId) -> u64 {
    1 << 40 | u64::from(id.0)
}

impl Cell {
    /// What the core must say of it.
    fn content(&self) -> Content {
        let fresh =
            (0..PLACES_MAX).filter(|location| self.is_fresh[*location]).filter_map(Location::slot);
        let locations = fresh.fold(LocationSet::empty(), LocationSet::with);
        match self.truth {
            Truth::Undefined(why) => Content::Undefined(why),
            Truth::Constant(value) => Content::Constant { value, filled: locations },
            Truth::Stored(_) => Content::Stored(
                Holders::from_locations(locations).expect("a stored cell is fresh somewhere"),
            ),
        }
    }

    /// Where a copy of it must come from.
    fn source(&self, costs: &Drawn) -> Source {
        let fresh = (0..PLACES_MAX).filter(|location| self.is_fresh[*location]);
        match self.truth {
            Truth::Constant(id) => Source::Constant(id),
            _ => Source::Location(
                fresh
                    .min_by_key(|location| costs.costs[*location])
                    .and_then(Location::slot)
                    .expect("a stored cell is fresh somewhere"),
            ),
        }
    }

    /// Its value; what is undefined has none.
    fn value(&self) -> Option<u64> {
        match self.truth {
            Truth::Undefined(_) => None,
            Truth::Constant(id) => Some(constant_value(id)),
            Truth::Stored(stamp) => Some(stamp),
        }
    }

    /// New truth, fresh at one location or nowhere; all other memory becomes garbage that is
    /// nothing else.
    fn write(&mut self, truth: Truth, at: Option<Location>, garbage: u64) {
        self.truth = truth;
        self.is_fresh = [false; PLACES_MAX];
        self.memory = std::array::from_fn(|location| garbage + location as u64);
        if let (Some(at), Some(value)) = (at, self.value()) {
            self.is_fresh[at.index()] = true;
            self.memory[at.index()] = value;
        }
    }
}

impl Memory {
    pub(super) fn new(
        space: &Space,
        start: Start,
        costs: [u8; PLACES_MAX],
        bridged_max: u8,
    ) -> Self {
        let blank = Cell {
            truth: Truth::Undefined(Undefined::Never),
            is_fresh: [false; PLACES_MAX],
            memory: [0; PLACES_MAX],
        };
        let costs = Drawn { costs, bridged_max: u64::from(bridged_max % 8) };
        let mut cells = vec![blank; space.len()];
        let state = match start {
            Start::Undefined => Coherence::undefined(&space.shape),
            Start::Constant => {
                cells
                    .iter_mut()
                    .for_each(|cell| cell.write(Truth::Constant(ConstantId(0)), None, 1));
                Coherence::constant(&space.shape, ConstantId(0))
            }
            Start::Stored => {
                cells
                    .iter_mut()
                    .for_each(|cell| cell.write(Truth::Stored(0), Some(Location::HOST), 1));
                Coherence::stored(&space.shape, Location::HOST)
            }
        };
        Self { state, cells, costs, stamp: 0 }
    }

    fn inside<'a>(&'a mut self, mask: &'a Mask) -> impl Iterator<Item = &'a mut Cell> {
        self.cells.iter_mut().zip(mask).filter(|(_, inside)| **inside).map(|(cell, _)| cell)
    }

    /// A number that was never seen, and garbage that goes with it.
    fn next_stamp(&mut self) -> (u64, u64) {
        self.stamp += 1;
        (self.stamp, 1 << 50 | self.stamp << 8)
    }

    pub(super) fn access(&mut self, space: &Space, at: Location, part: &Box, access: Access) {
        let (region, mask) = space.resolve(part);
        self.check_answers(at, &region, &mask);
        let mut pieces = vec![PlannedCopy { source: Source::Location(at), region, padding: 7 }];
        let outcome = self.state.plan(at, &region, access, &self.costs, &mut pieces);
        let undefined: Vec<Undefined> = self.undefined(&mask);
        if access == Access::Overwrite {
            assert!(outcome.is_ok() && pieces.is_empty());
        } else if undefined.is_empty() {
            assert_eq!(outcome, Ok(()));
            self.copy(space, at, &mask, &pieces);
        } else {
            let refusal = outcome.expect_err("part of it is undefined");
            assert!(pieces.is_empty());
            return self.check_refusal(space, &mask, &refusal, &undefined);
        }
        self.state.apply(at, &region, access);
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

    /// A refusal names cells that are undefined for the reason it gives; what was lost comes before
    /// what was never written.
    fn check_refusal(
        &mut self,
        space: &Space,
        mask: &Mask,
        refusal: &Refusal,
        undefined: &[Undefined],
    ) {
        let named = space.disjoint(&[refusal.region]);
        assert!(named.iter().zip(mask).all(|(named, inside)| !named || *inside));
        assert!(self.inside(&named).all(|cell| cell.truth == Truth::Undefined(refusal.undefined)));
        let is_lost = |why: &Undefined| matches!(why, Undefined::Lost(_));
        assert_eq!(is_lost(&refusal.undefined), undefined.iter().any(is_lost));
    }

    /// Carries out a plan: what is wanted and not fresh here, once each, and no element that is
    /// fresh here but padding.
    fn copy(&mut self, space: &Space, at: Location, mask: &Mask, pieces: &[PlannedCopy]) {
        let lower_bound =
            self.inside(mask).filter(|cell| !cell.is_fresh[at.index()]).count() as u64;
        let copied: u64 = pieces.iter().map(|piece| piece.region.len() - piece.padding).sum();
        assert_eq!(copied, lower_bound, "elements copied and elements needed");
        for piece in pieces {
            let target = space.disjoint(&[piece.region]);
            let padding: u64 = self
                .cells
                .iter_mut()
                .zip(&target)
                .filter(|(_, inside)| **inside)
                .map(|(cell, _)| arrive(cell, at, piece, &self.costs))
                .sum();
            assert_eq!(padding, piece.padding);
            assert!(padding == 0 || at != Location::HOST, "padding is written at the host");
        }
        for cell in self.inside(mask) {
            assert!(cell.is_fresh[at.index()], "an element was not copied");
            assert_eq!(Some(cell.memory[at.index()]), cell.value());
        }
    }

    pub(super) fn write_constant(&mut self, space: &Space, part: &Box, id: ConstantId) {
        let (region, mask) = space.resolve(part);
        let (_, garbage) = self.next_stamp();
        self.state.write_constant(&region, id);
        self.inside(&mask).for_each(|cell| cell.write(Truth::Constant(id), None, garbage));
        self.check(space);
    }

    pub(super) fn withdraw(&mut self, space: &Space, at: Location, part: &Box, loss: LossId) {
        let (region, mask) = space.resolve(part);
        let (_, garbage) = self.next_stamp();
        self.state.withdraw(at, &region, loss);
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

    /// The state says of each cell what the model knows.
    fn check(&self, space: &Space) {
        let mut parts = Vec::new();
        self.state.newest(&space.whole(), |part, content| parts.push((*part, content)));
        let regions: Vec<Region> = parts.iter().map(|(region, _)| *region).collect();
        assert!(space.disjoint(&regions).iter().all(|seen| *seen));
        for (region, content) in parts {
            let mask = space.mask(&region);
            let told = self.cells.iter().zip(mask).filter(|(_, inside)| *inside);
            told.for_each(|(cell, _)| assert_eq!(content, cell.content()));
        }
        let first = self.cells.first().map(Cell::content);
        let is_uniform = self.cells.iter().all(|cell| Some(cell.content()) == first);
        assert!(self.cells.is_empty() || is_uniform == self.state.uniform().is_some());
        assert!(!is_uniform || first.is_none() || self.state.uniform() == first);
    }

    /// The questions that a state answers.
    fn check_answers(&mut self, at: Location, region: &Region, mask: &Mask) {
        let is_fresh = |cell: &Cell| cell.is_fresh[at.index()];
        let only = |cell: &Cell| cell.content().is_only_at(at);
        assert_eq!(
            self.state.valid_elements(at),
            self.cells.iter().filter(|cell| is_fresh(cell)).count() as u64
        );
        assert_eq!(
            self.state.undefined_elements(),
            self.cells.iter().filter(|cell| cell.value().is_none()).count() as u64
        );
        assert_eq!(self.state.is_valid(at, region), self.inside(mask).all(|cell| is_fresh(cell)));
        assert_eq!(self.state.would_lose(at, region), self.inside(mask).any(|cell| only(cell)));
    }
}

/// One element of a piece arrives at its destination. Says 1 if it is padding, which may change
/// nothing.
fn arrive(cell: &mut Cell, at: Location, piece: &PlannedCopy, costs: &Drawn) -> u64 {
    let value = match piece.source {
        Source::Constant(id) => {
            assert_eq!(cell.truth, Truth::Constant(id));
            constant_value(id)
        }
        Source::Location(from) => cell.memory[from.index()],
    };
    if cell.is_fresh[at.index()] {
        assert_eq!(
            value,
            cell.memory[at.index()],
            "padding changes an element that is valid at the destination"
        );
        return 1;
    }
    assert_eq!(piece.source, cell.source(costs), "a copy does not come from the nearest location");
    cell.memory[at.index()] = value;
    cell.is_fresh[at.index()] = true;
    0
}
