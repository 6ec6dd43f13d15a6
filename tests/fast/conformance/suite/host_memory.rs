//! Kinds of host memory: arrays in memory of the driver, and arrays of the program that are lent.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use resident::PinnedOptions;
use resident::ndarray::arr0;

use super::prelude::*;
use super::uses::{Home, KINDS, Kind, LEN, Use, programs, run_programs};

pub(crate) fn pinned_arrays_are_made_used_and_taken_back(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let _here = device.enter();
    let before = device.memory().pinned;
    let mut zeros = PinnedArray::<u32, _>::zeros((30, 20).f())?;
    assert_eq!((zeros.strides(), zeros.host()?.sum()), (&[1, 30][..], 0));
    assert_eq!(device.memory().pinned, before + 2400);
    let contents = numbered::<u32, _>((30, 20), 5);
    let mut copied = PinnedArray::from_array(contents.clone())?;
    assert_eq!(device.memory().pinned, before + 4800);
    lab.add_sized(&stream, 7, &mut zeros)?;
    lab.add_sized(&stream, 7, &mut copied)?;
    assert!(zeros.host()?.iter().all(|value| *value == 7));
    assert_eq!(*copied.host()?, contents.mapv(|value| value.wrapping_add(7)));
    assert_eq!(bytes(copied.traffic()), [2400, 2400, 0]);
    assert!(copied.host()?.as_array().is_none(), "no vector owns the memory");
    assert_eq!(copied.into_array()?, contents.mapv(|value| value.wrapping_add(7)));
    assert_eq!(device.memory().pinned, before + 2400);
    let smart = SmartArray::from(zeros);
    assert_eq!(smart.slice(s![3, ..]).host()?.sum(), 140);
    drop(smart);
    assert_eq!(device.memory().pinned, before);
    Ok(())
}

pub(crate) fn pinned_arrays_start_with_and_without_contents(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let mut results = PinnedArray::<u8, _>::uninit(100)?;
    assert!(matches!(results.host(), Err(Error::Uninitialised { .. })));
    results.host_overwrite()?.fill(3);
    assert_eq!(results.get(99)?, 3);
    let options = PinnedOptions::new().write_combined(true).portable(false);
    let written = PinnedArray::<u8, _>::zeros_with(100, options)?;
    assert_eq!(written.residency().host(), Valid);
    let reversed = numbered::<u16, _>((6, 7), 0);
    let view = reversed.slice(s![..;-1, ..;2]);
    assert_eq!(*PinnedArray::from_array_with(view, options)?.host()?, view);
    let empty = PinnedArray::<f64, _>::zeros((0, 4))?;
    assert_eq!(empty.host()?.shape(), [0, 4]);
    assert_eq!(empty.into_array()?.shape(), [0, 4]);
    let point = PinnedArray::from_array(arr0(5_u64))?;
    assert_eq!(point.get(())?, 5);
    point.page_lock()?;
    assert!(matches!(
        PinnedArray::<u8, _>::zeros(isize::MAX as usize),
        Err(Error::OutOfMemory { .. } | Error::Backend { .. })
    ));
    Ok(())
}

/// An upload of pinned memory returns before it has run, and what the host writes next comes after
/// it.
pub(crate) fn pinned_arrays_are_overwritten_behind_the_upload(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let mut array = PinnedArray::from_array(counting(5000))?;
    let mut copy = SmartArray::<u32, Ix1>::zeros(5000);
    let gate = Gate::new();
    lab.gated(&lab.stream(), &gate, &mut copy)?;
    array.prefetch(&lab.stream())?;
    copy.assign_on(&lab.stream(), &array)?;
    gate.open();
    array.host_mut()?.fill(9);
    assert_eq!(*copy.host()?, counting(5000));
    assert!(array.host()?.iter().all(|value| *value == 9));
    Ok(())
}

