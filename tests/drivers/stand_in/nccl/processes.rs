//! Ranks in processes of their own: this program, started anew for the running test.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use resident::cudarc::driver::{CudaSlice, DevicePtr};
use resident::cudarc::nccl::result;
use resident::cudarc::nccl::sys::{self, ncclDataType_t, ncclRedOp_t, ncclResult_t, ncclUniqueId};
use resident::cudarc::nccl::{group_end, group_start};
use support::{eventually, own_process, test_name};

use super::ranks::{Rank, code, new_id};

/// In a process that the test has started: what it is to do, and the id.
const ROLE: &str = "RESIDENT_STAND_IN_NCCL_ROLE";

fn hexadecimal(id: ncclUniqueId) -> String {
    id.internal.iter().map(|byte| format!("{:02x}", byte.cast_unsigned())).collect()
}

fn id_of(text: &str) -> ncclUniqueId {
    let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
    ncclUniqueId { internal: std::array::from_fn(|at| byte(at).cast_signed()) }
}

/// The role of this process and the id that it was given, if it was started by [`start`].
fn role() -> Option<(String, ncclUniqueId)> {
    let role = std::env::var(ROLE).ok()?;
    let (role, id) = role.split_once(' ')?;
    Some((role.into(), id_of(id)))
}

fn start(test: &str, role: &str, id: ncclUniqueId) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(ROLE, format!("{role} {}", hexadecimal(id)))
        .env(own_process::VARIABLE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts")
}

fn sum(rank: &Rank, numbers: &CudaSlice<u64>) {
    let place = numbers.device_ptr(&rank.stream).0 as *mut _;
    let (comm, stream) = (rank.comm, rank.stream.cu_stream().cast());
    let (kind, operation) = (ncclDataType_t::ncclUint64, ncclRedOp_t::ncclSum);
    // SAFETY: the slice has these elements, and lives until the stream is over.
    unsafe { result::all_reduce(place, place, numbers.len(), kind, operation, comm, stream) }
        .unwrap();
}

/// Two messages to each side of a ring, and a sum, for the ranks of this process.
fn exchange(ranks: &[(usize, Rank)], of: usize) {
    let mut buffers = Vec::new();
    group_start().unwrap();
    for (own, rank) in ranks {
        let base = 10 * *own as u64;
        let sent = [1, 2, 3, 4].map(|number| rank.upload(&vec![base + number; 1000]));
        let mut received = [(); 4].map(|()| rank.upload(&vec![0_u64; 1000]));
        let (next, last) = ((own + 1) % of, (own + of - 1) % of);
        for index in [0, 1] {
            rank.receive(&mut received[index], last).unwrap();
            rank.receive(&mut received[2 + index], next).unwrap();
            rank.send(&sent[index], next).unwrap();
            rank.send(&sent[2 + index], last).unwrap();
        }
        buffers.push((sent, received));
    }
    group_end().unwrap();
    for ((own, rank), (_sent, received)) in ranks.iter().zip(&buffers) {
        let (next, last) = (10 * ((own + 1) % of) as u64, 10 * ((own + of - 1) % of) as u64);
        let expected = [last + 1, last + 2, next + 3, next + 4];
        for (place, number) in received.iter().zip(expected) {
            assert_eq!(rank.download(place), vec![number; 1000], "rank {own}");
        }
    }
    let sums: Vec<_> = ranks.iter().map(|(own, rank)| rank.upload(&[*own as u64, 1])).collect();
    group_start().unwrap();
    ranks.iter().zip(&sums).for_each(|((_, rank), sums)| sum(rank, sums));
    group_end().unwrap();
    for ((_, rank), sums) in ranks.iter().zip(&sums) {
        assert_eq!(rank.download(sums), [(of * (of - 1) / 2) as u64, of as u64]);
        assert_eq!(rank.error(), ncclResult_t::ncclSuccess);
    }
    assert_eq!(resident_stand_in::hazards(), Vec::<String>::new());
}

