//! Simulates the exchange of all processes in plain arrays, and compares each halo cell with the
//! global array.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use resident::ndarray::{ArrayD, IxDyn, SliceInfoElem, indices};

use super::{Blocks, Cells, Face, Reach, balanced};
use crate::error::Side;

/// A global array with a different value in each cell.
fn value(global: &[usize]) -> u64 {
    1 + global.iter().fold(0, |value, index| value * 1000 + *index as u64)
}

fn slice<const N: usize>(cells: &Cells<N>) -> Vec<SliceInfoElem> {
    cells.ranges().iter().cloned().map(SliceInfoElem::from).collect()
}

fn to_array<const N: usize>(index: &IxDyn) -> [usize; N] {
    std::array::from_fn(|axis| index[axis])
}

/// The arrays of all processes: own cells have their value, halo cells none.
fn locals<const N: usize>(blocks: &Blocks<N>, ranks: usize) -> Vec<ArrayD<u64>> {
    let local = |rank| {
        let mut array = ArrayD::zeros(IxDyn(&blocks.shape_with_halo(rank)));
        let offset = blocks.offset(rank);
        let mut cells = array.slice_mut(&*slice(&blocks.own(rank)));
        for index in indices(cells.raw_dim()) {
            let global: Vec<_> = (0..N).map(|axis| offset[axis] + index[axis]).collect();
            cells[&index] = value(&global);
        }
        array
    };
    (0..ranks).map(local).collect()
}

/// Sends each face by its tag, then receives each. Each message has one receiver of its shape.
fn exchange<const N: usize>(blocks: &Blocks<N>, arrays: &mut [ArrayD<u64>], reach: Reach) {
    let mut messages = BTreeMap::new();
    let faces: Vec<_> = (0..arrays.len()).map(|rank| blocks.faces(rank, reach)).collect();
    for (from, array) in arrays.iter().enumerate() {
        for face in &faces[from] {
            let message = array.slice(&*slice(&face.send)).to_owned();
            let earlier = messages.insert((from, face.rank, face.send_tag), message);
            assert!(earlier.is_none(), "two messages to {} have one tag", face.rank);
        }
    }
    for (to, array) in arrays.iter_mut().enumerate() {
        for Face { rank, receive, receive_tag, .. } in &faces[to] {
            let message = messages.remove(&(*rank, to, *receive_tag)).expect("a message");
            assert_eq!(message.shape(), receive.shape());
            array.slice_mut(&*slice(receive)).assign(&message);
        }
    }
    assert!(messages.is_empty(), "nobody receives {:?}", messages.keys());
}

/// The number of axes along which a cell is in the halo.
fn axes_in_halo<const N: usize>(blocks: &Blocks<N>, rank: usize, local: [usize; N]) -> usize {
    let own = blocks.local_shape(rank);
    let is_in_halo = |axis: &usize| {
        !(blocks.halos()[*axis]..blocks.halos()[*axis] + own[*axis]).contains(&local[*axis])
    };
    (0..N).filter(is_in_halo).count()
}

/// The cell at an index of the torus or the plane, by arithmetic on signed numbers.
fn expected<const N: usize>(
    blocks: &Blocks<N>,
    periodic: [bool; N],
    rank: usize,
    local: [usize; N],
) -> u64 {
    let mut global = [0; N];
    for axis in 0..N {
        let cells = blocks.shape()[axis] as i64;
        let index = (blocks.offset(rank)[axis] + local[axis]) as i64 - blocks.halos()[axis] as i64;
        if !periodic[axis] && !(0..cells).contains(&index) {
            return 0;
        }
        global[axis] = index.rem_euclid(cells) as usize;
    }
    value(&global)
}

/// The exchange of all processes fills each halo cell that it should, and no other.
fn check<const N: usize>(blocks: &Blocks<N>, periodic: [bool; N], reach: Reach) {
    let ranks: usize = blocks.processes().iter().product();
    let mut arrays = locals(blocks, ranks);
    exchange(blocks, &mut arrays, reach);
    for (rank, array) in arrays.iter().enumerate() {
        for (index, found) in array.indexed_iter() {
            let local = to_array(&index);
            let cell = expected(blocks, periodic, rank, local);
            let global = blocks.global_index(rank, local);
            assert_eq!(global.map_or(0, |global| value(&global)), cell);
            let is_exchanged = match axes_in_halo(blocks, rank, local) {
                0 | 1 => true,
                _ => reach == Reach::Corners,
            };
            assert_eq!(*found, if is_exchanged { cell } else { 0 }, "rank {rank} at {local:?}");
        }
    }
    check_ranks(blocks, ranks);
    (0..ranks).for_each(|rank| check_overlap(blocks, rank));
}