pub(crate) fn device_arrays_are_copied_to_and_from_pinned_arrays(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let contents = numbered::<u32, _>((40, 50), 0);
    let from = PinnedArray::from_array(contents.clone())?;
    let mut to = PinnedArray::<u32, _>::zeros((50, 40))?;
    let mut there = DeviceArray::<u32, _>::uninit((40, 50))?;
    there.copy_from_host(&*from.host()?)?;
    there.t().copy_to_host_into(&mut *to.host_mut()?)?;
    assert_eq!(*to.host()?, contents.t());
    Ok(())
}

/// The device reads pinned memory later: what the host writes next comes after it.
pub(crate) fn device_arrays_are_copied_from_pinned_arrays_at_once(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let stream = lab.new_stream()?;
    let contents = numbered::<u32, _>((40, 50), 0);
    let mut from = PinnedArray::from_array(contents.clone())?;
    let mut there = DeviceArray::<u32, _>::zeros((40, 50))?;
    let (gate, mut held) = (Gate::new(), numbers(3000));
    lab.gated(&stream, &gate, &mut held)?;
    there.copy_from_pinned_on(&stream, &from)?;
    gate.open();
    from.host_mut()?.fill(1);
    assert_eq!(there.copy_to_host()?, contents);
    // Parts, contents that are newest on the device, a dropped source; then what is not direct.
    lab.add_sized(&stream, 6, &mut from)?;
    there.slice_mut(s![..20, ..;2]).copy_from_pinned(&from.slice(s![20.., ..25]))?;
    drop(from);
    let mut expected = contents.clone();
    expected.slice_mut(s![..20, ..;2]).fill(7);
    assert_eq!(there.copy_to_host()?, expected);
    let locked = SmartArray::from(contents.clone());
    locked.page_lock()?;
    there.copy_from_pinned(&locked)?;
    assert_eq!(there.copy_to_host()?, contents);
    let square = PinnedArray::from_array(contents.slice(s![.., ..40]))?;
    there.slice_mut(s![.., ..40]).copy_from_pinned(&square.t())?;
    there.slice_mut(s![.., 40..]).copy_from_pinned(&SmartArray::<u32, _>::ones((40, 10)))?;
    let seen = there.copy_to_host()?;
    assert_eq!(seen.slice(s![.., ..40]), contents.slice(s![.., ..40]).t());
    assert!(seen.slice(s![.., 40..]).iter().all(|value| *value == 1));
    let refused = there.copy_from_pinned(&PinnedArray::<u32, _>::zeros((50, 40))?);
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    DeviceArray::<u32, _>::zeros((0, 3))?.copy_from_pinned(&PinnedArray::<u32, _>::zeros((0, 3))?)
}

/// The device writes pinned memory later: the host waits for it, and what the device writes next
/// comes after it.
pub(crate) fn device_arrays_are_copied_to_pinned_arrays_at_once(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let stream = lab.new_stream()?;
    let contents = numbered::<u32, _>((40, 50), 0);
    let mut there = DeviceArray::from_host(&contents)?;
    let mut to = PinnedArray::<u32, _>::uninit((40, 50))?;
    let (gate, mut held) = (Gate::new(), numbers(3000));
    lab.gated(&stream, &gate, &mut held)?;
    there.copy_to_pinned_on(&stream, &mut to)?;
    there.fill_on(&stream, 5)?;
    assert_eq!(to.residency().host(), Valid);
    gate.open();
    assert_eq!(*to.host()?, contents);
    assert!(there.copy_to_host()?.iter().all(|value| *value == 5));
    // Parts, uses of the pinned memory that the copy follows, a dropped source.
    to.prefetch(&lab.stream())?;
    let before = bytes(to.traffic());
    there.slice(s![..20, ..;2]).copy_to_pinned_on(&stream, &mut to.slice_mut(s![20.., ..25]))?;
    drop(there);
    lab.add_sized(&lab.stream(), 6, &mut to)?;
    let mut expected = contents.clone();
    expected.slice_mut(s![20.., ..25]).fill(5);
    assert_eq!(*to.host()?, expected.mapv(|value| value.wrapping_add(6)));
    assert_eq!(bytes(to.traffic())[0] - before[0], 4 * 20 * 25, "the part");
    let (mut lent, sevens) = (contents, DeviceArray::<u32, _>::full((40, 50), 7)?);
    with_pinned(&mut lent, |lent| sevens.copy_to_pinned_on(&stream, lent))?;
    assert!(lent.iter().all(|value| *value == 7));
    Ok(())
}

