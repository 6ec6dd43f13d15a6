//! The check of ordering: what it finds, what it leaves alone, and that it forgets.

use std::sync::Arc;

use smallvec::smallvec;

use super::scene::{
    Cells, allocate, body, contiguous, copy, depending, download, entered_gate, fill, finish, flat,
    gate, increment, label, launch, log_of, queue_of, upload,
};
use crate::access::Access;
use crate::backend::embedded::{EmbeddedDevice, Emulation, Hazard, HazardKind, Touch};
use crate::backend::{
    Address, ArrayArgument, Backend, CopyWork, Dependencies, FailureKind, Footprint, Memory,
    Position, Queue, SourceDevice, Work, failure,
};

struct Scene {
    device: Arc<EmbeddedDevice>,
    one: Arc<dyn Queue>,
    two: Arc<dyn Queue>,
    address: Address,
}

/// Two queues, and 64 bytes that are written and settled.
fn scene() -> Scene {
    let device = EmbeddedDevice::emulated(Emulation::new().seed(1));
    let (one, two) = (queue_of(&device), device.new_queue().unwrap());
    let address = one.allocate(64, &label("\"photo\"")).unwrap();
    one.submit(upload(&Cells::new([1; 64]), address, 64)).unwrap();
    finish(&one);
    Scene { device, one, two, address }
}

impl Scene {
    fn hazards(&self) -> Vec<Hazard> {
        log_of(&self.device).hazards()
    }

    fn kinds(&self) -> Vec<HazardKind> {
        self.hazards().iter().map(|hazard| hazard.kind).collect()
    }

    /// One queue goes on behind the other.
    fn order(&self, before: &Arc<dyn Queue>, after: &Arc<dyn Queue>) {
        after.wait(before.record(false).unwrap().as_ref()).unwrap();
    }
}

#[test]
fn two_writes_without_order_are_a_hazard_that_names_both() {
    let scene = scene();
    scene.one.submit(launch(&increment(), &[(scene.address, 64, Access::ReadWrite)])).unwrap();
    scene.two.submit(fill(scene.address, contiguous(16, 8), &[0])).unwrap();
    let hazards = scene.hazards();
    assert_eq!(hazards.len(), 1);
    let (hazard, earlier) = (&hazards[0], hazards[0].earlier.as_ref().unwrap());
    assert_eq!((hazard.kind, hazard.bytes.clone()), (HazardKind::Unordered, 16..24));
    assert_eq!(
        (earlier.name.as_ref(), earlier.stream, earlier.position, earlier.touch),
        ("kernel \"increment\"", 0, 2, Touch::Writes)
    );
    assert_eq!(
        (hazard.operation.name.as_ref(), hazard.operation.stream, hazard.operation.position),
        ("fill", 1, 1)
    );
    let told = hazard.to_string();
    assert!(told.contains("writes and fill (cpu:"), "{told}");
    assert!(
        told.contains("bytes 16..24 of \"photo\" on cpu:")
            && told.ends_with(", and nothing orders them"),
        "{told}"
    );
}

#[test]
fn order_is_by_queue_event_or_completion() {
    let scene = scene();
    let write = || launch(&increment(), &[(scene.address, 64, Access::ReadWrite)]);
    scene.one.submit(write()).unwrap();
    scene.one.submit(write()).unwrap();
    scene.order(&scene.one, &scene.two);
    scene.two.submit(write()).unwrap();
    finish(&scene.two);
    scene.one.submit(write()).unwrap();
    assert!(scene.kinds().is_empty(), "{:?}", scene.hazards());
    // An event orders what is behind it and nothing later: this write is after the one that the
    // first queue was ordered behind.
    scene.order(&scene.one, &scene.two);
    scene.one.submit(write()).unwrap();
    scene.two.submit(write()).unwrap();
    assert_eq!(scene.kinds(), [HazardKind::Unordered]);
}

#[test]
fn order_goes_through_a_queue_in_between() {
    let scene = scene();
    let three = scene.device.new_queue().unwrap();
    scene.one.submit(fill(scene.address, contiguous(0, 64), &[2])).unwrap();
    scene.order(&scene.one, &three);
    scene.order(&three, &scene.two);
    scene.two.submit(fill(scene.address, contiguous(0, 64), &[3])).unwrap();
    assert!(scene.kinds().is_empty());
}

