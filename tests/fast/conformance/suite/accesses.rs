//! Whole arrays: every number of dimensions, every layout, every size of element.

use super::prelude::*;
use resident::ndarray::{Array, ArrayD, Axis, Dimension, IxDyn, ShapeBuilder, arr0};
use resident::{Error, Result, SmartArray, Validity};

/// Asserts that an upload and a download preserve the contents.
fn assert_round_trip<T: Sample, D: Dimension>(lab: &Lab, contents: Array<T, D>) -> Result<()> {
    let len_bytes = (contents.len() * size_of::<T>()) as u64;
    let mut array = SmartArray::from(contents.clone());
    make_newest(&mut array, &lab.stream())?;
    assert_eq!(array.residency().host(), Stale, "{:?}", contents.shape());
    assert_eq!(array.host()?.view(), contents.view(), "{:?}", contents.shape());
    assert_eq!(validity(&array.residency(), &lab.device()), [Valid; 2]);
    assert_eq!(bytes(array.traffic()), [len_bytes, len_bytes, 0]);
    assert_eq!(copies(array.traffic()), [1, 1, 0]);
    Ok(())
}

const SHAPES: [&[usize]; 8] = [
    &[7],
    &[3, 5],
    &[3, 4, 5],
    &[2, 3, 4, 3],
    &[2, 3, 1, 2, 3],
    &[2, 1, 3, 2, 2, 2],
    &[2, 2, 1, 3, 2, 2, 2],
    &[1, 1, 1],
];

pub(crate) fn arrays_of_one_to_seven_dimensions_are_uploaded_and_downloaded(
    lab: &Lab,
) -> Result<()> {
    for shape in SHAPES {
        assert_round_trip(lab, numbered::<u32, _>(IxDyn(shape), 1))?;
    }
    assert_round_trip(lab, numbered::<f64, _>((2, 2, 1, 3, 2, 2), 1).mapv(|_| 1.5))
}

pub(crate) fn arrays_in_any_axis_order_are_uploaded_and_downloaded(lab: &Lab) -> Result<()> {
    for shape in SHAPES {
        assert_round_trip(lab, numbered::<u16, _>(IxDyn(shape).f(), 1))?;
        let mut turned: ArrayD<u16> = numbered(IxDyn(shape), 2);
        (0..shape.len()).step_by(2).for_each(|axis| turned.invert_axis(Axis(axis)));
        assert_round_trip(lab, turned.clone())?;
        turned.swap_axes(0, shape.len() - 1);
        assert_round_trip(lab, turned)?;
    }
    Ok(())
}

pub(crate) fn elements_of_all_sizes_are_uploaded_and_downloaded(lab: &Lab) -> Result<()> {
    fn both<T: Sample>(lab: &Lab) -> Result<()> {
        assert_round_trip(lab, numbered::<T, _>(1001, 5))?;
        assert_round_trip(lab, numbered::<T, _>((9, 7, 5).f(), 5))
    }
    both::<u8>(lab)?;
    both::<u16>(lab)?;
    both::<[u8; 3]>(lab)?;
    both::<i32>(lab)?;
    both::<u64>(lab)?;
    both::<[u32; 3]>(lab)?;
    both::<[u64; 2]>(lab)?;
    both::<[u8; 29]>(lab)
}

pub(crate) fn an_array_without_dimensions_is_one_element(lab: &Lab) -> Result<()> {
    assert_round_trip(lab, arr0(7_u64))?;
    let mut array = SmartArray::from(arr0(7_u64));
    make_newest(&mut array, &lab.stream())?;
    assert_eq!(array.get(())?, 7);
    array.set((), 8)?;
    assert_eq!(array.host()?[()], 8);
    Ok(())
}

pub(crate) fn what_has_no_element_never_reaches_a_device(lab: &Lab) -> Result<()> {
    let before = lab.device().memory().in_use;
    let mut array = SmartArray::<f32, _>::zeros((3, 0, 2));
    make_newest(&mut array, &lab.stream())?;
    array.fill_on(&lab.stream(), 1.0)?;
    assert_eq!(array.gpu_on(&lab.stream())?.len(), 0);
    assert_eq!(array.snapshot_on(&lab.stream())?.wait()?.shape(), [3, 0, 2]);
    let mut full = SmartArray::from(numbered::<u32, _>((4, 4), 0));
    drop(full.slice_mut(resident::ndarray::s![2..2, ..]).gpu_mut_on(&lab.stream())?);
    assert_eq!((bytes(array.traffic()), bytes(full.traffic())), ([0; 3], [0; 3]));
    assert_eq!(lab.device().memory().in_use, before);
    assert_eq!(array.into_array()?.len(), 0);
    Ok(())
}

