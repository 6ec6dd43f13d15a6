//! What is refused, and that nothing was moved then.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use resident::nccl::{self, ReduceOp};
use resident::ndarray::s;
use resident::{Device, DeviceArray, Error, Result, SmartArray, audit};
use support::{in_own_process, own_process};

use super::fixtures::{open, ranks, two_ranks};

/// Expects an error with this text, and that nothing was copied or sent.
#[track_caller]
fn expect_refused<T: Debug>(says: &str, call: impl FnOnce() -> Result<T>) -> Error {
    let (outcome, report) = audit::capture(call);
    let error = outcome.expect_err("it is refused");
    assert!(error.to_string().contains(says), "{error}");
    assert_eq!(report.traffic().moved().bytes, 0, "{report}");
    assert_eq!((report.sent().bytes, report.received().bytes), (0, 0), "{report}");
    error
}

#[test]
fn parts_with_gaps_or_in_another_order_are_errors_and_no_empty_messages() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let comm = &one.comm;
    let mut table = SmartArray::<f32, _>::ones((4, 3)).named("table");
    let gaps = "an argument of `nccl::send` is flat and needs contiguous memory, but \"table\"";
    expect_refused("nccl::recv", || nccl::recv(comm, &mut table.slice_mut(s![.., ..2]), 1));
    let sum = &ReduceOp::Sum;
    expect_refused("in_place", || {
        nccl::all_reduce_in_place(comm, &mut table.slice_mut(s![.., 0]), sum)
    });
    let column = table.slice(s![.., 1]);
    let error = expect_refused(gaps, || nccl::send(comm, &column, 1));
    assert!(matches!(error, Error::NotContiguous { .. }), "{error}");
    assert!(error.to_string().contains("shape [4]") && error.to_string().contains("strides [3]"));
    expect_refused("`to_contiguous`", || nccl::send(comm, &table.t(), 1));
    expect_refused("strides [-3, 1]", || nccl::send(comm, &table.slice(s![..;-1, ..]), 1));
    let mut group = nccl::Group::new();
    expect_refused("nccl::send", || group.send(comm, &column, 1));
    group.end().unwrap();

    // cudarc's own methods have no error to return for it.
    let guard = column.gpu_on(&one.stream).unwrap();
    let sent = catch_unwind(AssertUnwindSafe(|| comm.send(&guard, 1).is_ok())).unwrap_err();
    let message = sent.downcast_ref::<String>().expect("a message");
    assert!(message.contains("\"table\" has shape [4] and strides [3]"), "{message}");
    drop(guard);
    nccl::send(comm, &column.to_contiguous().unwrap(), 1).unwrap();
    let mut received = SmartArray::<f32, _>::zeros(4);
    nccl::recv(&other.comm, &mut received, 0).unwrap();
    assert_eq!(received.to_vec().unwrap(), [1.0; 4]);
    bench.finish();
}

#[test]
fn ranks_and_lengths_that_do_not_fit_are_refused() {
    let (bench, [one, _other]) = in_own_process!(two_ranks());
    let comm = &one.comm;
    let (from, mut to) =
        (SmartArray::<f64, _>::ones(6).named("from"), SmartArray::<f64, _>::ones(5).named("to"));
    let sum = &ReduceOp::Sum;
    let error = expect_refused("`nccl::send` names rank 2", || nccl::send(comm, &from, 2));
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("which has 2, counted from 0"), "{error}");
    expect_refused("rank 18446744073709551615", || nccl::recv(comm, &mut to, usize::MAX));
    expect_refused("rank 7", || nccl::reduce_in_place(comm, &mut to, sum, 7));
    expect_refused("rank 7", || nccl::broadcast_in_place(comm, &mut to, 7));
    let error = expect_refused("6 elements", || nccl::all_reduce(comm, &from, &mut to, sum));
    assert!(matches!(error, Error::Shape { .. }), "{error}");
    assert!(error.to_string().contains("5 in \"to\" of shape [5]"), "{error}");
    expect_refused("12 elements", || nccl::all_gather(comm, &from, &mut to));
    expect_refused("3 elements", || nccl::reduce_scatter(comm, &from, &mut to, sum));
    let odd = SmartArray::<f64, _>::ones(5);
    expect_refused("6 elements", || {
        nccl::reduce_scatter(comm, &odd, &mut to.slice_mut(s![..2]), sum)
    });
    bench.finish();
}