/// A copy into pinned memory follows the uses of that memory on other streams.
pub(crate) fn copies_to_pinned_arrays_follow_earlier_uses(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let (stream, held_stream) = (lab.new_stream()?, lab.new_stream()?);
    let contents = [0, 1, 2].map(|number| Array1::<u32>::from_elem(3000, number));
    let [zeros, ones, twos] = &contents;
    let (first, second) = (DeviceArray::from_host(ones)?, DeviceArray::from_host(twos)?);
    for is_read in [true, false] {
        let mut pinned = PinnedArray::from_array(zeros.view())?;
        let mut copy = DeviceArray::<u32, _>::zeros(3000)?;
        let (gate, mut held) = (Gate::new(), numbers(3000));
        lab.gated(&held_stream, &gate, &mut held)?;
        if is_read {
            copy.copy_from_pinned_on(&held_stream, &pinned)?;
        } else {
            first.copy_to_pinned_on(&held_stream, &mut pinned)?;
        }
        second.copy_to_pinned_on(&stream, &mut pinned)?;
        // The second copy would be over soon if it waited for nothing.
        let mut polls = (0..30).map(|_| std::thread::sleep(Duration::from_millis(1)));
        while polls.next().is_some() && !stream.is_idle()? {}
        gate.open();
        assert_eq!(*pinned.host()?, twos);
        assert_eq!(copy.copy_to_host()?, zeros);
    }
    Ok(())
}

/// What the device cannot write itself is copied before the call returns.
pub(crate) fn device_arrays_are_copied_to_arrays_that_are_not_pinned(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let contents = numbered::<u32, _>((40, 50), 0);
    let there = DeviceArray::from_host(&contents)?;
    let mut ordinary = SmartArray::<u32, _>::uninit((40, 50));
    there.copy_to_pinned(&mut ordinary)?;
    assert_eq!(*ordinary.host()?, contents);
    let mut locked = SmartArray::<u32, _>::from(numbered::<u32, _>((40, 50), 7));
    locked.page_lock()?;
    there.copy_to_pinned(&mut locked)?;
    assert_eq!(*locked.host()?, contents);
    let mut turned = PinnedArray::<u32, _>::zeros((50, 40))?;
    there.t().copy_to_pinned(&mut turned)?;
    assert_eq!(*turned.host()?, contents.t());
    let mut rows = PinnedArray::<u32, _>::zeros((3, 50))?;
    there.row(2).broadcast((3, 50))?.copy_to_pinned(&mut rows)?;
    assert!(rows.host()?.rows().into_iter().all(|row| row == contents.row(2)));
    let refused = there.copy_to_pinned(&mut turned);
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    assert_eq!(*turned.host()?, contents.t());
    let mut mapped = SmartArray::from(MappedArray::<u32, _>::zeros((40, 50))?);
    there.copy_to_pinned(&mut mapped)?;
    assert_eq!(*mapped.host()?, contents);
    let unwritten = DeviceArray::<u32, _>::uninit((50, 40))?.copy_to_pinned(&mut turned);
    assert!(matches!(unwritten, Err(Error::Uninitialised { .. })), "{unwritten:?}");
    assert_eq!(*turned.host()?, contents.t());
    DeviceArray::<u32, _>::zeros((0, 3))?.copy_to_pinned(&mut PinnedArray::zeros((0, 3))?)
}

