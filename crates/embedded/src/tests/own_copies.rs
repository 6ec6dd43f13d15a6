//! Copies that the submitting thread makes, because the stream is idle.

use std::sync::Arc;
use std::thread;

use super::fixtures::{
    Accepting, HostBytes, allocate, contents, finish, gate, increment, label, queue_of, seeded,
    upload,
};
use crate::{EmbeddedDevice, Emulation};
use resident_backend::{
    Address, Backend, CopyWork, Copying, DeviceKind, HostMemory, Maker, RawStream, Work,
};
use resident_core::Access;

const LEN_BYTES: u64 = 4096;

/// The shortest staging memory that the device keeps.
const STAGED_BYTES: u64 = 64 << 10;

fn copy_of(source: &Arc<HostBytes>, to: Address) -> Box<CopyWork> {
    let Work::Copy(work) = upload(source, to, LEN_BYTES) else { unreachable!("it is a copy") };
    work
}

fn begin(
    stream: &Arc<dyn RawStream>,
    source: &Arc<HostBytes>,
    to: Address,
    maker: Maker,
) -> Copying {
    stream.copy(copy_of(source, to), maker).expect("nothing refuses it")
}

fn source() -> Arc<HostBytes> {
    HostBytes::new((0..LEN_BYTES).map(|byte| byte as u8))
}

#[test]
fn work_that_is_queued_meanwhile_waits_for_the_copy() {
    for device in [EmbeddedDevice::plain(), EmbeddedDevice::emulated(Emulation::new())] {
        let (stream, source) = (queue_of(&device), source());
        let to = allocate(&stream, LEN_BYTES).expect("room");
        finish(&stream);
        for round in 0..20 {
            let maker = [Maker::Caller, Maker::CallerOrStream][round % 2];
            let own = begin(&stream, &source, to, maker);
            assert!(matches!(own, Copying::Own(_)), "the stream is idle");
            let position = own.position();
            assert_eq!(position, stream.tail());
            let after = stream.launched(&increment(), &[(to, LEN_BYTES, Access::ReadWrite)]);
            if round % 2 == 0 {
                thread::yield_now();
            }
            assert!(stream.completed() < position, "nothing overtakes the copy");
            own.run();
            assert!(stream.completed() < after || stream.tail() == after);
            let expected: Vec<u8> =
                source.bytes().iter().map(|byte| byte.wrapping_add(1)).collect();
            assert_eq!(contents(&stream, to, LEN_BYTES), expected);
            finish(&stream);
        }
    }
}

#[test]
fn a_stream_with_pending_work_takes_no_such_copy() {
    let device = EmbeddedDevice::plain();
    let (stream, source) = (queue_of(&device), source());
    let to = allocate(&stream, LEN_BYTES).expect("room");
    let (open, held) = gate();
    stream.launched(&held, &[]);
    assert!(matches!(begin(&stream, &source, to, Maker::Caller), Copying::Declined));
    let queued = begin(&stream, &source, to, Maker::CallerOrStream);
    assert!(matches!(queued, Copying::Queued(position) if position == stream.tail()));
    drop(open);
    finish(&stream);
    let own = begin(&stream, &source, to, Maker::Caller);
    assert!(matches!(own, Copying::Own(_)), "the stream is idle again");
    let second = begin(&stream, &source, to, Maker::Caller);
    assert!(matches!(second, Copying::Declined), "one copy at a time");
    own.run();
}

#[test]
fn streams_make_copies_themselves_if_they_must_or_a_seed_orders_them() {
    for (device, maker) in
        [(seeded(1), Maker::CallerOrStream), (EmbeddedDevice::plain(), Maker::Stream)]
    {
        let (stream, source) = (queue_of(&device), source());
        let to = allocate(&stream, LEN_BYTES).expect("room");
        finish(&stream);
        assert!(matches!(begin(&stream, &source, to, maker), Copying::Queued(_)));
        assert_eq!(contents(&stream, to, LEN_BYTES), source.bytes());
    }
    let stream = queue_of(&seeded(1));
    let to = allocate(&stream, LEN_BYTES).expect("room");
    assert!(matches!(begin(&stream, &source(), to, Maker::Caller), Copying::Declined));
}

#[test]
fn staged_bytes_are_written_behind_earlier_work() {
    let device = EmbeddedDevice::plain();
    let (stream, source) = (queue_of(&device), source());
    let to = allocate(&stream, STAGED_BYTES).expect("room");
    let staged = device.allocate_staging(&*stream, STAGED_BYTES).expect("memory");
    assert!(!staged.is_pinned_for(DeviceKind::Cpu));
    // SAFETY: the block is longer, and nothing else has it.
    unsafe { staged.base().copy_from_nonoverlapping(source.base(), LEN_BYTES as usize) };
    let (open, held) = gate();
    stream.launched(&held, &[]);
    let position = stream.write(staged, to, &label("write")).expect("nothing refuses it");
    assert!(position == stream.tail() && !stream.poll(position).expect("it may be asked"));
    drop(open);
    assert_eq!(contents(&stream, to, LEN_BYTES), source.bytes());
}