#[test]
fn device_arrays_of_other_devices_are_refused() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let mut there = DeviceArray::<f32, _>::full_on(&other.stream, 3, 1.0).unwrap();
    let error = expect_refused("nccl::send", || nccl::send(&one.comm, &there, 1));
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    let error = expect_refused("nccl::recv", || nccl::recv(&one.comm, &mut there, 1));
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    assert_eq!(there.copy_to_host().unwrap().sum(), 3.0);
    bench.finish();
}

/// An element without contents is found before anything of the group is sent.
#[test]
fn a_group_with_an_array_that_cannot_be_read_sends_nothing() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let (from, nothing) = (SmartArray::<f32, _>::ones(3), SmartArray::<f32, _>::uninit(3));
    let mut to = SmartArray::<f32, _>::zeros(3);
    drop(from.gpu_on(&one.stream).unwrap());
    let mut group = nccl::Group::new();
    group.send(&one.comm, &from, 1).unwrap();
    group.send(&one.comm, &nothing, 1).unwrap();
    let error = expect_refused("uninitialised", || group.end());
    assert!(matches!(error, Error::Uninitialised { .. }), "{error}");
    one.stream.synchronize().unwrap();
    nccl::recv(&other.comm, &mut to, 0).unwrap();
    nccl::send(&one.comm, &SmartArray::<f32, _>::full(3, 4.0), 1).unwrap();
    assert_eq!(to.to_vec().unwrap(), [4.0; 3]);
    bench.finish();
}

#[test]
fn a_group_that_is_dropped_changes_nothing() {
    let (bench, [one, _other]) = in_own_process!(two_ranks());
    let (from, mut to) = (SmartArray::<f32, _>::ones(3), SmartArray::<f32, _>::full(3, 2.0));
    let ((), report) = audit::capture(|| {
        let mut group = nccl::Group::new();
        group.send(&one.comm, &from, 1).unwrap();
        group.recv(&one.comm, &mut to, 1).unwrap();
        drop(group);
        assert_eq!(to.to_vec().unwrap(), [2.0; 3]);
    });
    assert_eq!(report.traffic().moved().bytes, 0, "{report}");
    assert_eq!((report.sent().bytes, report.received().bytes), (0, 0), "{report}");
    one.stream.synchronize().unwrap();
    bench.finish();
}

#[test]
fn communicators_that_cannot_be_are_refused() {
    let bench = in_own_process!(open(2));
    let stream = bench.gpu.new_stream().unwrap();
    let id = nccl::new_id().unwrap();
    let error = expect_refused("rank 2 of 2", || nccl::join(id, 2, 2, &stream));
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    let error = expect_refused("cpu", || nccl::join(id, 0, 2, &Device::cpu().stream()));
    assert!(matches!(error, Error::NoDevice { .. }), "{error}");
    let _first = nccl::join(id, 0, 2, &stream).unwrap();
    let error = expect_refused("ncclInvalidUsage", || nccl::join(id, 1, 2, &stream));
    assert!(error.to_string().contains("`nccl::join`"), "{error}");
    bench.finish();
}

/// What NCCL itself refuses: here because the driver does, once.
#[test]
fn an_operation_that_nccl_refuses_is_an_error_and_the_next_one_works() {
    let (bench, [one, other]) = in_own_process!(two_ranks());
    let mut sums = [1.0_f32, 2.0].map(|x| SmartArray::full(3, x));
    let [of_one, of_other] = &mut sums;
    drop(of_one.gpu_on(&one.stream).unwrap());
    let sum = &ReduceOp::Sum;
    resident_stand_in::fail_nth("cuLaunchKernel", 1, 1);
    let error = expect_refused("ncclUnhandledCudaError", || {
        let mut group = nccl::Group::new();
        group.all_reduce_in_place(&one.comm, of_one, sum).unwrap();
        group.end()
    });
    assert!(matches!(error, Error::Backend { .. }), "{error}");
    // NCCL took the call for one of the communicator's, so the rank needs another one.
    drop([one, other]);
    let [one, other] = ranks::<2>();
    of_one.fill(5.0).unwrap();
    nccl::all_reduce_in_place(&one.comm, of_one, sum).unwrap();
    nccl::all_reduce_in_place(&other.comm, of_other, sum).unwrap();
    assert_eq!(sums.map(|array| array.get(0).unwrap()), [7.0, 7.0]);
    bench.finish();
}

/// cudarc itself would panic.
#[test]
fn without_the_library_there_is_an_error() {
    own_process!();
    // Where the machine has NCCL, there is an id.
    if let Err(error) = nccl::new_id() {
        assert!(matches!(error, Error::NoDevice { .. }), "{error}");
        assert!(error.to_string().contains("NCCL"), "{error}");
    }
}