#[test]
fn reads_and_disjoint_uses_are_in_no_conflict() {
    let scene = scene();
    let columns = |offset_bytes| Footprint { offset_bytes, run_bytes: 4, axes: smallvec![(8, 8)] };
    scene.one.submit(fill(scene.address, columns(0), &[2])).unwrap();
    scene.two.submit(fill(scene.address, columns(4), &[3])).unwrap();
    assert!(scene.kinds().is_empty(), "interleaved columns share no byte");
    scene
        .two
        .submit(fill(
            scene.address,
            Footprint { offset_bytes: 12, run_bytes: 4, axes: smallvec![(2, 12)] },
            &[3],
        ))
        .unwrap();
    assert_eq!((scene.hazards().len(), scene.hazards()[0].bytes.clone()), (1, 24..28));
    let scene = self::scene();
    let look = body("look", |_| ());
    scene.one.submit(launch(&look, &[(scene.address, 64, Access::Read)])).unwrap();
    scene.two.submit(launch(&look, &[(scene.address, 64, Access::Read)])).unwrap();
    scene.two.submit(download(scene.address, &Cells::new([0; 64]), 64)).unwrap();
    assert!(scene.kinds().is_empty());
    scene.two.submit(fill(scene.address, contiguous(0, 1), &[0])).unwrap();
    assert_eq!(scene.kinds(), [HazardKind::Unordered], "the other queue's read is pending");
}

#[test]
fn host_memory_is_watched_as_well() {
    let scene = scene();
    let (host, other) = (Cells::new([0; 64]), allocate(&scene.two, 64).unwrap());
    scene.one.submit(download(scene.address, &host, 64)).unwrap();
    scene.two.submit(upload(&host, other, 64)).unwrap();
    let hazards = scene.hazards();
    assert_eq!(
        (hazards.len(), hazards[0].kind, hazards[0].bytes.clone()),
        (1, HazardKind::Unordered, 0..64)
    );
    assert_eq!(hazards[0].memory, "host memory of 64 bytes");
    let (scene, host) = (self::scene(), Cells::new([0; 64]));
    scene.one.submit(download(scene.address, &host, 64)).unwrap();
    let last = copy(
        "last",
        Memory::Device(scene.address),
        Memory::Host(Arc::<Cells>::clone(&host)),
        flat(8, 0, 56),
    );
    scene.two.submit(last).unwrap();
    assert_eq!(scene.hazards()[0].bytes, 56..64);
}

#[test]
fn devices_of_one_world_are_watched_together() {
    let (one, two) = (
        EmbeddedDevice::emulated(Emulation::new().seed(1)),
        EmbeddedDevice::emulated(Emulation::new().seed(1)),
    );
    let (source, target) = (queue_of(&one), queue_of(&two));
    let (from, to) = (allocate(&source, 8).unwrap(), allocate(&target, 8).unwrap());
    source.submit(fill(from, contiguous(0, 8), &[1])).unwrap();
    let exchange = || {
        let (source, destination) = (Memory::Device(from), Memory::Device(to));
        let (source_device, parts) = (
            Some(Arc::<EmbeddedDevice>::clone(&one) as Arc<dyn SourceDevice>),
            smallvec![flat(8, 0, 0)],
        );
        Work::Copy(Box::new(CopyWork {
            may_read_between: false,
            loss: FailureKind::Copy,
            source,
            destination,
            source_device,
            parts,
            depends: Dependencies::new(),
            label: label("exchange"),
        }))
    };
    target.submit(exchange()).unwrap();
    let hazards = log_of(&two).hazards();
    assert_eq!((hazards.len(), hazards[0].kind), (1, HazardKind::Unordered), "{hazards:?}");
    assert_eq!(hazards[0].memory, format!("memory on cpu:{}", one.ordinal()));
    // A device that nobody watches gives no false alarm.
    let plain = EmbeddedDevice::plain();
    let queue = queue_of(&plain);
    let unwatched = allocate(&queue, 8).unwrap();
    queue.submit(fill(unwatched, contiguous(0, 8), &[6])).unwrap();
    finish(&queue);
    finish(&target);
    let Work::Copy(mut work) = exchange() else { unreachable!("an exchange is a copy") };
    work.source = Memory::Device(unwatched);
    work.source_device = Some(plain);
    target.submit(Work::Copy(work)).unwrap();
    assert_eq!(super::scene::contents(&target, to, 8), [6; 8]);
    assert_eq!(log_of(&two).hazards().len(), 1);
}

