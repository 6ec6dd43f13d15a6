//! The copies of plans, and how they are joined.

use super::super::plan::collect_copies;
use super::super::{
    Coherence, Content, Location, LossId, PlannedCopy, Region, RegionMap, Source, Span, Undefined,
};
use super::model::Distances;
use crate::Access;

fn device(index: usize) -> Location {
    Location::slot(index).expect("a slot below 64")
}

fn plan(state: &Coherence, location: Location, region: &Region) -> Vec<PlannedCopy> {
    let mut copies = Vec::new();
    let planned = state.plan(location, region, Access::Read, &Distances, &mut copies);
    assert_eq!(planned, Ok(()));
    copies
}

fn columns(from: u64, to: u64) -> Region {
    Region::new(&[Span::full(8), Span::new(from, to, 1)])
}

#[test]
fn parts_of_one_source_are_one_copy_whatever_other_holders_they_have() {
    let mut state = Coherence::stored(Location::HOST);
    state.apply(&[8, 100], device(2), &columns(20, 30), Access::Read);
    state.apply(&[8, 100], device(3), &columns(40, 50), Access::Read);
    state.apply(&[8, 100], device(3), &columns(40, 50), Access::Read);
    let whole = Region::whole(&[8, 100]);
    let mut copies = plan(&state, device(1), &whole);
    copies.sort_by_key(|copy| (copy.source, copy.region.span(1).start()));
    let from = |location, region| PlannedCopy { source: Source::Location(location), region };
    assert_eq!(
        copies,
        [
            from(Location::HOST, columns(0, 20)),
            from(Location::HOST, columns(30, 40)),
            from(Location::HOST, columns(50, 100)),
            from(device(2), columns(20, 30)),
            from(device(3), columns(40, 50)),
        ]
    );
    // The host is the only source of the elements that are invalid on the devices, so one copy
    // suffices.
    state.invalidate(&[8, 100], device(2), &whole, LossId(0));
    state.invalidate(&[8, 100], device(3), &columns(40, 45), LossId(0));
    let copies = plan(&state, Location::slot(5).expect("a slot"), &columns(0, 45));
    assert_eq!(copies, [from(Location::HOST, columns(0, 45))]);
}

#[test]
fn elements_that_are_valid_at_the_destination_split_a_copy() {
    let mut state = Coherence::stored(Location::HOST);
    state.apply(&[8, 100], device(1), &columns(10, 12), Access::Read);
    assert_eq!(plan(&state, device(1), &columns(0, 100)).len(), 2);
}

#[test]
fn the_cells_of_a_checkerboard_from_one_source_are_one_copy() {
    let mut state = Coherence::stored(device(3));
    for (row, column) in (0..64).flat_map(|row| (0..64).map(move |column| (row, column))) {
        if (row + column) % 2 == 0 {
            let cell = Region::new(&[Span::single(row), Span::single(column)]);
            state.apply(&[64, 64], Location::HOST, &cell, Access::Read);
        }
    }
    assert_eq!(state.box_count(), 64 + 1);
    let whole = Region::whole(&[64, 64]);
    let copies = plan(&state, device(1), &whole);
    assert_eq!(copies, [PlannedCopy { source: Source::Location(device(3)), region: whole }]);
    // The cells that are stale on the host are every second column of every second row. This is one
    // copy.
    assert_eq!(plan(&state, Location::HOST, &whole).len(), 2);
}

#[test]
fn a_lost_part_is_reported_before_one_never_written() {
    let (never, lost) =
        (Content::Undefined(Undefined::Never), Content::Undefined(Undefined::Lost(LossId(3))));
    for (background, exception) in [(never, lost), (lost, never)] {
        let mut contents = RegionMap::new(&[8, 100], background);
        contents.update(&columns(10, 20), |_| exception);
        let state = Coherence::Parts(Box::new(contents));
        let whole = Region::whole(&[8, 100]);
        let costs = Distances;
        let visit = |add: &mut dyn FnMut(&Region, Content)| state.visit_contents(&whole, add);
        let undefined_read =
            collect_copies(visit, &costs, &mut Vec::new()).expect_err("nothing is defined");
        assert_eq!(undefined_read.undefined, Undefined::Lost(LossId(3)));
        assert_eq!(state.common_content(&undefined_read.region), Some(lost));
    }
}
