//! Collectives of arrays and parts.

use resident::audit;
use resident::nccl::{self, ReduceOp};
use resident::ndarray::{Array2, Ix1, s};
use resident::{Result, SmartArray};
use support::in_own_process;

use super::fixtures::{Rank, on_threads, open, ranks, two_ranks};

#[test]
fn four_ranks_reduce_parts_of_their_arrays_in_place() {
    let bench = in_own_process!(open(4));
    let sums = on_threads(4, |Rank { comm, .. }| {
        let own = comm.rank() as f32;
        let mut table = SmartArray::from(Array2::from_elem((5, 8), own)).named("table");
        let (outcome, report) = audit::capture(|| -> Result<()> {
            let mut middle = table.slice_mut(s![1..3, ..]);
            nccl::all_reduce_in_place(comm, &mut middle, &ReduceOp::Sum)?;
            nccl::all_reduce_in_place(comm, &mut middle, &ReduceOp::Max)?;
            nccl::all_reduce_in_place(comm, &mut table.slice_mut(s![4, 2..6]), &ReduceOp::Avg)
        });
        outcome.unwrap();
        // The parts went up, once, and nothing came down.
        assert_eq!(report.traffic().to_device.bytes, 4 * (16 + 4), "{report}");
        assert_eq!(report.traffic().to_host.bytes, 0, "{report}");
        let (rows, look) = audit::capture(|| table.host().unwrap().to_owned());
        assert_eq!(look.traffic().to_host.bytes, 4 * (16 + 4));
        assert_eq!((rows[(0, 0)], rows[(3, 7)], rows[(4, 1)]), (own, own, own));
        [rows[(1, 0)], rows[(2, 7)], rows[(4, 2)], rows[(4, 5)]]
    });
    assert_eq!(sums, vec![[6.0, 6.0, 1.5, 1.5]; 4]);
    bench.finish();
}

/// Runs `call` as three ranks, each with an array of so many elements and one for the result.
fn of_three(
    [from_len, to_len]: [usize; 2],
    call: impl Fn(&Rank, &SmartArray<i32, Ix1>, &mut SmartArray<i32, Ix1>) -> Result<()>,
) -> Vec<Vec<i32>> {
    let ranks = ranks::<3>();
    let mut results = Vec::new();
    for (own, rank) in ranks.iter().enumerate() {
        let numbers = (0..from_len).map(|index| (100 * own + index) as i32);
        let from = SmartArray::from(numbers.collect::<Vec<_>>());
        let mut to = SmartArray::full(to_len, -1);
        call(rank, &from, &mut to).unwrap();
        results.push(to);
    }
    results.into_iter().map(|result| result.to_vec().unwrap()).collect()
}

#[test]
fn collectives_into_other_arrays() {
    let bench = in_own_process!(open(3));
    let sum = &ReduceOp::Sum;
    let reduced = of_three([2, 2], |rank, from, to| nccl::all_reduce(&rank.comm, from, to, sum));
    assert_eq!(reduced, vec![vec![300, 303]; 3]);
    let gathered = of_three([2, 6], |rank, from, to| nccl::all_gather(&rank.comm, from, to));
    assert_eq!(gathered, vec![vec![0, 1, 100, 101, 200, 201]; 3]);
    let scattered =
        of_three([6, 2], |rank, from, to| nccl::reduce_scatter(&rank.comm, from, to, sum));
    assert_eq!(scattered, [[300, 303], [306, 309], [312, 315]]);
    bench.finish();
}

#[test]
fn collectives_of_a_root_leave_the_copies_of_those_who_only_read() {
    let bench = in_own_process!(open(3));
    let ranks = ranks::<3>();
    let mut arrays = [0_i32, 1, 2].map(|own| SmartArray::full(4, own + 1));
    let ((), report) = audit::capture(|| {
        for (rank, array) in ranks.iter().zip(&mut arrays) {
            nccl::reduce_in_place(&rank.comm, array, &ReduceOp::Prod, 1).unwrap();
        }
        assert_eq!([&arrays[0], &arrays[2]].map(|array| array.to_vec().unwrap()), [[1; 4], [3; 4]]);
    });
    assert_eq!(report.traffic().to_host.bytes, 0, "{report}");
    assert_eq!(arrays[1].to_vec().unwrap(), [6; 4]);
    for (rank, array) in ranks.iter().zip(&mut arrays) {
        nccl::broadcast_in_place(&rank.comm, &mut array.slice_mut(s![1..]), 1).unwrap();
    }
    assert_eq!(arrays.map(|array| array.to_vec().unwrap()), [[1, 6, 6, 6], [6; 4], [3, 6, 6, 6]]);
    bench.finish();
}

#[test]
fn a_group_of_collectives_of_several_communicators() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let mut arrays = [1.0_f64, 2.0, 10.0, 20.0].map(|x| SmartArray::full(3, x));
    let [a, b, c, d] = &mut arrays;
    let mut group = nccl::Group::new();
    group.all_reduce_in_place(&one.comm, a, &ReduceOp::Sum).unwrap();
    group.all_reduce_in_place(&one.comm, c, &ReduceOp::Min).unwrap();
    group.all_reduce_in_place(&other.comm, b, &ReduceOp::Sum).unwrap();
    group.all_reduce_in_place(&other.comm, d, &ReduceOp::Min).unwrap();
    group.end().unwrap();
    assert_eq!(arrays.map(|array| array.get(2).unwrap()), [3.0, 3.0, 10.0, 10.0]);
    bench.finish();
}
