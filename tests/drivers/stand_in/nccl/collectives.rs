//! Collectives of all ranks.

use std::ffi::c_void;
use std::fmt::Debug;

use resident::cudarc::driver::{CudaSlice, DevicePtr, DeviceRepr};
use resident::cudarc::nccl::NcclType;
use resident::cudarc::nccl::result;
use resident::cudarc::nccl::sys::{self, ncclDataType_t, ncclRedOp_t};
use support::own_process;

use super::ranks::{Rank, ranks};

/// The address of a slice, for calls of C.
fn address<T>(slice: &CudaSlice<T>, rank: &Rank) -> *mut c_void {
    slice.device_ptr(&rank.stream).0 as *mut c_void
}

fn all_reduce<T: DeviceRepr + NcclType>(
    rank: &Rank,
    [from, to]: [&CudaSlice<T>; 2],
    operation: ncclRedOp_t,
) {
    let [from, to, len] = [address(from, rank) as usize, address(to, rank) as usize, from.len()];
    let (comm, stream) = (rank.comm, rank.stream.cu_stream().cast());
    let (from, to) = (from as *const c_void, to as *mut c_void);
    // SAFETY: both slices have as many elements, and live until the stream is over.
    unsafe { result::all_reduce(from, to, len, T::as_nccl_type(), operation, comm, stream) }
        .expect("it is queued");
}

/// The reduction of the parts of three ranks, which all get.
#[track_caller]
fn expect_reduced<T: DeviceRepr + NcclType + Copy + Default + PartialEq + Debug>(
    parts: [[T; 2]; 3],
    operation: ncclRedOp_t,
    expected: [T; 2],
) {
    let ranks = ranks::<3>();
    let slices: Vec<_> = ranks.iter().zip(&parts).map(|(rank, part)| rank.upload(part)).collect();
    let places: Vec<_> = ranks.iter().map(|rank| rank.upload(&[T::default(); 2])).collect();
    for own in 0..3 {
        all_reduce(&ranks[own], [&slices[own], &places[own]], operation);
    }
    for own in 0..3 {
        assert_eq!(ranks[own].download(&places[own]), expected, "rank {own}");
        assert_eq!(ranks[own].download(&slices[own]), parts[own], "what was sent stays");
        // In place.
        all_reduce(&ranks[own], [&slices[own], &slices[own]], operation);
    }
    for own in 0..3 {
        assert_eq!(ranks[own].download(&slices[own]), expected, "rank {own} in place");
    }
}

#[test]
fn all_reductions_of_all_types_of_numbers() {
    own_process!();
    use ncclRedOp_t::{ncclAvg, ncclMax, ncclMin, ncclProd, ncclSum};
    expect_reduced([[1_i32, -2], [3, 4], [-5, 9]], ncclSum, [-1, 11]);
    expect_reduced([[1_i32, -2], [3, 4], [-5, 9]], ncclProd, [-15, -72]);
    expect_reduced([[1_i32, -2], [3, 4], [-5, 9]], ncclMax, [3, 9]);
    expect_reduced([[1_i32, -2], [3, 4], [-5, 9]], ncclMin, [-5, -2]);
    expect_reduced([[1_i32, -2], [3, 4], [-5, 9]], ncclAvg, [0, 3]);
    expect_reduced([[100_i8, 1], [100, 2], [1, 3]], ncclSum, [-55, 6]);
    expect_reduced([[1_u8, 2], [3, 4], [5, 6]], ncclProd, [15, 48]);
    expect_reduced([[1_u32, 7], [3, 4], [2, 6]], ncclMax, [3, 7]);
    expect_reduced([[1_i64, -7], [3, 4], [2, 6]], ncclMin, [1, -7]);
    expect_reduced([[1_u64 << 60, 0], [1, 4], [2, 6]], ncclSum, [(1 << 60) + 3, 10]);
    expect_reduced([[0.5_f32, 1.0], [1.5, 2.0], [4.0, 6.0]], ncclAvg, [2.0, 3.0]);
    expect_reduced([[0.5_f64, 1.0], [1.5, 2.0], [4.0, 6.0]], ncclProd, [3.0, 12.0]);
    assert_eq!(resident_stand_in::hazards(), Vec::<String>::new());
}

