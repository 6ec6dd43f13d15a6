//! Parts: only their bytes are copied, in any shape.

use super::prelude::*;
use resident::ndarray::{Array3, SliceArg, SliceInfo, SliceInfoElem};

/// Asserts that only the part is downloaded, and uploaded after the host has changed it; other
/// elements are unchanged.
fn assert_only_the_part_moves<D: Dimension, I>(
    lab: &Lab,
    contents: Array<u32, D>,
    part: I,
) -> Result<()>
where
    I: SliceArg<D> + Clone,
{
    let mut expected = contents.clone();
    let mut array = SmartArray::from(contents);
    let (all, some) = (4 * expected.len() as u64, 4 * expected.slice(part.clone()).len() as u64);
    make_newest(&mut array, &lab.stream())?;
    assert_eq!(*array.slice(part.clone()).host()?, expected.slice(part.clone()));
    assert_eq!(bytes(array.traffic()), [all, some, 0], "{:?}", expected.shape());
    let after = expected.slice(part.clone()).mapv(|x| x ^ 0x5555_5555);
    expected.slice_mut(part.clone()).assign(&after);
    array.slice_mut(part.clone()).host_mut()?.assign(&after);
    make_newest(&mut array, &lab.stream())?;
    assert_eq!(bytes(array.traffic()), [all + some, some, 0], "{:?}", expected.shape());
    assert_eq!(*array.host()?, expected);
    assert_eq!(bytes(array.traffic()), [all + some, some + all, 0]);
    Ok(())
}

pub(crate) fn a_part_is_downloaded_without_the_rest(lab: &Lab) -> Result<()> {
    assert_only_the_part_moves(lab, numbered(100, 0), s![10..30])?;
    assert_only_the_part_moves(lab, numbered((20, 30), 0), s![3..9, ..])?;
    assert_only_the_part_moves(lab, numbered((20, 30), 0), s![3..9, 5..8])?;
    assert_only_the_part_moves(lab, numbered((20, 30), 0), s![.., 29])?;
    assert_only_the_part_moves(lab, numbered((20, 30), 0), s![7, 11])
}

pub(crate) fn a_part_is_uploaded_without_the_rest(lab: &Lab) -> Result<()> {
    let contents = numbered::<u32, _>((20, 30), 0);
    let mut array = SmartArray::from(contents.clone());
    make_newest(&mut array.slice_mut(s![4..8, 10..;3]), &lab.stream())?;
    assert_eq!(bytes(array.traffic()), [4 * 4 * 7, 0, 0]);
    assert_eq!(array.residency().on(&lab.device()), Partial { valid_bytes: 4 * 4 * 7 });
    assert_eq!(*array.host()?, contents);
    assert_eq!(bytes(array.traffic()), [4 * 4 * 7, 4 * 4 * 7, 0]);
    Ok(())
}

/// A slice with `1..;2` on the axes whose bits are set, and `..` on the other axes.
fn every_other(ndim: usize, axes: usize) -> SliceInfo<Vec<SliceInfoElem>, IxDyn, IxDyn> {
    let axis = |axis| if axes >> axis & 1 == 1 { s![1..;2][0] } else { SliceInfoElem::from(..) };
    let elements: Vec<SliceInfoElem> = (0..ndim).map(axis).collect();
    SliceInfo::try_from(elements).unwrap_or_else(|fault| panic!("{fault}"))
}

pub(crate) fn every_other_element_of_each_axis_is_copied_without_the_rest(lab: &Lab) -> Result<()> {
    for ndim in 1..=4 {
        for axes in 1..1 << ndim {
            assert_only_the_part_moves(
                lab,
                numbered(IxDyn(&[5, 4, 6, 3][..ndim]), 0),
                every_other(ndim, axes),
            )?;
        }
    }
    Ok(())
}

