//! Uses by region are compared with a model that has a list of pending uses for every element.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Known, Mark, StreamKey, UseEnd, Uses};
use crate::Access;
use crate::Position;
use crate::coherence::{Region, Span};

const SHAPE: [u64; 2] = [4, 5];
/// The number of steps whose regions are compared.
const STEPS_COMPARED: usize = 6;
const START: UseEnd = UseEnd::at(Position::START);

/// A mark as a value that can be ordered: its stream, its end, and whether its failure matters.
type Key = (StreamKey, UseEnd, bool);

fn key(mark: Mark) -> Key {
    (mark.stream, mark.end, mark.written_by().is_some())
}

/// The pending uses of each element, as the module's documentation defines them.
#[derive(Default)]
struct Model {
    elements: Vec<Element>,
}

#[derive(Clone, Default)]
struct Element {
    writer: Option<Mark>,
    readers: Vec<Mark>,
}

impl Model {
    fn new() -> Self {
        Self { elements: vec![Element::default(); (SHAPE[0] * SHAPE[1]) as usize] }
    }

    fn of(&mut self, region: &Region) -> impl Iterator<Item = &mut Element> {
        let inside = |index: usize| {
            region.contains_point(&[index as u64 / SHAPE[1], index as u64 % SHAPE[1]])
        };
        let elements = self.elements.iter_mut().enumerate();
        elements.filter(move |(index, _)| inside(*index)).map(|(_, element)| element)
    }

    fn record(&mut self, region: &Region, access: Access, mark: Mark) {
        for element in self.of(region) {
            if access.writes() {
                *element = Element { writer: Some(mark), readers: Vec::new() };
                continue;
            }
            let same = element.readers.iter_mut().find(|reader| reader.stream == mark.stream);
            match same {
                Some(reader) => reader.end = reader.end.max(mark.end),
                None => element.readers.push(mark),
            }
        }
    }

    fn close(&mut self, region: &Region, stream: StreamKey, position: Position) {
        for writer in self.of(region).filter_map(|element| element.writer.as_mut()) {
            close(writer, stream, position);
        }
    }

    fn close_reads(&mut self, stream: StreamKey, position: Position) {
        let readers = self.elements.iter_mut().flat_map(|element| &mut element.readers);
        readers.for_each(|reader| close(reader, stream, position));
    }

    fn retire(&mut self, region: &Region, is_done: impl Fn(Mark) -> bool) {
        for element in self.of(region) {
            element.writer = element.writer.filter(|writer| !is_done(*writer));
            element.readers.retain(|reader| !is_done(*reader));
        }
    }

    fn conflicts(&mut self, region: &Region, access: Access) -> BTreeSet<Key> {
        let uses = self.of(region).flat_map(|element| {
            let readers = element.readers.iter().filter(|_| access.writes());
            element.writer.iter().chain(readers).copied().map(key).collect::<Vec<_>>()
        });
        uses.collect()
    }
}

fn close(mark: &mut Mark, stream: StreamKey, position: Position) {
    if mark.stream == stream && mark.end == UseEnd::OPEN {
        mark.end = UseEnd::at(position);
    }
}

/// The last use on each stream: what a stream or the host waits for.
fn last_of_each_stream(uses: &BTreeSet<Key>) -> BTreeSet<(StreamKey, UseEnd)> {
    let last = |(stream, end, _): &Key| {
        !uses.iter().any(|(other, later, _)| other == stream && later > end)
    };
    uses.iter().filter(|key| last(key)).map(|(stream, end, _)| (*stream, *end)).collect()
}

/// The uses that are not complete.
fn conflicts(uses: &Uses, region: &Region, access: Access, done: UseEnd) -> BTreeSet<Key> {
    let mut found = BTreeSet::new();
    let is_pending = |mark: Mark| mark.end > done;
    uses.visit_conflicts(Some(region), access, is_pending, |mark| {
        if is_pending(mark) {
            found.insert(key(mark));
        }
    });
    found
}

#[derive(Clone, Debug)]
enum UseStep {
    Record {
        region: Option<Region>,
        access: Access,
        stream: usize,
        is_open: bool,
    },
    Close {
        region: Option<Region>,
        stream: usize,
    },
    CloseReads {
        stream: usize,
    },
    /// Everything up to this many positions before the last one is complete.
    Retire {
        region: Option<Region>,
        behind: u64,
    },
}

