//! The shape of plans: pieces that merge, and gaps that are bridged.

use super::super::plan::gather;
use super::super::{
    Coherence, ConstantId, Content, Location, LossId, PlannedCopy, Region, RegionMap, Source, Span,
    Undefined,
};
use super::model::Distances;
use crate::access::Access;

fn device(index: usize) -> Location {
    Location::slot(index).expect("a slot below 64")
}

fn plan(
    state: &Coherence,
    location: Location,
    region: &Region,
    bridged_max: u64,
) -> Vec<PlannedCopy> {
    let mut pieces = Vec::new();
    let planned =
        state.plan(location, region, Access::Read, &Distances { bridged_max }, &mut pieces);
    assert_eq!(planned, Ok(()));
    pieces
}

fn columns(from: u64, to: u64) -> Region {
    Region::new(&[Span::full(8), Span::new(from, to, 1)])
}

#[test]
fn pieces_of_one_source_are_one_copy_whoever_else_holds_them() {
    let mut state = Coherence::stored(&[8, 100], Location::HOST);
    state.apply(device(2), &columns(20, 30), Access::Read);
    state.apply(device(3), &columns(40, 50), Access::Read);
    state.apply(device(3), &columns(40, 50), Access::Read);
    let whole = Region::whole(&[8, 100]);
    let mut pieces = plan(&state, device(1), &whole, 0);
    pieces.sort_by_key(|piece| (piece.source, piece.region.span(1).start()));
    let from =
        |location, region| PlannedCopy { source: Source::Location(location), region, padding: 0 };
    assert_eq!(
        pieces,
        [
            from(Location::HOST, columns(0, 20)),
            from(Location::HOST, columns(30, 40)),
            from(Location::HOST, columns(50, 100)),
            from(device(2), columns(20, 30)),
            from(device(3), columns(40, 50)),
        ]
    );
    // With the copies on devices gone, the host serves all; with one device's copy stale, still one
    // copy.
    state.withdraw(device(2), &whole, LossId(0));
    state.withdraw(device(3), &columns(40, 45), LossId(0));
    let pieces = plan(&state, Location::slot(5).expect("a slot"), &columns(0, 45), 0);
    assert_eq!(pieces, [from(Location::HOST, columns(0, 45))]);
}

/// Columns 10 to 12 are valid at device 1 already, the rest only at the host.
fn with_gap() -> Coherence {
    let mut state = Coherence::stored(&[8, 100], Location::HOST);
    state.apply(device(1), &columns(10, 12), Access::Read);
    state
}

#[test]
fn a_gap_is_left_alone_by_default() {
    assert_eq!(plan(&with_gap(), device(1), &columns(0, 100), 0).len(), 2);
}

#[test]
fn a_gap_that_is_equally_new_on_both_sides_is_bridged_on_demand() {
    let pieces = plan(&with_gap(), device(1), &columns(0, 100), 16);
    assert_eq!(
        pieces,
        [PlannedCopy {
            source: Source::Location(Location::HOST),
            region: columns(0, 100),
            padding: 16
        }]
    );
    assert_eq!(plan(&with_gap(), device(1), &columns(0, 100), 15).len(), 2);
}

#[test]
fn a_gap_that_is_newer_at_the_destination_is_never_bridged() {
    let mut state = with_gap();
    state.apply(device(1), &columns(11, 12), Access::ReadWrite);
    assert_eq!(plan(&state, device(1), &columns(0, 100), 1_000).len(), 2);
}

#[test]
fn a_gap_at_the_host_is_never_bridged() {
    let mut state = Coherence::stored(&[8, 100], device(1));
    state.apply(Location::HOST, &columns(10, 12), Access::Read);
    assert_eq!(plan(&state, Location::HOST, &columns(0, 100), 1_000).len(), 2);
}

#[test]
fn strided_gaps_and_constants_are_bridged_too() {
    let mut state = Coherence::constant(&[90], ConstantId(1));
    let every_third = |from, to| Region::new(&[Span::new(from, to, 3)]);
    state.apply(device(1), &every_third(30, 60), Access::Read);
    let pieces = plan(&state, device(1), &every_third(0, 90), 10);
    let source = Source::Constant(ConstantId(1));
    assert_eq!(pieces, [PlannedCopy { source, region: every_third(0, 90), padding: 10 }]);
    state.write_constant(&every_third(30, 33), ConstantId(2));
    assert_eq!(plan(&state, device(1), &every_third(0, 90), 10).len(), 3);
}

#[test]
fn the_cells_of_a_checkerboard_from_one_source_are_one_copy() {
    let mut state = Coherence::stored(&[64, 64], device(3));
    for (row, column) in (0..64).flat_map(|row| (0..64).map(move |column| (row, column))) {
        if (row + column) % 2 == 0 {
            let cell = Region::new(&[Span::single(row), Span::single(column)]);
            state.apply(Location::HOST, &cell, Access::Read);
        }
    }
    assert_eq!(state.pieces(), 64 * 32 + 1);
    let whole = Region::whole(&[64, 64]);
    let pieces = plan(&state, device(1), &whole, 0);
    assert_eq!(
        pieces,
        [PlannedCopy { source: Source::Location(device(3)), region: whole, padding: 0 }]
    );
    // The host lacks the other half, cell by cell; every second column of every second row is one
    // copy.
    assert_eq!(plan(&state, Location::HOST, &whole, 0).len(), 2);
}

#[test]
fn a_loss_is_named_first_whichever_is_found_first() {
    let (never, lost) =
        (Content::Undefined(Undefined::Never), Content::Undefined(Undefined::Lost(LossId(3))));
    for (background, exception) in [(never, lost), (lost, never)] {
        let mut contents = RegionMap::new(&[8, 100], background);
        contents.update_values(&columns(10, 20), |_| exception);
        let whole = Region::whole(&[8, 100]);
        let costs = Distances { bridged_max: 0 };
        let refusal = gather(&contents, Location::HOST, &whole, &costs, &mut Vec::new())
            .expect_err("nothing is defined");
        assert_eq!(refusal.undefined, Undefined::Lost(LossId(3)));
        assert!(!contents.any(&refusal.region, |_, content| *content != lost));
    }
}