pub(crate) fn reversed_parts_move_the_same_bytes(lab: &Lab) -> Result<()> {
    assert_only_the_part_moves(lab, numbered(50, 0), s![..;-1])?;
    assert_only_the_part_moves(lab, numbered(50, 0), s![10..40;-3])?;
    assert_only_the_part_moves(lab, numbered((9, 8), 0), s![..;-2, 1..7;-1])?;
    assert_only_the_part_moves(lab, numbered((4, 5, 6), 0), s![..;-1, 2..;-2, ..;-3])
}

/// A driver copies a volume in one call only if the distance between planes is a whole number of
/// lines.
pub(crate) fn planes_whose_distance_is_no_whole_number_of_lines(lab: &Lab) -> Result<()> {
    let volume = numbered((4, 7, 5), 0);
    assert_only_the_part_moves(lab, volume.clone(), s![.., ..;2, 1..3])?;
    assert_only_the_part_moves(lab, volume.clone(), s![..;2, ..6;3, ..])?;
    assert_only_the_part_moves(lab, volume.clone(), s![1.., ..;3, ..;2])?;
    assert_only_the_part_moves(lab, volume.permuted_axes([1, 2, 0]), s![1..6;2, .., ..;2])
}

pub(crate) fn a_box_inside_a_volume_is_copied_without_the_rest(lab: &Lab) -> Result<()> {
    let volume: Array3<u32> = numbered((12, 10, 9), 0);
    assert_only_the_part_moves(lab, volume.clone(), s![1..11, 1..9, 1..8])?;
    assert_only_the_part_moves(lab, volume.clone().reversed_axes(), s![1..8, 1..9, 1..11])?;
    let mut turned = volume;
    turned.invert_axis(Axis(1));
    assert_only_the_part_moves(lab, turned, s![2..5, 3..9, ..])
}

pub(crate) fn parts_of_seven_dimensions(lab: &Lab) -> Result<()> {
    for axes in [0b1, 0b100_0000, 0b111_1111, 0b010_1010, 0b101_0101, 0b011_0000] {
        assert_only_the_part_moves(
            lab,
            numbered(IxDyn(&[2, 3, 2, 3, 2, 3, 2]), 0),
            every_other(7, axes),
        )?;
    }
    Ok(())
}

pub(crate) fn what_is_valid_is_not_moved_again(lab: &Lab) -> Result<()> {
    let mut array = SmartArray::from(numbered::<u32, _>((10, 10), 0));
    for _ in 0..3 {
        drop(array.gpu_on(&lab.stream())?);
        drop(array.slice(s![2..5, ..]).gpu_on(&lab.new_stream()?)?);
        drop(array.host()?);
    }
    assert_eq!((bytes(array.traffic()), copies(array.traffic())), ([400, 0, 0], [1, 0, 0]));
    make_newest(&mut array.slice_mut(s![2..5, ..]), &lab.stream())?;
    for _ in 0..3 {
        drop(array.slice(s![.., 3]).host()?);
        drop(array.slice(s![3, ..]).host()?);
    }
    assert_eq!((bytes(array.traffic()), copies(array.traffic())), ([400, 12 + 36, 0], [1, 2, 0]));
    Ok(())
}

pub(crate) fn many_small_parts_are_one_copy(lab: &Lab) -> Result<()> {
    let mut expected = numbered::<u32, _>((40, 40), 0);
    let mut array = SmartArray::from(expected.clone());
    drop(array.gpu_on(&lab.stream())?);
    for index in 0..40 {
        expected[[index, index]] = 9;
        array.slice_mut(s![index, index]).host_mut()?.fill(9);
    }
    make_newest(&mut array, &lab.stream())?;
    assert_eq!((bytes(array.traffic()), copies(array.traffic())), ([6400 + 160, 0, 0], [2, 0, 0]));
    for index in 0..40 {
        drop(array.slice(s![index, 39 - index]).host()?);
    }
    assert_eq!(*array.host()?, expected);
    assert_eq!(bytes(array.traffic())[1], 6400, "each element is downloaded once");
    Ok(())
}