impl UseStep {
    fn region(&self) -> Option<Region> {
        match self {
            Self::Record { region, .. } | Self::Close { region, .. } => *region,
            Self::CloseReads { .. } | Self::Retire { .. } => None,
        }
    }
}

fn span(extent: u64) -> impl Strategy<Value = Span> {
    (0..extent, 1..=extent, 1..3_u64)
        .prop_map(move |(start, len, step)| Span::new(start, (start + len).min(extent), step))
}

fn region() -> impl Strategy<Value = Option<Region>> {
    let part = (span(SHAPE[0]), span(SHAPE[1])).prop_map(|(row, column)| {
        let region = Region::new(&[row, column]);
        (region != Region::whole(&SHAPE)).then_some(region)
    });
    prop_oneof![1 => Just(None), 8 => part]
}

fn step() -> impl Strategy<Value = UseStep> {
    let access = prop_oneof![Just(Access::Read), Just(Access::Overwrite), Just(Access::ReadWrite)];
    prop_oneof![
        10 => (region(), access, 0..3_usize, prop::bool::weighted(0.1)).prop_map(
            |(region, access, stream, is_open)| UseStep::Record { region, access, stream, is_open }
        ),
        1 => (region(), 0..3_usize).prop_map(|(region, stream)| UseStep::Close { region, stream }),
        1 => (0..3_usize).prop_map(|stream| UseStep::CloseReads { stream }),
        1 => (region(), 0..8_u64).prop_map(|(region, behind)| UseStep::Retire { region, behind }),
    ]
}

fn run(steps: &[UseStep]) {
    let (mut uses, mut model) = (Uses::default(), Model::new());
    let mut done = UseEnd::at(Position::START);
    let mut regions = elements_and_whole();
    let elements = regions.len();
    for (index, step) in steps.iter().enumerate() {
        let position = Position(index as u64 + 1);
        if let UseStep::Retire { behind, .. } = step {
            done = done.max(UseEnd::at(Position(position.0.saturating_sub(*behind))));
        }
        apply(step, position, done, &mut uses, &mut model);
        regions.extend(step.region());
        if regions.len() > elements + STEPS_COMPARED {
            regions.remove(elements);
        }
        compare(&mut uses, &regions, done, &mut model);
    }
}

fn apply(step: &UseStep, position: Position, done: UseEnd, uses: &mut Uses, model: &mut Model) {
    let whole = Region::whole(&SHAPE);
    match step {
        UseStep::Record { region, access, stream, is_open } => {
            let end = if *is_open { UseEnd::OPEN } else { UseEnd::at(position) };
            let mark = if access.writes() && !is_open {
                Mark::write(StreamKey::at(*stream), position)
            } else {
                Mark::lossless(StreamKey::at(*stream), end)
            };
            uses.record(&SHAPE, region.as_ref(), *access, mark);
            model.record(region.as_ref().unwrap_or(&whole), *access, mark);
        }
        UseStep::Close { region, stream } => {
            uses.close(&SHAPE, region.as_ref(), StreamKey::at(*stream), position);
            model.close(region.as_ref().unwrap_or(&whole), StreamKey::at(*stream), position);
        }
        UseStep::CloseReads { stream } => {
            uses.close_reads(StreamKey::at(*stream), position);
            model.close_reads(StreamKey::at(*stream), position);
        }
        UseStep::Retire { region, .. } => {
            uses.retire(&SHAPE, region.as_ref(), |mark| mark.end <= done);
            model.retire(&whole, |mark| mark.end <= done);
        }
    }
}

fn elements_and_whole() -> Vec<Region> {
    let mut regions = vec![Region::whole(&SHAPE)];
    for row in 0..SHAPE[0] {
        for column in 0..SHAPE[1] {
            regions.push(Region::new(&[Span::single(row), Span::single(column)]));
        }
    }
    regions
}

