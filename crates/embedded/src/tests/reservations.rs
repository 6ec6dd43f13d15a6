//! Reservations: pages get memory and lose it, which is counted, limited, ordered and checked.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use smallvec::smallvec;

use super::fixtures::{
    Accepting, HostBytes, Random, allocate, body, contents, contiguous, copy, download,
    entered_gate, exchange, fill, finish, flat, gate, increment, label, launch, log_of, queue_of,
    upload,
};
use crate::{CallKind, EmbeddedDevice, Emulation, Fault, HazardKind, Outcome, Touch};
use resident_backend::{
    Address, Backend, BackendError, BackendErrorKind, CopyBox, ForeignMemory, Memory, MemoryUsage,
    PageRange, Position, RawStream, Work, failure,
};
use resident_core::Access;

const PAGE: u64 = 100;
const LEN: u64 = 10 * PAGE + 50;

fn emulated(emulation: Emulation) -> Arc<EmbeddedDevice> {
    EmbeddedDevice::emulated(emulation.page_bytes(PAGE))
}

/// A device whose workers run work, and one that runs it when a thread waits.
fn both(emulation: &Emulation) -> [Arc<EmbeddedDevice>; 2] {
    [emulated(emulation.clone()), emulated(emulation.clone().seed(1))]
}

fn reserve(device: &EmbeddedDevice) -> Address {
    device.reserve(LEN, &label("\"grid\"")).expect("addresses are reserved")
}

/// Pages by their numbers. The last ends where the reservation ends.
fn pages(reservation: Address, numbers: Range<u64>) -> PageRange {
    let bytes = numbers.start * PAGE..(numbers.end * PAGE).min(LEN);
    PageRange { reservation, bytes }
}

fn commit(device: &EmbeddedDevice, pages: &PageRange) -> Result<(), BackendError> {
    device.commit(pages, &label("\"grid\""))
}

fn usage(in_use: u64, pooled: u64) -> MemoryUsage {
    MemoryUsage { in_use, pooled, pinned: 0, peak: 0 }
}

#[test]
fn pages_count_as_memory_does() {
    for device in both(&Emulation::new().memory(LEN)) {
        let (stream, grid) = (queue_of(&device), reserve(&device));
        assert_eq!(device.memory(), usage(0, 0));
        commit(&device, &pages(grid, 0..2)).unwrap();
        commit(&device, &pages(grid, 8..11)).unwrap();
        assert_eq!(device.memory(), usage(450, 0));
        let (open, gate) = gate();
        stream.launched(&gate, &[]);
        stream.decommit(&pages(grid, 9..11)).unwrap();
        assert_eq!(device.memory(), usage(300, 150), "the gate is closed");
        assert_eq!(device.capacity().unwrap().free, LEN - 450);
        drop(open);
        finish(&stream);
        assert_eq!(device.memory(), usage(300, 0), "pages are not kept for reuse");
        stream.free(grid).unwrap();
        finish(&stream);
        assert_eq!(device.memory(), usage(0, 0));
    }
}

#[test]
fn a_limit_counts_committed_pages_only() {
    for device in both(&Emulation::new().memory(600)) {
        let (stream, grid, other) = (queue_of(&device), reserve(&device), reserve(&device));
        commit(&device, &pages(grid, 0..3)).unwrap();
        let block = allocate(&stream, 200).unwrap();
        let refused = commit(&device, &pages(other, 0..2)).unwrap_err();
        let (requested, free, draining) = (200, 100, 0);
        assert_eq!(refused.kind, BackendErrorKind::OutOfMemory { requested, free, draining });
        assert_eq!((refused.call, device.memory()), ("commit", usage(500, 0)));
        let (open, gate) = gate();
        stream.launched(&gate, &[]);
        stream.decommit(&pages(grid, 1..3)).unwrap();
        let hopeless = commit(&device, &pages(other, 0..4)).unwrap_err();
        let (requested, draining) = (400, 200);
        assert_eq!(hopeless.kind, BackendErrorKind::OutOfMemory { requested, free, draining });
        drop(open);
        commit(&device, &pages(other, 0..3)).unwrap();
        assert_eq!(device.memory(), usage(600, 0), "it waited for the decommit");
        stream.free(block).unwrap();
        finish(&stream);
        assert_eq!(device.memory(), usage(400, 200));
        commit(&device, &pages(other, 3..5)).unwrap();
        assert_eq!(device.memory(), usage(600, 0), "the pooled block made room");
        assert!(allocate(&stream, 1).is_err(), "allocations too are limited");
    }
}