#[test]
fn a_free_that_is_not_behind_a_use_is_a_hazard() {
    let scene = scene();
    scene.one.submit(download(scene.address, &Cells::new([0; 64]), 64)).unwrap();
    scene.two.free(scene.address).unwrap();
    let hazards = scene.hazards();
    assert_eq!(
        (hazards.len(), hazards[0].kind, hazards[0].operation.touch),
        (1, HazardKind::Unordered, Touch::Frees)
    );
    let scene = self::scene();
    scene.one.submit(download(scene.address, &Cells::new([0; 64]), 64)).unwrap();
    scene.order(&scene.one, &scene.two);
    scene.two.free(scene.address).unwrap();
    assert!(scene.kinds().is_empty());
}

#[test]
fn a_use_after_a_free_is_a_hazard_and_fails() {
    for finished in [false, true] {
        let scene = scene();
        scene.one.free(scene.address).unwrap();
        assert!(scene.one.free(scene.address).is_err(), "a second free is refused, queued or run");
        if finished {
            finish(&scene.one);
        }
        let position = scene.one.submit(download(scene.address, &Cells::new([0; 64]), 64)).unwrap();
        let launched = scene
            .one
            .submit(launch(&increment(), &[(scene.address, 64, Access::ReadWrite)]))
            .unwrap();
        assert_eq!(scene.kinds(), [HazardKind::UseAfterFree; 2]);
        let told = scene.hazards()[0].to_string();
        assert!(
            told.starts_with("free (cpu:")
                && told.contains("\"photo\"")
                && told.ends_with("which was freed before"),
            "{told}"
        );
        finish(&scene.one);
        assert_eq!(failure::at(scene.one.id(), position).unwrap().kind, FailureKind::Copy);
        assert_eq!(failure::at(scene.one.id(), launched).unwrap().kind, FailureKind::Contents);
        let again = scene.one.free(scene.address).unwrap_err();
        assert!(again.detail.contains("freed before"), "{again}");
    }
}

#[test]
fn work_out_of_range_is_a_hazard_and_fails() {
    let scene = scene();
    let copied = scene.one.submit(upload(&Cells::new([0; 65]), scene.address, 65)).unwrap();
    let inside = Address(scene.address.0 + 60);
    let launched =
        scene.one.submit(launch(&increment(), &[(inside, 5, Access::ReadWrite)])).unwrap();
    assert_eq!(scene.kinds(), [HazardKind::OutOfRange; 2]);
    assert!(scene.hazards()[0].to_string().contains("writes bytes 0..65 of \"photo\""));
    scene.one.submit(launch(&increment(), &[(inside, 4, Access::ReadWrite)])).unwrap();
    let unknown =
        scene.one.submit(launch(&increment(), &[(Address(7), 4, Access::ReadWrite)])).unwrap();
    assert_eq!(scene.kinds().len(), 3, "memory that never was is told once");
    finish(&scene.one);
    for position in [copied, launched, unknown] {
        assert!(failure::at(scene.one.id(), position).is_some());
    }
    assert!(
        failure::at(scene.one.id(), Position(launched.0 + 1)).is_none(),
        "an address inside a block is good"
    );
}

#[test]
fn an_origin_beyond_the_block_fails_the_launch() {
    let scene = scene();
    for (origin_bytes, fails) in [(64, false), (65, true)] {
        let Work::Launch(mut work) =
            launch(&body("look", |_| ()), &[(scene.address, 64, Access::Read)])
        else {
            unreachable!("a launch is a launch")
        };
        // Not a byte is looked at, so that the origin alone decides.
        work.arguments.words[0] = 0;
        work.arguments.arrays[0].origin_bytes = origin_bytes;
        let position = scene.one.submit(Work::Launch(work)).unwrap();
        finish(&scene.one);
        assert_eq!(failure::at(scene.one.id(), position).is_some(), fails);
    }
}

#[test]
fn a_block_freed_under_running_work_is_not_reused() {
    let device = EmbeddedDevice::emulated(Emulation::new());
    let (one, two) = (queue_of(&device), device.new_queue().unwrap());
    let address = allocate(&one, 64).unwrap();
    let (entered, open, held) = entered_gate();
    one.submit(launch(&held, &[(address, 64, Access::Overwrite)])).unwrap();
    entered.recv().unwrap();
    two.free(address).unwrap();
    finish(&two);
    assert_eq!(
        (device.memory().in_use, device.memory().pooled),
        (0, 0),
        "the body's bytes stay its own"
    );
    drop(open);
    finish(&one);
    assert_eq!(log_of(&device).hazards()[0].operation.touch, Touch::Frees);
}

