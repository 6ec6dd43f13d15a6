//! Launches: chains, across streams, of all layouts.

use super::prelude::*;
use resident::audit::{self, Implicit};
use resident::launch::Slice;
use resident::ndarray::{Array2, ShapeBuilder, s};
use resident::{Error, Grid, InOut, Kernel, Result, SmartArray};

const LEN: usize = 1000;

pub(crate) fn a_chain_of_launches(lab: &Lab) -> Result<()> {
    let (source, mut middle, mut last) =
        (numbers(LEN), SmartArray::<u32, _>::uninit(LEN), SmartArray::<u32, _>::zeros(LEN));
    for _ in 0..50 {
        lab.plus(&lab.stream(), 1, &source, &mut middle)?;
        lab.add(&lab.stream(), 2, &mut middle)?;
        lab.accumulate(&lab.stream(), &middle, &mut last)?;
    }
    assert_eq!(*last.host()?, counting(LEN).mapv(|x| 50 * (x + 3)));
    assert_eq!(bytes(source.traffic()), [4 * LEN as u64, 0, 0]);
    assert_eq!(bytes(middle.traffic()), [0; 3]);
    Ok(())
}

pub(crate) fn a_chain_across_streams(lab: &Lab) -> Result<()> {
    let streams = [lab.new_stream()?, lab.new_stream()?, lab.stream()];
    let (mut here, mut there) = (numbers(LEN), SmartArray::<u32, _>::uninit(LEN));
    for turn in 0..60 {
        lab.plus(&streams[turn % 3], 1, &here, &mut there)?;
        lab.add(&streams[(turn + 1) % 3], 1, &mut there)?;
        std::mem::swap(&mut here, &mut there);
    }
    assert_eq!(*here.host()?, counting(LEN) + 120);
    Ok(())
}

/// `add` takes the length behind the pointer.
pub(crate) fn slices_are_passed_with_their_length(lab: &Lab) -> Result<()> {
    let kernel = Kernel::<(u32, Slice<InOut<u32>>)>::new("add")
        .host(|_grid, (k, x)| x.iter_mut().for_each(|x| *x = x.wrapping_add(k)));
    // SAFETY: the code accesses only elements below the length, which is that of the argument.
    let kernel = unsafe { kernel.cuda(lab.code().clone()) };
    let mut x = numbers(LEN);
    let mut expected = counting(LEN);
    let stream = lab.stream();
    for (part, k) in [(s![..], 1), (s![3..700], 10), (s![999..], 100), (s![5..5], 1000)] {
        kernel.launch_on(&stream, over(LEN), (k, &mut x.slice_mut(part)))?;
        expected.slice_mut(part).mapv_inplace(|x| x + k);
    }
    kernel.launch_on(&stream, over(LEN), (5, &mut x))?;
    assert_eq!(*x.host()?, expected + 5);
    Ok(())
}

pub(crate) fn readers_on_many_streams_before_one_writer(lab: &Lab) -> Result<()> {
    let streams = [lab.new_stream()?, lab.new_stream()?, lab.new_stream()?];
    let mut source = numbers(LEN);
    let mut seen = [(); 3].map(|()| SmartArray::<u32, _>::uninit(LEN));
    for turn in 0..20 {
        for (stream, seen) in streams.iter().zip(&mut seen) {
            lab.plus(stream, turn, &source, seen)?;
        }
        lab.add(&lab.stream(), 1, &mut source)?;
    }
    for seen in &seen {
        assert_eq!(*seen.host()?, counting(LEN) + 38);
    }
    assert_eq!(source.host()?[0], 20);
    Ok(())
}

pub(crate) fn sized_arguments_take_any_layout(lab: &Lab) -> Result<()> {
    let from: Array2<u32> = numbered((30, 40), 0);
    let source = SmartArray::from(from.clone());
    let mut columns = SmartArray::from(Array2::<u32>::zeros((30, 40).f()));
    lab.copy_sized(&lab.stream(), &source, &mut columns)?;
    assert_eq!(*columns.host()?, from);
    let mut target = SmartArray::from(numbered::<u32, _>((70, 40), 9000));
    let part = s![3..63;-2, ..;-1];
    lab.copy_sized(&lab.stream(), &source, &mut target.slice_mut(part))?;
    let mut expected: Array2<u32> = numbered((70, 40), 9000);
    expected.slice_mut(part).assign(&from);
    assert_eq!(*target.host()?, expected);
    let mut small = SmartArray::<u32, _>::uninit((5, 6));
    lab.copy_sized(&lab.stream(), &columns.slice(s![..;-6, 10..40;5]), &mut small)?;
    assert_eq!(*small.host()?, from.slice(s![..;-6, 10..40;5]));
    Ok(())
}

