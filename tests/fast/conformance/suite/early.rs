//! Copies ahead of their use: prefetches and snapshots, awaited or not.

use super::prelude::*;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;

const LEN: usize = 64;

pub(crate) fn a_prefetch_is_there_already(lab: &Lab) -> Result<()> {
    let mut array = numbers(LEN);
    array.prefetch(&lab.new_stream()?)?;
    assert_eq!(array.residency().on(&lab.device()), Valid);
    lab.add(&lab.stream(), 1, &mut array)?;
    array.prefetch_host()?;
    assert_eq!(array.residency().host(), Valid);
    assert_eq!(*array.host()?, counting(LEN) + 1);
    assert_eq!((bytes(array.traffic()), copies(array.traffic())), ([256, 256, 0], [1, 1, 0]));
    Ok(())
}

pub(crate) fn a_prefetch_to_the_host_does_not_wait(lab: &Lab) -> Result<()> {
    for len in [LEN, LARGE] {
        let gate = Gate::new();
        let array = lab.gated_numbers(&lab.stream(), &gate, len)?;
        array.prefetch_host()?;
        array.slice(s![3..9]).prefetch_host()?;
        assert!(!lab.stream().is_idle()?, "the call returned while the gate held the kernel");
        gate.open();
        assert!(*array.host()? == counting(len) + 1);
        assert_eq!(bytes(array.traffic()), [4 * len as u64, 4 * len as u64, 0]);
    }
    Ok(())
}

/// A download is in flight when another stream rewrites the array. The host must get the contents
/// of the rewrite last, even if no call waited for the download.
pub(crate) fn a_download_that_was_overtaken_arrives_first(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    for is_locked in [false, true] {
        let (one, other, third) = (lab.new_stream()?, lab.new_stream()?, lab.new_stream()?);
        let (gate, mut array) = (Gate::new(), numbers(LEN));
        lab.gated(&one, &gate, &mut array)?;
        array.prefetch_host()?;
        if is_locked {
            array.page_lock()?;
        }
        lab.add(&other, 10, &mut array)?;
        array.slice(s![..LEN / 2]).prefetch_host()?;
        lab.add(&third, 100, &mut array)?;
        gate.open();
        assert_eq!(*array.host()?, counting(LEN) + 111);
        // After a wait for the first two streams, all their work is complete.
        one.synchronize()?;
        other.synchronize()?;
        assert_eq!(*array.host()?, counting(LEN) + 111, "page-locked: {is_locked}");
        assert_eq!(array.into_array()?, counting(LEN) + 111);
    }
    Ok(())
}

/// The array is converted back after it was used on a stream for which no call waited.
pub(crate) fn an_array_is_taken_back_from_all_streams(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let [one, other] = lab.two_streams()?;
    let mut array = numbers(LEN);
    array.page_lock()?;
    array.prefetch(&one)?;
    lab.add(&other, 1, &mut array)?;
    assert_eq!(array.into_array()?, counting(LEN) + 1);
    Ok(())
}

pub(crate) fn a_snapshot_is_of_its_moment(lab: &Lab) -> Result<()> {
    let aside = lab.new_stream()?;
    let mut array = numbers(LEN);
    let mut taken = Vec::new();
    for _ in 0..20 {
        lab.add(&lab.stream(), 1, &mut array)?;
        taken.push(array.snapshot_on(&aside)?);
    }
    assert_eq!(validity(&array.residency(), &lab.device()), [Stale, Valid]);
    assert_eq!(copies(array.traffic()), [1, 20, 0]);
    for (turn, snapshot) in taken.into_iter().enumerate() {
        assert_eq!(snapshot.wait()?, counting(LEN).mapv(|x| x + turn as u32 + 1));
    }
    Ok(())
}

pub(crate) fn a_snapshot_of_parts_at_different_places(lab: &Lab) -> Result<()> {
    let mut expected = numbered::<u32, _>((12, 10), 0);
    let mut array = SmartArray::from(expected.clone());
    make_newest(&mut array.slice_mut(s![..;3, 2..7]), &lab.stream())?;
    array.slice_mut(s![7.., ..]).fill(8)?;
    expected.slice_mut(s![7.., ..]).fill(8);
    let whole = array.snapshot_on(&lab.stream())?;
    let part = array.slice(s![..;-2, 1..;4]).snapshot_on(&lab.new_stream()?)?;
    array.fill(0)?;
    make_newest(&mut array, &lab.stream())?;
    assert_eq!(whole.wait()?, expected);
    assert_eq!(part.wait()?, expected.slice(s![..;-2, 1..;4]));
    Ok(())
}

pub(crate) fn a_snapshot_outlives_its_array(lab: &Lab) -> Result<()> {
    for len in [LEN, LARGE] {
        let gate = Gate::new();
        let array = lab.gated_numbers(&lab.stream(), &gate, len)?;
        let snapshot = array.snapshot_on(&lab.new_stream()?)?;
        drop(array);
        gate.open();
        assert!(snapshot.wait()? == counting(len) + 1);
    }
    Ok(())
}

pub(crate) fn snapshots_into_the_same_memory_are_of_their_moments(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let aside = lab.new_stream()?;
    for len in [LEN, LARGE] {
        let gate = Gate::new();
        let mut array = numbers(len);
        let mut memory = PinnedArray::<u32, _>::uninit(len)?;
        lab.gated(&lab.stream(), &gate, &mut array)?;
        array.snapshot_into(&aside, &mut memory)?;
        lab.add(&lab.stream(), 10, &mut array)?;
        assert!(!lab.has_gates() || !aside.is_idle()?, "the call returned before the kernel ran");
        gate.open();
        assert!(*memory.host()? == counting(len) + 1);
        for turn in 2..6 {
            array.snapshot_into(&aside, &mut memory)?;
            lab.add(&lab.stream(), 10, &mut array)?;
            assert!(*memory.host()? == counting(len).mapv(|x| x + 10 * turn - 9));
        }
        assert_eq!(array.residency().host(), Stale);
    }
    Ok(())
}

