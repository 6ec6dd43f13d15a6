//! Operations that run where the newest contents are.

use resident::ndarray::{Array1, Array2, s};
use resident::{Device, Emulation, Error, Fault, Result, SmartArray, Validity};

use support::lab::lab;
use support::moves::{NOTHING, moves};

#[test]
fn filling_moves_nothing_and_each_place_fills_its_own_copy() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1.0_f32; 10]);
    drop(array.gpu_mut_on(&device.stream())?);
    array.fill(3.0)?;
    drop(array.gpu_on(&device.stream())?);
    assert_eq!(array.host()?.sum(), 30.0);
    assert_eq!(moves(array.traffic()), [(1, 40), (0, 0), (0, 0)], "only the upload before");
    Ok(())
}

#[test]
fn constants_are_no_transfer_anywhere() -> Result<()> {
    let device = lab();
    for mut array in
        [SmartArray::<f32, _>::zeros(10), SmartArray::ones(10), SmartArray::full(10, 2.0)]
    {
        drop(array.gpu_on(&device.stream())?);
        drop(array.host()?);
        drop(array.gpu_mut_on(&lab().stream())?);
        assert_eq!(moves(array.traffic()), NOTHING);
    }
    Ok(())
}

#[test]
fn a_filled_part_is_a_constant_and_the_rest_stays() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(Array2::<i32>::ones((4, 5)));
    drop(array.gpu_mut_on(&device.stream())?);
    array.slice_mut(s![1..3, ..;2]).fill(7)?;
    let mut expected = Array2::ones((4, 5));
    expected.slice_mut(s![1..3, ..;2]).fill(7);
    assert_eq!(*array.host()?, expected);
    assert_eq!(
        moves(array.traffic()),
        [(1, 80), (1, 14 * 4), (0, 0)],
        "six of twenty elements were a constant"
    );
    Ok(())
}

#[test]
fn filling_on_a_stream_fills_the_copy_of_its_device() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::<f32, _>::uninit(10);
    array.fill_on(&device.stream(), 4.0)?;
    assert_eq!(array.residency().on(&device), Validity::Valid);
    assert_eq!((moves(array.traffic()), array.host()?.sum()), (NOTHING, 40.0));
    Ok(())
}

#[test]
fn assigning_happens_where_the_contents_are() -> Result<()> {
    let device = lab();
    let mut source = SmartArray::from(vec![2.0_f32; 10]);
    drop(source.gpu_mut_on(&device.stream())?);
    let mut target = SmartArray::<f32, _>::uninit(10);
    let before = source.traffic();
    target.assign(&source)?;
    assert_eq!(
        (target.residency().on(&device), target.residency().host()),
        (Validity::Valid, Validity::Absent)
    );
    assert_eq!(
        (moves(target.traffic()), source.traffic()),
        (NOTHING, before),
        "no transfer between host and device"
    );
    assert_eq!(target.host()?.sum(), 20.0);
    let mut again = SmartArray::<f32, _>::uninit(10);
    again.assign(&SmartArray::from(vec![1.0_f32; 10]))?;
    assert_eq!((again.residency().host(), moves(again.traffic())), (Validity::Valid, NOTHING));
    Ok(())
}

#[test]
fn assigning_from_one_device_to_another_goes_directly() -> Result<()> {
    let (one, other) = (lab(), lab());
    let mut source = SmartArray::from(vec![2.0_f32; 10]);
    drop(source.gpu_mut_on(&one.stream())?);
    let mut target = SmartArray::<f32, _>::zeros(10);
    drop(target.gpu_mut_on(&other.stream())?);
    target.assign(&source)?;
    assert_eq!(target.residency().on(&other), Validity::Valid);
    assert_eq!(moves(target.traffic()), [(0, 0), (0, 0), (1, 40)]);
    assert_eq!(target.host()?.sum(), 20.0);
    Ok(())
}

#[test]
fn assigning_on_a_stream_leaves_the_result_there() -> Result<()> {
    let device = lab();
    let source = SmartArray::from(vec![2.0_f32; 10]);
    let mut target = SmartArray::<f32, _>::uninit(10);
    target.assign_on(&device.stream(), &source)?;
    assert_eq!(target.residency().on(&device), Validity::Valid);
    assert_eq!(target.host()?.sum(), 20.0);
    let mut filled = SmartArray::<f32, _>::uninit(10);
    filled.assign_on(&device.stream(), &SmartArray::ones(10))?;
    assert_eq!(
        (filled.residency().on(&device), moves(filled.traffic())),
        (Validity::Valid, NOTHING)
    );
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
    assert_eq!((array.residency().host(), array.get(3)?), (Validity::Valid, 7));
    drop(array.gpu_mut_on(&device.stream())?);
    array.set(4, 8)?;
    assert_eq!(
        (array.residency().on(&device), array.residency().host()),
        (Validity::Valid, Validity::Stale)
    );
    assert_eq!(moves(array.traffic()), [(1, 40), (0, 0), (0, 0)], "no transfer of the array");
    assert_eq!(array.host()?.to_vec(), [1, 1, 1, 7, 8, 1, 1, 1, 1, 1]);
    let mut fresh = SmartArray::<u32, _>::uninit(2);
    fresh.set(0, 5)?;
    assert_eq!(fresh.get(0)?, 5);
    assert!(matches!(fresh.get(1), Err(Error::Uninitialised { .. })));
    Ok(())
}

#[test]
fn an_index_outside_is_an_error_and_not_a_panic() {
    let mut array = SmartArray::<u32, _>::zeros((2, 3));
    assert!(matches!(array.get((2, 0)), Err(Error::Shape { .. })));
    assert!(matches!(array.set((0, 3), 1), Err(Error::Shape { .. })));
}

#[test]
fn a_device_without_room_leaves_the_array_as_it_was() -> Result<()> {
    let small = Device::emulated(Emulation::new().memory(8));
    let mut array = SmartArray::from(vec![1.0_f32; 10]);
    assert!(matches!(array.fill_on(&small.stream(), 2.0), Err(Error::OutOfMemory { .. })));
    assert!(matches!(
        array.assign_on(&small.stream(), &SmartArray::zeros(10)),
        Err(Error::OutOfMemory { .. })
    ));
    assert_eq!(array.host()?.sum(), 10.0);
    Ok(())
}

#[test]
fn a_fill_whose_queueing_is_refused_is_made_good_by_the_next_use() -> Result<()> {
    // Calls: allocate, fill.
    let device = Device::emulated(Emulation::new().fail(Fault::nth(2)));
    let mut array = SmartArray::from(vec![1.0_f32; 10]);
    let outcome = array.fill_on(&device.stream(), 2.0);
    let expected = if outcome.is_ok() { 20.0 } else { 10.0 };
    assert_eq!(array.host()?.sum(), expected, "after {outcome:?}");
    Ok(())
}
