//! How communicators are made, and what they say.

use std::ffi::CStr;

use resident::cudarc::nccl::result;
use resident::cudarc::nccl::sys::{self, ncclResult_t};

use super::ranks::{Rank, code, load, new_id, ranks};

/// What a communicator says: ranks, device, own rank.
fn said(comm: sys::ncclComm_t) -> [i32; 3] {
    // SAFETY: the stand-in's communicators are numbers, which it looks up.
    unsafe {
        [
            result::comm_count(comm).unwrap(),
            result::comm_cu_device(comm).unwrap(),
            result::comm_user_rank(comm).unwrap(),
        ]
    }
}

#[test]
fn a_communicator_knows_its_rank_and_device() {
    let id = new_id();
    let ranks = [5, 3].map(|device| {
        let rank = usize::from(device == 3);
        Rank::join_on(device, id, rank, 2).unwrap()
    });
    assert_eq!((said(ranks[0].comm), said(ranks[1].comm)), ([2, 5, 0], [2, 3, 1]));
}

#[test]
fn all_communicators_of_a_process_are_made_at_once() {
    load();
    let mut comms = [std::ptr::null_mut(); 3];
    // SAFETY: NCCL writes as many handles as it reads devices.
    unsafe { result::comm_init_all(comms.as_mut_ptr(), 3, [4, 2, 7].as_ptr()) }.unwrap();
    assert_eq!(comms.map(said), [[3, 4, 0], [3, 2, 1], [3, 7, 2]]);
    // SAFETY: as above; without a list, they are the first devices.
    unsafe { result::comm_init_all(comms.as_mut_ptr(), 3, std::ptr::null()) }.unwrap();
    assert_eq!(comms.map(said), [[3, 0, 0], [3, 1, 1], [3, 2, 2]]);
    for devices in [[0, 1, 0], [0, 1, 17], [0, 1, -1]] {
        // SAFETY: as above.
        let outcome = unsafe { result::comm_init_all(comms.as_mut_ptr(), 3, devices.as_ptr()) };
        assert!(outcome.is_err(), "{devices:?}");
    }
}

#[test]
fn ranks_that_do_not_fit_their_world_are_refused() {
    let id = new_id();
    let _first = Rank::join(id, 0, 3).unwrap();
    use ncclResult_t::{ncclInvalidArgument, ncclInvalidUsage};
    for (what, outcome, expected) in [
        ("a rank beyond the last", Rank::join(id, 3, 3), ncclInvalidArgument),
        ("another number of ranks", Rank::join(id, 1, 2), ncclInvalidArgument),
        ("a rank that is there", Rank::join_on(1, id, 0, 3), ncclInvalidUsage),
        ("a device that is taken", Rank::join_on(0, id, 1, 3), ncclInvalidUsage),
        (
            "an id that nobody gave out",
            Rank::join(sys::ncclUniqueId { internal: [1; 128] }, 0, 1),
            ncclInvalidArgument,
        ),
    ] {
        assert_eq!(code(outcome.map(drop)), expected, "{what}");
    }
    Rank::join(id, 1, 3).expect("the refused ones changed nothing");
}

#[test]
fn communicators_do_not_mix() {
    let (of_one, of_other) = (ranks::<2>(), ranks::<2>());
    let numbers = [1_i32, 2].map(|number| [number; 4]);
    let sent = [of_one[0].upload(&numbers[0]), of_other[0].upload(&numbers[1])];
    let mut received = [of_one[1].upload(&[0_i32; 4]), of_other[1].upload(&[0_i32; 4])];
    of_other[0].send(&sent[1], 1).unwrap();
    of_one[1].receive(&mut received[0], 0).unwrap();
    of_other[1].receive(&mut received[1], 0).unwrap();
    of_one[0].send(&sent[0], 1).unwrap();
    assert_eq!(of_one[1].download(&received[0]), numbers[0]);
    assert_eq!(of_other[1].download(&received[1]), numbers[1]);
}

/// The device of a rank is that of the thread's context.
#[test]
fn ranks_are_threads() {
    let id = new_id();
    let internal = id.internal;
    let threads: Vec<_> = (0..4)
        .map(|own| {
            std::thread::spawn(move || {
                let rank = Rank::join(sys::ncclUniqueId { internal }, own, 4).unwrap();
                let (sent, mut received) =
                    (rank.upload(&[own as u64; 2]), rank.upload(&[0_u64; 2]));
                result::group_start().unwrap();
                rank.send(&sent, (own + 1) % 4).unwrap();
                rank.receive(&mut received, (own + 3) % 4).unwrap();
                result::group_end().unwrap();
                rank.stream.synchronize().unwrap();
                rank.download(&received)
            })
        })
        .collect();
    for (own, thread) in threads.into_iter().enumerate() {
        assert_eq!(thread.join().unwrap(), [(own as u64 + 3) % 4; 2]);
    }
}

#[test]
fn work_of_a_destroyed_communicator_goes_on() {
    let [one, other] = ranks::<2>();
    let sent = one.upload(&[3_i32]);
    let mut received = other.upload(&[0_i32]);
    one.send(&sent, 1).unwrap();
    // SAFETY: the stand-in's communicators are numbers, which it looks up.
    unsafe { result::comm_finalize(one.comm) }.unwrap();
    // SAFETY: as above.
    unsafe { result::comm_destroy(one.comm) }.unwrap();
    other.receive(&mut received, 0).unwrap();
    assert_eq!(other.download(&received), [3]);
    assert_eq!(code(one.send(&sent, 1)), ncclResult_t::ncclInvalidArgument);
}

#[test]
fn versions_and_results_have_names() {
    load();
    assert!(result::get_nccl_version().unwrap() >= 22_000);
    let text = |code| {
        // SAFETY: NCCL returns a text that lives as long as the library.
        unsafe { CStr::from_ptr(sys::ncclGetErrorString(code)) }.to_str().unwrap()
    };
    assert_eq!(text(ncclResult_t::ncclSuccess), "no error");
    assert_eq!(text(ncclResult_t::ncclInvalidUsage), "invalid usage");
    // SAFETY: as above; there is no communicator.
    let last = unsafe { CStr::from_ptr(sys::ncclGetLastError(std::ptr::null_mut())) };
    assert_eq!(last, c"");
}
