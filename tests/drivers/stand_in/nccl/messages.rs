//! Sends and receives, alone and in groups.

use resident::cudarc::nccl::sys::ncclResult_t;
use resident::cudarc::nccl::{group_end, group_start};
use support::in_own_process;

use super::ranks::{code, ranks};
use crate::shared::Gate;

#[test]
fn a_message_arrives_behind_earlier_work_of_both_streams_and_no_call_waits() {
    let [one, other] = in_own_process!(ranks::<2>());
    let gate = Gate::in_front_of(&one.stream);
    let sent = one.upload(&[1.5_f32, 2.5, 3.5]);
    let mut received = other.upload(&[0.0_f32; 3]);
    other.receive(&mut received, 0).unwrap();
    one.send(&sent, 1).unwrap();
    assert!(!one.is_over() && !other.is_over());
    gate.open();
    assert_eq!(other.download(&received), [1.5, 2.5, 3.5]);
    one.stream.synchronize().unwrap();
    assert_eq!(resident_stand_in::hazards(), Vec::<String>::new());
}

/// Two ranks that both send first wait for each other, as they may in NCCL.
#[test]
fn a_send_is_over_once_it_was_received() {
    // Before any stream waits: cudarc waits for the whole context when it makes its first stream.
    let ([one, other], [a, b]) = (ranks::<2>(), ranks::<2>());
    let sent = [one.upload(&[1_i32]), other.upload(&[2_i32])];
    let mut received = [one.upload(&[0_i32]), other.upload(&[0_i32])];
    one.send(&sent[0], 1).unwrap();
    other.send(&sent[1], 0).unwrap();
    one.receive(&mut received[0], 1).unwrap();
    other.receive(&mut received[1], 0).unwrap();
    // A round on other streams shows that the machine had time for the messages.
    let mut there = b.upload(&[0_i32]);
    a.send(&a.upload(&[7_i32]), 1).unwrap();
    b.receive(&mut there, 0).unwrap();
    assert_eq!(b.download(&there), [7]);
    assert!(!one.is_over() && !other.is_over());
    one.abort().unwrap();
    other.abort().unwrap();
    // What was to be received has bytes of the driver's.
    assert_ne!(one.download(&received[0]), [2]);
    assert_ne!(other.download(&received[1]), [1]);
}

#[test]
fn a_group_sends_before_it_receives_and_keeps_the_order_of_messages_to_one_peer() {
    let ranks = in_own_process!(ranks::<2>());
    let mut received = Vec::new();
    for (own, rank) in ranks.iter().enumerate() {
        let base = 10 * own as i64;
        let sent = [rank.upload(&[base + 1, base + 2]), rank.upload(&[base + 3, base + 4])];
        let mut places = [rank.upload(&[0_i64; 2]), rank.upload(&[0_i64; 2])];
        rank.stream.synchronize().unwrap();
        group_start().unwrap();
        group_start().unwrap();
        for (sent, place) in sent.iter().zip(&mut places) {
            rank.receive(place, 1 - own).unwrap();
            rank.send(sent, 1 - own).unwrap();
        }
        group_end().unwrap();
        assert!(rank.is_over() || own == 1, "nothing is queued before the outermost end");
        group_end().unwrap();
        received.push(places);
    }
    for (own, rank) in ranks.iter().enumerate() {
        let base = 10 * (1 - own as i64);
        assert_eq!(rank.download(&received[own][0]), [base + 1, base + 2]);
        assert_eq!(rank.download(&received[own][1]), [base + 3, base + 4]);
        rank.stream.synchronize().unwrap();
    }
    assert_eq!(resident_stand_in::hazards(), Vec::<String>::new());
}

#[test]
fn a_group_of_several_communicators_is_made_by_one_thread() {
    let ranks = ranks::<4>();
    let sent: Vec<_> = (0..4_u8).map(|own| ranks[own as usize].upload(&[own; 5])).collect();
    let mut received: Vec<_> = ranks.iter().map(|rank| rank.upload(&[9_u8; 5])).collect();
    group_start().unwrap();
    for own in 0..4 {
        ranks[own].receive(&mut received[own], (own + 3) % 4).unwrap();
        ranks[own].send(&sent[own], (own + 1) % 4).unwrap();
    }
    group_end().unwrap();
    for own in 0..4 {
        assert_eq!(ranks[own].download(&received[own]), [(own as u8 + 3) % 4; 5]);
    }
}

#[test]
fn a_rank_sends_to_itself_in_a_group() {
    let [alone] = ranks::<1>();
    let sent = alone.upload(&[4_u32, 5]);
    let mut received = alone.upload(&[0_u32; 2]);
    group_start().unwrap();
    alone.send(&sent, 0).unwrap();
    alone.receive(&mut received, 0).unwrap();
    group_end().unwrap();
    assert_eq!(alone.download(&received), [4, 5]);
}

#[test]
fn a_group_with_a_refused_call_queues_nothing() {
    let [one, _other] = ranks::<2>();
    let sent = one.upload(&[1_i8]);
    group_start().unwrap();
    one.send(&sent, 1).unwrap();
    assert_eq!(code(one.send(&sent, 2)), ncclResult_t::ncclInvalidArgument);
    assert_eq!(code(group_end()), ncclResult_t::ncclInvalidArgument);
    one.stream.synchronize().unwrap();
    assert_eq!(code(group_end()), ncclResult_t::ncclInvalidUsage);
}

/// What the driver's check is for: a copy that no event orders behind the message.
#[test]
fn an_unordered_use_of_what_is_received_is_a_hazard() {
    let [one, other] = in_own_process!(ranks::<2>());
    let sent = one.upload(&[1.0_f64; 8]);
    let mut received = other.upload(&[0.0_f64; 8]);
    let elsewhere = other.stream.context().new_stream().unwrap();
    other.stream.synchronize().unwrap();
    other.receive(&mut received, 0).unwrap();
    let mut copy = vec![0.0_f64; 8];
    // SAFETY: the memory is alive, and its bytes are numbers whatever is copied.
    unsafe {
        let (address, _after) =
            resident::cudarc::driver::DevicePtr::device_ptr(&received, &other.stream);
        resident::cudarc::driver::result::memcpy_dtoh_async(
            &mut copy,
            address,
            elsewhere.cu_stream(),
        )
    }
    .unwrap();
    elsewhere.synchronize().unwrap();
    one.send(&sent, 1).unwrap();
    other.stream.synchronize().unwrap();
    let hazards = resident_stand_in::hazards();
    assert!(hazards.iter().any(|hazard| hazard.contains("nccl_take")), "{hazards:?}");
}
