//! Kinds of host memory: arrays in memory of the driver, and arrays of the program that are lent.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestRunner};

use resident::ndarray::{Array1, Array2, Ix1, ShapeBuilder, arr0, s};
use resident::{
    DeviceArray, Error, MappedArray, PinnedArray, PinnedOptions, Result, SmartArray, SmartViewMut,
    Stream, Validity, audit, with_pinned,
};

use super::gates::Gate;
use super::kernels::{accumulate, add, add_sized, gated, gated_copy, over, over_2d};
use super::lab::{Lab, with_checked_totals};
use super::values::{bytes, counting, make_newest, numbered};

pub(crate) fn pinned_arrays_are_made_used_and_taken_back(lab: &Lab<'_>) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let _here = device.enter();
    let before = device.memory().pinned;
    let mut zeros = PinnedArray::<u32, _>::zeros((30, 20).f())?;
    assert_eq!((zeros.strides(), zeros.host()?.sum()), (&[1, 30][..], 0));
    assert_eq!(device.memory().pinned, before + 2400);
    let contents = numbered::<u32, _>((30, 20), 5);
    let mut copied = PinnedArray::from_array(contents.clone())?;
    assert_eq!(device.memory().pinned, before + 4800);
    add_sized(lab).launch_on(&stream, over_2d(30, 20), (7, &mut zeros))?;
    add_sized(lab).launch_on(&stream, over_2d(30, 20), (7, &mut copied))?;
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

pub(crate) fn pinned_arrays_start_with_and_without_contents(lab: &Lab<'_>) -> Result<()> {
    let _here = lab.device().enter();
    let mut results = PinnedArray::<u8, _>::uninit(100)?;
    assert!(matches!(results.host(), Err(Error::Uninitialised { .. })));
    results.host_overwrite()?.fill(3);
    assert_eq!(results.get(99)?, 3);
    let options = PinnedOptions::new().write_combined(true).portable(false);
    let written = PinnedArray::<u8, _>::zeros_with(100, options)?;
    assert_eq!(written.residency().host(), Validity::Valid);
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
pub(crate) fn pinned_arrays_are_overwritten_behind_the_upload(lab: &Lab<'_>) -> Result<()> {
    let _here = lab.device().enter();
    let mut array = PinnedArray::from_array(counting(5000))?;
    let mut copy = SmartArray::<u32, Ix1>::zeros(5000);
    let gate = Gate::new();
    gated(lab).launch_on(&lab.stream(), over(5000), (gate.number(), &mut copy, 5000))?;
    array.prefetch(&lab.stream())?;
    copy.assign_on(&lab.stream(), &array)?;
    gate.open();
    array.host_mut()?.fill(9);
    assert_eq!(*copy.host()?, counting(5000));
    assert!(array.host()?.iter().all(|value| *value == 9));
    Ok(())
}

pub(crate) fn device_arrays_are_copied_to_and_from_pinned_arrays(lab: &Lab<'_>) -> Result<()> {
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
pub(crate) fn device_arrays_are_copied_from_pinned_arrays_at_once(lab: &Lab<'_>) -> Result<()> {
    let _here = lab.device().enter();
    let stream = lab.new_stream()?;
    let contents = numbered::<u32, _>((40, 50), 0);
    let mut from = PinnedArray::from_array(contents.clone())?;
    let mut there = DeviceArray::<u32, _>::zeros((40, 50))?;
    let (gate, mut held) = (Gate::new(), SmartArray::from(counting(3000)));
    gated(lab).launch_on(&stream, over(3000), (gate.number(), &mut held, 3000))?;
    there.copy_from_pinned_on(&stream, &from)?;
    gate.open();
    from.host_mut()?.fill(1);
    assert_eq!(there.copy_to_host()?, contents);
    // Parts, contents that are newest on the device, a dropped source; then what is not direct.
    add_sized(lab).launch_on(&stream, over_2d(40, 50), (6, &mut from))?;
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
pub(crate) fn device_arrays_are_copied_to_pinned_arrays_at_once(lab: &Lab<'_>) -> Result<()> {
    let _here = lab.device().enter();
    let stream = lab.new_stream()?;
    let contents = numbered::<u32, _>((40, 50), 0);
    let mut there = DeviceArray::from_host(&contents)?;
    let mut to = PinnedArray::<u32, _>::uninit((40, 50))?;
    let (gate, mut held) = (Gate::new(), SmartArray::from(counting(3000)));
    gated(lab).launch_on(&stream, over(3000), (gate.number(), &mut held, 3000))?;
    there.copy_to_pinned_on(&stream, &mut to)?;
    there.fill_on(&stream, 5)?;
    assert_eq!(to.residency().host(), Validity::Valid);
    gate.open();
    assert_eq!(*to.host()?, contents);
    assert!(there.copy_to_host()?.iter().all(|value| *value == 5));
    // Parts, uses of the pinned memory that the copy follows, a dropped source.
    to.prefetch(&lab.stream())?;
    let before = bytes(to.traffic());
    there.slice(s![..20, ..;2]).copy_to_pinned_on(&stream, &mut to.slice_mut(s![20.., ..25]))?;
    drop(there);
    add_sized(lab).launch_on(&lab.stream(), over_2d(40, 50), (6, &mut to))?;
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
pub(crate) fn copies_to_pinned_arrays_follow_earlier_uses(lab: &Lab<'_>) -> Result<()> {
    let _here = lab.device().enter();
    let (stream, held_stream) = (lab.new_stream()?, lab.new_stream()?);
    let contents = [0, 1, 2].map(|number| Array1::<u32>::from_elem(3000, number));
    let [zeros, ones, twos] = &contents;
    let (first, second) = (DeviceArray::from_host(ones)?, DeviceArray::from_host(twos)?);
    for is_read in [true, false] {
        let mut pinned = PinnedArray::from_array(zeros.view())?;
        let mut copy = DeviceArray::<u32, _>::zeros(3000)?;
        let (gate, mut held) = (Gate::new(), SmartArray::from(counting(3000)));
        gated(lab).launch_on(&held_stream, over(3000), (gate.number(), &mut held, 3000))?;
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
pub(crate) fn device_arrays_are_copied_to_arrays_that_are_not_pinned(lab: &Lab<'_>) -> Result<()> {
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
pub(crate) fn threads_share_a_pinned_array(lab: &Lab<'_>) -> Result<()> {
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

pub(crate) fn lent_arrays_are_pinned_for_the_call(lab: &Lab<'_>) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let _here = device.enter();
    let before = device.memory().pinned;
    let mut array = counting(100_000);
    let start = array.as_ptr();
    let sum = with_pinned(&mut array, |pinned| {
        assert_eq!(pinned.host()?.as_ptr(), start, "the memory of the array itself");
        assert_eq!(device.memory().pinned, before + 400_000);
        add(lab).launch_on(&stream, over(100_000), (5, &mut *pinned, 100_000))?;
        pinned.slice(s![..10]).host().map(|part| part.sum())
    })?;
    assert_eq!((sum, array.as_ptr()), (95, start));
    assert_eq!(array, counting(100_000).mapv(|value| value + 5), "what is newer came back");
    assert_eq!(device.memory().pinned, before);
    // Repeated, as a constant, in column order and reversed, and nested with another array.
    with_pinned(&mut array, |pinned| pinned.fill(8))?;
    assert!(array.iter().all(|value| *value == 8));
    let mut table =
        Array2::from_shape_fn((300, 40).f(), |(row, column)| (row * 40 + column) as u32);
    let expected = table.mapv(|value| value + 8);
    let mut reversed = table.slice_mut(s![..;-1, ..]);
    with_pinned(&mut reversed, |table| {
        with_pinned(&mut array.slice_mut(s![..10]), |_part| {
            add_sized(lab).launch_on(&stream, over_2d(300, 40), (8, table))
        })
    })?;
    assert_eq!(table, expected);
    with_pinned(&mut Array1::<u32>::zeros(0), |pinned| pinned.fill(8))
}

/// The memory is given back only when the work in flight has used it.
pub(crate) fn a_loan_ends_after_the_work_in_flight(lab: &Lab<'_>) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let _here = device.enter();
    let mut array = counting(3000);
    let mut other = SmartArray::from(counting(3000));
    let gate = Gate::new();
    let outcome: Result<()> = with_pinned(&mut array, |pinned| {
        gated(lab).launch_on(&stream, over(3000), (gate.number(), &mut other, 3000))?;
        pinned.prefetch(&stream)?;
        add(lab).launch_on(&stream, over(3000), (2, &mut *pinned, 3000))?;
        std::mem::forget(pinned.gpu_mut_on(&stream)?);
        gate.open();
        SmartArray::<u8, Ix1>::uninit(1).host().map(drop)
    });
    assert!(outcome.is_err());
    assert_eq!(array, counting(3000).mapv(|value| value + 2));
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        with_pinned::<_, _, ()>(&mut array, |pinned| {
            add(lab).launch_on(&stream, over(3000), (2, &mut *pinned, 3000))?;
            panic!("on purpose")
        })
    }));
    assert!(unwound.is_err());
    assert_eq!(array, counting(3000).mapv(|value| value + 4));
    assert_eq!(device.memory().pinned, 0);
    Ok(())
}

pub(crate) fn what_cannot_be_lent_is_refused(lab: &Lab<'_>) -> Result<()> {
    let _here = lab.device().enter();
    let mut table = Array2::<u32>::zeros((10, 10));
    let refused = with_pinned(&mut table.slice_mut(s![.., 2..5]), |_part| Ok(()));
    let Err(Error::NotContiguous { .. }) = &refused else { panic!("{refused:?}") };
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("with_pinned") && text.contains("[10, 3]"), "{text}");
    Ok(())
}

/// One use of the first array by the host or the device. Ranges are those of a part.
#[derive(Clone, Debug)]
enum Use {
    HostAdds(Range<usize>),
    KernelAdds(Range<usize>),
    Fills(Range<usize>, u32),
    HostOverwrites(Range<usize>, u32),
    AssignsThere(Range<usize>),
    AssignsBack(Range<usize>),
    Prefetches,
    PrefetchesToHost,
    Reads(Range<usize>),
    Snapshots(Range<usize>),
    TakesFromDeviceArray(Range<usize>),
    GivesToDeviceArray(Range<usize>),
}

const LEN: usize = 600;

fn uses() -> impl Strategy<Value = (Use, bool)> {
    let range = || (0..LEN, 1..LEN).prop_map(|(start, len)| start..(start + len).min(LEN));
    let value = || any::<u32>();
    let uses = prop_oneof![
        range().prop_map(Use::HostAdds),
        range().prop_map(Use::KernelAdds),
        (range(), value()).prop_map(|(range, value)| Use::Fills(range, value)),
        (range(), value()).prop_map(|(range, value)| Use::HostOverwrites(range, value)),
        range().prop_map(Use::AssignsThere),
        range().prop_map(Use::AssignsBack),
        Just(Use::Prefetches),
        Just(Use::PrefetchesToHost),
        range().prop_map(Use::Reads),
        range().prop_map(Use::Snapshots),
        range().prop_map(Use::TakesFromDeviceArray),
        range().prop_map(Use::GivesToDeviceArray),
    ];
    (uses, any::<bool>())
}

/// Makes a use of `array` and `other` on a stream, and of their model.
fn make_use(
    lab: &Lab<'_>,
    stream: &Stream,
    next: &Use,
    (array, other): (&mut SmartViewMut<'_, u32, Ix1>, &mut SmartArray<u32, Ix1>),
    (model, model_other): (&mut Array1<u32>, &mut Array1<u32>),
) -> Result<()> {
    let part = |range: &Range<usize>| s![range.start..range.end];
    match next {
        Use::HostAdds(range) => {
            array.slice_mut(part(range)).host_mut()?.mapv_inplace(|x| x.wrapping_add(3));
            model.slice_mut(part(range)).mapv_inplace(|x| x.wrapping_add(3));
        }
        Use::KernelAdds(range) => {
            let mut target = array.slice_mut(part(range));
            let len = range.len();
            add(lab).launch_on(stream, over(len), (5, &mut target, len as u64))?;
            model.slice_mut(part(range)).mapv_inplace(|x| x.wrapping_add(5));
        }
        Use::Fills(range, value) => {
            array.slice_mut(part(range)).fill(*value)?;
            model.slice_mut(part(range)).fill(*value);
        }
        Use::HostOverwrites(range, value) => {
            array.slice_mut(part(range)).host_overwrite()?.fill(*value);
            model.slice_mut(part(range)).fill(*value);
        }
        Use::AssignsThere(range) => {
            other.slice_mut(part(range)).assign_on(stream, &array.slice(part(range)))?;
            model_other.slice_mut(part(range)).assign(&model.slice(part(range)));
        }
        Use::AssignsBack(range) => {
            array.slice_mut(part(range)).assign(&other.slice(part(range)))?;
            model.slice_mut(part(range)).assign(&model_other.slice(part(range)));
        }
        Use::Prefetches => array.prefetch(stream)?,
        Use::PrefetchesToHost => array.prefetch_host()?,
        Use::Reads(range) => {
            assert_eq!(*array.slice(part(range)).host()?, model.slice(part(range)));
        }
        Use::Snapshots(range) => {
            let copy = array.slice(part(range)).snapshot_on(stream)?.wait()?;
            assert_eq!(copy, model.slice(part(range)));
        }
        Use::TakesFromDeviceArray(range) => {
            let there = DeviceArray::from_host_on(stream, &model_other.slice(part(range)))?;
            there.copy_to_pinned_on(stream, &mut array.slice_mut(part(range)))?;
            model.slice_mut(part(range)).assign(&model_other.slice(part(range)));
        }
        Use::GivesToDeviceArray(range) => {
            let mut there = DeviceArray::uninit_on(stream, range.len())?;
            there.copy_from_pinned_on(stream, &array.slice(part(range)))?;
            assert_eq!(there.copy_to_host()?, model.slice(part(range)));
        }
    }
    Ok(())
}

/// Host accesses, kernels and copies in any order, on an array of the driver or a lent one.
pub(crate) fn any_uses_of_pinned_memory_are_those_of_ndarray(lab: &Lab<'_>) -> Result<()> {
    let _here = lab.device().enter();
    let streams = [lab.stream(), lab.new_stream()?];
    let config = Config {
        cases: 40,
        rng_seed: RngSeed::Fixed(11),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    };
    let cases = (any::<bool>(), vec(uses(), 1..30));
    let outcome = TestRunner::new(config).run(&cases, |(is_lent, uses)| {
        let (mut model, mut model_other) = (counting(LEN), counting(LEN) * 7);
        let mut other = SmartArray::from(model_other.clone());
        let mut all = |array: &mut SmartViewMut<'_, u32, Ix1>| {
            uses.iter().try_for_each(|(next, stream)| {
                let stream = &streams[usize::from(*stream)];
                let models = (&mut model, &mut model_other);
                make_use(lab, stream, next, (array, &mut other), models)
            })
        };
        let outcome = with_checked_totals(&[lab.device()], || {
            if is_lent {
                let mut array = counting(LEN);
                with_pinned(&mut array, &mut all).map(|()| array)
            } else {
                PinnedArray::from_array(counting(LEN)).and_then(|mut array| {
                    all(&mut array.view_mut())?;
                    array.into_array()
                })
            }
        });
        assert_eq!(outcome.unwrap_or_else(|error| panic!("{error}")), model);
        assert_eq!(*other.host().expect("it is there"), model_other);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    Ok(())
}

pub(crate) fn mapped_arrays_are_never_copied(lab: &Lab<'_>) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let _here = device.enter();
    let in_use = device.memory().in_use;
    let contents = numbered::<u32, _>((30, 20).f(), 5);
    let options = PinnedOptions::new().write_combined(true);
    let mut array = MappedArray::from_array_with(contents.view(), options)?;
    assert_eq!((device.memory().pinned, device.memory().in_use), (2400, in_use));
    assert_eq!((array.strides(), array.host()?.as_array()), (contents.strides(), None));
    let (outcome, report) = audit::capture(|| {
        add_sized(lab).launch_on(&stream, over_2d(30, 20), (7, &mut array))?;
        assert_eq!(*array.host()?, contents.mapv(|value| value.wrapping_add(7)));
        array.host_mut().map(drop)
    });
    assert_eq!((outcome?, bytes(report.traffic())), ((), [0; 3]));
    array.host_mut()?.slice_mut(s![..;2, ..]).fill(3);
    let mut all = array.view_mut();
    add_sized(lab).launch_on(&stream, over_2d(1, 20), (1, &mut all.slice_mut(s![4..5, ..])))?;
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
    assert_eq!((smart.residency().on(&device), smart.host()?.sum()), (Validity::Valid, 0));
    Ok(())
}

pub(crate) fn the_host_waits_for_work_on_mapped_memory(lab: &Lab<'_>) -> Result<()> {
    let _here = lab.device().enter();
    let stream = lab.new_stream()?;
    let mut array = MappedArray::from_array(counting(3000))?;
    let gate = Gate::new();
    gated(lab).launch_on(&stream, over(3000), (gate.number(), &mut array, 3000))?;
    add(lab).launch_on(&lab.stream(), over(3000), (4, &mut array, 3000))?;
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
    gated_copy(lab).launch_on(&stream, over(3000), (gate.number(), &array, &mut copy, 3000))?;
    gate.open();
    array.host_overwrite()?.fill(0);
    assert_eq!(*copy.host()?, counting(3000) + 5);
    assert_eq!(array.host()?.sum(), 0);
    Ok(())
}

pub(crate) fn mapped_arrays_belong_to_one_device(lab: &Lab<'_>) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let _here = one.enter();
    let mut array = MappedArray::<u32, _>::zeros(10)?;
    let refused = add(lab).launch_on(&other.stream(), over(10), (1, &mut array, 10));
    assert!(matches!(refused, Err(Error::WrongDevice { .. })), "{refused:?}");
    assert_eq!(array.host()?.sum(), 0);
    Ok(())
}

pub(crate) fn mapped_arrays_are_dropped_in_flight(lab: &Lab<'_>) -> Result<()> {
    let _here = lab.device().enter();
    let (gate, mut other) = (Gate::new(), SmartArray::from(counting(3000)));
    let stream = lab.new_stream()?;
    gated(lab).launch_on(&stream, over(3000), (gate.number(), &mut other, 3000))?;
    for _ in 0..5 {
        let mut array = MappedArray::from_array(counting(3000))?;
        add(lab).launch_on(&stream, over(3000), (4, &mut array, 3000))?;
        accumulate(lab).launch_on(&stream, over(3000), (&array, &mut other, 3000))?;
        drop(array);
    }
    gate.open();
    assert_eq!(*other.host()?, counting(3000) * 6 + 21);
    lab.device().synchronize()?;
    assert_eq!(lab.device().memory().pinned, 0);
    Ok(())
}

/// Kernels on two streams, copies, fills and host accesses of mapped memory in any order.
pub(crate) fn any_uses_of_mapped_memory_are_those_of_ndarray(lab: &Lab<'_>) -> Result<()> {
    let _here = lab.device().enter();
    let streams = [lab.stream(), lab.new_stream()?];
    let config = Config {
        cases: 40,
        rng_seed: RngSeed::Fixed(12),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&vec(uses(), 1..30), |uses| {
        let mut model = counting(LEN);
        let program = |mut array: MappedArray<u32, Ix1>| {
            for (next, stream) in &uses {
                use_mapped(lab, &streams[usize::from(*stream)], next, &mut array, &mut model)?;
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
    lab: &Lab<'_>,
    stream: &Stream,
    next: &Use,
    array: &mut MappedArray<u32, Ix1>,
    model: &mut Array1<u32>,
) -> Result<()> {
    let part = |range: &Range<usize>| s![range.start..range.end];
    match next {
        Use::HostAdds(range) => {
            let mut host = array.host_mut()?;
            host.slice_mut(part(range)).mapv_inplace(|x| x.wrapping_add(3));
            model.slice_mut(part(range)).mapv_inplace(|x| x.wrapping_add(3));
        }
        Use::KernelAdds(range) => {
            let mut all = array.view_mut();
            let (mut target, len) = (all.slice_mut(part(range)), range.len());
            add(lab).launch_on(stream, over(len), (5, &mut target, len as u64))?;
            model.slice_mut(part(range)).mapv_inplace(|x| x.wrapping_add(5));
        }
        Use::Fills(range, value) => {
            array.view_mut().slice_mut(part(range)).fill_on(stream, *value)?;
            model.slice_mut(part(range)).fill(*value);
        }
        Use::HostOverwrites(_, value) => {
            array.host_overwrite()?.fill(*value);
            model.fill(*value);
        }
        Use::AssignsThere(range) | Use::AssignsBack(range) | Use::TakesFromDeviceArray(range) => {
            let there = DeviceArray::from_host_on(stream, &model.mapv(|x| x.wrapping_mul(3)))?;
            let mut target = array.view_mut();
            let from = there.slice(part(range));
            target.slice_mut(part(range)).copy_from_device_on(stream, &from)?;
            model.slice_mut(part(range)).mapv_inplace(|x| x.wrapping_mul(3));
        }
        Use::Prefetches => array.set(7, 70).map(|()| model[7] = 70)?,
        Use::PrefetchesToHost => assert_eq!(array.copy_to_host()?, *model),
        Use::Reads(range) => {
            assert_eq!(array.host()?.slice(part(range)), model.slice(part(range)));
        }
        Use::GivesToDeviceArray(range) => {
            let mut pinned = PinnedArray::<u32, _>::uninit(range.len())?;
            array.slice(part(range)).copy_to_pinned_on(stream, &mut pinned)?;
            assert_eq!(*pinned.host()?, model.slice(part(range)));
        }
        Use::Snapshots(range) => {
            let copy = array.slice(part(range)).copy_to_host_on(stream)?.wait()?;
            assert_eq!(copy, model.slice(part(range)));
        }
    }
    Ok(())
}
