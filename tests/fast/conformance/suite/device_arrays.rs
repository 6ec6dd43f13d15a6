//! Explicit device arrays: copies in every direction, of any strides, and only when asked for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::prelude::*;
use proptest::collection::vec;
use proptest::prelude::any;
use resident::ndarray::{SliceInfo, SliceInfoElem};

/// A view of some shape with strides: a slice of a larger array, and then another order of axes.
#[derive(Debug)]
struct Strides {
    backing: Vec<usize>,
    info: SliceInfo<Vec<SliceInfoElem>, IxDyn, IxDyn>,
    order: IxDyn,
}

impl Strides {
    fn of(shape: &[usize], numbers: [u8; 8]) -> Self {
        let ndim = shape.len();
        let mut order: Vec<usize> = (0..ndim).collect();
        order.sort_by_key(|axis| numbers[*axis]);
        // Axis `i` of the view is axis `order[i]` of the slice.
        let mut backing = vec![0; ndim];
        let mut elements = vec![SliceInfoElem::Index(0); ndim];
        for (axis, at) in order.iter().enumerate() {
            let (number, len) = (usize::from(numbers[axis]), shape[axis]);
            // Arrays of more axes would be large.
            let indices = 1 + (number / 4 % if ndim > 3 { 3 } else { 7 }) as isize;
            let step = if number.is_multiple_of(2) { indices } else { -indices };
            let margin = number / 2 % 2;
            let reach = if len == 0 { 0 } else { (len - 1) * isize::unsigned_abs(step) + 1 };
            backing[*at] = reach + 2 * margin;
            elements[*at] = SliceInfoElem::Slice {
                start: margin as isize,
                end: Some((margin + reach) as isize),
                step,
            };
        }
        let info = SliceInfo::try_from(elements).expect("as many axes in as out");
        Self { backing, info, order: IxDyn(&order) }
    }

    fn contents(&self, first: usize) -> ArrayD<u32> {
        numbered(IxDyn(&self.backing), first)
    }

    fn of_device<'a>(&self, array: &'a DeviceArray<u32, IxDyn>) -> DeviceView<'a, u32, IxDyn> {
        array.view().slice(&self.info).permuted_axes(self.order.clone())
    }

    fn of_device_mut<'a>(
        &self,
        array: &'a mut DeviceArray<u32, IxDyn>,
    ) -> DeviceViewMut<'a, u32, IxDyn> {
        array.slice_mut(&self.info).permuted_axes(self.order.clone())
    }
}

/// Copies from the host, between device arrays and to the host, of these strides.
fn copies(lab: &Lab, shape: &[usize], numbers: [[u8; 8]; 4]) -> Result<()> {
    let stream = lab.new_stream()?;
    let [host, one, other, back] = numbers.map(|numbers| Strides::of(shape, numbers));
    let source = host.contents(0);
    let source = source.slice(&host.info).permuted_axes(host.order.clone());
    let mut first = DeviceArray::from_host_on(&stream, &one.contents(1_000))?;
    one.of_device_mut(&mut first).copy_from_host_on(&stream, &source)?;
    let mut expected = one.contents(1_000);
    expected.slice_mut(&one.info).permuted_axes(one.order.clone()).assign(&source);
    assert_eq!(first.copy_to_host()?, expected);
    let mut second = DeviceArray::from_host(&other.contents(2_000))?;
    other.of_device_mut(&mut second).copy_from_device(&one.of_device(&first))?;
    let mut expected = other.contents(2_000);
    expected.slice_mut(&other.info).permuted_axes(other.order.clone()).assign(&source);
    assert_eq!(second.copy_to_host_on(&stream)?.wait()?, expected);
    let (mut target, mut expected) = (back.contents(3_000), back.contents(3_000));
    expected.slice_mut(&back.info).permuted_axes(back.order.clone()).assign(&source);
    let view = other.of_device(&second);
    let mut part = target.slice_mut(&back.info).permuted_axes(back.order.clone());
    view.copy_to_host_into(&mut part)?;
    assert_eq!(target, expected);
    let mut pinned = PinnedArray::from_array(back.contents(3_000))?;
    let part = pinned.slice_mut(&back.info);
    view.copy_to_pinned_on(&stream, &mut part.permuted_axes(back.order.clone()))?;
    assert_eq!(*pinned.host()?, expected);
    one.of_device_mut(&mut first)
        .copy_from_pinned(&pinned.slice(&back.info).permuted_axes(back.order.clone()))?;
    assert_eq!(one.of_device(&first).copy_to_host()?, source);
    assert_eq!(view.copy_to_host()?, source);
    assert_eq!(view.to_contiguous()?.copy_to_host()?, source);
    assert!(view.to_contiguous()?.is_c_contiguous());
    assert_eq!(view.is_c_contiguous(), is_row_major(view.shape(), view.strides()));
    Ok(())
}

