//! Communicators that are given up.

use resident::nccl::{self, ReduceOp};
use resident::ndarray::s;
use resident::{Error, SmartArray};
use support::in_own_process;

use super::fixtures::two_ranks;

#[track_caller]
fn expect_lost<T>(outcome: Result<T, Error>) {
    let Err(Error::Lost { operation, cause, site, .. }) = outcome.map(drop) else {
        panic!("its contents are lost")
    };
    assert_eq!((operation.as_str(), cause.as_str()), ("an operation of NCCL", "it is late"));
    assert!(site.to_string().contains("aborted.rs"), "{site}");
}

/// The message, a copy of it on another stream of the GPU, and what was written of another array.
#[test]
fn what_a_message_that_never_came_was_to_write_is_lost_and_its_copies_too() {
    let (_bench, [one, other]) = in_own_process!(two_ranks());
    let elsewhere = one.stream.device().new_stream().unwrap();
    let mut message = SmartArray::<f32, _>::zeros(4);
    let mut halo = SmartArray::<f32, _>::ones(8);
    drop(halo.gpu_mut_on(&elsewhere).unwrap());
    nccl::recv(&one.comm, &mut message, 1).unwrap();
    halo.slice_mut(s![2..6]).assign_on(&elsewhere, &message).unwrap();
    nccl::abort(one.comm, "it is late").unwrap();
    expect_lost(message.host());
    expect_lost(halo.slice(s![2..4]).host());
    expect_lost(halo.to_vec());
    // Nothing else is.
    assert_eq!(halo.slice(s![..2]).to_vec().unwrap(), [1.0; 2]);
    assert_eq!(halo.slice(s![6..]).to_vec().unwrap(), [1.0; 2]);
    message.fill(2.0).unwrap();
    halo.slice_mut(s![2..6]).assign_on(&elsewhere, &message).unwrap();
    assert_eq!(halo.to_vec().unwrap(), [1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
    let told = one.stream.synchronize().unwrap_err().to_string();
    assert!(told.contains("an operation of NCCL") && told.contains("it is late"), "{told}");
    drop(other);
    assert_eq!(resident_stand_in::take_hazards(), Vec::<String>::new());
}

/// In place, behind a kernel of another stream that may fail too.
#[test]
fn what_is_reduced_in_place_is_lost_and_what_is_sent_stays() {
    let (_bench, [one, other]) = in_own_process!(two_ranks());
    let elsewhere = one.stream.device().new_stream().unwrap();
    let mut sum = SmartArray::<f32, _>::zeros(4);
    let from = SmartArray::<f32, _>::ones(4);
    sum.fill_on(&elsewhere, 3.0).unwrap();
    nccl::all_reduce_in_place(&one.comm, &mut sum, &ReduceOp::Sum).unwrap();
    nccl::send(&one.comm, &from, 1).unwrap();
    nccl::abort(one.comm, "it is late").unwrap();
    expect_lost(sum.get(0));
    assert_eq!(from.to_vec().unwrap(), [1.0; 4]);
    drop(other);
    assert_eq!(resident_stand_in::take_hazards(), Vec::<String>::new());
}

#[test]
fn what_is_over_before_the_abort_stays() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let (from, mut to) = (SmartArray::<f32, _>::ones(4), SmartArray::<f32, _>::zeros(4));
    nccl::recv(&one.comm, &mut to, 1).unwrap();
    nccl::send(&other.comm, &from, 0).unwrap();
    one.stream.synchronize().unwrap();
    nccl::abort(one.comm, "it is late").unwrap();
    assert_eq!(to.to_vec().unwrap(), [1.0; 4]);
    bench.finish();
}
