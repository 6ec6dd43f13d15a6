//! The protocol under random operations against the model, and named cases.

use crate::access::Access;
use proptest::prelude::*;

use super::super::{
    Coherence, ConstantId, Content, Holders, Location, LocationSet, LossId, PlannedCopy, Region,
    Source, Span, Undefined, step,
};
use super::cells::{any_region, any_shape};
use super::model::{Distances, Model};

const PLACES: usize = 5;

#[derive(Clone, Debug)]
enum Operation {
    Access(Access),
    Constant(u32),
    Withdraw(u32),
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => Just(Operation::Access(Access::Read)),
        2 => Just(Operation::Access(Access::ReadWrite)),
        3 => Just(Operation::Access(Access::Overwrite)),
        1 => (0_u32..2).prop_map(Operation::Constant),
        1 => (0_u32..9).prop_map(Operation::Withdraw),
    ]
}

type Step = (Operation, usize, Region);

fn any_steps() -> impl Strategy<Value = (Vec<u64>, Vec<Step>)> {
    any_shape().prop_flat_map(|shape| {
        let steps = prop::collection::vec((any_operation(), 0..PLACES, any_region(&shape)), 1..30);
        (Just(shape), steps)
    })
}

proptest! {
    #[test]
    fn random_operations_agree_with_the_model((shape, steps) in any_steps(), bridged_max in 0_u64..4) {
        let costs = Distances { bridged_max };
        let mut state = Coherence::undefined(&shape);
        let mut model = Model::undefined(&shape, PLACES);
        let mut pieces = Vec::new();
        state.apply(Location::HOST, &Region::whole(&shape), Access::Overwrite);
        model.write(Location::HOST, &Region::whole(&shape));
        for (operation, location, region) in steps {
            let location = Location::slot(location).expect("a slot below 64");
            model.check_answers(&state, location, &region);
            match operation {
                Operation::Access(access) => {
                    let stepped = step(&state, location, &region, access, &costs);
                    let granted = model.access(&state, location, &region, access, &costs, &mut pieces);
                    prop_assert_eq!(stepped.is_ok(), granted);
                    let Ok((next, planned)) = stepped else { continue };
                    prop_assert_eq!(&planned, &pieces);
                    state.apply(location, &region, access);
                    prop_assert_eq!(next.contents().form(), state.contents().form());
                    prop_assert!(state.is_valid(location, &region));
                }
                Operation::Constant(id) => {
                    state.write_constant(&region, ConstantId(id));
                    model.write_constant(&region, ConstantId(id));
                }
                Operation::Withdraw(id) => {
                    state.withdraw(location, &region, LossId(id));
                    model.withdraw(location, &region, LossId(id));
                }
            }
            model.check(&state);
        }
    }
}

fn device(index: usize) -> Location {
    Location::slot(index).expect("a slot below 64")
}

#[test]
fn a_read_on_undefined_parts_defines_nothing() {
    let mut state = Coherence::undefined(&[8]);
    state.apply(device(1), &Region::whole(&[8]), Access::Read);
    assert_eq!(state.uniform(), Some(Content::Undefined(Undefined::Never)));
    assert_eq!(state.undefined_elements(), 8);
}

#[test]
fn a_constant_is_filled_once_at_each_place_and_never_lost() {
    let whole = Region::whole(&[4, 4]);
    let costs = Distances { bridged_max: 0 };
    let state = Coherence::constant(&[4, 4], ConstantId(3));
    let (mut state, pieces) =
        step(&state, device(1), &whole, Access::Read, &costs).expect("a constant is defined");
    assert_eq!(
        pieces,
        [PlannedCopy { source: Source::Constant(ConstantId(3)), region: whole, padding: 0 }]
    );
    assert_eq!(
        step(&state, device(1), &whole, Access::Read, &costs).map(|(_, pieces)| pieces),
        Ok(vec![])
    );
    assert!(!state.would_lose(device(1), &whole));
    state.withdraw(device(1), &whole, LossId(0));
    assert_eq!(
        state.uniform(),
        Some(Content::Constant { value: ConstantId(3), filled: LocationSet::empty() })
    );
}

#[test]
fn a_flip_of_sides_stays_uniform() {
    let whole = Region::whole(&[16, 16]);
    let mut state = Coherence::stored(&[16, 16], Location::HOST);
    for index in [1, 0, 2, 0] {
        state.apply(device(index), &whole, Access::ReadWrite);
        assert_eq!(state.uniform(), Some(Content::Stored(Holders::of(device(index)))));
    }
    assert_eq!(state.heap_bytes(), 0);
}

#[test]
fn what_is_lost_says_so_before_what_never_was() {
    let mut state = Coherence::undefined(&[10]);
    let tail = Region::new(&[Span::new(6, 10, 1)]);
    state.apply(device(2), &tail, Access::Overwrite);
    state.withdraw(device(2), &tail, LossId(5));
    let refusal = step(
        &state,
        Location::HOST,
        &Region::whole(&[10]),
        Access::Read,
        &Distances { bridged_max: 0 },
    )
    .expect_err("nothing is defined");
    assert_eq!((refusal.undefined, refusal.region), (Undefined::Lost(LossId(5)), tail));
}
