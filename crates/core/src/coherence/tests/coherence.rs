//! Compares `Coherence` with the model, under random operations and in named cases.

use proptest::prelude::*;

use super::super::{
    Coherence, ConstantId, Content, Holders, Location, LocationSet, LossId, PlannedCopy, Region,
    Source, Span, Undefined, UndefinedRead,
};
use super::cells::{any_region, any_shape};
use super::model::{Distances, Model, form};
use crate::Access;

const LOCATIONS: usize = 5;

#[derive(Clone, Debug)]
enum RandomOperation {
    Access(Access),
    Constant(u32),
    Invalidate(u32),
    /// Into this many cells, if there are more parts than this share of the elements.
    Coarsen(u64, u64),
}

fn any_operation() -> impl Strategy<Value = RandomOperation> {
    prop_oneof![
        4 => Just(RandomOperation::Access(Access::Read)),
        2 => Just(RandomOperation::Access(Access::ReadWrite)),
        3 => Just(RandomOperation::Access(Access::Overwrite)),
        1 => (0_u32..2).prop_map(RandomOperation::Constant),
        1 => (0_u32..9).prop_map(RandomOperation::Invalidate),
        1 => (1_u64..9, 1_u64..9).prop_map(|(cells, share)| RandomOperation::Coarsen(cells, share)),
    ]
}

type Step = (RandomOperation, usize, Region);

fn any_steps() -> impl Strategy<Value = (Vec<u64>, Vec<Step>)> {
    any_shape().prop_flat_map(|shape| {
        let extents = shape.clone();
        let inside = any_region(&shape).prop_map(move |region| region.clipped(&extents));
        let steps = prop::collection::vec((any_operation(), 0..LOCATIONS, inside), 1..30);
        (Just(shape), steps)
    })
}

proptest! {
    #[test]
    fn random_operations_agree_with_the_model((shape, steps) in any_steps()) {
        let costs = Distances;
        let mut state = Coherence::UNDEFINED;
        let mut model = Model::undefined(&shape, LOCATIONS);
        let mut copies = Vec::new();
        state.apply(&shape, Location::HOST, &Region::whole(&shape), Access::Overwrite);
        model.write(Location::HOST, &Region::whole(&shape));
        for (operation, location, region) in steps {
            let location = Location::slot(location).expect("a slot below 64");
            model.check_answers(&shape, &state, location, &region);
            match operation {
                RandomOperation::Access(access) => {
                    let stepped = step(&shape, &state, location, &region, access, &costs);
                    let granted =
                        model.access(&state, location, &region, access, &costs, &mut copies);
                    prop_assert_eq!(stepped.is_ok(), granted);
                    let Ok((next, planned)) = stepped else { continue };
                    prop_assert_eq!(&planned, &copies);
                    state.apply(&shape, location, &region, access);
                    prop_assert_eq!(form(&next), form(&state));
                    prop_assert!(state.is_valid(location, &region));
                }
                RandomOperation::Constant(id) => {
                    state.write_constant(&shape, &region, ConstantId(id));
                    model.write_constant(&region, ConstantId(id));
                }
                RandomOperation::Invalidate(id) => {
                    state.invalidate(&shape, location, &region, LossId(id));
                    model.invalidate(location, &region, LossId(id));
                }
                RandomOperation::Coarsen(cells, share) => {
                    let withdrawable = LocationSet::of(Location::HOST).with(location);
                    let is_cheaper = |parts: usize, elements| parts as u64 * share > elements;
                    let withdrawn = state.coarsen(cells, withdrawable, is_cheaper);
                    prop_assert_eq!(withdrawn, model.coarsened(&state, withdrawable));
                }
            }
            model.check(&shape, &state);
        }
        check_moved(&Region::whole(&shape), &state);
    }
}

/// What is valid on the host, and only that, is valid at a location to which it is moved, and the
/// rest stays.
fn check_moved(whole: &Region, before: &Coherence) {
    let (mut moved, to) = (before.clone(), device(LOCATIONS));
    moved.move_location(Location::HOST, to);
    before.visit_contents(whole, |part, content| {
        assert_eq!(moved.is_valid(to, part), content.is_valid(Location::HOST));
        assert!(!moved.is_valid(Location::HOST, part));
        for other in (1..LOCATIONS).map(device) {
            assert_eq!(moved.is_valid(other, part), content.is_valid(other));
        }
    });
    moved.move_location(to, Location::HOST);
    moved.visit_contents(whole, |part, content| {
        assert_eq!(before.common_content(part), Some(content));
    });
}

