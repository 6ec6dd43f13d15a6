//! Two accesses in a row are worth their sum: the same copies, the same state, the same refusals.

use super::super::{Access, Coherence, ConstantId, Place, Region, Span, step};
use super::model::Distances;

const COSTS: Distances = Distances { bridged_max: 0 };
const ACCESSES: [Access; 3] = [Access::Read, Access::ReadWrite, Access::Overwrite];

fn slot(number: usize) -> Place {
    Place::slot(number).expect("three places")
}

/// States in which a region of six elements is valid here, there, partly, or nowhere.
fn states() -> Vec<Coherence> {
    let [whole, half] = [Region::whole(&[6]), Region::new(&[Span::new(2, 5, 1)])];
    let mut states = vec![
        Coherence::undefined(&[6]),
        Coherence::constant(&[6], ConstantId(0)),
        Coherence::stored(&[6], slot(1)),
    ];
    for mut state in states.clone() {
        state.apply(slot(2), &half, Access::Overwrite);
        states.push(state.clone());
        state.apply(Place::HOST, &whole, Access::Read);
        states.push(state);
    }
    states
}

#[test]
fn two_accesses_in_a_row_are_worth_their_sum() {
    let region = Region::new(&[Span::new(1, 6, 1)]);
    for state in states() {
        for place in [Place::HOST, slot(1), slot(2)] {
            for (first, second) in
                ACCESSES.iter().flat_map(|first| ACCESSES.map(|second| (*first, second)))
            {
                let one_by_one = step(&state, place, &region, first, &COSTS).and_then(
                    |(between, mut pieces)| {
                        let (end, more) = step(&between, place, &region, second, &COSTS)?;
                        pieces.extend(more);
                        Ok((end, pieces))
                    },
                );
                let at_once = step(&state, place, &region, first.followed_by(second), &COSTS);
                let in_words = format!("{first:?} then {second:?} at {place:?} of {state:?}");
                assert_eq!(
                    seen(one_by_one.as_ref().ok()),
                    seen(at_once.as_ref().ok()),
                    "{in_words}"
                );
            }
        }
    }
}

/// What a step leads to: each element's content, and how many elements were copied.
fn seen(outcome: Option<&(Coherence, Vec<super::super::Piece>)>) -> Option<(Vec<String>, u64)> {
    let (state, pieces) = outcome?;
    let contents = (0..6).map(|index| {
        let mut content = String::new();
        state.newest(&Region::new(&[Span::single(index)]), |_, found| {
            content = format!("{found:?}")
        });
        content
    });
    Some((contents.collect(), pieces.iter().map(|piece| piece.region.len()).sum()))
}
