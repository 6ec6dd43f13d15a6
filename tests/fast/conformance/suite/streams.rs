//! Streams and events.

use super::prelude::*;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::thread;

const LEN: usize = 64;

pub(crate) fn a_stream_knows_whether_it_is_idle(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.new_stream()?);
    assert!(stream.is_idle()?);
    let array = lab.gated_numbers(&stream, &gate, LEN)?;
    assert!(!stream.is_idle()?);
    let event = stream.record()?;
    assert!(!event.is_complete()?);
    gate.open();
    event.synchronize()?;
    assert!(event.is_complete()? && stream.is_idle()?);
    assert_eq!(*array.host()?, counting(LEN) + 1);
    Ok(())
}

/// Pictures are uploaded, computed and downloaded, each stage while another picture is computed.
/// The arrays of a picture are dropped as soon as all its work is queued. Their memory is freed
/// after their last use, without a delay for other work of these streams.
pub(crate) fn dropped_arrays_delay_no_stream(lab: &Lab) -> Result<()> {
    let [up, compute, down] = [lab.new_stream()?, lab.new_stream()?, lab.new_stream()?];
    let gates = [(); 3].map(|()| Gate::new());
    let mut results = Vec::new();
    for gate in &gates {
        let image = numbers(LEN);
        image.prefetch(&up)?;
        // This would not return if the upload waited for earlier pictures, whose work waits at a
        // gate.
        up.synchronize()?;
        let mut soft = SmartArray::<u32, _>::uninit(LEN);
        lab.gated_copy(&compute, gate, &image, &mut soft)?;
        results.push(soft.snapshot_on(&down)?);
    }
    // Devices that can free memory only synchronously wait for all work here.
    gates.iter().for_each(Gate::open);
    for result in results {
        assert_eq!(result.wait()?, counting(LEN));
    }
    Ok(())
}

/// Two readers on their own streams: neither delays the other when the array is dropped.
pub(crate) fn readers_do_not_delay_each_other_when_the_array_is_dropped(lab: &Lab) -> Result<()> {
    let [one, other] = [lab.new_stream()?, lab.new_stream()?];
    let (held, open) = (Gate::new(), Gate::new());
    open.open();
    let mut copies = [(); 2].map(|()| SmartArray::<u32, _>::uninit(LEN));
    let image = numbers(LEN);
    image.prefetch(&one)?;
    for ((stream, gate), soft) in [(&one, &held), (&other, &open)].into_iter().zip(&mut copies) {
        lab.gated_copy(stream, gate, &image, soft)?;
    }
    drop(image);
    let fresh = numbers(LEN);
    fresh.prefetch(&other)?;
    other.synchronize()?;
    held.open();
    copies.iter().try_for_each(|copy| {
        assert_eq!(*copy.host()?, counting(LEN));
        Ok(())
    })
}

pub(crate) fn three_streams_overlap(lab: &Lab) -> Result<()> {
    let [up, compute, down] = [lab.new_stream()?, lab.new_stream()?, lab.new_stream()?];
    let gates = [(); 3].map(|()| Gate::new());
    let images = [(); 3].map(|()| numbers(LEN));
    let mut soft = [(); 3].map(|()| SmartArray::<u32, _>::uninit(LEN));
    for image in 0..3 {
        images[image].prefetch(&up)?;
        // This would not return if the upload waited for the earlier picture, whose work waits at a
        // gate.
        up.synchronize()?;
        lab.gated_copy(&compute, &gates[image], &images[image], &mut soft[image])?;
        if image > 0 {
            let before = soft[image - 1].snapshot_on(&down)?;
            gates[image - 1].open();
            assert_eq!(before.wait()?, counting(LEN));
        }
    }
    gates[2].open();
    assert_eq!(*soft[2].host()?, counting(LEN));
    Ok(())
}

