//! Assignments: parts of arrays copied on the device.

use super::prelude::*;

fn on_device(lab: &Lab, first: usize) -> Result<SmartArray<u32, Ix2>> {
    let mut array = SmartArray::from(numbered::<u32, _>((24, 20), first));
    make_newest(&mut array, &lab.stream())?;
    Ok(array)
}

pub(crate) fn whole_arrays_are_assigned_on_the_device(lab: &Lab) -> Result<()> {
    let source = on_device(lab, 0)?;
    let mut target = SmartArray::<u32, _>::uninit((24, 20));
    target.assign(&source)?;
    assert_eq!(validity(&target.residency(), &lab.device()), [Absent, Valid]);
    assert_eq!(bytes(target.traffic()), [0; 3]);
    make_newest(&mut target, &lab.stream())?;
    assert_eq!(*target.host()?, numbered::<u32, _>((24, 20), 0));
    assert_eq!(bytes(source.traffic()), [1920, 0, 0]);
    Ok(())
}

pub(crate) fn parts_are_assigned_on_the_device(lab: &Lab) -> Result<()> {
    let (source, mut target) = (on_device(lab, 0)?, on_device(lab, 5000)?);
    let (from, mut to) = (numbered::<u32, _>((24, 20), 0), numbered::<u32, _>((24, 20), 5000));
    target.slice_mut(s![2..6, 3..9]).assign(&source.slice(s![10..14, ..6]))?;
    to.slice_mut(s![2..6, 3..9]).assign(&from.slice(s![10..14, ..6]));
    target.slice_mut(s![..;3, 11]).assign_on(&lab.new_stream()?, &source.slice(s![16.., 2]))?;
    to.slice_mut(s![..;3, 11]).assign(&from.slice(s![16.., 2]));
    make_newest(&mut target, &lab.stream())?;
    assert_eq!(*target.host()?, to);
    assert_eq!(bytes(source.traffic()), [1920, 0, 0]);
    Ok(())
}

pub(crate) fn transposed_and_reversed_parts_are_assigned_on_the_device(lab: &Lab) -> Result<()> {
    let (from, mut to) = (numbered::<u32, _>((20, 24), 0), numbered::<u32, _>((24, 20), 5000));
    let mut source = SmartArray::from(from.clone().reversed_axes());
    let mut target = on_device(lab, 5000)?;
    make_newest(&mut source, &lab.stream())?;
    target.assign(&source)?;
    to.assign(&from.t());
    make_newest(&mut target, &lab.stream())?;
    assert_eq!(*target.host()?, to);
    target.slice_mut(s![..;-1, ..]).assign_on(&lab.stream(), &source)?;
    to.slice_mut(s![..;-1, ..]).assign(&from.t());
    target.slice_mut(s![..4, ..;2]).assign_on(&lab.stream(), &source.slice(s![4..8, 10..20;-1]))?;
    to.slice_mut(s![..4, ..;2]).assign(&from.t().slice(s![4..8, 10..20;-1]));
    make_newest(&mut target, &lab.stream())?;
    assert_eq!(*target.host()?, to);
    Ok(())
}

pub(crate) fn disjoint_parts_of_one_array_are_assigned(lab: &Lab) -> Result<()> {
    let (mut array, mut expected) = (on_device(lab, 0)?, numbered::<u32, _>((24, 20), 0));
    let stream = lab.new_stream()?;
    let (upper, mut lower) = array.split_at_mut(Axis(0), 12);
    lower.assign_on(&stream, &upper)?;
    let copied = expected.slice(s![..12, ..]).to_owned();
    expected.slice_mut(s![12.., ..]).assign(&copied);
    let (even, mut odd) = array.multi_slice_mut((s![..;2, ..], s![1..;2, ..]));
    odd.assign_on(&lab.stream(), &even)?;
    let copied = expected.slice(s![..;2, ..]).to_owned();
    expected.slice_mut(s![1..;2, ..]).assign(&copied);
    make_newest(&mut array, &stream)?;
    assert_eq!(*array.host()?, expected);
    assert_eq!(bytes(array.traffic()), [1920, 1920, 0]);
    Ok(())
}