#[test]
fn a_commit_waits_for_the_decommit_of_its_pages() {
    for device in both(&Emulation::new()) {
        let (stream, grid) = (queue_of(&device), reserve(&device));
        commit(&device, &pages(grid, 0..4)).unwrap();
        let (open, gate) = gate();
        stream.launched(&gate, &[]);
        stream.decommit(&pages(grid, 0..2)).unwrap();
        commit(&device, &pages(grid, 4..5)).unwrap();
        let start = Instant::now();
        let opener = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            drop(open);
        });
        commit(&device, &pages(grid, 1..2)).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(20), "the gate was still closed");
        opener.join().unwrap();
        assert_eq!(device.memory(), usage(400, 0));
        assert_eq!(failed(&stream, fill(grid, contiguous(100, 400), &[1])), None);
    }
}

/// The cause of the work's failure.
fn failed(stream: &Arc<dyn RawStream>, work: Work) -> Option<String> {
    let position = stream.queued(work);
    finish(stream);
    failure::at(stream.id(), position).map(|record| record.cause.clone())
}

#[test]
fn committed_pages_are_poisoned_and_those_of_others_keep_their_contents() {
    let device = emulated(Emulation::new().poison(true));
    let (stream, grid) = (queue_of(&device), reserve(&device));
    commit(&device, &pages(grid, 1..4)).unwrap();
    assert_eq!(part(&stream, grid, 100..400), [0xFF; 300]);
    stream.queued(fill(grid, contiguous(100, 300), &[7]));
    stream.decommit(&pages(grid, 2..3)).unwrap();
    commit(&device, &pages(grid, 2..3)).unwrap();
    let kept = [[7; 100], [0xFF; 100], [7; 100]].concat();
    assert_eq!(part(&stream, grid, 100..400), kept);
}

fn part(stream: &Arc<dyn RawStream>, address: Address, bytes: Range<u64>) -> Vec<u8> {
    contents(stream, Address(address.0 + bytes.start), bytes.end - bytes.start)
}

/// Whole pages of the system return to it, so that they are zeros when they are committed again.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn decommitted_pages_return_to_the_system() {
    for device in
        [EmbeddedDevice::plain(), EmbeddedDevice::emulated(Emulation::new().poison(false))]
    {
        let page_bytes = device.properties().page_bytes.unwrap();
        let stream = queue_of(&device);
        let reservation = device.reserve(1 << 40, &label("large")).unwrap();
        let pages = PageRange { reservation, bytes: 1 << 39..(1 << 39) + 16 * page_bytes };
        device.commit(&pages, &label("large")).unwrap();
        stream.queued(fill(reservation, contiguous(1 << 39, 16 * page_bytes), &[7]));
        stream.decommit(&pages).unwrap();
        device.commit(&pages, &label("large")).unwrap();
        assert!(part(&stream, reservation, pages.bytes).iter().all(|byte| *byte == 0));
        stream.free(reservation).unwrap();
        finish(&stream);
        assert_eq!(device.memory(), usage(0, 0));
    }
}

/// Work of each kind that touches pages 2 and 3, of which only the first has memory.
fn touching(device: &Arc<EmbeddedDevice>, grid: Address) -> Vec<Work> {
    let from = Address(grid.0 + 250);
    let host = || HostBytes::new([1; 100]);
    let block = allocate(&queue_of(device), 100).unwrap();
    vec![
        upload(&host(), from, 100),
        download(from, &host(), 100),
        fill(grid, contiguous(250, 100), &[1]),
        copy("copy", Memory::Device(from), Memory::Device(block), flat(100, 0, 0)),
        copy("copy", Memory::Device(block), Memory::Device(grid), flat(100, 0, 250)),
        Work::Copy(exchange(device, from, block, flat(100, 0, 0))),
        launch(&increment(), &[(from, 100, Access::ReadWrite)]),
        launch(&increment(), &[(from, 100, Access::Overwrite)]),
    ]
}