/// Runs `each` ranks in each of so many processes, this one included.
fn exchange_among(test: &str, processes: usize, each: usize) {
    let of = processes * each;
    let join = |id, process: usize| -> Vec<_> {
        let own = each * process..each * (process + 1);
        own.map(|rank| (rank, Rank::join(id, rank, of).unwrap())).collect()
    };
    if let Some((process, id)) = role() {
        super::ranks::load();
        let process: usize = process.parse().unwrap();
        // The same machine has the same devices: that of rank 0 is taken.
        let taken = Rank::join_on(0, id, each * process, of);
        assert_eq!(code(taken.map(drop)), ncclResult_t::ncclInvalidUsage);
        return exchange(&join(id, process), of);
    }
    let id = new_id();
    let ranks = join(id, 0);
    let children: Vec<_> =
        (1..processes).map(|process| start(test, &process.to_string(), id)).collect();
    exchange(&ranks, of);
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn ranks_are_processes() {
    own_process!();
    exchange_among(test_name!(), 4, 1);
}

#[test]
fn processes_have_several_ranks_each() {
    own_process!();
    exchange_among(test_name!(), 2, 2);
}

/// Receives one number, which comes, and waits for another, which does not. Then `end` ends the
/// other rank's process.
fn lose(rank: &Rank, other: usize, end: impl FnOnce()) {
    let mut received = [rank.upload(&[0_u64]), rank.upload(&[0_u64])];
    rank.receive(&mut received[0], other).unwrap();
    assert_eq!(rank.download(&received[0]), [7]);
    rank.receive(&mut received[1], other).unwrap();
    assert_eq!((rank.error(), rank.is_over()), (ncclResult_t::ncclSuccess, false));
    end();
    eventually(ncclResult_t::ncclRemoteError, "the error", || rank.error());
    assert!(!rank.is_over(), "as after an abort of the other rank");
    rank.abort().unwrap();
    rank.stream.synchronize().unwrap();
}

fn send_seven(rank: &Rank, other: usize) {
    rank.send(&rank.upload(&[7_u64]), other).unwrap();
    rank.stream.synchronize().unwrap();
}

fn wait_to_be_killed() -> ! {
    loop {
        std::thread::park();
    }
}

#[test]
fn who_waits_for_a_process_that_is_killed_has_an_error() {
    own_process!();
    if let Some((_, id)) = role() {
        super::ranks::load();
        send_seven(&Rank::join(id, 1, 2).unwrap(), 0);
        wait_to_be_killed();
    }
    let id = new_id();
    let rank = Rank::join(id, 0, 2).unwrap();
    let mut child = start(test_name!(), "killed", id);
    lose(&rank, 1, || child.kill().unwrap());
    child.wait().unwrap();
}

#[test]
fn without_the_process_that_made_the_id_all_ranks_have_an_error() {
    own_process!();
    if role().is_some() {
        let id = new_id();
        println!("\nid {}", hexadecimal(id));
        send_seven(&Rank::join(id, 0, 2).unwrap(), 1);
        wait_to_be_killed();
    }
    super::ranks::load();
    let mut child = start(test_name!(), "maker", ncclUniqueId { internal: [0; 128] });
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ids =
        lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("id ").map(id_of));
    let id = ids.next().expect("the other process makes an id");
    let rank = Rank::join(id, 1, 2).unwrap();
    lose(&rank, 0, || child.kill().unwrap());
    child.wait().unwrap();
    let late = Rank::join_on(2, id, 0, 2).map(drop);
    assert_eq!(code(late), ncclResult_t::ncclSystemError);
    // SAFETY: the stand-in's communicators are numbers, which it looks up.
    let gone = unsafe { sys::ncclCommDestroy(rank.comm) };
    assert_eq!(gone, ncclResult_t::ncclInvalidArgument, "it was aborted");
}
