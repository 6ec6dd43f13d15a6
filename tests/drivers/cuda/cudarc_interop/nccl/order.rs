//! The order of messages and kernels on other streams, and communicators that are dropped.

use resident::nccl::{self, ReduceOp};
use resident::ndarray::s;
use resident::{Device, SmartArray};
use support::in_own_process;

use super::fixtures::{Rank, open, raise, raising, ranks, two_ranks};
use crate::cudarc_interop::bench::{Gate, gated, launch};

/// A kernel before on one stream, which is held up, and one after on another.
#[test]
fn a_reduction_runs_between_kernels_of_other_streams() {
    let bench = in_own_process!(open(2));
    let ranks = ranks::<2>();
    let gate = Gate::default();
    let held_up = gated(&bench.gpu, "held_up", &gate);
    let mut arrays = [1.0_f32, 2.0].map(|x| SmartArray::full(4, x));
    for (number, (rank, array)) in ranks.iter().zip(&mut arrays).enumerate() {
        let device = rank.stream.device();
        let kernel = raising(&device, &format!("raise_around_{number}"));
        let [before, after] = [(); 2].map(|()| device.new_stream().unwrap());
        if number == 0 {
            launch(&before.cudarc(), &held_up);
        }
        raise(&kernel, &before, array);
        nccl::all_reduce_in_place(&rank.comm, array, &ReduceOp::Sum).unwrap();
        raise(&kernel, &after, array);
    }
    gate.open();
    assert_eq!(arrays.map(|array| array.to_vec().unwrap()), [[6.0; 4], [6.0; 4]]);
    bench.finish();
}

/// Parts of one array that are sent do not wait for other parts that kernels write.
#[test]
fn a_message_waits_for_the_writers_of_its_part_alone() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let gate = Gate::default();
    let held_up = gated(&bench.gpu, "held_up_beside", &gate);
    let kernel = raising(&bench.gpu, "raise_beside");
    let elsewhere = bench.gpu.new_stream().unwrap();
    let mut array = SmartArray::full(8, 1.0_f32);
    let mut to = SmartArray::<f32, _>::uninit(4);
    array.prefetch(&one.stream).unwrap();
    launch(&elsewhere.cudarc(), &held_up);
    raise(&kernel, &elsewhere, &mut array.slice_mut(s![4..]));
    nccl::send(&one.comm, &array.slice(s![..4]), 1).unwrap();
    nccl::recv(&other.comm, &mut to, 0).unwrap();
    assert_eq!(to.to_vec().unwrap(), [1.0; 4]);
    gate.open();
    assert_eq!(array.to_vec().unwrap(), [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);
    bench.finish();
}

#[test]
fn an_array_is_given_back_behind_the_messages_with_it() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let mut to = SmartArray::<f32, _>::uninit(1000);
    nccl::recv(&other.comm, &mut to, 0).unwrap();
    drop(to);
    let mut fresh = SmartArray::full(1000, 5.0_f32);
    drop(fresh.gpu_mut_on(&Device::cuda(1).unwrap().new_stream().unwrap()).unwrap());
    nccl::send(&one.comm, &SmartArray::full(1000, 9.0_f32), 1).unwrap();
    other.stream.synchronize().unwrap();
    assert_eq!(fresh.host().unwrap().sum(), 5000.0);
    bench.finish();
}

/// Nobody sends. Without the drop, which aborts, the look would wait forever.
#[test]
fn a_communicator_that_drops_ends_its_work_and_the_arrays_are_usable() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let mut array = SmartArray::full(6, 1.0_f32);
    nccl::recv(&one.comm, &mut array.slice_mut(s![2..4]), 1).unwrap();
    let Rank { comm, stream } = one;
    drop(comm);
    let table = array.host().unwrap().to_vec();
    assert_eq!((&table[..2], &table[4..]), (&[1.0; 2][..], &[1.0; 2][..]));
    array.host_mut().unwrap().fill(3.0);
    drop(array.gpu_on(&stream).unwrap());
    assert_eq!(array.host().unwrap().sum(), 18.0);
    stream.synchronize().unwrap();
    drop(other);
    bench.finish();
}