/// Compares the waits of an access of each of these regions: first as they are found, then as
/// `conflicts_only_with` remembers the boxes that they overlap.
fn compare(uses: &mut Uses, regions: &[Region], done: UseEnd, model: &mut Model) {
    for region in regions.iter().chain(regions) {
        for access in [Access::Read, Access::Overwrite] {
            let (found, expected) =
                (conflicts(uses, region, access, done), model.conflicts(region, access));
            assert_eq!(
                last_of_each_stream(&found),
                last_of_each_stream(&expected),
                "{access:?} of {region:?}"
            );
            let writers = |keys: &BTreeSet<Key>| keys.iter().filter(|key| key.2).count();
            assert_eq!(writers(&found), writers(&expected), "{access:?} of {region:?}");
            for stream in (0..3).map(StreamKey::at) {
                let is_only = uses.are_only_on(stream);
                assert!(!is_only || expected.iter().all(|key| key.0 == stream), "{stream:?}");
                let mut visited = BTreeSet::new();
                let visit = |mark| _ = visited.insert(key(mark));
                let only = uses.conflicts_only_with(Some(region), access, stream, visit);
                let is_written = |key: &&Key| key.2 && key.1 > done;
                assert!(visited.iter().filter(is_written).all(|key| found.contains(key)));
                assert!(
                    found.iter().filter(is_written).all(|key| visited.contains(key)),
                    "all writers of {region:?} are visited"
                );
                let is_own = |key: &Key| key.0 == stream;
                assert!(!only || expected.iter().all(is_own), "{region:?}");
                assert!(only || !found.iter().all(is_own) || done > START, "{region:?}");
            }
        }
    }
}

/// Fewer without optimisation.
const CASES: u32 = if cfg!(debug_assertions) { 64 } else { 256 };

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn waits_are_those_of_a_model_with_a_list_for_every_element(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        run(&steps);
    }
}

fn tile(row: u64, column: u64, halo: u64) -> Region {
    let span = |tile: u64| {
        let (start, end) = (tile * 8, tile * 8 + 8);
        Span::new(start.saturating_sub(halo), (end + halo).min(64), 1)
    };
    Region::new(&[span(row), span(column)])
}

/// Sweeps over tiles with halos do not add uses without end, and complete ones leave nothing.
#[test]
fn repeated_sweeps_over_tiles_with_halos_add_nothing() {
    let (shape, stream) = ([64, 64], StreamKey::at(0));
    let mut uses = Uses::default();
    let mut counts = Vec::new();
    for sweep in 0..20_u64 {
        for index in 0..64_u64 {
            let position = Position(sweep * 64 + index + 1);
            let (row, column) = (index * 5 % 64 / 8, index * 5 % 8);
            let read = Mark::lossless(stream, UseEnd::at(position));
            uses.record(&shape, Some(&tile(row, column, 1)), Access::Read, read);
            let write = Mark::write(stream, position);
            uses.record(&shape, Some(&tile(row, column, 0)), Access::Overwrite, write);
        }
        if uses.is_overgrown() {
            uses.retire(&shape, None, |_| false);
        }
        if let Uses::Parts(parts) = &uses {
            counts.push(parts.box_count());
        }
    }
    assert!(counts.iter().all(|count| *count <= 2 * 64 + 1), "{counts:?}");
    uses.retire(&shape, None, |_| true);
    assert!(uses.is_empty());
}

/// Reads of ever new regions are removed once they are complete.
#[test]
fn reads_of_new_regions_are_removed_when_complete() {
    let shape = [1_000_000];
    let mut uses = Uses::default();
    let mut most = 0;
    for position in 1..20_000_u64 {
        let region = Region::new(&[Span::new(position * 37 % 900_000, 950_000, 1)]);
        let mark = Mark::lossless(StreamKey::at(0), UseEnd::at(Position(position)));
        uses.record(&shape, Some(&region), Access::Read, mark);
        if uses.is_overgrown() {
            uses.retire(&shape, None, |mark| mark.end < UseEnd::at(Position(position - 10)));
        }
        if let Uses::Parts(parts) = &uses {
            most = most.max(parts.box_count());
        }
    }
    assert!(most < 100, "{most} uses are kept of which at most 10 are pending");
}

/// Foreign work that may fail by itself: the position that ends it damages the part that it wrote.
#[test]
fn fallible_foreign_work_damages_what_it_wrote() {
    let (shape, stream) = ([8], StreamKey::at(0));
    let (left, right) = (Region::new(&[Span::new(0, 4, 1)]), Region::new(&[Span::new(4, 8, 1)]));
    let mut uses = Uses::default();
    for region in [&left, &right] {
        let open = Mark::foreign(stream, UseEnd::OPEN, Position::START);
        uses.record(&shape, Some(region), Access::Overwrite, open);
    }
    uses.close_fallible(&shape, Some(&left), stream, Position(5));
    uses.close(&shape, Some(&right), stream, Position(6));
    // Closing again changes nothing, as a guard does that drops later.
    uses.close(&shape, Some(&left), stream, Position(9));
    let mut found = Vec::new();
    uses.visit_written_regions(&shape, |region, mark| {
        found.push((*region, mark.end, mark.written_by()));
    });
    found.sort_by_key(|(_, end, _)| *end);
    let [left_end, right_end] = [5, 6].map(|at| UseEnd::at(Position(at)));
    assert_eq!(found, [(left, left_end, Some(Position(5))), (right, right_end, None)]);
}

