//! Runs every sequence of operations up to a depth, over a host and two devices, on the whole array
//! and three overlapping boxes, and compares with the model.
//!
//! If two sequences lead to states with the same boxes in the same slots, later operations have the
//! same effect on both. So each state is continued only once, from the shortest sequence. Such
//! sequences can differ only in stale memory. No check accepts stale memory, because the model
//! fills it with new garbage.

use std::collections::HashSet;

use super::super::{
    Coherence, ConstantId, Location, LocationSet, LossId, PlannedCopy, Region, Span,
};
use super::model::{Distances, Model, form};
use crate::Access;

const LOCATIONS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum SweepOperation {
    Access(Location, Region, Access),
    Constant(Region, ConstantId),
    Invalidate(Location, Region, LossId),
    /// Into at most so many cells; the locations whose copies may be withdrawn.
    Coarsen(u64, LocationSet),
}

fn locations() -> impl Iterator<Item = Location> {
    (0..LOCATIONS).filter_map(Location::slot)
}

fn accesses(regions: &[Region]) -> Vec<SweepOperation> {
    let mut operations = Vec::new();
    for (location, region) in
        locations().flat_map(|location| regions.iter().map(move |region| (location, *region)))
    {
        for access in [Access::Read, Access::ReadWrite, Access::Overwrite] {
            operations.push(SweepOperation::Access(location, region, access));
        }
    }
    operations
}

fn all_operations(regions: &[Region]) -> Vec<SweepOperation> {
    let constants = regions.iter().map(|region| SweepOperation::Constant(*region, ConstantId(1)));
    let invalidations = locations().flat_map(|location| {
        regions.iter().map(move |region| SweepOperation::Invalidate(location, *region, LossId(7)))
    });
    accesses(regions).into_iter().chain(constants).chain(invalidations).collect()
}

/// Coarsening into one cell, two and three, of which each set of devices may be withdrawn from.
fn coarsenings() -> impl Iterator<Item = SweepOperation> {
    let [_, one, two] = [0, 1, 2].map(|slot| Location::slot(slot).expect("a location"));
    let sets = [LocationSet::of(one), LocationSet::of(two), LocationSet::of(one).with(two)];
    sets.into_iter().flat_map(|set| (1..=3).map(move |cells| SweepOperation::Coarsen(cells, set)))
}

/// Performs the operation on the state and on the model, with all checks.
fn perform(
    shape: &[u64],
    state: &mut Coherence,
    model: &mut Model,
    operation: SweepOperation,
    copies: &mut Vec<PlannedCopy>,
) {
    match operation {
        SweepOperation::Access(location, region, access) => {
            if !model.access(state, location, &region, access, &Distances, copies) {
                return;
            }
            state.apply(shape, location, &region, access);
        }
        SweepOperation::Constant(region, value) => {
            state.write_constant(shape, &region, value);
            model.write_constant(&region, value);
        }
        SweepOperation::Invalidate(location, region, loss) => {
            state.invalidate(shape, location, &region, loss);
            model.invalidate(location, &region, loss);
        }
        SweepOperation::Coarsen(cells, withdrawable) => {
            let withdrawn = state.coarsen(cells, withdrawable, |_, _| true);
            assert_eq!(withdrawn, model.coarsened(state, withdrawable));
        }
    }
    model.check(shape, state);
}

/// The number of different states to which sequences of fewer than `depth` operations lead.
fn sweep(
    shape: &[u64],
    state: Coherence,
    model: Model,
    operations: &[SweepOperation],
    depth: usize,
) -> usize {
    let mut seen = HashSet::from([form(&state)]);
    let mut level = vec![(state, model)];
    let mut copies = Vec::new();
    for remaining in (0..depth).rev() {
        let mut next_level = Vec::new();
        for (state, model) in &level {
            for operation in operations {
                let (mut state, mut model) = (state.clone(), model.clone());
                perform(shape, &mut state, &mut model, *operation, &mut copies);
                if remaining > 0 && seen.insert(form(&state)) {
                    next_level.push((state, model));
                }
            }
        }
        level = next_level;
    }
    seen.len()
}

fn starts(shape: &[u64]) -> [(Coherence, Model); 3] {
    let whole = Region::whole(shape);
    let undefined = Model::undefined(shape, LOCATIONS);
    let (mut constant, mut stored) = (undefined.clone(), undefined.clone());
    constant.write_constant(&whole, ConstantId(1));
    stored.write(Location::HOST, &whole);
    [
        (Coherence::stored(Location::HOST), stored),
        (Coherence::constant(ConstantId(1)), constant),
        (Coherence::UNDEFINED, undefined),
    ]
}

/// The whole array, two boxes that overlap, and a strided one that overlaps both.
fn line() -> ([u64; 1], Vec<Region>) {
    let spans = [Span::full(6), Span::new(0, 4, 1), Span::new(2, 6, 1), Span::new(1, 6, 2)];
    ([6], spans.iter().map(|span| Region::new(&[*span])).collect())
}

/// The whole array, an inner box that touches one side, a row, and a strided box, all overlapping.
fn square() -> ([u64; 2], Vec<Region>) {
    let spans = [
        [Span::full(3), Span::full(3)],
        [Span::new(0, 2, 1), Span::new(1, 3, 1)],
        [Span::single(1), Span::full(3)],
        [Span::full(3), Span::new(0, 3, 2)],
    ];
    ([3, 3], spans.iter().map(|spans| Region::new(spans)).collect())
}

/// Sweeps from each start, one level less deep without optimisation: the last level takes nine
/// tenths of the time. `scripts/long-checks long` has it.
fn sweep_all(shape: &[u64], operations: &[SweepOperation], depth: usize, states_min: usize) {
    let is_whole = !cfg!(debug_assertions);
    let depth = if is_whole { depth } else { depth - 1 };
    for (state, model) in starts(shape) {
        let states = sweep(shape, state, model, operations, depth);
        let states_min = if is_whole { states_min } else { states_min / 20 };
        assert!(states > states_min, "{states} states at a depth of {depth}");
    }
}

#[test]
fn accesses_on_a_line() {
    let (shape, regions) = line();
    sweep_all(&shape, &accesses(&regions), 5, 1000);
}

#[test]
fn accesses_on_a_square() {
    let (shape, regions) = square();
    sweep_all(&shape, &accesses(&regions), 4, 1000);
}

/// What coarsening withdraws is copied again like anything stale, and nothing is lost.
#[test]
fn accesses_and_coarsenings() {
    let with_coarsenings = |regions: &[Region]| -> Vec<_> {
        accesses(regions).into_iter().chain(coarsenings()).collect()
    };
    let (shape, regions) = line();
    sweep_all(&shape, &with_coarsenings(&regions), 4, 300);
    let (shape, regions) = square();
    sweep_all(&shape, &with_coarsenings(&regions), 3, 50);
}

#[test]
fn all_operations_on_a_line_and_a_square() {
    let (shape, regions) = line();
    sweep_all(&shape, &all_operations(&regions), 4, 1000);
    let (shape, regions) = square();
    sweep_all(&shape, &all_operations(&regions), 3, 100);
}
