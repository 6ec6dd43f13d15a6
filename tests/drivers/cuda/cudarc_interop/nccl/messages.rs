//! Halos of parts between ranks, and what reports say about them.

use resident::audit::{self, Cause, Direction};
use resident::cudarc::nccl::{group_end, group_start};
use resident::nccl::{self, Comm};
use resident::ndarray::{Array2, Axis, Ix2, s};
use resident::{DeviceArray, SmartArray};
use support::{in_own_process, own_process};

use super::fixtures::{Rank, on_threads, open, raise, raising, two_ranks};

const ROWS: usize = 6;
const COLUMNS: usize = 5;
const ROW_BYTES: u64 = 4 * COLUMNS as u64;

type Plate = SmartArray<f32, Ix2>;

/// The neighbours in a ring: of two ranks, both are the other one.
fn neighbours(comm: &Comm) -> [usize; 2] {
    let (rank, ranks) = (comm.rank(), comm.world_size());
    [(rank + ranks - 1) % ranks, (rank + 1) % ranks]
}

/// The first and the last row are the neighbours', those between are this rank's.
fn exchange(comm: &Comm, plate: &mut Plate) {
    let [up, down] = neighbours(comm);
    let (mut top, own, mut bottom) =
        plate.multi_slice_mut((s![..1, ..], s![1..ROWS - 1, ..], s![ROWS - 1.., ..]));
    let (first, last) = (own.slice(s![..1, ..]), own.slice(s![ROWS - 3.., ..]));
    let mut group = nccl::Group::new();
    group.send(comm, &first, up).unwrap();
    group.recv(comm, &mut bottom, down).unwrap();
    group.send(comm, &last, down).unwrap();
    group.recv(comm, &mut top, up).unwrap();
    group.end().unwrap();
}

/// Some steps of kernels on one stream and halos on another, with all copies and messages counted.
fn halos_of_steps(ranks: u32) {
    const STEPS: u64 = 5;
    let bench = open(ranks);
    on_threads(ranks as usize, |Rank { comm, stream }| {
        let (device, own) = (stream.device(), comm.rank() as f32);
        let kernel = raising(&device, &format!("raise_{}", comm.rank()));
        let elsewhere = device.new_stream().unwrap();
        let mut plate = Plate::from(Array2::from_elem((ROWS, COLUMNS), 100.0 * own)).named("plate");
        plate.prefetch(stream).unwrap();
        let ((), report) = audit::capture(|| {
            for _ in 0..STEPS {
                raise(&kernel, &elsewhere, &mut plate.slice_mut(s![1..ROWS - 1, ..]));
                exchange(comm, &mut plate);
            }
        });
        assert_eq!(report.traffic().moved().bytes, 0, "{report}");
        assert_eq!(report.sent().bytes, STEPS * 2 * ROW_BYTES);
        assert_eq!(report.received().bytes, STEPS * 2 * ROW_BYTES);
        let (table, look) = audit::capture(|| plate.host().unwrap().to_owned());
        assert_eq!(look.traffic().to_host.bytes, ROWS as u64 * ROW_BYTES);
        let [up, down] = neighbours(comm).map(|rank| 100.0 * rank as f32 + STEPS as f32);
        assert_eq!(table.row(0).to_vec(), [up; COLUMNS], "rank {own}");
        assert_eq!(table.row(ROWS - 1).to_vec(), [down; COLUMNS], "rank {own}");
        assert_eq!(table[(1, 0)], 100.0 * own + STEPS as f32);
    });
    bench.finish();
}

#[test]
fn two_ranks_that_are_each_others_both_neighbours_exchange_halos() {
    own_process!();
    halos_of_steps(2);
}

#[test]
fn four_ranks_exchange_halos() {
    own_process!();
    halos_of_steps(4);
}