pub(crate) fn only_changed_rows_are_uploaded(lab: &Lab) -> Result<()> {
    let mut expected = numbered::<u32, _>((64, 32), 0);
    let mut array = SmartArray::from(expected.clone());
    drop(array.gpu_on(&lab.stream())?);
    for turn in 0..20 {
        let row = turn * 7 % 64;
        expected.row_mut(row).fill(turn as u32);
        array.slice_mut(s![row, ..]).host_mut()?.fill(turn as u32);
        drop(array.gpu_on(&lab.stream())?);
    }
    assert_eq!(bytes(array.traffic())[0], 4 * (64 * 32 + 20 * 32));
    make_newest(&mut array, &lab.stream())?;
    assert_eq!(*array.host()?, expected);
    Ok(())
}

pub(crate) fn a_part_of_a_part(lab: &Lab) -> Result<()> {
    let contents = numbered::<u32, _>((20, 20), 0);
    let mut array = SmartArray::from(contents.clone());
    let mut outer = array.slice_mut(s![2..18, ..;3]);
    let mut inner = outer.slice_mut(s![..;-2, 1..5]);
    make_newest(&mut inner.slice_mut(s![1..3, 2]), &lab.stream())?;
    assert_eq!(bytes(inner.traffic()), [8, 0, 0]);
    assert_eq!(*inner.host()?, contents.slice(s![2..18, ..;3]).slice(s![..;-2, 1..5]));
    assert_eq!(bytes(array.traffic()), [8, 8, 0]);
    Ok(())
}

pub(crate) fn halves_newest_at_different_places_are_joined(lab: &Lab) -> Result<()> {
    let mut expected = numbered::<u32, _>((10, 8), 0);
    let mut array = SmartArray::from(expected.clone());
    make_newest(&mut array, &lab.stream())?;
    array.slice_mut(s![5.., ..]).host_overwrite()?.fill(1);
    expected.slice_mut(s![5.., ..]).fill(1);
    assert_eq!((array.residency().host(), array.residency().on(&lab.device())), {
        let half = Partial { valid_bytes: 160 };
        (half, half)
    });
    assert_eq!(*array.host()?, expected);
    make_newest(&mut array, &lab.stream())?;
    assert_eq!(bytes(array.traffic()), [320 + 160, 160, 0]);
    assert_eq!(*array.host()?, expected);
    Ok(())
}

/// Very many parts are uploaded with what lies between them, to which a kernel on another stream
/// still looks. The upload waits for the kernel, as if the elements had been written.
pub(crate) fn what_is_uploaded_between_parts_waits_for_its_readers(lab: &Lab) -> Result<()> {
    const LEN: usize = 1 << 14;
    let (gate, one, other) = (Gate::new(), lab.new_stream()?, lab.new_stream()?);
    let mut contents: Array2<u32> = numbered((1, LEN), 0);
    let mut array = SmartArray::from(contents.clone());
    let mut held = SmartArray::<u32, Ix1>::zeros(1);
    array.prefetch(&other)?;
    let between = contents.slice(s![.., 2..;3]).to_owned();
    let (mut seen, mut all) = (SmartArray::uninit(between.dim()), SmartArray::uninit((1, LEN)));
    lab.gated(&one, &gate, &mut held)?;
    lab.copy_sized(&one, &array.slice(s![.., 2..;3]), &mut seen)?;
    for index in (0..5_000).map(|index| 3 * index + index % 2) {
        array.set((0, index), 7)?;
        contents[[0, index]] = 7;
    }
    let (launched, report) = audit::capture(|| lab.copy_sized(&other, &array, &mut all));
    launched?;
    // Emulated devices fill stale elements with poison, and then nothing is uploaded along.
    let is_poisoned = lab.device().emulation().is_some();
    assert_eq!(report.padding().bytes > 0, !is_poisoned, "{report}");
    gate.open();
    assert_eq!((seen.into_array()?, all.into_array()?), (between, contents));
    Ok(())
}