pub(crate) fn a_stream_that_waits_for_an_event_starts_after_it(lab: &Lab) -> Result<()> {
    let (gate, one, other) = (Gate::new(), lab.new_stream()?, lab.new_stream()?);
    let first = lab.gated_numbers(&one, &gate, LEN)?;
    other.wait(&one.record()?)?;
    let mut second = numbers(LEN);
    lab.add(&other, 1, &mut second)?;
    if lab.has_gates() {
        assert!(!other.is_idle()?);
    }
    gate.open();
    other.synchronize()?;
    assert!(one.is_idle()?, "the awaited work is complete");
    assert_eq!((first.host()?[0], second.host()?[0]), (1, 1));
    Ok(())
}

/// A common way to join streams: a stream on which only a wait has been queued records an event.
pub(crate) fn an_event_behind_a_wait_covers_what_was_waited_for(lab: &Lab) -> Result<()> {
    let (gate, one, other) = (Gate::new(), lab.new_stream()?, lab.new_stream()?);
    let array = lab.gated_numbers(&one, &gate, LEN)?;
    other.wait(&one.record()?)?;
    let joined = other.record()?;
    assert!(!joined.is_complete()?);
    gate.open();
    joined.synchronize()?;
    assert!(one.is_idle()?);
    assert_eq!(array.host()?[1], 2);
    Ok(())
}

pub(crate) fn a_synchronised_stream_has_done_its_waiting(lab: &Lab) -> Result<()> {
    let (gate, one, other) = (Gate::new(), lab.new_stream()?, lab.new_stream()?);
    let array = lab.gated_numbers(&one, &gate, LEN)?;
    other.wait(&one.record()?)?;
    assert!(!other.is_idle()?);
    gate.open();
    other.synchronize()?;
    assert!(one.is_idle()?);
    assert_eq!(array.host()?[1], 2);
    Ok(())
}

pub(crate) fn an_event_with_nothing_before_it_is_complete(lab: &Lab) -> Result<()> {
    let stream = lab.new_stream()?;
    let event = stream.record()?;
    event.synchronize()?;
    assert!(event.is_complete()?);
    stream.wait(&event)?;
    lab.stream().wait(&event)?;
    lab.stream().synchronize()
}

pub(crate) fn the_time_between_two_events(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.new_stream()?);
    let start = stream.record()?;
    let array = lab.gated_numbers(&stream, &gate, LEN)?;
    let end = stream.record()?;
    if lab.has_gates() {
        assert!(matches!(end.elapsed_since(&start), Err(Error::Backend { .. })), "not complete");
    }
    gate.open();
    end.synchronize()?;
    let elapsed = end.elapsed_since(&start)?;
    assert!(!elapsed.is_zero() && elapsed.as_secs() < 60, "{elapsed:?}");
    assert_eq!(array.host()?[1], 2);
    Ok(())
}

pub(crate) fn the_time_between_events_without_work(lab: &Lab) -> Result<()> {
    for _ in 0..50 {
        let stream = lab.new_stream()?;
        let (start, end) = (stream.record()?, stream.record()?);
        end.synchronize()?;
        assert!(end.elapsed_since(&start)?.as_secs() < 60);
    }
    Ok(())
}

pub(crate) fn more_events_than_a_pool_keeps(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.new_stream()?);
    let mut array = lab.gated_numbers(&stream, &gate, LEN)?;
    let mut events = Vec::new();
    for _ in 0..100 {
        lab.add(&stream, 1, &mut array)?;
        events.push(stream.record()?);
    }
    assert!(!events[0].is_complete()?);
    gate.open();
    for index in [0, 99, 50, 3] {
        events[index].synchronize()?;
        assert!(events[index].is_complete()?, "event {index}");
    }
    assert!(!events[99].elapsed_since(&events[0])?.is_zero());
    assert_eq!(array.host()?[0], 101);
    Ok(())
}

pub(crate) fn a_stream_made_while_another_works_waits_for_nothing(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.new_stream()?);
    let array = lab.gated_numbers(&stream, &gate, LEN)?;
    let mut other = numbers(LEN);
    for _ in 0..3 {
        let fresh = lab.new_stream()?;
        lab.add(&fresh, 5, &mut other)?;
        fresh.synchronize()?;
    }
    assert!(!stream.is_idle()?, "the gate holds the kernel all the time");
    assert_eq!(other.host()?[0], 15);
    gate.open();
    assert_eq!(array.host()?[0], 1);
    Ok(())
}