pub(crate) fn parts_of_any_layout_are_copied_into_the_same_memory(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let expected = numbered::<u32, _>((40, 30), 0);
    let mut array = SmartArray::from(expected.clone());
    make_newest(&mut array, &lab.stream())?;
    let mut edge = PinnedArray::<u32, _>::uninit((20, 10))?;
    for part in [s![..20, ..10], s![20.., 3..13], s![..;2, ..;3], s![..;-2, 9..29;-2]] {
        array.slice(part).snapshot_into(&lab.stream(), &mut edge)?;
        assert_eq!(*edge.host()?, expected.slice(part));
    }
    array
        .slice(s![5..15, 10..])
        .snapshot_into(&lab.stream(), &mut edge.view_mut().reversed_axes())?;
    assert_eq!(edge.host()?.t(), expected.slice(s![5..15, 10..]));
    Ok(())
}

pub(crate) fn a_snapshot_that_is_never_waited_for(lab: &Lab) -> Result<()> {
    let gate = Gate::new();
    let array = lab.gated_numbers(&lab.stream(), &gate, LEN)?;
    (0..10).try_for_each(|_| array.snapshot_on(&lab.stream()).map(drop))?;
    gate.open();
    assert_eq!(array.host()?[0], 1);
    Ok(())
}

pub(crate) fn a_snapshot_is_awaited(lab: &Lab) -> Result<()> {
    let gate = Gate::new();
    let array = lab.gated_numbers(&lab.stream(), &gate, LEN)?;
    let mut pending = array.snapshot_on(&lab.stream())?;
    let first = Pin::new(&mut pending).poll(&mut Context::from_waker(Waker::noop()));
    assert!(!lab.has_gates() || first.is_pending());
    gate.open();
    if first.is_pending() {
        assert_eq!(block_on(pending)?, counting(LEN) + 1);
    }
    Ok(())
}

pub(crate) fn many_snapshots_are_awaited_in_any_order(lab: &Lab) -> Result<()> {
    let gates: Vec<Gate> = (0..6).map(|_| Gate::new()).collect();
    let mut waiting = Vec::new();
    for gate in &gates {
        let stream = lab.new_stream()?;
        let array = lab.gated_numbers(&stream, gate, LEN)?;
        let pending: Pending<Array1<u32>> = array.snapshot_on(&stream)?;
        waiting.push(thread::spawn(move || block_on(pending)));
    }
    gates.iter().rev().for_each(Gate::open);
    for thread in waiting {
        assert_eq!(thread.join().expect("no panic")?, counting(LEN) + 1);
    }
    Ok(())
}

/// A waker that counts its wake-ups, and sends a message for each.
struct Bell(AtomicU32, mpsc::Sender<()>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        self.1.send(()).ok();
    }
}

pub(crate) fn a_waker_is_woken_once_the_work_is_done(lab: &Lab) -> Result<()> {
    let gate = Gate::new();
    let (rung, ringing) = mpsc::channel();
    let bell = Arc::new(Bell(AtomicU32::new(0), rung));
    let array = lab.gated_numbers(&lab.stream(), &gate, LEN)?;
    let mut pending = array.snapshot_on(&lab.stream())?;
    let waker = Waker::from(Arc::clone(&bell));
    if Pin::new(&mut pending).poll(&mut Context::from_waker(&waker)).is_ready() {
        return Ok(());
    }
    if lab.has_gates() {
        assert_eq!(bell.0.load(Ordering::SeqCst), 0, "nothing is done yet");
    }
    gate.open();
    ringing.recv().expect("it is woken");
    // The wake-up may have been for an earlier part of the work; in the end the snapshot is ready.
    assert_eq!(block_on(pending)?, counting(LEN) + 1);
    Ok(())
}

/// Tasks wait for their own work, not for what is queued behind it on the same stream.
pub(crate) fn tasks_are_woken_while_work_behind_theirs_waits(lab: &Lab) -> Result<()> {
    let (first, behind, stream) = (Gate::new(), Gate::new(), lab.new_stream()?);
    let (mut array, mut other) = (numbers(LEN), numbers(LEN));
    lab.gated(&stream, &first, &mut array)?;
    let (snapshot, done) = (array.snapshot_on(&stream)?, stream.done());
    lab.gated(&stream, &behind, &mut other)?;
    first.open();
    block_on(done)?;
    assert_eq!(block_on(snapshot)?, counting(LEN) + 1);
    assert!(!lab.has_gates() || !stream.is_idle()?, "the work behind waits");
    behind.open();
    assert_eq!(*other.host()?, counting(LEN) + 1);
    Ok(())
}

pub(crate) fn an_array_dropped_in_flight(lab: &Lab) -> Result<()> {
    let (gate, one, other) = (Gate::new(), lab.new_stream()?, lab.new_stream()?);
    let before = lab.device().memory().in_use;
    let (mut array, mut last) = (numbers(LEN), numbers(LEN));
    lab.gated(&one, &gate, &mut array)?;
    last.assign_on(&other, &array)?;
    array.prefetch_host()?;
    drop(array);
    assert_eq!(lab.device().memory().in_use, before + 256, "freed while work uses it");
    gate.open();
    assert_eq!(*last.host()?, counting(LEN) + 1);
    Ok(())
}
