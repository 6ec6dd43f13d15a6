//! Many threads on one device.

use super::prelude::*;
use std::sync::{Barrier, Mutex};
use std::thread;

const LEN: usize = 256;
const THREADS: usize = 6;

fn on_threads(work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            (0..THREADS).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

pub(crate) fn many_threads_read_one_array_and_it_moves_once(lab: &Lab) -> Result<()> {
    for len in [LEN, LARGE] {
        let mut array = numbers(len);
        let start = Barrier::new(THREADS);
        on_threads(|number| {
            start.wait();
            let stream = lab.new_stream()?;
            drop(array.gpu_on(&stream)?);
            assert_eq!(array.host()?[number], number as u32);
            Ok(())
        })?;
        assert_eq!(bytes(array.traffic()), [4 * len as u64, 0, 0]);
        make_newest(&mut array, &lab.stream())?;
        on_threads(|number| {
            start.wait();
            assert_eq!(array.slice(s![number..]).host()?[0], number as u32);
            assert!(*array.host()? == counting(len));
            Ok(())
        })?;
        assert_eq!(bytes(array.traffic()), [4 * len as u64, 4 * len as u64, 0], "each once");
    }
    Ok(())
}

pub(crate) fn threads_with_streams_of_their_own(lab: &Lab) -> Result<()> {
    let shared = numbers(LEN);
    on_threads(|number| {
        let stream = lab.new_stream()?;
        let mut array = SmartArray::<u32, _>::zeros(LEN);
        for turn in 0..40 {
            lab.accumulate(&stream, &shared, &mut array)?;
            lab.add(&stream, number as u32, &mut array)?;
            if turn % 10 == 0 {
                assert_eq!(array.get(1)?, (turn + 1) * (number as u32 + 1));
            }
        }
        assert_eq!(*array.host()?, counting(LEN).mapv(|x| 40 * (x + number as u32)));
        Ok(())
    })?;
    assert_eq!(bytes(shared.traffic()), [4 * LEN as u64, 0, 0]);
    Ok(())
}

/// Frees are driver calls too, and the thread that makes them has no current context.
pub(crate) fn an_array_dropped_on_a_thread_that_never_saw_the_device(lab: &Lab) -> Result<()> {
    let before = lab.device().memory().in_use;
    let gate = Gate::new();
    let (mut used, idle) = (numbers(LEN), numbers(LEN));
    drop(idle.gpu_on(&lab.stream())?);
    lab.gated(&lab.stream(), &gate, &mut used)?;
    let stream = lab.new_stream()?;
    let (pending, event) = (used.snapshot_on(&stream)?, stream.record()?);
    thread::spawn(move || drop((used, idle, stream, event))).join().expect("no panic");
    assert_eq!(lab.device().memory().in_use, before);
    gate.open();
    assert_eq!(thread::spawn(move || pending.wait()).join().expect("no panic")?[0], 1);
    // No error is left that an unrelated call would return.
    let array = numbers(LEN);
    drop(array.gpu_on(&lab.new_stream()?)?);
    Ok(())
}

pub(crate) fn threads_write_parts_of_one_array(lab: &Lab) -> Result<()> {
    let mut array = numbers(LEN);
    {
        let mut parts = Vec::new();
        let mut rest = array.view_mut();
        for _ in 1..THREADS {
            let (part, tail) = rest.split_at(Axis(0), 32);
            parts.push(Mutex::new(Some(part)));
            rest = tail;
        }
        parts.push(Mutex::new(Some(rest)));
        on_threads(|number| {
            let mut part = parts[number].lock().unwrap().take().expect("one part for each thread");
            let stream = lab.new_stream()?;
            for _ in 0..20 {
                lab.add(&stream, 1, &mut part)?;
                part.host_mut()?[0] += 100;
            }
            Ok(())
        })?;
    }
    let expected = counting(LEN).map(|x| x + 20 + if x % 32 == 0 && *x <= 160 { 2000 } else { 0 });
    assert_eq!(*array.host()?, expected);
    Ok(())
}

pub(crate) fn threads_pass_an_array_on(lab: &Lab) -> Result<()> {
    let array = Mutex::new(SmartArray::from(numbered::<u32, _>(LEN, 0)));
    on_threads(|_| {
        let stream = lab.new_stream()?;
        for _ in 0..20 {
            lab.add(&stream, 1, &mut *array.lock().unwrap())?;
        }
        Ok(())
    })?;
    let expected = numbered::<u32, _>(LEN, 0).mapv(|x| x.wrapping_add(20 * THREADS as u32));
    assert_eq!(*array.into_inner().unwrap().host()?, expected);
    Ok(())
}