/// What callers keep of a region may be of any age: uses that are recorded and visited with it are
/// those that are recorded and visited without.
#[test]
fn what_is_known_of_a_region_changes_nothing_however_old_it_is() {
    let boxes = |number: u64| {
        let (row, column) = (number % 3, number / 3 % 4);
        Region::new(&[Span::new(row, row + 2, 1), Span::new(column, column + 1 + number % 2, 1)])
    };
    let (mut known_uses, mut uses) = (Uses::default(), Uses::default());
    let mut known = [Known::default(); 24];
    let (mut random, mut own_count) = (1_u64, 0);
    for step in 1..4_000_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let drawn = random >> 40;
        // Some regions are used often, so that others cut their boxes.
        let at = (drawn % 24).min(drawn / 24 % 24);
        // Now and then all are on one stream.
        let streams = if step / 500 % 2 == 0 { 3 } else { 1 };
        let (region, stream) = (boxes(at), StreamKey::at((drawn / 576 % streams) as usize));
        let access = [Access::Read, Access::ReadWrite][(drawn / 7 % 2) as usize];
        let visited = |uses: &mut Uses, known: Known| {
            let mut found = BTreeSet::new();
            let visit = |mark| found.extend([key(mark)]);
            uses.visit_known_conflicts(&region, known, access, stream, visit);
            found
        };
        let of_known = &mut known[at as usize];
        let found = visited(&mut known_uses, *of_known);
        assert_eq!(found, visited(&mut uses, Known::default()), "{step}");
        let mut expected = BTreeSet::new();
        let is_other = |mark: Mark| mark.stream != stream;
        uses.visit_conflicts(Some(&region), access, is_other, |mark| {
            expected.extend([key(mark)]);
        });
        assert_eq!(found, expected, "{step}");
        let mut all = BTreeSet::new();
        uses.visit_conflicts(None, Access::Overwrite, |_| true, |mark| all.extend([mark.stream]));
        let are_own = known_uses.are_only_on(stream);
        assert!(!are_own || all.iter().all(|other| *other == stream), "{step}: {all:?}");
        own_count += u32::from(are_own);
        let mark = Mark::write(stream, Position(step));
        let mark = if access.writes() { mark } else { Mark::lossless(stream, mark.end) };
        known_uses.record_known(&SHAPE, &region, of_known, access, mark);
        uses.record(&SHAPE, Some(&region), access, mark);
        if drawn.is_multiple_of(50) {
            let is_done = |mark: Mark| mark.end < UseEnd::at(Position(step - step.min(20)));
            known_uses.retire_all(is_done);
            uses.retire_all(is_done);
        }
        if drawn % 400 == 1 {
            let all = Mark::write(stream, Position(step));
            known_uses.record(&SHAPE, None, Access::Overwrite, all);
            uses.record(&SHAPE, None, Access::Overwrite, all);
        }
    }
    assert!(own_count > 20, "{own_count}");
}

/// However many writes came before, those of one stream are known to be alone again soon after they
/// have replaced another's.
#[test]
fn a_stream_is_known_to_be_alone_soon_after_another_wrote() {
    let tile = |number: u64| {
        let row = number % 4;
        Region::new(&[Span::new(row, row + 1, 1), Span::new(0, 2, 1)])
    };
    for before in [10, 1_000] {
        let (mut uses, [own, other]) = (Uses::default(), [0, 1].map(StreamKey::at));
        let mut write = |stream, step: u64| {
            let mark = Mark::write(stream, Position(step));
            uses.record(&SHAPE, Some(&tile(step)), Access::Overwrite, mark);
            uses.are_only_on(own)
        };
        (1..before).for_each(|step| _ = write(own, step));
        assert!(!write(other, before));
        let until = (1..100).find(|step| write(own, before + step));
        assert!(until.is_some_and(|steps| (4..=12).contains(&steps)), "{until:?} after {before}");
    }
}