#[test]
fn work_that_has_run_is_no_rival_while_it_is_dropped() {
    struct Successor {
        queue: Arc<dyn Queue>,
        address: Address,
    }
    impl Drop for Successor {
        fn drop(&mut self) {
            self.queue.submit(fill(self.address, contiguous(0, 64), &[9])).unwrap();
        }
    }
    let scene = scene();
    let successor = Successor { queue: Arc::clone(&scene.two), address: scene.address };
    let last = body("last", move |_| {
        let _held = &successor;
    });
    scene.one.submit(launch(&last, &[(scene.address, 64, Access::Overwrite)])).unwrap();
    drop(last);
    finish(&scene.one);
    finish(&scene.two);
    assert!(scene.kinds().is_empty(), "{:?}", scene.hazards());
    assert_eq!(super::scene::contents(&scene.two, scene.address, 64), [9; 64]);
}

#[test]
fn a_read_of_bytes_never_written_is_a_hazard() {
    let scene = scene();
    let fresh = scene.one.allocate(64, &label("fresh")).unwrap();
    scene.one.submit(fill(fresh, contiguous(0, 32), &[1])).unwrap();
    scene.one.submit(download(fresh, &Cells::new([0; 64]), 64)).unwrap();
    let hazards = scene.hazards();
    assert_eq!(
        (hazards.len(), hazards[0].kind, hazards[0].bytes.clone()),
        (1, HazardKind::NeverWritten, 32..64)
    );
    assert!(hazards[0].to_string().contains("fresh on cpu:"));
    let overwrite = body("overwrite", |_| ());
    scene.one.submit(launch(&overwrite, &[(fresh, 64, Access::Overwrite)])).unwrap();
    scene.one.submit(launch(&increment(), &[(fresh, 64, Access::ReadWrite)])).unwrap();
    assert_eq!(scene.kinds().len(), 1, "an overwrite writes");
    let Work::Fill(mut poison) = fill(fresh, contiguous(8, 8), &[0xFF]) else {
        unreachable!("a fill is a fill")
    };
    poison.loss = FailureKind::Poison;
    scene.one.submit(Work::Fill(poison)).unwrap();
    scene.one.submit(launch(&increment(), &[(fresh, 64, Access::ReadWrite)])).unwrap();
    let hazards = scene.hazards();
    assert_eq!(
        (hazards.len(), hazards[1].kind, hazards[1].bytes.clone()),
        (2, HazardKind::NeverWritten, 8..16)
    );
}

#[test]
fn a_recycled_block_is_fresh() {
    let scene = scene();
    scene.one.free(scene.address).unwrap();
    finish(&scene.one);
    let again = allocate(&scene.one, 64).unwrap();
    assert_ne!(again, scene.address, "no address is given out twice");
    scene.one.submit(download(again, &Cells::new([0; 64]), 64)).unwrap();
    assert_eq!(scene.kinds(), [HazardKind::NeverWritten]);
}

#[test]
fn an_array_without_a_byte_needs_no_memory() {
    let scene = scene();
    let look = body("look", |views| assert_eq!(views[0].len(), 0));
    let Work::Launch(mut work) = launch(&look, &[(Address(0), 0, Access::Read)]) else {
        unreachable!("a launch is a launch")
    };
    let at_word = work.arguments.words.len() as u32;
    work.arguments.words.extend_from_slice(&[2, 0, 8, 8, 1]);
    let (address, access) = (Address(3), Access::Read);
    work.arguments.arrays.push(ArrayArgument {
        address,
        origin_bytes: 900,
        element_bytes: 1,
        at_word,
        is_flat: false,
        access,
    });
    let position = scene.one.submit(depending(Work::Launch(work), &[])).unwrap();
    finish(&scene.one);
    assert!(failure::at(scene.one.id(), position).is_none() && scene.kinds().is_empty());
}

#[test]
fn watched_workers_find_hazards_too() {
    let device = EmbeddedDevice::emulated(Emulation::new());
    let (one, two) = (queue_of(&device), device.new_queue().unwrap());
    let address = allocate(&one, 8).unwrap();
    let (open, gate) = gate();
    one.submit(launch(&gate, &[(address, 8, Access::Overwrite)])).unwrap();
    // Nothing is touched for real: the race is one in name only.
    two.submit(launch(&body("race", |_| ()), &[(address, 8, Access::Overwrite)])).unwrap();
    finish(&two);
    drop(open);
    finish(&one);
    let hazards = log_of(&device).hazards();
    assert_eq!(
        hazards.iter().map(|hazard| hazard.kind).collect::<Vec<_>>(),
        [HazardKind::Unordered]
    );
}