#[test]
fn work_that_touches_a_page_without_memory_fails_and_names_the_address() {
    for device in both(&Emulation::new()) {
        let (stream, grid) = (queue_of(&device), reserve(&device));
        commit(&device, &pages(grid, 2..3)).unwrap();
        for work in touching(&device, grid) {
            let cause = failed(&stream, work).expect("page 3 has no memory");
            let page = format!("{:#x} is reserved, but has no memory", grid.0 + 300);
            assert!(cause.contains(&page), "{cause}");
        }
        commit(&device, &pages(grid, 3..4)).unwrap();
        for work in touching(&device, grid) {
            assert_eq!(failed(&stream, work), None);
        }
        assert!(failed(&stream, upload(&HostBytes::new([1; 1051]), grid, 1051)).is_some());
        let behind = CopyBox { axes: smallvec![(1 << 40, 1 << 40, 1)], ..flat(1, 0, 250) };
        let far = copy("copy", Memory::Device(grid), Memory::Device(grid), behind);
        assert!(failed(&stream, far).expect("it is too long").contains("leaves its memory"));
    }
}

#[test]
fn rows_need_only_the_pages_that_they_touch() {
    let device = emulated(Emulation::new());
    let (stream, grid) = (queue_of(&device), reserve(&device));
    for row in 0..3 {
        commit(&device, &pages(grid, 3 * row..3 * row + 1)).unwrap();
    }
    let rows = |offset, run| CopyBox { axes: smallvec![(3, run, 300)], ..flat(run, 0, offset) };
    let tile = |offset, run| {
        let source = HostBytes::new(vec![5; 3 * run as usize]);
        copy("upload", Memory::Host(source), Memory::Device(grid), rows(offset, run))
    };
    assert_eq!(failed(&stream, tile(40, 60)), None);
    assert!(failed(&stream, tile(40, 61)).is_some());
    assert_eq!(part(&stream, grid, 640..700), [5; 60]);
}

