//! Copies that the submitting thread makes, because the stream is idle.

use std::sync::Arc;
use std::thread;

use super::fixtures::{
    Accepting, HostBytes, allocate, contents, finish, gate, increment, label, queue_of, seeded,
    upload,
};
use crate::{EmbeddedDevice, Emulation};
use resident_backend::{
    Address, Backend, CopyWork, Copying, DeviceKind, HostMemory, Maker, Queue, Work,
};
use resident_core::Access;

const LEN_BYTES: u64 = 4096;

/// The shortest staging memory that the device keeps.
const STAGED_BYTES: u64 = 64 << 10;

fn copy_of(source: &Arc<HostBytes>, to: Address) -> Box<CopyWork> {
    let Work::Copy(work) = upload(source, to, LEN_BYTES) else { unreachable!("it is a copy") };
    work
}

fn begin(queue: &Arc<dyn Queue>, source: &Arc<HostBytes>, to: Address, maker: Maker) -> Copying {
    queue.copy(copy_of(source, to), maker).expect("nothing refuses it")
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
            let maker = [Maker::Caller, Maker::CallerOrStream][round % 2];
            let own = begin(&queue, &source, to, maker);
            assert!(matches!(own, Copying::Own(_)), "the queue is idle");
            let position = own.position();
            assert_eq!(position, queue.tail());
            let after = queue.launched(&increment(), &[(to, LEN_BYTES, Access::ReadWrite)]);
            if round % 2 == 0 {
                thread::yield_now();
            }
            assert!(queue.completed() < position, "nothing overtakes the copy");
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
    assert!(matches!(begin(&queue, &source, to, Maker::Caller), Copying::Declined));
    let queued = begin(&queue, &source, to, Maker::CallerOrStream);
    assert!(matches!(queued, Copying::Queued(position) if position == queue.tail()));
    drop(open);
    finish(&queue);
    let own = begin(&queue, &source, to, Maker::Caller);
    assert!(matches!(own, Copying::Own(_)), "the queue is idle again");
    let second = begin(&queue, &source, to, Maker::Caller);
    assert!(matches!(second, Copying::Declined), "one copy at a time");
    own.run();
}

#[test]
fn streams_make_copies_themselves_if_they_must_or_a_seed_orders_them() {
    for (device, maker) in
        [(seeded(1), Maker::CallerOrStream), (EmbeddedDevice::plain(), Maker::Stream)]
    {
        let (queue, source) = (queue_of(&device), source());
        let to = allocate(&queue, LEN_BYTES).expect("room");
        finish(&queue);
        assert!(matches!(begin(&queue, &source, to, maker), Copying::Queued(_)));
        assert_eq!(contents(&queue, to, LEN_BYTES), source.bytes());
    }
    let queue = queue_of(&seeded(1));
    let to = allocate(&queue, LEN_BYTES).expect("room");
    assert!(matches!(begin(&queue, &source(), to, Maker::Caller), Copying::Declined));
}

#[test]
fn staged_bytes_are_written_behind_earlier_work() {
    let device = EmbeddedDevice::plain();
    let (queue, source) = (queue_of(&device), source());
    let to = allocate(&queue, STAGED_BYTES).expect("room");
    let staged = device.allocate_staging(&*queue, STAGED_BYTES).expect("memory");
    assert!(!staged.is_pinned_for(DeviceKind::Cpu));
    // SAFETY: the block is longer, and nothing else has it.
    unsafe { staged.base().copy_from_nonoverlapping(source.base(), LEN_BYTES as usize) };
    let (open, held) = gate();
    queue.launched(&held, &[]);
    let position = queue.write(staged, to, &label("write")).expect("nothing refuses it");
    assert!(position == queue.tail() && !queue.poll(position).expect("it may be asked"));
    drop(open);
    assert_eq!(contents(&queue, to, LEN_BYTES), source.bytes());
}