#[test]
fn reports_name_the_array_the_rank_and_the_line_of_a_message() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let from = SmartArray::from(vec![1.0_f64; 7]).named("from");
    let mut to = SmartArray::<f64, _>::uninit(7).named("to");
    let (lines, report) = audit::capture(|| {
        nccl::send(&one.comm, &from, 1).unwrap();
        nccl::recv(&other.comm, &mut to.slice_mut(s![..]), 0).unwrap();
        [line!() - 2, line!() - 1]
    });
    let messages: Vec<_> = report
        .sites()
        .into_iter()
        .filter(|site| site.cause == Cause::Mpi)
        .map(|site| (site.array.clone(), site.direction, site.peer, site.location.line()))
        .collect();
    assert_eq!(messages.len(), 2, "{report}");
    assert!(
        messages.contains(&("from".into(), Direction::Sent, Some(1), lines[0])),
        "{messages:?}"
    );
    assert!(
        messages.contains(&("to".into(), Direction::Received, Some(0), lines[1])),
        "{messages:?}"
    );
    assert_eq!((report.sent().bytes, report.received().bytes), (56, 56));
    // What is sent was uploaded; what is received was not.
    assert_eq!((report.traffic().to_device.bytes, report.traffic().to_host.bytes), (56, 0));
    assert_eq!(to.host().unwrap().to_vec(), [1.0; 7]);
    bench.finish();
}

#[test]
fn device_arrays_and_their_views_are_sent_and_received() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let from = DeviceArray::<i32, _>::full_on(&one.stream, (4, 3), 1).unwrap();
    let mut to = DeviceArray::<i32, _>::zeros_on(&other.stream, (4, 3)).unwrap();
    nccl::send(&one.comm, &from.slice(s![1..3, ..]), 1).unwrap();
    nccl::recv(&other.comm, &mut to.slice_mut(s![2.., ..]), 0).unwrap();
    assert_eq!(to.copy_to_host().unwrap().sum_axis(Axis(1)).to_vec(), [0, 0, 3, 3]);
    bench.finish();
}

#[test]
fn parts_without_elements_are_messages_too() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let from = SmartArray::<u8, _>::zeros(5);
    let mut to = SmartArray::<u8, _>::zeros(5);
    nccl::send(&one.comm, &from.slice(s![5..]), 1).unwrap();
    nccl::recv(&other.comm, &mut to.slice_mut(s![..0]), 0).unwrap();
    bench.finish();
    other.stream.synchronize().unwrap();
}

/// What cudarc's own methods take, between its calls for a group.
#[test]
fn guards_are_arguments_of_cudarcs_methods() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let from = SmartArray::from(vec![1.0_f32, 2.0, 3.0, 4.0]);
    let (mut to, mut sums) =
        (SmartArray::<f32, _>::zeros(4), [1.0_f32, 2.0].map(|x| SmartArray::full(3, x)));
    {
        let sent = from.slice(s![1..3]).gpu_on(&one.stream).unwrap();
        let mut part = to.slice_mut(s![2..]);
        let mut received = part.gpu_overwrite_on(&other.stream).unwrap();
        group_start().unwrap();
        other.comm.recv(&mut received, 0).unwrap();
        one.comm.send(&sent, 1).unwrap();
        group_end().unwrap();
    }
    for (rank, sum) in [&one, &other].into_iter().zip(&mut sums) {
        let mut guard = sum.gpu_mut_on(&rank.stream).unwrap();
        rank.comm.all_reduce_in_place(&mut guard, &nccl::ReduceOp::Sum).unwrap();
    }
    assert_eq!(to.to_vec().unwrap(), [0.0, 0.0, 2.0, 3.0]);
    assert_eq!(sums.map(|sum| sum.to_vec().unwrap()), [vec![3.0; 3], vec![3.0; 3]]);
    bench.finish();
}

/// Elements that NCCL does not know go as bytes.
#[test]
fn records_and_small_numbers_are_moved_as_they_are() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let records = SmartArray::from(vec![[1.5_f64, -0.0], [f64::NAN, 7.0]]);
    let shorts = SmartArray::from(vec![1_u16, 2, 3]);
    let mut received = SmartArray::<[f64; 2], _>::uninit(2);
    let mut spread = SmartArray::<u16, _>::uninit(6);
    nccl::send(&one.comm, &records, 1).unwrap();
    nccl::recv(&other.comm, &mut received, 0).unwrap();
    let bits =
        |records: Vec<[f64; 2]>| records.concat().into_iter().map(f64::to_bits).collect::<Vec<_>>();
    assert_eq!(bits(received.to_vec().unwrap()), bits(records.to_vec().unwrap()));
    let mut own = SmartArray::<u16, _>::uninit(6);
    let mut group = nccl::Group::new();
    group.all_gather(&one.comm, &shorts, &mut own).unwrap();
    group.all_gather(&other.comm, &shorts, &mut spread).unwrap();
    group.end().unwrap();
    assert_eq!(spread.to_vec().unwrap(), [1, 2, 3, 1, 2, 3]);
    bench.finish();
}