/// Core and rims have each own cell once, and what the core reads is in no halo that is exchanged.
fn check_overlap<const N: usize>(blocks: &Blocks<N>, rank: usize) {
    let mut written = ArrayD::<u8>::zeros(IxDyn(&blocks.shape_with_halo(rank)));
    let (core, own) = (blocks.core(rank), blocks.own(rank));
    for part in blocks.rims(rank).iter().chain([&core]) {
        let mut cells = written.slice_mut(&*slice(part));
        cells += 1;
    }
    assert!(written.slice(&*slice(&own)).iter().all(|times| *times == 1));
    assert_eq!(written.iter().map(|times| usize::from(*times)).sum::<usize>(), own.len());
    if core.is_empty() {
        return;
    }
    for face in blocks.faces(rank, Reach::Corners) {
        let ranges = || core.with_halo().ranges().clone().into_iter().zip(face.receive.ranges());
        let is_read = ranges().all(|(a, b)| a.start < b.end && b.start < a.end);
        assert!(!is_read, "the core reads {:?}", face.receive);
    }
}

/// Each rank has other coordinates, each cell one owner, and a step there and back is no step.
fn check_ranks<const N: usize>(blocks: &Blocks<N>, ranks: usize) {
    let mut owners = ArrayD::<u8>::zeros(IxDyn(&blocks.shape()));
    for rank in 0..ranks {
        assert_eq!(blocks.rank(blocks.coordinates(rank)), rank);
        let mut own = owners.slice_mut(&*slice(&Cells::new(blocks.cells(rank), [0; N])));
        own += 1;
        for face in blocks.faces(rank, Reach::Corners) {
            let back = face.direction.map(|step| -step);
            assert_eq!(blocks.towards(face.rank, back), Some(rank));
            assert_ne!(face.send_tag, face.receive_tag);
            assert_eq!(face.send.shape(), face.receive.shape());
        }
        for axis in 0..N {
            let cells = blocks.local_shape(rank)[axis];
            let least = blocks.shape()[axis] / blocks.processes()[axis];
            assert!(cells == least || cells == least + 1);
        }
    }
    assert!(owners.iter().all(|owners| *owners == 1));
}

/// Numbers of one axis: processes, cells, halo, periodic.
fn axis(processes: usize, cells: usize) -> impl Strategy<Value = (usize, usize, usize, bool)> {
    (1..=processes, 0..=cells, 0..=3_usize, any::<bool>())
}

fn check_random<const N: usize>(axes: &[(usize, usize, usize, bool)], corners: bool) {
    let of = |number: fn(&(usize, usize, usize, bool)) -> usize| {
        std::array::from_fn::<_, N, _>(|axis| number(&axes[axis]))
    };
    let periodic = std::array::from_fn(|axis| axes[axis].3);
    let blocks = Blocks::new(of(|axis| axis.1), of(|axis| axis.0), of(|axis| axis.2), periodic);
    let fits = |(processes, cells, halo, periodic): &(usize, usize, usize, bool)| {
        (*processes == 1 && !periodic) || cells / processes >= *halo
    };
    assert_eq!(blocks.is_ok(), axes.iter().take(N).all(fits), "{blocks:?}");
    if let Ok(blocks) = blocks {
        check(&blocks, periodic, if corners { Reach::Corners } else { Reach::Faces });
    }
}

proptest! {
    #[test]
    fn an_exchange_fills_halos_from_the_global_array(
        one in axis(7, 30),
        two in prop::collection::vec(axis(4, 12), 2),
        three in prop::collection::vec(axis(3, 7), 3),
        four in prop::collection::vec(axis(2, 4), 4),
        corners in any::<bool>(),
    ) {
        check_random::<1>(&[one], corners);
        check_random::<2>(&two, corners);
        check_random::<3>(&three, corners);
        check_random::<4>(&four, corners);
    }

    #[test]
    fn automatic_processes_fit_and_have_the_smallest_faces(
        size in 1..=24_usize,
        shape in prop::array::uniform3(1..=40_usize),
        halos in prop::array::uniform3(0..=2_usize),
        periodic in prop::array::uniform3(any::<bool>()),
    ) {
        let chosen = balanced(size, shape, halos, periodic).expect("three axes take any number");
        prop_assert_eq!(chosen.iter().product::<usize>(), size);
        let faces = |processes: [usize; 3]| most_sent(processes, shape, halos, periodic);
        let blocks = |processes| Blocks::new(shape, processes, halos, [false; 3]);
        for processes in triples(size).into_iter().filter(|choice| blocks(*choice).is_ok()) {
            prop_assert!(blocks(chosen).is_ok(), "{chosen:?} does not fit, {processes:?} does");
            let has_empty_parts =
                (0..3).any(|axis| processes[axis] > shape[axis]);
            if !has_empty_parts && halos != [0; 3] {
                prop_assert!(faces(chosen) <= faces(processes), "{chosen:?}, {processes:?}");
            }
        }
    }
}