pub(crate) fn sized_parts_are_changed_in_place(lab: &Lab) -> Result<()> {
    let mut expected: Array2<u32> = numbered((20, 30), 0);
    let mut array = SmartArray::from(expected.clone());
    let [one, other] = lab.two_streams()?;
    for turn in 0..10 {
        let part = s![turn..turn + 8, ..;3];
        let stream = if turn % 2 == 0 { &one } else { &other };
        lab.add_sized(stream, 5, &mut array.slice_mut(part))?;
        expected.slice_mut(part).mapv_inplace(|x| x.wrapping_add(5));
    }
    assert_eq!(*array.host()?, expected);
    assert_eq!(bytes(array.traffic())[0], 4 * 17 * 10, "only accessed elements were uploaded");
    Ok(())
}

pub(crate) fn a_launch_of_nothing(lab: &Lab) -> Result<()> {
    let mut array = SmartArray::<u32, _>::zeros(0);
    lab.add(&lab.stream(), 1, &mut array)?;
    let mut sized = SmartArray::<u32, _>::zeros((0, 5));
    lab.add_sized(&lab.stream(), 1, &mut sized)?;
    assert_eq!(bytes(array.traffic()), [0; 3]);
    Ok(())
}

pub(crate) fn a_launch_reads_what_the_host_has_just_written(lab: &Lab) -> Result<()> {
    let (mut source, mut target) =
        (SmartArray::<u32, _>::zeros(LEN), SmartArray::<u32, _>::uninit(LEN));
    for turn in 0..30 {
        source.host_mut()?[turn] = 7;
        lab.plus(&lab.stream(), turn as u32, &source, &mut target)?;
        source.host_mut()?[turn] = 1;
    }
    let host = target.host()?;
    assert_eq!((host[0], host[28], host[29], host[30]), (30, 30, 36, 29));
    Ok(())
}

pub(crate) fn launches_and_the_host_take_turns(lab: &Lab) -> Result<()> {
    let stream = lab.new_stream()?;
    let mut array = numbers(LEN);
    for turn in 0..20_u32 {
        lab.add(&stream, 1, &mut array)?;
        assert_eq!(array.get(3)?, 3 + 1001 * turn + 1);
        array.host_mut()?.mapv_inplace(|x| x + 1000);
        assert_eq!(validity(&array.residency(), &lab.device()), [Valid, Stale]);
    }
    assert_eq!(*array.host()?, counting(LEN).mapv(|x| x + 20 * 1001));
    let each = 4 * LEN as u64;
    assert_eq!(bytes(array.traffic()), [20 * each, 20 * (each + 4), 0]);
    Ok(())
}

/// Small arrays and large ones are uploaded in different ways.
pub(crate) fn a_denied_copy_of_a_launch_is_not_made(lab: &Lab) -> Result<()> {
    let stream = lab.stream();
    for len in [4, LARGE] {
        let mut array = numbers(len);
        array.prefetch(&stream)?;
        for _ in 0..3 {
            lab.add(&stream, 1, &mut array)?;
            array.host_mut()?[0] = 7;
            let moved = array.traffic();
            let denied = audit::deny(Implicit::TO_DEVICE);
            let refused = lab.add(&stream, 1, &mut array);
            assert!(matches!(refused, Err(Error::Denied { .. })), "{refused:?}");
            assert_eq!((array.host()?[0], array.traffic()), (7, moved));
            drop(denied);
        }
    }
    Ok(())
}

pub(crate) fn a_kernel_without_a_body_for_this_device(lab: &Lab) -> Result<()> {
    let bare = Kernel::<(InOut<u32>,)>::new("bare");
    let mut array = numbers(10);
    let refused = bare.launch_on(&lab.stream(), over(10), (&mut array,));
    let Err(error @ Error::NoKernelBody { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains(&lab.device().name()), "{error}");
    assert_eq!(bytes(array.traffic()), [0; 3]);
    Ok(())
}

pub(crate) fn a_kernel_does_what_its_host_body_does(lab: &Lab) -> Result<()> {
    let kernels = lab.kernels();
    let (x, mut y) = (numbers(LEN), numbers(LEN));
    let arguments = (&x, &mut y, LEN as u64);
    lab.assert_same(&kernels.accumulate, over(LEN), arguments)?;
    assert_eq!(*y.host()?, counting(LEN), "the arguments are unchanged");
    let mut matrix = SmartArray::from(numbered::<u32, _>((12, 34), 0));
    let arguments = (3, &mut matrix.slice_mut(s![..;2, ..]));
    lab.assert_same(&kernels.add_sized, over_2d(6, 34), arguments)
}