/// Refused calls change nothing.
#[test]
fn wrong_pages_are_refused() {
    let device = emulated(Emulation::new());
    let (stream, grid) = (queue_of(&device), reserve(&device));
    let block = allocate(&stream, 300).unwrap();
    commit(&device, &pages(grid, 2..4)).unwrap();
    let range = |bytes: Range<u64>| PageRange { reservation: grid, bytes };
    let of = |reservation| PageRange { reservation, bytes: 0..100 };
    let unaligned =
        [(50, 100), (0, 150), (900, 1040), (1000, 1100), (100, 100), (200, 100), (2000, 2100)]
            .map(|(start, end)| start..end);
    let commits = unaligned.clone().map(range).into_iter().chain([
        pages(grid, 0..3),
        pages(grid, 3..5),
        of(block),
        of(Address(grid.0 + 100)),
        of(Address(1)),
    ]);
    for wrong in commits {
        let refused = commit(&device, &wrong).unwrap_err();
        assert!(matches!(refused.kind, BackendErrorKind::Driver { .. }), "{refused}");
    }
    let decommits = unaligned.map(range).into_iter().chain([
        pages(grid, 1..3),
        pages(grid, 2..5),
        pages(grid, 0..1),
        of(block),
    ]);
    for wrong in decommits {
        assert!(stream.decommit(&wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(device.memory(), usage(500, 0));
    let (open, gate) = gate();
    stream.launched(&gate, &[]);
    stream.decommit(&pages(grid, 2..3)).unwrap();
    assert!(stream.decommit(&pages(grid, 2..4)).is_err(), "a decommit is queued");
    drop(open);
    stream.free(grid).unwrap();
    assert!(commit(&device, &pages(grid, 5..6)).is_err() && stream.free(grid).is_err());
    finish(&stream);
    assert!(device.reserve(0, &label("none")).is_err());
    assert!(device.reserve(u64::MAX, &label("all")).is_err());
    assert_eq!(device.memory(), usage(300, 0));
}

#[test]
fn a_device_without_pages_reserves_nothing() {
    let device = EmbeddedDevice::emulated(Emulation::new().page_bytes(0));
    assert_eq!(device.properties().page_bytes, None);
    assert!(device.reserve(1 << 20, &label("memory")).is_err());
    let gpu_like = EmbeddedDevice::emulated(Emulation::new().page_bytes(2 << 20));
    assert_eq!(gpu_like.properties().page_bytes, Some(2 << 20));
    assert_eq!(EmbeddedDevice::plain().properties().page_bytes, Some(4096));
}

#[test]
fn a_free_works_while_decommits_are_queued() {
    for device in both(&Emulation::new()) {
        let (stream, other) = (queue_of(&device), device.new_stream(None).unwrap());
        let grid = reserve(&device);
        commit(&device, &pages(grid, 0..6)).unwrap();
        let (entered, open, gate) = entered_gate();
        stream.launched(&gate, &[]);
        stream.decommit(&pages(grid, 0..1)).unwrap();
        stream.decommit(&pages(grid, 4..6)).unwrap();
        // The library orders a free after decommits. This one runs before them.
        other.free(grid).unwrap();
        if device.properties().runs_by_itself {
            entered.recv().unwrap();
            finish(&other);
            assert_eq!(device.memory(), usage(0, 300));
        } else {
            assert_eq!(device.memory(), usage(0, 600));
        }
        drop(open);
        finish(&stream);
        finish(&other);
        assert_eq!(device.memory(), usage(0, 0));
        assert!(failed(&stream, fill(grid, contiguous(100, 100), &[1])).is_some());
        assert_ne!(reserve(&device), grid, "addresses are not used again");
    }
}

fn calls(device: &Arc<EmbeddedDevice>, kind: CallKind) -> Vec<String> {
    let calls = log_of(device).calls().into_iter().filter(|call| call.kind == kind);
    calls.map(|call| call.to_string()).collect()
}

#[test]
fn calls_are_counted_logged_and_refused() {
    for kind in [CallKind::Reserve, CallKind::Commit, CallKind::Decommit] {
        let device = emulated(Emulation::new().seed(1).fail(Fault::nth(2).of(kind)));
        let stream = queue_of(&device);
        let _first = reserve(&device);
        let again = |result: Result<(), BackendError>, retry: &dyn Fn()| {
            if let Err(error) = result {
                assert_eq!((error.kind, error.call), (BackendErrorKind::Injected, kind.name()));
                retry();
            }
        };
        let grid = Mutex::new(Address(0));
        let reserve_grid = || {
            let address = device.reserve(LEN, &label("\"grid\""))?;
            *grid.lock().unwrap() = address;
            Ok(())
        };
        again(reserve_grid(), &|| reserve_grid().unwrap());
        let grid = *grid.lock().unwrap();
        for numbers in [0..1, 3..5] {
            let pages = pages(grid, numbers);
            again(commit(&device, &pages), &|| commit(&device, &pages).unwrap());
        }
        assert_eq!(device.memory(), usage(300, 0));
        for numbers in [0..1, 3..5] {
            let pages = pages(grid, numbers);
            let decommit = || stream.decommit(&pages).map(|_| ());
            again(decommit(), &|| decommit().unwrap());
        }
        assert_eq!(device.memory(), usage(0, 300));
        finish(&stream);
        assert_eq!(device.memory(), usage(0, 0));
        let refused = log_of(&device).calls().into_iter();
        let refused: Vec<_> = refused.filter(|call| call.outcome == Outcome::Refused).collect();
        assert_eq!(refused.iter().map(|call| call.kind).collect::<Vec<_>>(), [kind]);
    }
}

#[test]
fn a_call_is_one_line_of_the_log() {
    let device = emulated(Emulation::new().seed(1));
    let (stream, grid) = (queue_of(&device), reserve(&device));
    commit(&device, &pages(grid, 3..5)).unwrap();
    stream.decommit(&pages(grid, 4..5)).unwrap();
    assert_eq!(calls(&device, CallKind::Reserve), ["#1 reserve: \"grid\", 1050 bytes"]);
    assert_eq!(calls(&device, CallKind::Commit), ["#2 commit: \"grid\", 200 bytes"]);
    assert_eq!(calls(&device, CallKind::Decommit), ["#3 decommit, 100 bytes, stream 0, work 1"]);
}

#[test]
fn a_decommit_that_nothing_orders_is_a_hazard() {
    let device = emulated(Emulation::new().seed(1));
    let (one, two) = (queue_of(&device), device.new_stream(None).unwrap());
    let grid = reserve(&device);
    commit(&device, &pages(grid, 0..4)).unwrap();
    one.queued(fill(grid, contiguous(0, 400), &[1]));
    two.decommit(&pages(grid, 3..4)).unwrap();
    let hazards = log_of(&device).hazards();
    assert_eq!((hazards.len(), hazards[0].kind), (1, HazardKind::Unordered));
    assert_eq!(
        (hazards[0].operation.name.as_ref(), hazards[0].bytes.clone()),
        ("decommit", 300..400)
    );
    assert_eq!(hazards[0].operation.touch, Touch::Writes);
    finish(&one);
    two.follow(&one);
    two.decommit(&pages(grid, 2..3)).unwrap();
    finish(&two);
    commit(&device, &pages(grid, 2..3)).unwrap();
    assert_eq!(log_of(&device).hazards().len(), 1, "these are in order");
    two.queued(download(grid, &HostBytes::new([0; 300]), 300));
    let hazards = log_of(&device).hazards();
    assert_eq!((hazards[1].kind, hazards[1].bytes.clone()), (HazardKind::NeverWritten, 200..300));
    finish(&two);
    one.free(grid).unwrap();
    two.queued(fill(grid, contiguous(0, 1), &[1]));
    assert_eq!(log_of(&device).hazards()[2].kind, HazardKind::UseAfterFree);
}

#[test]
fn other_code_gets_the_memory_and_may_hand_it_back() {
    let device = emulated(Emulation::new());
    let (stream, grid) = (queue_of(&device), reserve(&device));
    commit(&device, &pages(grid, 0..2)).unwrap();
    let foreign = |start: *mut u8| ForeignMemory { start, len_bytes: 100, owner: Box::new(()) };
    // SAFETY: the call is refused, or the memory is reserved until the end, and initialised.
    let take_over = |start: *mut u8| unsafe { device.take_over(foreign(start)) };
    let plain = EmbeddedDevice::plain();
    let on_plain = plain.reserve(1 << 20, &label("memory")).unwrap();
    let used = plain.external_address(on_plain) as usize;
    assert!(take_over(std::ptr::with_exposed_provenance_mut(used)).is_err(), "it is in use");
    let start = device.hand_out(grid);
    assert!(!start.is_null());
    assert_eq!(device.hand_out(Address(grid.0 + 150)), start.wrapping_add(150));
    let back = take_over(start).expect("it was handed out");
    assert_eq!(device.memory(), usage(200, 0), "it counts once");
    stream.queued(fill(grid, contiguous(0, 100), &[9]));
    assert_eq!(contents(&stream, back, 100), [9; 100]);
    assert!(!device.may_have_leftovers(grid));
    for address in [back, grid] {
        stream.free(address).unwrap();
    }
    finish(&stream);
    assert_eq!(device.memory(), usage(0, 0));
}

/// What a model says of one reservation: which of its pages have memory.
struct Model {
    device: Arc<EmbeddedDevice>,
    stream: Arc<dyn RawStream>,
    grid: Address,
    committed: [bool; 11],
    limit: u64,
}

impl Model {
    fn bytes(numbers: &Range<u64>) -> u64 {
        (numbers.end * PAGE).min(LEN) - numbers.start * PAGE
    }

    fn in_use(&self) -> u64 {
        let pages = (0..11).filter(|page| self.committed[*page as usize]);
        pages.map(|page| Self::bytes(&(page..page + 1))).sum()
    }

    fn have(&self, numbers: &Range<u64>, is_committed: bool) -> bool {
        numbers.clone().all(|page| self.committed[page as usize] == is_committed)
    }

    fn set(&mut self, numbers: &Range<u64>, is_committed: bool) {
        self.committed[numbers.start as usize..numbers.end as usize].fill(is_committed);
    }

    fn step(&mut self, random: &mut Random) {
        let first = random.below(11);
        let numbers = first..first + 1 + random.below(11 - first);
        let range = pages(self.grid, numbers.clone());
        match random.below(4) {
            0 => {
                let fits = self.in_use() + Self::bytes(&numbers) <= self.limit;
                let is_accepted = self.have(&numbers, false) && fits;
                let outcome = commit(&self.device, &range);
                assert_eq!(outcome.is_ok(), is_accepted, "{numbers:?} {outcome:?}");
                if is_accepted {
                    self.set(&numbers, true);
                }
            }
            1 => {
                let is_accepted = self.have(&numbers, true);
                assert_eq!(self.stream.decommit(&range).is_ok(), is_accepted, "{numbers:?}");
                if is_accepted {
                    self.set(&numbers, false);
                }
            }
            2 => {
                let footprint = contiguous(range.bytes.start, range.len_bytes());
                let position = self.stream.queued(fill(self.grid, footprint, &[3]));
                let is_accepted = self.have(&numbers, true);
                self.expect(position, is_accepted);
            }
            _ => finish(&self.stream),
        }
        assert_eq!(self.device.memory().in_use, self.in_use());
        assert!(self.device.memory().in_use + self.device.memory().pooled <= self.limit);
    }

    fn expect(&self, position: Position, is_accepted: bool) {
        finish(&self.stream);
        assert_eq!(failure::at(self.stream.id(), position).is_none(), is_accepted);
    }
}

#[test]
fn many_steps_count_as_a_model_does() {
    for seed in 0..if cfg!(miri) { 1 } else { 60 } {
        let limit = 300 + 100 * (seed % 5);
        for device in both(&Emulation::new().memory(limit)) {
            let (stream, grid) = (queue_of(&device), reserve(&device));
            let committed = [false; 11];
            let mut model = Model { device, stream, grid, committed, limit };
            let mut random = Random::new(seed);
            (0..60).for_each(|_| model.step(&mut random));
            model.stream.free(grid).unwrap();
            finish(&model.stream);
            assert_eq!(model.device.memory(), usage(0, 0));
            assert!(log_of(&model.device).hazards().is_empty());
        }
    }
}

/// Each thread has pages of its own, and all share the limit. What does not fit at one time is
/// tried again.
#[test]
fn threads_share_a_limit() {
    let device = emulated(Emulation::new().memory(600));
    let stream = queue_of(&device);
    let grid = reserve(&device);
    let work = |thread: u64| {
        let stream = device.new_stream(None).unwrap();
        let mut random = Random::new(thread);
        for _ in 0..if cfg!(miri) { 3 } else { 100 } {
            let first = 2 * thread + random.below(2);
            let range = pages(grid, first..(2 * thread + 2).max(first + 1));
            while let Err(refused) = commit(&device, &range) {
                let is_full = matches!(refused.kind, BackendErrorKind::OutOfMemory { .. });
                assert!(is_full, "{refused}");
                thread::yield_now();
            }
            assert!(device.memory().in_use <= 600);
            stream.queued(fill(grid, contiguous(range.bytes.start, range.len_bytes()), &[3]));
            stream.decommit(&range).unwrap();
        }
        finish(&stream);
        assert!((1..=stream.tail().0).all(|it| failure::at(stream.id(), Position(it)).is_none()));
    };
    thread::scope(|scope| (0..5).for_each(|thread| drop(scope.spawn(move || work(thread)))));
    assert_eq!(device.memory(), usage(0, 0));
    stream.free(grid).unwrap();
    assert!(log_of(&device).hazards().is_empty());
}

#[test]
fn a_commit_that_would_wait_is_refused_in_a_body() {
    let device = emulated(Emulation::new());
    let (stream, grid) = (queue_of(&device), reserve(&device));
    commit(&device, &pages(grid, 0..2)).unwrap();
    let (weak, outcome) = (Arc::downgrade(&device), Arc::new(Mutex::new(Vec::new())));
    let (entered, open, gate) = entered_gate();
    let seen = Arc::clone(&outcome);
    stream.launched(&gate, &[]);
    stream.decommit(&pages(grid, 0..1)).unwrap();
    let other = device.new_stream(None).unwrap();
    let in_body = body("commit", move |_| {
        let device = weak.upgrade().expect("the test holds it");
        for numbers in [0..1, 2..3] {
            seen.lock().unwrap().push(commit(&device, &pages(grid, numbers)).map_err(|it| it.kind));
        }
    });
    entered.recv().unwrap();
    other.launched(&in_body, &[]);
    finish(&other);
    drop(open);
    finish(&stream);
    assert_eq!(*outcome.lock().unwrap(), [Err(BackendErrorKind::InsideKernel), Ok(())]);
}
