//! Ranks that abort, and calls that do not fit together.

use resident::cudarc::driver::sys::CUresult;
use resident::cudarc::nccl::sys::{self, ncclDataType_t, ncclRedOp_t, ncclResult_t};
use support::eventually;
use support::in_own_process;

use super::ranks::{Rank, code, ranks};

#[test]
fn an_abort_ends_the_waits_of_its_rank_alone() {
    let [one, other, third] = ranks::<3>();
    let mut received = [one.upload(&[5_i32]), other.upload(&[5_i32])];
    one.receive(&mut received[0], 1).unwrap();
    other.receive(&mut received[1], 2).unwrap();
    one.abort().unwrap();
    one.stream.synchronize().unwrap();
    assert_eq!(code(one.receive(&mut received[0], 1)), ncclResult_t::ncclInvalidArgument);
    // The other rank waits for a third one, which did not abort.
    assert_eq!((other.error(), other.is_over()), (ncclResult_t::ncclSuccess, false));
    third.send(&third.upload(&[6_i32]), 1).unwrap();
    assert_eq!(other.download(&received[1]), [6]);
}

#[test]
fn who_waits_for_an_aborted_rank_has_an_error_and_waits_on() {
    let [one, other] = ranks::<2>();
    let mut received = one.upload(&[5_i32]);
    one.receive(&mut received, 1).unwrap();
    assert_eq!(one.error(), ncclResult_t::ncclSuccess);
    other.abort().unwrap();
    eventually(ncclResult_t::ncclRemoteError, "the error", || one.error());
    assert!(!one.is_over());
    one.abort().unwrap();
    one.stream.synchronize().unwrap();
}

#[test]
fn a_collective_without_an_aborted_rank_ends_by_an_abort() {
    let [one, other, third] = ranks::<3>();
    let sums = [one.upload(&[1.0_f32]), other.upload(&[1.0_f32])];
    for (rank, sum) in [&one, &other].into_iter().zip(&sums) {
        queue_sum(rank, sum);
    }
    third.abort().unwrap();
    for rank in [&one, &other] {
        eventually(ncclResult_t::ncclRemoteError, "the error", || rank.error());
        rank.abort().unwrap();
        rank.stream.synchronize().unwrap();
    }
}

fn queue_sum(rank: &Rank, sum: &resident::cudarc::driver::CudaSlice<f32>) {
    let place = resident::cudarc::driver::DevicePtr::device_ptr(sum, &rank.stream).0 as *mut _;
    let (comm, stream) = (rank.comm, rank.stream.cu_stream().cast());
    let (kind, operation) = (ncclDataType_t::ncclFloat32, ncclRedOp_t::ncclSum);
    // SAFETY: the slice has these elements, and lives until the stream is over.
    let code =
        unsafe { sys::ncclAllReduce(place, place, sum.len(), kind, operation, comm, stream) };
    assert_eq!(code, ncclResult_t::ncclSuccess);
}

/// The context is lost, as after a kernel that fails.
#[test]
fn a_message_of_another_length_fails_on_both_ranks() {
    let [one, other] = in_own_process!(ranks::<2>());
    let sent = one.upload(&[1_i32; 3]);
    let mut received = other.upload(&[0_i32; 2]);
    one.send(&sent, 1).unwrap();
    other.receive(&mut received, 0).unwrap();
    for rank in [&one, &other] {
        let failed = rank.stream.synchronize().unwrap_err();
        assert_eq!(failed.0, CUresult::CUDA_ERROR_LAUNCH_FAILED);
        assert_eq!(rank.error(), ncclResult_t::ncclInvalidUsage);
    }
    std::mem::forget([sent, received]);
}

#[test]
fn collectives_of_other_lengths_fail() {
    let [one, other] = in_own_process!(ranks::<2>());
    let sums = [one.upload(&[1.0_f32; 3]), other.upload(&[1.0_f32; 2])];
    queue_sum(&one, &sums[0]);
    queue_sum(&other, &sums[1]);
    for rank in [&one, &other] {
        let failed = rank.stream.synchronize().unwrap_err();
        assert_eq!(failed.0, CUresult::CUDA_ERROR_LAUNCH_FAILED);
        assert_eq!(rank.error(), ncclResult_t::ncclInvalidUsage);
    }
    std::mem::forget(sums);
}

#[test]
fn arguments_that_nccl_does_not_know_are_refused() {
    let [one, _other] = ranks::<2>();
    let slice = one.upload(&[1_i32; 4]);
    assert_eq!(code(one.send(&slice, 2)), ncclResult_t::ncclInvalidArgument);
    let (comm, stream) = (one.comm, one.stream.cu_stream().cast());
    let kind = ncclDataType_t::ncclInt32;
    // SAFETY: all of these are refused before any memory is accessed.
    let refused = unsafe {
        [
            sys::ncclSend(std::ptr::null(), 4, kind, 1, comm, stream),
            sys::ncclSend(std::ptr::null(), 4, kind, -1, comm, stream),
            sys::ncclSend(std::ptr::null(), 4, kind, 1, std::ptr::null_mut(), stream),
            sys::ncclSend(std::ptr::dangling(), 4, ncclDataType_t::ncclFloat8e4m3, 1, comm, stream),
            sys::ncclSend(std::ptr::dangling(), usize::MAX, kind, 1, comm, stream),
            sys::ncclCommUserRank(comm, std::ptr::null_mut()),
        ]
    };
    assert_eq!(refused, [ncclResult_t::ncclInvalidArgument; 6]);
    one.stream.synchronize().unwrap();
    assert_eq!(one.error(), ncclResult_t::ncclSuccess);
}