/// Several threads use one pinned array.
pub(crate) fn threads_share_a_pinned_array(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let mut array = PinnedArray::from_array(counting(10_000))?;
    make_newest(&mut array, &lab.stream())?;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(*array.host().expect("valid"), counting(10_000)));
        }
    });
    assert_eq!(bytes(array.traffic()), [40_000, 40_000, 0]);
    Ok(())
}

pub(crate) fn lent_arrays_are_pinned_for_the_call(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let _here = device.enter();
    let before = device.memory().pinned;
    let mut array = counting(100_000);
    let start = array.as_ptr();
    let sum = with_pinned(&mut array, |pinned| {
        assert_eq!(pinned.host()?.as_ptr(), start, "the memory of the array itself");
        assert_eq!(device.memory().pinned, before + 400_000);
        lab.add(&stream, 5, &mut *pinned)?;
        pinned.slice(s![..10]).host().map(|part| part.sum())
    })?;
    assert_eq!((sum, array.as_ptr()), (95, start));
    assert_eq!(array, counting(100_000) + 5, "what is newer came back");
    assert_eq!(device.memory().pinned, before);
    // Repeated, as a constant, in column order and reversed, and nested with another array.
    with_pinned(&mut array, |pinned| pinned.fill(8))?;
    assert!(array.iter().all(|value| *value == 8));
    let mut table =
        Array2::from_shape_fn((300, 40).f(), |(row, column)| (row * 40 + column) as u32);
    let expected = table.mapv(|value| value + 8);
    let mut reversed = table.slice_mut(s![..;-1, ..]);
    with_pinned(&mut reversed, |table| {
        with_pinned(&mut array.slice_mut(s![..10]), |_part| lab.add_sized(&stream, 8, table))
    })?;
    assert_eq!(table, expected);
    with_pinned(&mut Array1::<u32>::zeros(0), |pinned| pinned.fill(8))
}

/// A loan for the length of a call.
type Lent<'c> = &'c mut dyn FnMut(&mut SmartViewMut<'_, u32, Ix1>) -> Result<()>;

/// The memory is given back only when the work in flight has used it, however the call ends.
pub(crate) fn ends_after_the_work_in_flight(
    lab: &Lab,
    lend: impl Fn(&mut Array1<u32>, Lent<'_>) -> Result<()>,
) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let _here = device.enter();
    let mut array = counting(3000);
    let mut other = numbers(3000);
    let gate = Gate::new();
    let outcome = lend(&mut array, &mut |lent| {
        lab.gated(&stream, &gate, &mut other)?;
        lent.prefetch(&stream)?;
        lab.add(&stream, 2, &mut *lent)?;
        std::mem::forget(lent.gpu_mut_on(&stream)?);
        std::mem::forget(lent.gpu_on(&lab.new_stream()?)?);
        gate.open();
        SmartArray::<u8, Ix1>::uninit(1).host().map(drop)
    });
    assert!(outcome.is_err());
    assert_eq!(array, counting(3000) + 2);
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        lend(&mut array, &mut |lent| {
            lab.add(&stream, 2, &mut *lent)?;
            panic!("on purpose")
        })
    }));
    assert!(unwound.is_err());
    assert_eq!(array, counting(3000) + 4);
    assert_eq!(device.memory().pinned, 0);
    Ok(())
}

pub(crate) fn a_loan_ends_after_the_work_in_flight(lab: &Lab) -> Result<()> {
    ends_after_the_work_in_flight(lab, |array, run| with_pinned(array, |lent| run(lent)))
}

pub(crate) fn what_cannot_be_lent_is_refused(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let mut table = Array2::<u32>::zeros((10, 10));
    let refused = with_pinned(&mut table.slice_mut(s![.., 2..5]), |_part| Ok(()));
    let Err(Error::NotContiguous { .. }) = &refused else { panic!("{refused:?}") };
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("with_pinned") && text.contains("[10, 3]"), "{text}");
    Ok(())
}

