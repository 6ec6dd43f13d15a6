//! Elements of 0, 1 and 48 bytes, in every main operation.

use std::fmt::Debug;

use resident::Element;
use support::prelude::*;

type Six = [f64; 6];

/// Uploads, downloads, launches with flat parameters (slices) and sized parameters (views), parts,
/// fills, single elements, snapshots, clones, and conversion back to ndarray.
fn goes_through_everything<T: Element + Debug + PartialEq>(old: T, new: T) -> Result<()> {
    let (device, other) = (lab(), lab());
    let copy = Kernel::<(In<T, Ix2>, Out<T, Ix2>)>::new("copy")
        .host(|_grid, (from, mut to)| to.assign(&from));
    let fill = Kernel::<(T, InOut<T>)>::new("fill").host(|_grid, (value, xs)| xs.fill(value));
    let mut array = SmartArray::from(Array2::from_elem((4, 6), old));
    let mut target = SmartArray::<T, _>::uninit((4, 6));
    fill.launch_on(&device.stream(), Grid::cover(24), (new, &mut array.slice_mut(s![1..3, ..])))?;
    copy.launch_on(&other.stream(), Grid::cover(24), (&array.slice(s![..;-1, ..]), &mut target))?;
    let expected =
        Array2::from_shape_fn((4, 6), |(row, _)| if (1..3).contains(&row) { new } else { old });
    assert_eq!((&*array.host()?, &*target.host()?), (&*expected, &*expected));
    array.slice_mut(s![.., 2]).fill(new)?;
    drop(array.gpu_mut_on(&device.stream())?);
    assert_eq!((array.get((0, 2))?, array.get((0, 3))?), (new, old));
    array.set((0, 3), new)?;
    assert_eq!(array.snapshot_on(&device.stream())?.wait()?[[0, 3]], new);
    let clone = array.try_clone()?;
    target.assign(&clone)?;
    target.assign_on(&device.stream(), &clone.view())?;
    target.fill_on(&other.stream(), old)?;
    array.host_mut()?.fill(old);
    array.host_overwrite()?.fill(old);
    drop(array.gpu_overwrite_on(&device.stream())?);
    array.fill(old)?;
    drop(array.gpu_mut_on(&device.stream())?);
    array.gpu_changed_on(&device.stream())?;
    fill.call(Grid::cover(24), (old, &mut array))?;
    array.prefetch(&other.stream())?;
    assert_eq!(
        (array.into_array()?, target.into_array()?),
        (Array2::from_elem((4, 6), old), Array2::from_elem((4, 6), old))
    );
    assert_eq!(clone.host()?[[0, 3]], new);
    assert_ordered(&device);
    Ok(())
}

#[test]
fn elements_of_no_byte_go_through_everything() -> Result<()> {
    goes_through_everything::<[u8; 0]>([], [])?;
    goes_through_everything((), ())
}

#[test]
fn elements_of_no_byte_move_nothing_and_are_there_once_made() -> Result<()> {
    let array = SmartArray::<[f64; 0], _>::uninit(5);
    assert_eq!((array.host()?.len(), array.gpu_on(&lab().stream())?.len()), (5, 5));
    assert_eq!(array.traffic(), Traffic::default());
    assert_eq!(array.into_array()?.len(), 5);
    Ok(())
}

#[test]
fn elements_of_one_byte_go_through_everything() -> Result<()> {
    goes_through_everything(3_u8, 250)
}

#[test]
fn elements_of_48_bytes_go_through_everything() -> Result<()> {
    let (old, new): (Six, Six) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [-1.0; 6]);
    assert_eq!(size_of::<Six>(), 48);
    goes_through_everything(old, new)
}

#[test]
fn elements_of_three_bytes_go_through_everything() -> Result<()> {
    goes_through_everything([1_u8, 2, 3], [255, 0, 7])
}
