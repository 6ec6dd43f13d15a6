//! Device memory: the limit; freed blocks that queued work still uses (draining), and pooled
//! blocks; poison bytes.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::fixtures::{
    Accepting, allocate, body, contents, contiguous, fill, finish, gate, queue_of,
};
use crate::memory::AddressSpace;
use crate::{EmbeddedDevice, Emulation};
use resident_backend::{Backend, BackendErrorKind, MemoryUsage};
use resident_core::Access;

fn usage(in_use: u64, pooled: u64) -> MemoryUsage {
    MemoryUsage { in_use, pooled, pinned: 0, peak: 0 }
}

#[test]
fn a_limit_counts_bytes_in_use_and_draining() {
    for emulation in [Emulation::new().memory(1000).seed(1), Emulation::new().memory(1000)] {
        let device = EmbeddedDevice::emulated(emulation);
        let stream = queue_of(&device);
        let (one, two) = (allocate(&stream, 600).unwrap(), allocate(&stream, 300).unwrap());
        let (open, gate) = gate();
        stream.launched(&gate, &[]);
        let refused = allocate(&stream, 101).unwrap_err();
        assert_eq!(
            refused.kind,
            BackendErrorKind::OutOfMemory { requested: 101, free: 100, draining: 0 }
        );
        stream.free(one).unwrap();
        assert_eq!(device.memory(), usage(300, 600));
        assert_eq!(device.capacity().unwrap().free, 100);
        let hopeless = allocate(&stream, 701).unwrap_err();
        assert_eq!(
            hopeless.kind,
            BackendErrorKind::OutOfMemory { requested: 701, free: 100, draining: 600 },
            "the draining bytes would not be enough, so it does not wait"
        );
        assert!(hopeless.detail.contains("600 bytes more"), "{hopeless}");
        drop(open);
        device.trim().unwrap();
        assert_eq!(device.memory(), usage(300, 0));
        stream.free(two).unwrap();
        finish(&stream);
        assert_eq!((device.memory(), device.capacity().unwrap().total), (usage(0, 300), 1000));
    }
}

#[test]
fn an_allocation_without_room_waits_for_queued_frees() {
    for seeded in [true, false] {
        let emulation = Emulation::new().memory(1000);
        let device = EmbeddedDevice::emulated(if seeded { emulation.seed(1) } else { emulation });
        let (stream, other) = (queue_of(&device), device.new_stream(None).unwrap());
        let address = allocate(&stream, 600).unwrap();
        let (open, gate) = gate();
        stream.launched(&gate, &[]);
        stream.free(address).unwrap();
        let start = Instant::now();
        let opener = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            drop(open);
        });
        assert!(allocate(&other, 500).is_ok());
        assert!(start.elapsed() >= Duration::from_millis(20), "the gate was still closed");
        assert_eq!(device.memory().in_use, 500);
        opener.join().unwrap();
    }
}

/// Another thread may run the free between the refusal and the call of `may_find_room`.
#[test]
fn room_that_a_free_made_after_the_refusal_is_found() {
    let memory = AddressSpace::new(0, Some(1000), None);
    let freed = memory.allocate(600).unwrap();
    memory.begin_free(freed).unwrap();
    assert!(memory.allocate(500).is_err());
    memory.release(freed);
    assert!(memory.may_find_room(500) && !memory.may_find_room(1001));
    assert!(memory.allocate(500).is_ok());
}

#[test]
fn pooled_blocks_make_room() {
    let device = EmbeddedDevice::emulated(Emulation::new().memory(1000));
    let stream = queue_of(&device);
    for len_bytes in [400, 300, 200] {
        let address = allocate(&stream, len_bytes).unwrap();
        stream.free(address).unwrap();
        finish(&stream);
    }
    assert_eq!(device.memory(), usage(0, 900));
    assert_eq!(device.capacity().unwrap().free, 1000);
    let address = allocate(&stream, 450).unwrap();
    assert_eq!(device.memory(), usage(450, 500), "one pooled block was enough");
    stream.free(address).unwrap();
    finish(&stream);
    assert!(allocate(&stream, 1000).is_ok());
    assert_eq!(device.memory(), usage(1000, 0));
}

#[test]
fn a_limit_below_the_pooled_bytes_evicts_them() {
    let device = EmbeddedDevice::emulated(Emulation::new().memory(1000));
    let stream = queue_of(&device);
    let address = allocate(&stream, 900).unwrap();
    stream.free(address).unwrap();
    finish(&stream);
    device.set_memory_limit(Some(500));
    assert!(allocate(&stream, 100).is_ok());
    assert_eq!(device.memory(), usage(100, 0));
}