/// NumPy's flag of these strides.
fn is_row_major(shape: &[usize], strides: &[isize]) -> bool {
    let (mut stride, mut is_row_major) = (1, true);
    for (len, own) in shape.iter().zip(strides).rev() {
        is_row_major &= *len == 1 || *own == stride;
        stride *= *len as isize;
    }
    is_row_major || shape.contains(&0)
}

pub(crate) fn strided_copies_in_every_direction_are_exact(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let cases = (vec(0_usize..5, 0..6), any::<[[u8; 8]; 4]>());
    let outcome = runner((40, 64), 10).run(&cases, |(shape, numbers)| {
        copies(lab, &shape, numbers).unwrap_or_else(|error| panic!("{error}"));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    Ok(())
}

/// A range of `keep` of `len` indices: any step that fits, any start, either direction.
fn range_of(len: usize, keep: usize, number: u8) -> SliceInfoElem {
    let (number, gaps) = (usize::from(number), keep.saturating_sub(1));
    let step = 1 + number % len.saturating_sub(1).checked_div(gaps).unwrap_or(1).max(1);
    let reach = if keep == 0 { 0 } else { gaps * step + 1 };
    let start = number / 4 % (len - reach + 1);
    let step = if number < 128 { step as isize } else { -(step as isize) };
    SliceInfoElem::Slice { start: start as isize, end: Some((start + reach) as isize), step }
}

/// Two slices of one shape, which may share elements.
fn two_slices(
    shape: &[usize],
    numbers: &[[u8; 3]],
) -> [SliceInfo<Vec<SliceInfoElem>, IxDyn, IxDyn>; 2] {
    [1, 2].map(|which| {
        let range = |(len, numbers): (&usize, &[u8; 3])| {
            range_of(*len, len - usize::from(numbers[0]) % 4 % (len + 1), numbers[which])
        };
        let ranges: Vec<_> = shape.iter().zip(numbers).map(range).collect();
        SliceInfo::try_from(ranges).expect("as many axes in as out")
    })
}

pub(crate) fn parts_that_overlap_are_copied_as_through_a_temporary(lab: &Lab) -> Result<()> {
    let own = lab.new_stream()?;
    let cases = (vec(0_usize..9, 0..4), any::<[[u8; 3]; 3]>(), any::<bool>());
    let outcome = runner((128, 128), 10).run(&cases, |(shape, numbers, is_turned)| {
        let [from, to] = two_slices(&shape, &numbers);
        let mut expected: ArrayD<u32> = numbered(IxDyn(&shape).set_f(is_turned), 0);
        let array = DeviceArray::from_host_on(&own, &expected);
        let elements = expected.slice(&from).to_owned();
        expected.slice_mut(&to).assign(&elements);
        let copied = array.and_then(|mut array| {
            let _here = own.enter();
            array.view_mut().copy_within(&from, &to)?;
            array.copy_to_host()
        });
        assert_eq!(copied.unwrap_or_else(|error| panic!("{error}")), expected);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let mut line = DeviceArray::from_host_on(&own, &counting(5))?;
    let refused = line.copy_within(s![..3], s![1..]).expect_err("3 elements are not 4");
    assert!(matches!(refused, Error::Shape { .. }), "{refused}");
    assert_eq!(line.copy_to_host()?, counting(5));
    line.copy_within(s![..4], s![1..])?;
    assert_eq!(line.copy_to_host()?, array![0, 0, 1, 2, 3]);
    Ok(())
}

pub(crate) fn large_copies_arrive_in_pieces(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let contents: Array2<u32> = numbered((1_000, 2_200), 0);
    let mut table = DeviceArray::from_host(&contents)?;
    let columns = contents.slice(s![.., ..;2]);
    assert_eq!(DeviceArray::from_host(&columns)?.copy_to_host()?, columns);
    let mut part = DeviceArray::uninit((500, 2_200))?;
    part.copy_from_host(&contents.slice(s![1..;2, ..;-1]))?;
    table.slice_mut(s![..;2, ..]).copy_from_device(&part)?;
    let mut expected = contents.clone();
    expected.slice_mut(s![..;2, ..]).assign(&contents.slice(s![1..;2, ..;-1]));
    let mut back = Array2::zeros((2_200, 1_000));
    table.copy_to_host_into(&mut back.view_mut().reversed_axes())?;
    assert_eq!(back.t(), expected);
    Ok(())
}

pub(crate) fn kernels_take_device_arrays_and_nothing_moves(lab: &Lab) -> Result<()> {
    let (stream, other) = (lab.stream(), lab.new_stream()?);
    let mut array = DeviceArray::from_host_on(&stream, &counting(1_000))?;
    let before = lab.device().traffic();
    lab.add(&other, 1, &mut array)?;
    lab.add(&stream, 10, &mut array.slice_mut(s![500..]))?;
    assert_eq!(bytes(lab.device().traffic() - before), [0; 3]);
    let expected = Array1::from_iter((0..1_000).map(|x| if x < 500 { x + 1 } else { x + 11 }));
    assert_eq!(array.copy_to_host()?, expected);
    assert_eq!(array.get(999)?, 1_010);
    array.set(999, 5)?;
    array.slice_mut(s![..3]).fill(7)?;
    assert_eq!((array.get(999)?, array.get(2)?, array.get(3)?), (5, 7, 4));
    let _here = other.enter();
    array.set(2, 8)?;
    let mut head = Array1::zeros(3);
    array.slice(s![..3]).copy_to_host_into(&mut head)?;
    assert_eq!(head, array![7, 7, 8]);
    assert_eq!(array.slice(s![..3;-1]).to_contiguous()?.copy_to_host()?, array![8, 7, 7]);
    let table = DeviceArray::from_host_on(&stream, &array![[1, 2, 3], [4, 5, 6]])?;
    let mut columns = DeviceArray::uninit_on(&stream, (3, 2))?;
    lab.copy_sized(&stream, &table.t(), &mut columns)?;
    assert_eq!(columns.copy_to_host()?, array![[1, 4], [2, 5], [3, 6]]);
    Ok(())
}

pub(crate) fn a_copy_that_is_pending_has_the_contents_of_its_time(lab: &Lab) -> Result<()> {
    let stream = lab.new_stream()?;
    let mut array = DeviceArray::<u32, _>::full_on(&stream, 10_000, 1)?;
    let pending = array.copy_to_host_on(&stream)?;
    let forgotten = array.copy_to_host_on(&stream)?;
    drop(array.copy_to_host_on(&stream)?);
    array.fill_on(&lab.stream(), 2)?;
    std::mem::forget(forgotten);
    let later = array.copy_to_host_on(&stream)?;
    drop(array);
    assert!(pending.wait()?.iter().all(|x| *x == 1));
    assert!(later.wait()?.iter().all(|x| *x == 2));
    Ok(())
}

pub(crate) fn a_pending_copy_is_awaited(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.new_stream()?);
    let mut array = DeviceArray::from_host_on(&stream, &counting(64))?;
    lab.gated(&stream, &gate, &mut array)?;
    let mut pending = array.copy_to_host_on(&stream)?;
    drop(array);
    let first = Pin::new(&mut pending).poll(&mut Context::from_waker(Waker::noop()));
    assert!(!lab.has_gates() || first.is_pending());
    gate.open();
    let copy = match first {
        Poll::Ready(copy) => copy,
        Poll::Pending => block_on(pending),
    };
    assert_eq!(copy?, counting(64) + 1);
    Ok(())
}

pub(crate) fn what_is_there_is_not_copied_between_kinds_of_arrays(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let contents = Array2::from_shape_fn((30, 40), |(row, column)| (row * 100 + column) as u32);
    let explicit = DeviceArray::from_host_on(&stream, &contents)?;
    let before = device.traffic();
    let coherent = SmartArray::from_device(explicit.named("grid"));
    assert_eq!(coherent.residency().on(&device), Valid);
    assert_eq!(coherent.residency().host(), Absent);
    let explicit = coherent.into_device(&device)?;
    assert_eq!((bytes(device.traffic() - before), &*explicit.name()), ([0; 3], "grid"));
    assert_eq!(explicit.copy_to_host()?, contents);
    let uploaded = SmartArray::from(contents.clone()).into_device(&device)?;
    let moved = device.traffic() - before;
    assert_eq!(bytes(moved), [4 * 30 * 40, 4 * 30 * 40, 0]);
    assert_eq!(SmartArray::from_device(uploaded).into_array()?, contents);
    Ok(())
}

pub(crate) fn device_arrays_are_refused_on_other_devices(lab: &Lab) -> Result<()> {
    let Some([here, there]) = lab.pair() else { return Ok(()) };
    let mut array = DeviceArray::from_host_on(&here.stream(), &counting(64))?.named("weights");
    let refused = |outcome: Result<()>| {
        let error = outcome.expect_err("it is on another device");
        assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
        let text = error.to_string();
        let named = ["\"weights\"", &here.name(), "`copy_from_device`", "`copy_to_host`"];
        assert!(named.iter().all(|word| text.contains(word)), "{text}");
    };
    let other = there.stream();
    refused(lab.add(&other, 1, &mut array));
    refused(lab.kernels().add.call(over(64), (1, &mut array, 64)));
    refused(array.fill_on(&other, 1));
    refused(array.copy_from_host_on(&other, &counting(64)));
    refused(array.copy_to_host_on(&other).map(drop));
    refused(array.copy_to_pinned_on(&other, &mut SmartArray::zeros(64)));
    assert_eq!(array.copy_to_host()?, counting(64));
    let mut copy = DeviceArray::like(&array)?;
    assert_eq!(copy.device(), here);
    copy = DeviceArray::like_on(&other, &array)?;
    copy.copy_from_device(&array)?;
    assert_eq!((copy.device(), copy.copy_to_host()?), (there, counting(64)));
    Ok(())
}

pub(crate) fn device_arrays_refuse_what_does_not_fit(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let is_shape = |outcome: Result<()>| {
        let error = outcome.expect_err("it does not fit");
        assert!(matches!(error, Error::Shape { .. }), "{error}");
    };
    let mut array = DeviceArray::from_host(&counting(12))?;
    is_shape(array.copy_from_host(&counting(11)));
    is_shape(array.copy_to_host_into(&mut Array1::zeros(13)));
    is_shape(array.copy_from_device(&DeviceArray::from_host(&counting(3))?));
    is_shape(array.split(0).map(drop));
    is_shape(array.get(12).map(drop));
    is_shape(array.set(usize::MAX, 1));
    is_shape(array.reshape((5, 5), Order::C).map(drop));
    let table = array.reshape((3, 4), Order::C)?;
    is_shape(table.ravel(Order::F).map(drop));
    is_shape(table.slice(s![.., ..2]).ravel(Order::C).map(drop));
    assert_eq!(table.t().ravel(Order::F)?.copy_to_host()?, counting(12));
    assert_eq!(table.index_axis(Axis(0), 2).copy_to_host()?, array![8, 9, 10, 11]);
    assert_eq!(array.copy_to_host()?, counting(12));
    let mut repeated = Array2::zeros((5, 12));
    array.broadcast((5, 12))?.copy_to_host_into(&mut repeated)?;
    assert!(repeated.rows().into_iter().all(|row| row == counting(12)));
    is_shape(array.view_mut().into_shape((5, 5), Order::C).map(drop));
    let part = array.view_mut().slice_move(s![4..]);
    part.into_shape((4, 2), Order::F)?.index_axis_move(Axis(1), 1).fill(70)?;
    let changed = array.view().slice(s![8..]).copy_to_host()?;
    assert_eq!(changed, Array1::from_elem(4, 70));
    array.copy_from_host(&counting(12))?;
    let unwritten = DeviceArray::<u32, _>::uninit(4)?;
    assert!(matches!(unwritten.copy_to_host(), Err(Error::Uninitialised { .. })));
    let sections: Vec<_> = array.split(5)?.iter().map(|part| part.len()).collect();
    assert_eq!(sections, [5, 5, 2]);
    let shaped = array.into_shape((4, 3), Order::F)?;
    assert_eq!((shaped.strides(), shaped.is_f_contiguous()), (&[1, 4][..], true));
    assert_eq!(shaped.copy_to_host()?.column(1).to_vec(), [4, 5, 6, 7]);
    Ok(())
}
