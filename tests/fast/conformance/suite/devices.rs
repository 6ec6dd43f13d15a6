//! Arrays on two devices.

use std::sync::mpsc;
use std::time::Duration;

use super::prelude::*;
use resident::audit::{self, Implicit};
use resident::ndarray::{Ix2, Ix4, SliceInfo, SliceInfoElem, s};
use resident::{Error, Result, SmartArray, Validity};

const LEN: usize = 64;

/// The type of `s!` with one slice for each axis.
type Part<D, const N: usize> = SliceInfo<[SliceInfoElem; N], D, D>;

pub(crate) fn an_array_moves_between_devices(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    for len in [1, 1000, LARGE] {
        let mut array = numbers(len);
        for turn in 1..4 {
            make_newest(&mut array, &one.stream())?;
            make_newest(&mut array, &other.stream())?;
            let each = 4 * len as u64;
            assert_eq!(bytes(array.traffic()), [each, 0, each * (2 * turn - 1)]);
        }
        assert!(*array.host()? == counting(len));
    }
    Ok(())
}

pub(crate) fn parts_move_between_devices(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let contents = numbered::<u32, _>((20, 30), 0);
    let mut array = SmartArray::from(contents.clone());
    make_newest(&mut array, &one.stream())?;
    let mut moved = 0;
    let parts: [Part<Ix2, 2>; 4] =
        [s![3..9, ..], s![10..15, 2..;3], s![..3, 7..8], s![15..;2, ..;-2]];
    for part in parts {
        make_newest(&mut array.slice_mut(part), &other.new_stream()?)?;
        moved += 4 * contents.slice(part).len() as u64;
        assert_eq!(bytes(array.traffic()), [2400, 0, moved]);
    }
    assert_eq!(array.residency().on(&other), Partial { valid_bytes: moved });
    assert_eq!(*array.host()?, contents);
    Ok(())
}

pub(crate) fn boxes_of_volumes_move_between_devices(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let contents = numbered::<u16, _>((5, 9, 8, 7), 0);
    let moves = |part: Part<Ix4, 4>| -> Result<()> {
        let mut array = SmartArray::from(contents.clone());
        make_newest(&mut array, &one.stream())?;
        make_newest(&mut array.slice_mut(part), &other.stream())?;
        assert_eq!(bytes(array.traffic())[2], 2 * contents.slice(part).len() as u64);
        assert_eq!(*array.host()?, contents);
        Ok(())
    };
    moves(s![1..4, .., .., ..])?;
    moves(s![.., 2..7, 1..7, 3..6])?;
    moves(s![..;2, ..;3, ..;2, 1..])?;
    moves(s![2..3, 3..8;2, ..;5, ..;6])
}

pub(crate) fn halves_on_two_devices_are_joined(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let mut array = numbers(LEN);
    lab.add(&one.stream(), 100, &mut array.slice_mut(s![..40]))?;
    lab.add(&other.stream(), 200, &mut array.slice_mut(s![40..]))?;
    let mut sum = SmartArray::<u32, _>::zeros(LEN);
    lab.accumulate(&other.new_stream()?, &array, &mut sum)?;
    assert_eq!(*sum.host()?, counting(LEN).mapv(|x| x + if x < 40 { 100 } else { 200 }));
    assert_eq!(bytes(array.traffic()), [256, 0, 160]);
    Ok(())
}

pub(crate) fn an_assignment_between_devices(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let (from, mut to) = (numbered::<u32, _>((12, 10), 0), numbered::<u32, _>((10, 12), 500));
    let (mut source, mut target) = (SmartArray::from(from.clone()), SmartArray::from(to.clone()));
    make_newest(&mut source, &one.stream())?;
    make_newest(&mut target, &other.stream())?;
    target.slice_mut(s![..;2, 3..9]).assign_on(&other.stream(), &source.slice(s![2..7, ..6]))?;
    to.slice_mut(s![..;2, 3..9]).assign(&from.slice(s![2..7, ..6]));
    target.slice_mut(s![1, ..]).assign(&source.slice(s![..;-1, 9]))?;
    to.slice_mut(s![1, ..]).assign(&from.slice(s![..;-1, 9]));
    make_newest(&mut target, &other.stream())?;
    assert_eq!(*target.host()?, to);
    assert_eq!(source.residency().on(&other), Absent, "the source is not copied");
    assert_eq!(bytes(target.traffic())[2], 4 * (5 * 6 + 12), "only what is assigned");
    Ok(())
}