pub(crate) fn a_guard_says_what_it_guards(lab: &Lab) -> Result<()> {
    let stream = lab.new_stream()?;
    let mut array = SmartArray::from(numbered::<u64, _>((6, 5), 0));
    let guard = array.gpu_mut_on(&stream)?;
    assert_eq!((guard.len(), guard.shape(), guard.strides()), (30, &[6, 5][..], &[5, 1][..]));
    assert_eq!((guard.stream(), guard.device()), (stream.clone(), lab.device()));
    let whole = guard.address();
    assert!(!guard.is_empty() && format!("{guard:?}").contains("DeviceMut"));
    drop(guard);
    let part = array.slice(resident::ndarray::s![2..;2, 1..3]);
    let part = part.gpu_on(&stream)?;
    assert_eq!(
        (part.shape(), part.strides(), part.address()),
        (&[2, 2][..], &[10, 1][..], whole + 8 * 11)
    );
    assert!(format!("{part:?}").contains("DeviceRef"));
    assert_eq!(whole % align_of::<u64>() as u64, 0, "elements are aligned");
    Ok(())
}

pub(crate) fn an_address_stays_for_the_life_of_the_array(lab: &Lab) -> Result<()> {
    let mut array = SmartArray::from(numbered::<u32, _>(100, 0));
    let address = array.gpu_on(&lab.stream())?.address();
    array.fill(7)?;
    array.host_mut()?[3] = 5;
    let other = SmartArray::from(numbered::<u32, _>(100, 0));
    assert_ne!(other.gpu_on(&lab.stream())?.address(), address);
    assert_eq!(array.gpu_overwrite_on(&lab.new_stream()?)?.address(), address);
    assert_eq!(array.gpu_on(&lab.stream())?.address(), address);
    Ok(())
}

pub(crate) fn single_elements_are_read_and_written_where_they_are_newest(lab: &Lab) -> Result<()> {
    fn each<T: Sample>(lab: &Lab) -> Result<()> {
        let mut contents = numbered::<T, _>((5, 4, 3), 0);
        let mut array = SmartArray::from(contents.clone());
        make_newest(&mut array, &lab.stream())?;
        for (number, index) in [[0, 0, 0], [4, 3, 2], [2, 1, 1]].into_iter().enumerate() {
            assert_eq!(array.get(index)?, contents[index]);
            contents[index] = value(1000 + number);
            array.set(index, contents[index])?;
            assert_eq!(array.get(index)?, contents[index]);
        }
        assert_eq!(array.residency().host(), Stale);
        assert_eq!(array.host()?.view(), contents.view());
        Ok(())
    }
    each::<u8>(lab)?;
    each::<u32>(lab)?;
    each::<u64>(lab)?;
    each::<[u32; 3]>(lab)?;
    each::<[u8; 3]>(lab)
}

pub(crate) fn what_was_never_written_cannot_be_read(lab: &Lab) -> Result<()> {
    let array = SmartArray::<f32, _>::uninit((4, 4));
    assert!(matches!(array.gpu_on(&lab.stream()).map(drop), Err(Error::Uninitialised { .. })));
    assert!(matches!(array.prefetch(&lab.stream()), Err(Error::Uninitialised { .. })));
    assert_eq!(array.residency().on(&lab.device()), Absent);
    Ok(())
}

pub(crate) fn an_overwrite_moves_nothing(lab: &Lab) -> Result<()> {
    let mut array = SmartArray::from(numbered::<u32, _>(1000, 0));
    drop(array.gpu_overwrite_on(&lab.stream())?);
    assert_eq!(validity(&array.residency(), &lab.device()), [Stale, Valid]);
    assert_eq!(bytes(array.traffic()), [0; 3]);
    array.host_overwrite()?.fill(3);
    assert_eq!(validity(&array.residency(), &lab.device()), [Valid, Stale]);
    assert_eq!((array.host()?.sum(), bytes(array.traffic())), (3000, [0; 3]));
    Ok(())
}