/// Host accesses, kernels and copies in any order, on an array of the driver or a lent one.
pub(crate) fn any_uses_of_pinned_memory_are_those_of_ndarray(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let streams = [lab.stream(), lab.new_stream()?];
    run_programs(lab, 11, &[Home::Pinned, Home::LentPinned], KINDS, &streams, |_| ())
}

pub(crate) fn mapped_arrays_are_never_copied(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let _here = device.enter();
    let in_use = device.memory().in_use;
    let contents = numbered::<u32, _>((30, 20).f(), 5);
    let options = PinnedOptions::new().write_combined(true);
    let mut array = MappedArray::from_array_with(contents.view(), options)?;
    assert_eq!((device.memory().pinned, device.memory().in_use), (2400, in_use));
    assert_eq!((array.strides(), array.host()?.as_array()), (contents.strides(), None));
    let (outcome, report) = audit::capture(|| {
        lab.add_sized(&stream, 7, &mut array)?;
        assert_eq!(*array.host()?, contents.mapv(|value| value.wrapping_add(7)));
        array.host_mut().map(drop)
    });
    assert_eq!((outcome?, bytes(report.traffic())), ((), [0; 3]));
    array.host_mut()?.slice_mut(s![..;2, ..]).fill(3);
    let mut all = array.view_mut();
    lab.add_sized(&stream, 1, &mut all.slice_mut(s![4..5, ..]))?;
    assert!(array.host()?.slice(s![4, ..]).iter().all(|value| *value == 4));
    array.set((0, 0), 9)?;
    assert_eq!((array.host()?[[0, 0]], array.get((2, 0))?), (9, 3));
    array.fill(8)?;
    assert!(array.host()?.iter().all(|value| *value == 8));
    // Copies to and from device arrays, and back into an ordinary array.
    let there = DeviceArray::from_host(&contents)?;
    array.copy_from_device(&there)?;
    assert_eq!(*array.host()?, contents);
    array.copy_from_host(&contents.mapv(|value| value / 2))?;
    assert_eq!(array.into_array()?, contents.mapv(|value| value / 2));
    device.synchronize()?;
    assert_eq!(device.memory().pinned, 0);
    assert_eq!(MappedArray::<u8, _>::zeros((0, 4))?.host()?.shape(), [0, 4]);
    let smart = SmartArray::from(MappedArray::<u32, _>::zeros(40)?);
    assert_eq!((smart.residency().on(&device), smart.host()?.sum()), (Valid, 0));
    Ok(())
}

pub(crate) fn the_host_waits_for_work_on_mapped_memory(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let stream = lab.new_stream()?;
    let mut array = MappedArray::from_array(counting(3000))?;
    let gate = Gate::new();
    lab.gated(&stream, &gate, &mut array)?;
    lab.add(&lab.stream(), 4, &mut array)?;
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| array.host().map(|host| host.to_owned()).expect("waited")))
            .collect();
        gate.open();
        for reader in readers {
            assert_eq!(reader.join().expect("no panic"), counting(3000) + 5);
        }
    });
    // A kernel that reads is waited for by the host before it writes.
    let mut copy = SmartArray::<u32, Ix1>::zeros(3000);
    let gate = Gate::new();
    lab.gated_copy(&stream, &gate, &array, &mut copy)?;
    gate.open();
    array.host_overwrite()?.fill(0);
    assert_eq!(*copy.host()?, counting(3000) + 5);
    assert_eq!(array.host()?.sum(), 0);
    Ok(())
}

pub(crate) fn mapped_arrays_belong_to_one_device(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let _here = one.enter();
    let mut array = MappedArray::<u32, _>::zeros(10)?;
    let refused = lab.add(&other.stream(), 1, &mut array);
    assert!(matches!(refused, Err(Error::WrongDevice { .. })), "{refused:?}");
    assert_eq!(array.host()?.sum(), 0);
    Ok(())
}