/// Along one and two repeated axes, in any place of the shape, to strided and turned parts.
pub(crate) fn repeated_elements_are_assigned_on_the_device(lab: &Lab) -> Result<()> {
    let (from, mut to) = (numbered::<u32, _>((24, 20), 0), numbered::<u32, _>((24, 20), 5000));
    let (source, mut target) = (on_device(lab, 0)?, on_device(lab, 5000)?);
    let row = source.row(3);
    target.slice_mut(s![..23, ..;-1]).assign(&row.broadcast((23, 20))?)?;
    to.slice_mut(s![..23, ..;-1]).assign(&from.row(3));
    let column = source.slice(s![.., 4..5]);
    target.slice_mut(s![.., 1..16;3]).assign_on(&lab.stream(), &column.broadcast((24, 5))?)?;
    to.slice_mut(s![.., 1..16;3]).assign(&from.slice(s![.., 4..5]));
    let one = source.slice(s![7..8, 9..10]);
    target.slice_mut(s![5..10, 3..6]).assign(&one.broadcast((5, 3))?)?;
    to.slice_mut(s![5..10, 3..6]).fill(from[[7, 9]]);
    assert_eq!(bytes(target.traffic())[1], 0);
    make_newest(&mut target, &lab.stream())?;
    assert_eq!(*target.host()?, to);
    let mut there = DeviceArray::<u32, _>::uninit_on(&lab.stream(), (6, 20, 2))?;
    let lines = DeviceArray::from_host_on(&lab.stream(), &from)?;
    let line = lines.row(1).insert_axis(Axis(1));
    there.copy_from_device(&line.broadcast((6, 20, 2))?)?;
    let expected = from.row(1).insert_axis(Axis(1));
    assert_eq!(there.copy_to_host()?, expected.broadcast((6, 20, 2)).expect("it fits"));
    assert_eq!(bytes(source.traffic()), [1920, 0, 0]);
    Ok(())
}

pub(crate) fn a_clone_stays_where_its_original_is(lab: &Lab) -> Result<()> {
    let mut original = on_device(lab, 0)?;
    original.slice_mut(s![20.., ..]).host_overwrite()?.fill(1);
    let clone = original.try_clone()?;
    original.fill_on(&lab.stream(), 9)?;
    assert_eq!(bytes(clone.traffic()), [0; 3]);
    let mut expected = numbered::<u32, _>((24, 20), 0);
    expected.slice_mut(s![20.., ..]).fill(1);
    assert_eq!(*clone.host()?, expected);
    Ok(())
}

pub(crate) fn volumes_are_assigned_on_the_device(lab: &Lab) -> Result<()> {
    let (from, mut to) = (numbered::<u16, _>((9, 8, 7), 0), numbered::<u16, _>((6, 7, 9), 3000));
    let (mut source, mut target) = (SmartArray::from(from.clone()), SmartArray::from(to.clone()));
    make_newest(&mut source, &lab.stream())?;
    make_newest(&mut target, &lab.stream())?;
    target
        .slice_mut(s![1..5, ..;3, 2..8])
        .assign_on(&lab.stream(), &source.slice(s![..;-2, 4..7, ..6]).slice(s![1.., .., ..]))?;
    to.slice_mut(s![1..5, ..;3, 2..8]).assign(&from.slice(s![..;-2, 4..7, ..6]).slice(s![
        1..,
        ..,
        ..
    ]));
    make_newest(&mut target, &lab.stream())?;
    assert_eq!(*target.host()?, to);
    Ok(())
}

pub(crate) fn an_assignment_from_the_host_to_a_stream(lab: &Lab) -> Result<()> {
    let source = SmartArray::from(numbered::<u32, _>((24, 20), 0));
    let mut target = SmartArray::<u32, _>::uninit((24, 20));
    target.assign_on(&lab.new_stream()?, &source)?;
    assert_eq!(validity(&target.residency(), &lab.device()), [Absent, Valid]);
    assert_eq!(*target.host()?, numbered::<u32, _>((24, 20), 0));
    let mut on_host = SmartArray::<u32, _>::uninit((24, 20));
    on_host.assign(&source)?;
    assert_eq!(validity(&on_host.residency(), &lab.device()), [Valid, Absent]);
    let constant = SmartArray::<u32, _>::full((24, 20), 4);
    let before = target.traffic();
    target.slice_mut(s![..;2, ..]).assign_on(&lab.stream(), &constant.slice(s![..12, ..]))?;
    assert_eq!(target.traffic(), before);
    assert_eq!(target.host()?.slice(s![..;2, ..]).sum(), 4 * 12 * 20);
    Ok(())
}
