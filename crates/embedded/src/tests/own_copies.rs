//! Copies that the submitting thread makes, because the stream is idle.

use std::sync::Arc;
use std::thread;

use super::fixtures::{
    Accepting, HostBytes, allocate, contents, finish, gate, increment, queue_of, seeded, upload,
};
use crate::{EmbeddedDevice, Emulation};
use resident_backend::{Address, CopyWork, OwnCopy, Queue, Work};
use resident_core::Access;

const LEN_BYTES: u64 = 4096;

fn copy_of(source: &Arc<HostBytes>, to: Address) -> Box<CopyWork> {
    let Work::Copy(work) = upload(source, to, LEN_BYTES) else { unreachable!("it is a copy") };
    work
}

fn begin(queue: &Arc<dyn Queue>, source: &Arc<HostBytes>, to: Address) -> Option<OwnCopy> {
    queue.begin_copy(&mut || copy_of(source, to)).expect("nothing refuses it")
}

fn source() -> Arc<HostBytes> {
    HostBytes::new((0..LEN_BYTES).map(|byte| byte as u8))
}

#[test]
fn work_that_is_queued_meanwhile_waits_for_the_copy() {
    for device in [EmbeddedDevice::plain(), EmbeddedDevice::emulated(Emulation::new())] {
        let (queue, source) = (queue_of(&device), source());
        let to = allocate(&queue, LEN_BYTES).expect("room");
        finish(&queue);
        for round in 0..20 {
            let own = begin(&queue, &source, to).expect("the queue is idle");
            assert_eq!(own.position, queue.tail());
            let after = queue.launched(&increment(), &[(to, LEN_BYTES, Access::ReadWrite)]);
            if round % 2 == 0 {
                thread::yield_now();
            }
            assert!(queue.completed() < own.position, "nothing overtakes the copy");
            own.run();
            assert!(queue.completed() < after || queue.tail() == after);
            let expected: Vec<u8> =
                source.bytes().iter().map(|byte| byte.wrapping_add(1)).collect();
            assert_eq!(contents(&queue, to, LEN_BYTES), expected);
            finish(&queue);
        }
    }
}

#[test]
fn a_queue_with_pending_work_takes_no_such_copy() {
    let device = EmbeddedDevice::plain();
    let (queue, source) = (queue_of(&device), source());
    let to = allocate(&queue, LEN_BYTES).expect("room");
    let (open, held) = gate();
    queue.launched(&held, &[]);
    assert!(begin(&queue, &source, to).is_none());
    drop(open);
    finish(&queue);
    let own = begin(&queue, &source, to).expect("the queue is idle again");
    assert!(begin(&queue, &source, to).is_none(), "one copy at a time");
    own.run();
}

#[test]
fn a_seeded_queue_takes_no_such_copy() {
    let device = seeded(1);
    let (queue, source) = (queue_of(&device), source());
    let to = allocate(&queue, LEN_BYTES).expect("room");
    assert!(begin(&queue, &source, to).is_none());
}