/// cudarc has no numbers of these types without a feature of its own: their bits as `u16`.
#[test]
fn half_precision_is_reduced_too() {
    let ranks = ranks::<2>();
    // 1.5 and 2.25, as f16 and as bf16.
    for (kind, bits, sum) in [
        (ncclDataType_t::ncclFloat16, [0x3E00_u16, 0x4080], 0x4380),
        (ncclDataType_t::ncclBfloat16, [0x3FC0_u16, 0x4010], 0x4070),
    ] {
        let slices = [0, 1].map(|own| ranks[own].upload(&[bits[own]; 3]));
        for (rank, slice) in ranks.iter().zip(&slices) {
            let (place, comm) = (address(slice, rank), rank.comm);
            let stream = rank.stream.cu_stream().cast();
            // SAFETY: as in `all_reduce`.
            unsafe {
                result::all_reduce(place, place, 3, kind, ncclRedOp_t::ncclSum, comm, stream)
            }
            .unwrap();
        }
        assert_eq!(ranks[0].download(&slices[0]), [sum; 3]);
        assert_eq!(ranks[1].download(&slices[1]), [sum; 3]);
    }
}

const FLOAT: ncclDataType_t = ncclDataType_t::ncclFloat32;

/// Calls `queue` for each of four ranks with its buffers, and returns what the second ones hold
/// then.
fn of_four(
    [from_len, to_len]: [usize; 2],
    queue: impl Fn(&Rank, [*mut c_void; 2]) -> Result<result::NcclStatus, result::NcclError>,
) -> Vec<Vec<f32>> {
    let ranks = ranks::<4>();
    let numbers = |own: usize| (0..from_len).map(move |index| (10 * own + index) as f32);
    let from: Vec<_> = ranks
        .iter()
        .enumerate()
        .map(|(own, rank)| rank.upload(&numbers(own).collect::<Vec<_>>()))
        .collect();
    let to: Vec<_> = ranks.iter().map(|rank| rank.upload(&vec![-1.0_f32; to_len])).collect();
    for (own, rank) in ranks.iter().enumerate() {
        let buffers = [address(&from[own], rank), address(&to[own], rank)];
        assert!(queue(rank, buffers).is_ok());
    }
    ranks.iter().zip(&to).map(|(rank, to)| rank.download(to)).collect()
}

#[test]
fn gathered_elements_are_in_the_order_of_ranks() {
    let gathered = of_four([2, 8], |rank, [from, to]| {
        let stream = rank.stream.cu_stream().cast();
        // SAFETY: the buffers have these lengths, and live until the stream is over.
        unsafe { result::all_gather(from, to, 2, FLOAT, rank.comm, stream) }
    });
    assert_eq!(gathered, vec![vec![0.0, 1.0, 10.0, 11.0, 20.0, 21.0, 30.0, 31.0]; 4]);
}

#[test]
fn a_scattered_sum_has_each_ranks_part() {
    let scattered = of_four([8, 2], |rank, [from, to]| {
        let (sum, stream) = (ncclRedOp_t::ncclSum, rank.stream.cu_stream().cast());
        // SAFETY: as above.
        unsafe { result::reduce_scatter(from, to, 2, FLOAT, sum, rank.comm, stream) }
    });
    let part = |own: usize| vec![60.0 + 8.0 * own as f32, 64.0 + 8.0 * own as f32];
    assert_eq!(scattered, (0..4).map(part).collect::<Vec<_>>());
}

#[test]
fn only_the_root_gets_what_is_reduced() {
    let reduced = of_four([2, 2], |rank, [from, to]| {
        let (sum, stream) = (ncclRedOp_t::ncclSum, rank.stream.cu_stream().cast());
        // SAFETY: as above.
        unsafe { result::reduce(from, to, 2, FLOAT, sum, 2, rank.comm, stream) }
    });
    let untouched = vec![-1.0; 2];
    assert_eq!(reduced, [untouched.clone(), untouched.clone(), vec![60.0, 64.0], untouched]);
}

#[test]
fn all_get_what_the_root_broadcasts() {
    let broadcast = of_four([2, 2], |rank, [from, to]| {
        let stream = rank.stream.cu_stream().cast();
        // SAFETY: as above.
        unsafe { result::broadcast(from, to, 2, FLOAT, 3, rank.comm, stream) }
    });
    assert_eq!(broadcast, vec![vec![30.0, 31.0]; 4]);
    let in_place = of_four([1, 2], |rank, [_, place]| {
        let stream = rank.stream.cu_stream().cast();
        // SAFETY: as above.
        unsafe { sys::ncclBcast(place, 2, FLOAT, 1, rank.comm, stream) }.result()
    });
    assert_eq!(in_place, vec![vec![-1.0; 2]; 4]);
}

#[test]
fn without_elements_nothing_is_accessed() {
    let nothing = of_four([1, 1], |rank, _| {
        let (sum, stream) = (ncclRedOp_t::ncclSum, rank.stream.cu_stream().cast());
        let null = std::ptr::null_mut();
        // SAFETY: no memory is accessed.
        unsafe { result::all_reduce(null, null, 0, FLOAT, sum, rank.comm, stream) }
    });
    assert_eq!(nothing, vec![vec![-1.0]; 4]);
}