pub(crate) fn a_stream_dropped_with_work_in_flight(lab: &Lab) -> Result<()> {
    let gate = Gate::new();
    let stream = lab.new_stream()?;
    let array = lab.gated_numbers(&stream, &gate, LEN)?;
    let snapshot = array.snapshot_on(&stream)?;
    drop(stream);
    gate.open();
    assert_eq!(snapshot.wait()?[0], 1);
    assert_eq!(*array.host()?, counting(LEN) + 1);
    Ok(())
}

pub(crate) fn a_stream_synchronises_itself_when_its_guard_drops(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.new_stream()?);
    let mut array = numbers(LEN);
    let unwound = catch_unwind(AssertUnwindSafe(|| -> Result<()> {
        let _guard = stream.auto_synchronize();
        lab.gated(&stream, &gate, &mut array)?;
        gate.open();
        std::panic::resume_unwind(Box::new("leaves"))
    }));
    assert!(unwound.is_err() && stream.is_idle()?);
    assert_eq!(array.host()?[0], 1);
    Ok(())
}

pub(crate) fn synchronising_a_device_waits_for_all_its_streams(lab: &Lab) -> Result<()> {
    let gates = [(); 3].map(|()| Gate::new());
    let streams = [lab.new_stream()?, lab.new_stream()?, lab.stream()];
    let mut arrays = Vec::new();
    for (stream, gate) in streams.iter().zip(&gates) {
        arrays.push(lab.gated_numbers(stream, gate, LEN)?);
    }
    gates.iter().for_each(Gate::open);
    lab.device().synchronize()?;
    for (stream, array) in streams.iter().zip(&arrays) {
        assert!(stream.is_idle()?);
        assert_eq!(array.host()?[0], 1);
    }
    Ok(())
}

pub(crate) fn many_streams_come_and_go(lab: &Lab) -> Result<()> {
    let mut array = numbers(LEN);
    for _ in 0..100 {
        let stream = lab.new_stream()?;
        lab.add(&stream, 1, &mut array)?;
        drop(stream.record()?);
    }
    assert_eq!(array.host()?[0], 100);
    Ok(())
}

/// A body on the embedded device must not wait for a stream of any device.
pub(crate) fn an_embedded_body_may_not_wait_for_another_devices_stream(lab: &Lab) -> Result<()> {
    let (gate, stream, embedded) =
        (Gate::new(), lab.new_stream()?, Device::emulated(Emulation::new()));
    let array = Arc::new(lab.gated_numbers(&stream, &gate, LEN)?);
    let refused: Arc<Mutex<Vec<Result<()>>>> = Arc::default();
    let (seen, inner, waited) = (Arc::clone(&refused), Arc::clone(&array), stream.clone());
    let body = Kernel::<(InOut<u32>,)>::new("waits").host(move |_grid, (_,)| {
        let event = waited.record().map(|event| event.synchronize());
        let outcomes = [
            inner.host().map(drop),
            waited.synchronize(),
            waited.device().synchronize(),
            event.and_then(|outcome| outcome),
        ];
        *seen.lock().unwrap() = outcomes.to_vec();
    });
    body.launch_on(&embedded.stream(), Grid::cover(1), (&mut SmartArray::<u32, _>::zeros(4),))?;
    embedded.synchronize()?;
    for outcome in refused.lock().unwrap().iter() {
        assert!(matches!(outcome, Err(Error::InsideKernel { .. })), "{outcome:?}");
    }
    assert_eq!(refused.lock().unwrap().len(), 4);
    gate.open();
    assert_eq!(array.host()?[0], 1);
    Ok(())
}