pub(crate) fn streams_of_two_devices_wait_for_each_other(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let gate = Gate::new();
    let _array = lab.gated_numbers(&one.stream(), &gate, LEN)?;
    other.stream().wait(&one.stream().record()?)?;
    let event = other.stream().record()?;
    assert!(!event.is_complete()?);
    gate.open();
    event.synchronize()?;
    assert!(one.stream().is_idle()?);
    Ok(())
}

pub(crate) fn an_array_dropped_while_another_device_reads_it(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let gate = Gate::new();
    let (mut array, mut target) = (numbers(LEN), SmartArray::<u32, _>::uninit(LEN));
    lab.gated(&one.stream(), &gate, &mut array)?;
    // Copies by way of the host wait for the kernel. Other copies are queued behind it meanwhile.
    let opening = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        gate.open();
    });
    target.assign_on(&other.stream(), &array)?;
    drop(array);
    opening.join().expect("no panic");
    assert_eq!(*target.host()?, counting(LEN) + 1);
    Ok(())
}

pub(crate) fn a_device_waits_for_those_who_read_its_memory(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let gate = Gate::new();
    let (mut held, mut array) = (numbers(LEN), numbers(LEN));
    let visitor = other.new_stream()?;
    lab.gated(&visitor, &gate, &mut held)?;
    make_newest(&mut array, &one.stream())?;
    array.prefetch(&visitor)?;
    let (tell, told) = mpsc::channel();
    let waiting = std::thread::spawn(move || tell.send(one.synchronize()));
    // Gives the other thread time to reach its wait. If that thread is late, the test still passes,
    // but tests less.
    let early = told.recv_timeout(Duration::from_millis(50));
    assert!(early.is_err(), "the synchronised device waits until the visitor has read its memory");
    gate.open();
    told.recv().expect("the visitor has read the memory")?;
    waiting.join().expect("no panic").expect("the receiver is alive");
    assert_eq!(*array.host()?, counting(LEN));
    Ok(())
}

pub(crate) fn launches_on_two_devices_take_turns(lab: &Lab) -> Result<()> {
    let Some(devices) = lab.pair() else { return Ok(()) };
    let open = Gate::new();
    open.open();
    let (mut array, mut seen) = (numbers(LEN), SmartArray::<u32, _>::uninit(LEN));
    for turn in 0..20 {
        lab.add(&devices[turn % 2].stream(), 1, &mut array)?;
        if lab.has_gates() {
            lab.gated_copy(&devices[(turn + 1) % 2].stream(), &open, &array, &mut seen)?;
        }
    }
    assert_eq!(*array.host()?, counting(LEN) + 20);
    if lab.has_gates() {
        assert_eq!(*seen.host()?, counting(LEN) + 20);
    }
    Ok(())
}

/// Whether the devices access each other or not.
pub(crate) fn a_denied_copy_between_devices_is_not_made(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let mut array = numbers(LEN);
    make_newest(&mut array, &one.stream())?;
    let moved = array.traffic();
    {
        let _denied = audit::deny(Implicit::BETWEEN_DEVICES);
        let refused = array.gpu_on(&other.stream()).map(drop);
        assert!(matches!(refused, Err(Error::Denied { .. })), "{refused:?}");
        assert_eq!(array.traffic(), moved);
        array.prefetch(&other.stream())?;
    }
    make_newest(&mut array, &one.stream())?;
    let _denied = audit::deny(Implicit::ALL);
    let _allowed = audit::allow(Implicit::ALL);
    array.gpu_on(&other.stream()).map(drop)
}