/// All numbers of processes of three axes.
fn triples(size: usize) -> Vec<[usize; 3]> {
    let factors = || (1..=size).filter(|factor| size.is_multiple_of(*factor));
    let pairs = factors().flat_map(|a| factors().map(move |b| (a, b)));
    pairs.filter(|(a, b)| size.is_multiple_of(a * b)).map(|(a, b)| [a, b, size / (a * b)]).collect()
}

/// The cells that the largest part would send, if it had as many neighbours as any.
fn most_sent(
    processes: [usize; 3],
    shape: [usize; 3],
    halos: [usize; 3],
    periodic: [bool; 3],
) -> usize {
    let part = |axis: usize| shape[axis].div_ceil(processes[axis]);
    let face = |axis: usize| (0..3).filter(|other| *other != axis).map(part).product::<usize>();
    let sides = |axis: usize| match processes[axis] {
        1 => 0,
        2 if !periodic[axis] => 1,
        _ => 2,
    };
    (0..3).map(|axis| sides(axis) * halos[axis] * face(axis)).sum()
}

/// All small decompositions of two axes, one or the other or both of them on one process.
#[test]
fn small_decompositions_are_right() {
    for processes in [[1, 1], [1, 2], [2, 1], [2, 2], [3, 1], [1, 3], [2, 3]] {
        for periodic in [[false, false], [false, true], [true, false], [true, true]] {
            for halos in [[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]] {
                let blocks = Blocks::new([5, 6], processes, halos, periodic);
                for reach in [Reach::Faces, Reach::Corners] {
                    if let Ok(blocks) = &blocks {
                        check(blocks, periodic, reach);
                    }
                }
                assert_eq!(blocks.is_err(), processes[0] == 3 && halos[0] == 2);
            }
        }
    }
}

#[test]
fn known_grids_are_cut_as_expected() {
    let plane = |size, shape, halos| balanced(size, shape, halos, [false; 2]).unwrap();
    assert_eq!(plane(4, [64, 64], [1, 1]), [2, 2]);
    assert_eq!(plane(2, [64, 64], [1, 1]), [2, 1], "of equals, the first axis is cut");
    assert_eq!(plane(6, [10, 1000], [1, 1]), [1, 6]);
    assert_eq!(plane(4, [64, 64], [0, 1]), [4, 1], "no halo, no faces");
    assert_eq!(plane(4, [64, 64], [0, 0]), [2, 2], "as if the halo were one cell wide");
    assert_eq!(plane(4, [3, 100], [1, 3]), [1, 4]);
    assert_eq!(plane(97, [1000, 1000], [1, 1]), [97, 1]);
    let torus = |size, shape| balanced(size, shape, [1; 3], [true; 3]);
    assert_eq!(torus(8, [64, 64, 64]), Some([2, 2, 2]));
    assert_eq!(torus(4, [8, 64, 64]), Some([1, 2, 2]));
    assert_eq!(balanced(1, [], [], []), Some([]));
    assert_eq!(balanced(2, [], [], []), None);
}

#[test]
fn two_processes_on_a_torus_are_neighbours_on_both_sides() {
    let blocks = Blocks::new([8], [2], [1], [true]).unwrap();
    let faces = blocks.faces(0, Reach::Faces);
    let places: Vec<_> = faces.iter().map(|face| (face.rank, face.place())).collect();
    assert_eq!(places, [(1, (0, Side::Low)), (1, (0, Side::High))]);
    let tags: BTreeSet<_> = faces.iter().map(|face| face.send_tag).collect();
    assert_eq!(tags.len(), 2);
    assert_eq!(faces.iter().map(|face| face.send.len()).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn what_cannot_work_is_said() {
    let told = |shape, processes, halo| {
        Blocks::new([shape], [processes], [halo], [true]).expect_err("an error").to_string()
    };
    assert_eq!(
        told(10, 4, 3),
        "`GridBuilder::build`: the halo of axis 0 is 3 cells wide, but the smallest part of its 10 \
         cells on 4 processes has 2; choose a narrower `halo`, or fewer processes for this axis by \
         `processes`"
    );
    assert!(told(10, 0, 1).contains("axis 0 has 0 processes"));
    let widest = Blocks::new([10], [1], [usize::MAX / 2], [false]).expect_err("an error");
    assert!(widest.to_string().contains("more than `usize` can count"));
}