#[test]
fn a_limit_does_not_change_the_memory_of_the_device() {
    let device = EmbeddedDevice::emulated(Emulation::new().memory(1000));
    let stream = queue_of(&device);
    device.set_memory_limit(Some(500));
    assert_eq!((device.capacity().unwrap().total, device.memory_limit()), (1000, Some(500)));
    assert!(allocate(&stream, 501).is_err());
    device.set_memory_limit(Some(2000));
    assert!(allocate(&stream, 1001).is_err());
    device.set_memory_limit(None);
    assert_eq!(device.memory_limit(), Some(1000));
    assert!(allocate(&stream, 1001).is_err());
    assert!(allocate(&stream, 1000).is_ok());
}

#[test]
fn blocks_are_reused_once_their_free_has_run() {
    let device = EmbeddedDevice::emulated(Emulation::new().seed(1).poison(false));
    let stream = queue_of(&device);
    let address = allocate(&stream, 64).unwrap();
    stream.queued(fill(address, contiguous(0, 64), &[7]));
    stream.free(address).unwrap();
    let early = allocate(&stream, 64).unwrap();
    assert_eq!(device.memory(), usage(64, 64), "the free has not run: another block");
    assert_eq!(contents(&stream, early, 64), [0; 64]);
    let late = allocate(&stream, 64).unwrap();
    assert_eq!(device.memory(), usage(128, 0));
    assert_eq!(contents(&stream, late, 64), [7; 64], "the same block, with its old contents");
    assert_ne!(late, address);
}

#[test]
fn fresh_and_freed_memory_is_poisoned() {
    let device = EmbeddedDevice::emulated(Emulation::new().poison(true));
    let poison = device.properties().poison_byte.unwrap();
    let stream = queue_of(&device);
    for len_bytes in [64, 100_000] {
        let fresh = allocate(&stream, len_bytes).unwrap();
        assert!(contents(&stream, fresh, len_bytes).iter().all(|byte| *byte == poison));
        stream.queued(fill(fresh, contiguous(0, len_bytes), &[7]));
        stream.free(fresh).unwrap();
        finish(&stream);
        let again = allocate(&stream, len_bytes).unwrap();
        assert!(contents(&stream, again, len_bytes).iter().all(|byte| *byte == poison));
    }
    assert_eq!(
        EmbeddedDevice::emulated(Emulation::new().poison(false)).properties().poison_byte,
        None
    );
    assert_eq!(
        EmbeddedDevice::emulated(Emulation::new()).properties().poison_byte.is_some(),
        cfg!(debug_assertions)
    );
}

#[test]
fn an_impossible_allocation_is_out_of_memory_and_counts_nothing() {
    for device in [EmbeddedDevice::plain(), EmbeddedDevice::emulated(Emulation::new())] {
        let stream = queue_of(&device);
        for len_bytes in [u64::MAX, 1 << 62, u64::MAX / 2] {
            let refused = allocate(&stream, len_bytes).unwrap_err();
            let BackendErrorKind::OutOfMemory { requested, .. } = refused.kind else {
                panic!("{refused}")
            };
            assert_eq!(requested, len_bytes);
        }
        assert!(allocate(&stream, 0).is_err());
        assert_eq!(device.memory(), usage(0, 0));
        assert!(allocate(&stream, 8).is_ok());
    }
}

#[test]
fn a_block_is_aligned_for_every_element() {
    let device = EmbeddedDevice::plain();
    let stream = queue_of(&device);
    let (sender, receiver) = mpsc::channel();
    let look = body("look", move |views| {
        views.iter().for_each(|view| sender.send(view.address()).unwrap());
    });
    for len_bytes in [1, 7, 256, 100_001] {
        let address = allocate(&stream, len_bytes).unwrap();
        assert_eq!(address.0 % 256, 0);
        stream.launched(&look, &[(address, len_bytes, Access::Overwrite)]);
    }
    finish(&stream);
    assert!(receiver.try_iter().all(|start: usize| start.is_multiple_of(256)));
}

#[test]
fn the_plain_device_reports_the_machines_memory() {
    let device = EmbeddedDevice::cpu();
    assert!(Arc::ptr_eq(&device, &EmbeddedDevice::cpu()));
    assert_eq!(
        (device.ordinal(), device.name().as_str(), device.properties().poison_byte),
        (0, "cpu:0", None)
    );
    assert!(device.log().is_none());
    if std::path::Path::new("/proc/meminfo").exists() && !cfg!(miri) {
        let capacity = device.capacity().unwrap();
        assert!(capacity.total >= capacity.free && capacity.free > 0);
    }
    let emulated = EmbeddedDevice::emulated(Emulation::new());
    assert!(
        emulated.ordinal() > 0
            && emulated.can_access_peer(device.as_ref())
            && device.can_access_peer(emulated.as_ref())
    );
}
