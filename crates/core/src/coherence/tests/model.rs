//! A naive model of one array: for each cell its true value, the locations where it is valid, and
//! the memory of each location.

use super::super::{
    Coherence, ConstantId, Content, CopyCosts, Holders, Location, LocationSet, LossId, PlannedCopy,
    Region, Source, Span, Undefined,
};
use super::cells::{Cell, cells};
use crate::Access;

/// Copies from the host cost most. Among devices, a lower slot does not mean a lower cost.
pub(super) struct Distances;

impl CopyCosts for Distances {
    fn cost(&self, from: Location) -> u32 {
        if from == Location::HOST { 100 } else { 50 - from.index() as u32 }
    }
}

#[derive(Clone)]
struct ModelCell {
    at: Cell,
    truth: Result<u64, Undefined>,
    constant: Option<ConstantId>,
    valid: Vec<bool>,
    memory: Vec<u64>,
}

/// The model of one array.
#[derive(Clone)]
pub(super) struct Model {
    cells: Vec<ModelCell>,
    locations: usize,
    stamp: u64,
}

fn constant_value(id: ConstantId) -> u64 {
    1_000_000 + u64::from(id.0)
}

fn location(index: usize) -> Location {
    Location::slot(index).expect("a slot below 64")
}

impl Model {
    /// An array that was never written.
    pub(super) fn undefined(shape: &[u64], locations: usize) -> Self {
        let cell = |at| ModelCell {
            at,
            truth: Err(Undefined::Never),
            constant: None,
            valid: vec![false; locations],
            memory: vec![0; locations],
        };
        Self {
            cells: cells(&Region::whole(shape)).into_iter().map(cell).collect(),
            locations,
            stamp: 1,
        }
    }

    fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    fn inside<'a>(&'a mut self, region: &'a Region) -> impl Iterator<Item = &'a mut ModelCell> {
        self.cells.iter_mut().filter(|cell| region.contains_point(&cell.at))
    }

    /// Writes new contents at a location; the memory of all other locations gets new garbage.
    pub(super) fn write(&mut self, at: Location, region: &Region) {
        let stamp = self.next_stamp();
        for cell in self.inside(region) {
            cell.truth = Ok(stamp);
            cell.constant = None;
            for (index, (valid, memory)) in cell.valid.iter_mut().zip(&mut cell.memory).enumerate()
            {
                *valid = index == at.index();
                *memory = if *valid { stamp } else { 1_000 * stamp + index as u64 };
            }
        }
    }

    /// Makes the cell a constant, with which no memory has been filled yet.
    pub(super) fn write_constant(&mut self, region: &Region, id: ConstantId) {
        let stamp = self.next_stamp();
        for cell in self.inside(region) {
            cell.truth = Ok(constant_value(id));
            cell.constant = Some(id);
            cell.valid.fill(false);
            cell.memory.fill(1_000 * stamp);
        }
    }

    /// Fills the copy at a location with garbage.
    pub(super) fn invalidate(&mut self, at: Location, region: &Region, loss: LossId) {
        let stamp = self.next_stamp();
        for cell in self.inside(region) {
            let was_valid = std::mem::take(&mut cell.valid[at.index()]);
            cell.memory[at.index()] = 1_000 * stamp;
            if was_valid && cell.constant.is_none() && !cell.valid.contains(&true) {
                cell.truth = Err(Undefined::Lost(loss));
            }
        }
    }

    /// Takes over what `coarsen` has withdrawn, after checking it: elements are still valid where
    /// they were, except at locations in `withdrawable`, and at one location at least. Returns the
    /// number of elements that became stale somewhere.
    pub(super) fn coarsened(&mut self, state: &Coherence, withdrawable: LocationSet) -> u64 {
        let stamp = self.next_stamp();
        let mut withdrawn = 0;
        for cell in &mut self.cells {
            let element =
                Region::new(&cell.at.iter().map(|index| Span::single(*index)).collect::<Vec<_>>());
            let before = cell.valid.clone();
            for (index, valid) in cell.valid.iter_mut().enumerate() {
                let is_valid = state.is_valid(location(index), &element);
                assert!(*valid || !is_valid, "{:?} became valid", cell.at);
                let may_go = index > 0 && withdrawable.contains(location(index));
                assert!(is_valid == *valid || may_go, "{:?} was withdrawn", cell.at);
                if *valid && !is_valid {
                    cell.memory[index] = 1_000 * stamp + index as u64;
                }
                *valid = is_valid;
            }
            assert!(before == cell.valid || cell.valid.contains(&true), "{:?} is lost", cell.at);
            withdrawn += u64::from(before != cell.valid);
        }
        withdrawn
    }