/// A plan and its effect, as a function from state to state.
fn step(
    shape: &[u64],
    state: &Coherence,
    location: Location,
    region: &Region,
    access: Access,
    costs: &Distances,
) -> Result<(Coherence, Vec<PlannedCopy>), UndefinedRead> {
    let mut copies = Vec::new();
    state.plan(location, region, access, costs, &mut copies)?;
    let mut next = state.clone();
    next.apply(shape, location, region, access);
    Ok((next, copies))
}

fn device(index: usize) -> Location {
    Location::slot(index).expect("a slot below 64")
}

#[test]
fn a_read_of_undefined_elements_defines_nothing() {
    let mut state = Coherence::UNDEFINED;
    state.apply(&[8], device(1), &Region::whole(&[8]), Access::Read);
    assert_eq!(state.uniform(), Some(Content::Undefined(Undefined::Never)));
}

#[test]
fn a_constant_is_filled_once_at_each_location_and_never_lost() {
    let whole = Region::whole(&[4, 4]);
    let costs = Distances;
    let state = Coherence::constant(ConstantId(3));
    let (mut state, copies) = step(&[4, 4], &state, device(1), &whole, Access::Read, &costs)
        .expect("a constant is defined");
    assert_eq!(copies, [PlannedCopy { source: Source::Constant(ConstantId(3)), region: whole }]);
    assert_eq!(
        step(&[4, 4], &state, device(1), &whole, Access::Read, &costs).map(|(_, copies)| copies),
        Ok(vec![])
    );
    assert!(!state.is_only_at(device(1), &whole));
    state.invalidate(&[4, 4], device(1), &whole, LossId(0));
    assert_eq!(
        state.uniform(),
        Some(Content::Constant { value: ConstantId(3), filled: LocationSet::empty() })
    );
}

#[test]
fn writes_at_alternating_locations_stay_uniform() {
    let whole = Region::whole(&[16, 16]);
    let mut state = Coherence::stored(Location::HOST);
    for index in [1, 0, 2, 0] {
        state.apply(&[16, 16], device(index), &whole, Access::ReadWrite);
        assert_eq!(state.uniform(), Some(Content::Stored(Holders::of(device(index)))));
    }
    assert!(matches!(state, Coherence::Uniform(_)), "without heap memory");
}

#[test]
fn a_read_reports_lost_elements_before_unwritten_ones() {
    let mut state = Coherence::UNDEFINED;
    let tail = Region::new(&[Span::new(6, 10, 1)]);
    state.apply(&[10], device(2), &tail, Access::Overwrite);
    state.invalidate(&[10], device(2), &tail, LossId(5));
    let undefined_read =
        step(&[10], &state, Location::HOST, &Region::whole(&[10]), Access::Read, &Distances)
            .expect_err("nothing is defined");
    assert_eq!(
        (undefined_read.undefined, undefined_read.region),
        (Undefined::Lost(LossId(5)), tail)
    );
}

/// Many scattered writes on the host become few boxes, and nothing else changes.
#[test]
fn scattered_writes_are_coarsened_to_cells() {
    let shape = [64, 64];
    let mut state = Coherence::stored(Location::HOST);
    state.apply(&shape, device(1), &Region::whole(&shape), Access::Read);
    for index in 0..32 * 16 {
        let at = [index / 16, index % 16 * 4 + (index / 16 + index) % 2];
        let element = Region::new(&at.map(Span::single));
        state.apply(&shape, Location::HOST, &element, Access::Overwrite);
    }
    assert!(state.box_count() > 500);
    let nothing = state.clone().coarsen(8, LocationSet::of(device(1)), |_, _| false);
    assert_eq!(nothing, 0);
    let withdrawn = state.coarsen(8, LocationSet::of(device(1)), |_, _| true);
    assert_eq!((withdrawn, state.box_count()), (32 * 64 - 32 * 16, 2));
    let [upper, lower] =
        [0, 32].map(|row| Region::new(&[Span::new(row, row + 32, 1), Span::full(64)]));
    assert!(state.is_only_at(Location::HOST, &upper));
    assert!(state.is_valid(device(1), &lower) && state.is_valid(Location::HOST, &lower));
}