pub(crate) fn mapped_arrays_are_dropped_in_flight(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let (gate, mut other) = (Gate::new(), numbers(3000));
    let stream = lab.new_stream()?;
    lab.gated(&stream, &gate, &mut other)?;
    for _ in 0..5 {
        let mut array = MappedArray::from_array(counting(3000))?;
        lab.add(&stream, 4, &mut array)?;
        lab.accumulate(&stream, &array, &mut other)?;
        drop(array);
    }
    gate.open();
    assert_eq!(*other.host()?, counting(3000) * 6 + 21);
    lab.device().synchronize()?;
    assert_eq!(lab.device().memory().pinned, 0);
    Ok(())
}

/// Kernels on two streams, copies, fills and host accesses of mapped memory in any order.
pub(crate) fn any_uses_of_mapped_memory_are_those_of_ndarray(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let streams = [lab.stream(), lab.new_stream()?];
    let outcome = runner((25, 60), 12).run(&programs(KINDS), |uses| {
        let mut model = counting(LEN);
        let program = |mut array: MappedArray<u32, Ix1>| {
            for next in &uses {
                use_mapped(lab, &streams[next.stream % 2], next, (&mut array, &mut model))?;
            }
            array.into_array()
        };
        let outcome = with_checked_totals(&[lab.device()], || {
            MappedArray::from_array(counting(LEN)).and_then(program)
        });
        assert_eq!(outcome.unwrap_or_else(|error| panic!("{error}")), model);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    Ok(())
}

fn use_mapped(
    lab: &Lab,
    stream: &Stream,
    next: &Use,
    (array, model): (&mut MappedArray<u32, Ix1>, &mut Array1<u32>),
) -> Result<()> {
    let (part, value, first) = (s![next.range.clone()], next.value, next.range.start);
    match next.kind {
        Kind::HostAdds => {
            array.host_mut()?.slice_mut(part).mapv_inplace(|x| x.wrapping_add(3));
            model.slice_mut(part).mapv_inplace(|x| x.wrapping_add(3));
        }
        Kind::KernelAdds => {
            lab.add(stream, 5, &mut array.view_mut().slice_mut(part))?;
            model.slice_mut(part).mapv_inplace(|x| x.wrapping_add(5));
        }
        Kind::Fills | Kind::FillsThere => {
            array.view_mut().slice_mut(part).fill_on(stream, value)?;
            model.slice_mut(part).fill(value);
        }
        Kind::HostOverwrites => {
            array.host_overwrite()?.fill(value);
            model.fill(value);
        }
        Kind::Sets | Kind::Prefetches | Kind::Releases => {
            array.set(first, value).map(|()| model[first] = value)?;
        }
        Kind::Gets => assert_eq!(array.get(first)?, model[first]),
        Kind::PrefetchesToHost => assert_eq!(array.copy_to_host()?, *model),
        Kind::Reads => assert_eq!(array.host()?.slice(part), model.slice(part)),
        Kind::GivesToDeviceArray => {
            let mut pinned = PinnedArray::<u32, _>::uninit(next.range.len())?;
            array.slice(part).copy_to_pinned_on(stream, &mut pinned)?;
            assert_eq!(*pinned.host()?, model.slice(part));
        }
        Kind::Snapshots => {
            let copy = array.slice(part).copy_to_host_on(stream)?.wait()?;
            assert_eq!(copy, model.slice(part));
        }
        Kind::KernelCopies
        | Kind::AssignsThere
        | Kind::AssignsBack
        | Kind::TakesFromDeviceArray => {
            let there = DeviceArray::from_host_on(stream, &model.mapv(|x| x.wrapping_mul(3)))?;
            let mut target = array.view_mut();
            target.slice_mut(part).copy_from_device_on(stream, &there.slice(part))?;
            model.slice_mut(part).mapv_inplace(|x| x.wrapping_mul(3));
        }
    }
    Ok(())
}
