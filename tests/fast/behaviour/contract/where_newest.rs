//! Operations that run where the newest contents are.

use support::prelude::*;

#[test]
fn a_filled_part_is_a_constant_and_the_rest_stays() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(Array2::<i32>::ones((4, 5)));
    drop(array.gpu_mut_on(&device.stream())?);
    array.slice_mut(s![1..3, ..;2]).fill(7)?;
    let mut expected = Array2::ones((4, 5));
    expected.slice_mut(s![1..3, ..;2]).fill(7);
    assert_eq!(*array.host()?, expected);
    assert_eq!(moves(array.traffic()), [(1, 80), (1, 14 * 4), (0, 0)], "six were a constant");
    Ok(())
}

#[test]
fn assigning_a_mixture_keeps_each_part_where_it_is() -> Result<()> {
    let device = lab();
    let mut source = SmartArray::from(Array1::from_iter(0..10_i32));
    drop(source.slice_mut(s![..4]).gpu_mut_on(&device.stream())?);
    source.slice_mut(s![8..]).fill(9)?;
    let mut target = SmartArray::<i32, _>::uninit(10);
    target.assign(&source)?;
    assert_eq!(moves(target.traffic()), NOTHING);
    assert_eq!(target.host()?.to_vec(), [0, 1, 2, 3, 4, 5, 6, 7, 9, 9]);
    assert_eq!(moves(target.traffic()), [(0, 0), (1, 16), (0, 0)]);
    Ok(())
}

#[test]
fn parts_of_one_array_can_be_assigned_to_each_other() -> Result<()> {
    let mut array = SmartArray::from(Array2::from_shape_fn((4, 3), |(i, j)| (i * 3 + j) as i32));
    let (mut top, bottom) = array.multi_slice_mut((s![..2, ..], s![2..;-1, ..]));
    top.assign(&bottom)?;
    assert_eq!(
        array.host()?.slice(s![..2, ..]).iter().copied().collect::<Vec<_>>(),
        [9, 10, 11, 6, 7, 8]
    );
    Ok(())
}

#[test]
fn getting_an_element_copies_only_its_bytes() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(Array2::from_shape_fn((4, 5), |(i, j)| (i * 10 + j) as f64));
    assert_eq!((array.get((2, 3))?, moves(array.traffic())), (23.0, NOTHING));
    drop(array.gpu_mut_on(&device.stream())?);
    let before = array.residency();
    assert_eq!((array.get([2, 3])?, array.get((3, 4))?), (23.0, 34.0));
    assert_eq!(moves(array.traffic()), [(1, 160), (2, 16), (0, 0)]);
    assert_eq!(array.residency(), before);
    assert_eq!(SmartArray::<u8, _>::full(3, 9).get(1)?, 9);
    Ok(())
}

#[test]
fn setting_an_element_writes_it_where_it_is_newest() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1_u32; 10]);
    array.set(3, 7)?;
    assert_eq!((array.residency().host(), array.get(3)?), (Valid, 7));
    drop(array.gpu_mut_on(&device.stream())?);
    array.set(4, 8)?;
    assert_eq!(validity(&array.residency(), &device), [Stale, Valid]);
    assert_eq!(moves(array.traffic()), [(1, 40), (0, 0), (0, 0)], "no transfer of the array");
    assert_eq!(array.host()?.to_vec(), [1, 1, 1, 7, 8, 1, 1, 1, 1, 1]);
    let mut fresh = SmartArray::<u32, _>::uninit(2);
    fresh.set(0, 5)?;
    assert_eq!(fresh.get(0)?, 5);
    assert!(matches!(fresh.get(1), Err(Error::Uninitialised { .. })));
    Ok(())
}