pub(crate) fn a_stream_is_awaited(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.new_stream()?);
    block_on(stream.done())?;
    let array = lab.gated_numbers(&stream, &gate, LEN)?;
    let mut done = stream.done();
    let context = &mut Context::from_waker(Waker::noop());
    let first = Pin::new(&mut done).poll(context);
    if lab.has_gates() {
        assert!(first.is_pending());
    }
    drop(stream.done());
    std::mem::forget(stream.done());
    let mut polled_and_dropped = stream.done();
    let _pending = Pin::new(&mut polled_and_dropped).poll(context);
    drop(polled_and_dropped);
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let done = stream.done();
            thread::spawn(move || block_on(done))
        })
        .collect();
    gate.open();
    for thread in waiting {
        thread.join().expect("no panic")?;
    }
    block_on(done)?;
    assert!(stream.is_idle()?);
    assert_eq!(array.host()?[0], 1);
    Ok(())
}

pub(crate) fn a_stream_is_awaited_up_to_a_position(lab: &Lab) -> Result<()> {
    let (first, second, stream) = (Gate::new(), Gate::new(), lab.new_stream()?);
    let one = lab.gated_numbers(&stream, &first, LEN)?;
    let done = stream.done();
    let other = lab.gated_numbers(&stream, &second, LEN)?;
    if !lab.has_gates() {
        second.open();
    }
    let waiting = thread::spawn(move || block_on(done));
    first.open();
    // It ends although later work waits at a gate.
    waiting.join().expect("no panic")?;
    assert!(!lab.has_gates() || !stream.is_idle()?);
    second.open();
    assert_eq!((one.host()?[0], other.host()?[0]), (1, 1));
    Ok(())
}

/// Neither does the work queued behind a host function delay it.
pub(crate) fn a_host_function_runs_before_work_behind_it(lab: &Lab) -> Result<()> {
    let (first, second, stream) = (Gate::new(), Gate::new(), lab.new_stream()?);
    let one = lab.gated_numbers(&stream, &first, LEN)?;
    let function = stream.launch_host_function(|| 5)?;
    let other = lab.gated_numbers(&stream, &second, LEN)?;
    if !lab.has_gates() {
        second.open();
    }
    first.open();
    assert_eq!(function.wait()?, 5);
    assert!(!lab.has_gates() || !stream.is_idle()?);
    second.open();
    assert_eq!((one.host()?[0], other.host()?[0]), (1, 1));
    Ok(())
}

pub(crate) fn streams_have_priorities(lab: &Lab) -> Result<()> {
    let device = lab.device();
    let range = device.stream_priorities()?;
    assert!(range.greatest <= range.least, "a greater priority has a lower number");
    let usual = device.new_stream()?.priority()?;
    assert!((range.greatest..=range.least).contains(&usual), "{usual} is not in {range:?}");
    let mut arrays = Vec::new();
    for (asked, given) in [
        (range.least, range.least),
        (range.greatest, range.greatest),
        (i32::MAX, range.least),
        (i32::MIN, range.greatest),
    ] {
        let stream = device.new_stream_with_priority(asked)?;
        assert_eq!(stream.priority()?, given);
        let mut array = numbers(LEN);
        lab.add(&stream, 1, &mut array)?;
        arrays.push(array);
    }
    for array in arrays {
        assert_eq!(*array.host()?, counting(LEN) + 1);
    }
    Ok(())
}

/// Threads launch, record, wait and ask on one stream.
pub(crate) fn many_threads_share_a_stream(lab: &Lab) -> Result<()> {
    let stream = lab.new_stream()?;
    thread::scope(|scope| {
        let working: Vec<_> = (0..8)
            .map(|thread| {
                let stream = &stream;
                scope.spawn(move || -> Result<u32> {
                    let mut array = numbers(LEN);
                    for round in 0..40 {
                        lab.add(stream, 1, &mut array)?;
                        match (thread + round) % 8 {
                            0 => stream.synchronize()?,
                            1 => stream.record()?.synchronize()?,
                            2 => block_on(stream.done())?,
                            3 => drop(stream.auto_synchronize()),
                            4 => drop(stream.is_idle()?),
                            _ => {}
                        }
                    }
                    Ok(array.host()?[0])
                })
            })
            .collect();
        for thread in working {
            assert_eq!(thread.join().expect("no panic")?, 40);
        }
        Ok(())
    })
}