    /// Checks a plan, performs its copies, and then performs the access. Returns `false` if there
    /// is no plan.
    pub(super) fn access(
        &mut self,
        state: &Coherence,
        at: Location,
        region: &Region,
        access: Access,
        costs: &Distances,
        copies: &mut Vec<PlannedCopy>,
    ) -> bool {
        let undefined = self.inside(region).filter_map(|cell| cell.truth.err()).collect::<Vec<_>>();
        let result = state.plan(at, region, access, costs, copies);
        if access == Access::Overwrite {
            assert!(result.is_ok() && copies.is_empty());
        } else if undefined.is_empty() {
            assert_eq!(result, Ok(()));
            self.copy(at, region, costs, copies);
        } else {
            let undefined_read = result.expect_err("part of the region is undefined");
            assert!(
                copies.is_empty()
                    && region.intersection(&undefined_read.region) == Some(undefined_read.region)
            );
            assert!(
                self.inside(&undefined_read.region)
                    .all(|cell| cell.truth == Err(undefined_read.undefined))
            );
            let lost = undefined.iter().any(|why| matches!(why, Undefined::Lost(_)));
            assert_eq!(
                matches!(undefined_read.undefined, Undefined::Lost(_)),
                lost,
                "losses come first"
            );
            return false;
        }
        if access != Access::Read {
            self.write(at, region);
        }
        true
    }

    /// Performs the copies of a plan, and checks that they write each needed cell that is not valid
    /// at the destination exactly once, and no other cell.
    fn copy(&mut self, at: Location, region: &Region, costs: &Distances, copies: &[PlannedCopy]) {
        for copy in copies {
            for cell in self.inside(&copy.region) {
                let source = match copy.source {
                    Source::Constant(id) => {
                        assert_eq!(cell.constant, Some(id));
                        constant_value(id)
                    }
                    Source::Location(from) => cell.memory[from.index()],
                };
                assert!(!cell.valid[at.index()], "{:?} is copied twice, or was valid", cell.at);
                assert!(region.contains_point(&cell.at), "{:?} is not wanted", cell.at);
                assert_eq!(copy.source, cheapest(cell, costs));
                cell.memory[at.index()] = source;
                cell.valid[at.index()] = true;
            }
        }
        for cell in self.inside(region) {
            assert!(cell.valid[at.index()], "{:?} was not copied", cell.at);
            assert_eq!(Ok(cell.memory[at.index()]), cell.truth);
        }
    }

    /// Checks that the state agrees with the model about each cell.
    pub(super) fn check(&self, shape: &[u64], state: &Coherence) {
        if let Coherence::Parts(contents) = state {
            contents.assert_sound();
        }
        let mut seen = 0;
        state.visit_contents(&Region::whole(shape), |part, content| {
            for cell in self.cells.iter().filter(|cell| part.contains_point(&cell.at)) {
                assert_eq!(content, self.content(cell), "at {:?}", cell.at);
                seen += 1;
            }
        });
        assert_eq!(seen, self.cells.len());
    }

    /// Checks the results of queries about a region and a location.
    pub(super) fn check_answers(
        &mut self,
        shape: &[u64],
        state: &Coherence,
        at: Location,
        region: &Region,
    ) {
        let valid = |cell: &ModelCell| cell.valid[at.index()];
        assert_eq!(
            state.valid_elements(shape, at),
            self.cells.iter().filter(|cell| valid(cell)).count() as u64
        );
        assert_eq!(state.is_valid(at, region), self.inside(region).all(|cell| valid(cell)));
        let only = |cell: &ModelCell| {
            valid(cell)
                && cell.constant.is_none()
                && cell.valid.iter().filter(|valid| **valid).count() == 1
        };
        assert_eq!(state.is_only_at(at, region), self.inside(region).all(|cell| only(cell)));
    }

    fn content(&self, cell: &ModelCell) -> Content {
        let holders = (0..self.locations).filter(|index| cell.valid[*index]);
        let locations =
            holders.fold(LocationSet::empty(), |locations, index| locations.with(location(index)));
        match (cell.truth, cell.constant) {
            (Err(undefined), _) => Content::Undefined(undefined),
            (Ok(_), Some(value)) => Content::Constant { value, filled: locations },
            (Ok(_), None) => Content::Stored(
                Holders::from_locations(locations).expect("a defined cell is valid somewhere"),
            ),
        }
    }
}

/// The content outside all boxes, and the boxes in the order of their slots. Two states for which
/// these are equal behave the same.
pub(super) fn form(state: &Coherence) -> (Content, Vec<(u32, Region, Content)>) {
    match state {
        Coherence::Uniform(content) => (*content, Vec::new()),
        Coherence::Parts(contents) => contents.form(),
    }
}

/// The source from which a cell must be copied: its constant, or the cheapest location.
fn cheapest(cell: &ModelCell, costs: &Distances) -> Source {
    let holders = (0..cell.valid.len()).filter(|index| cell.valid[*index]).map(location);
    match cell.constant {
        Some(id) => Source::Constant(id),
        None => Source::Location(
            holders
                .min_by_key(|from| costs.cost(*from))
                .expect("a defined cell is valid somewhere"),
        ),
    }
}
