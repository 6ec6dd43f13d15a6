//! Fills, of elements of all sizes, and constants.

use super::prelude::*;
use resident::ndarray::{Array, Dimension, Ix2, ShapeBuilder, SliceArg, s};
use resident::{Result, SmartArray, Validity, bytemuck};

/// Fills a part on the device, and checks the whole device copy.
fn fills<T: Sample, D: Dimension, I: SliceArg<D> + Clone>(
    lab: &Lab,
    contents: Array<T, D>,
    part: I,
    with: T,
) -> Result<()> {
    let mut expected = contents.clone();
    expected.slice_mut(part.clone()).fill(with);
    let mut array = SmartArray::from(contents);
    make_newest(&mut array, &lab.stream())?;
    array.slice_mut(part).fill_on(&lab.stream(), with)?;
    make_newest(&mut array, &lab.stream())?;
    assert_eq!(
        array.host()?.view(),
        expected.view(),
        "elements of {} bytes, {:?}",
        size_of::<T>(),
        expected.shape()
    );
    Ok(())
}

/// Fills a whole array of this length.
fn fills_whole<T: Sample>(lab: &Lab, len: usize, with: T) -> Result<()> {
    let mut array = SmartArray::<T, _>::full(len, with);
    make_newest(&mut array, &lab.stream())?;
    assert_eq!(bytes(array.traffic()), [0; 3], "a fill is no transfer");
    let host = array.host()?;
    assert!(
        host.iter().all(|element| *element == with),
        "{len} elements of {} bytes",
        size_of::<T>()
    );
    Ok(())
}

/// Calls `test` with elements whose bytes repeat with different periods, and with an element whose
/// bytes do not repeat.
fn each_pattern<T: Sample>(mut test: impl FnMut(T) -> Result<()>) -> Result<()> {
    let of_bytes = |byte: &dyn Fn(usize) -> u8| -> T {
        let bytes: Vec<u8> = (0..size_of::<T>()).map(byte).collect();
        bytemuck::pod_read_unaligned(&bytes)
    };
    test(of_bytes(&|_| 0))?;
    test(of_bytes(&|_| 0x5A))?;
    test(of_bytes(&|index| (index % 2) as u8))?;
    test(of_bytes(&|index| (index % 4) as u8))?;
    test(value(3))
}

pub(crate) fn fills_of_all_sizes_of_elements(lab: &Lab) -> Result<()> {
    fn of<T: Sample>(lab: &Lab) -> Result<()> {
        each_pattern::<T>(|with| {
            fills_whole(lab, 1, with)?;
            fills_whole(lab, 1003, with)
        })
    }
    of::<u8>(lab)?;
    of::<u16>(lab)?;
    of::<[u8; 3]>(lab)?;
    of::<u32>(lab)?;
    of::<[u8; 5]>(lab)?;
    of::<u64>(lab)?;
    of::<[u32; 3]>(lab)?;
    of::<[u64; 2]>(lab)?;
    of::<[u16; 15]>(lab)
}

pub(crate) fn fills_of_parts_touch_nothing_else(lab: &Lab) -> Result<()> {
    fn of<T: Sample>(lab: &Lab) -> Result<()> {
        each_pattern::<T>(|with| {
            fills(lab, numbered((9, 11), 50), s![2..7, ..], with)?;
            fills(lab, numbered((9, 11), 50), s![2..7, 3..8], with)?;
            fills(lab, numbered((9, 11), 50), s![..;2, 1..;3], with)?;
            fills(lab, numbered((9, 11).f(), 50), s![4, ..], with)?;
            fills(lab, numbered((9, 11), 50), s![..;-4, 10], with)
        })
    }
    of::<u8>(lab)?;
    of::<u16>(lab)?;
    of::<[u8; 3]>(lab)?;
    of::<u32>(lab)?;
    of::<u64>(lab)?;
    of::<[u32; 3]>(lab)?;
    of::<[u64; 2]>(lab)
}

pub(crate) fn fills_of_volumes_and_of_more_axes(lab: &Lab) -> Result<()> {
    fn of<T: Sample>(lab: &Lab) -> Result<()> {
        each_pattern::<T>(|with| {
            fills(lab, numbered((5, 6, 7), 50), s![1..4, 2..5, 1..;2], with)?;
            fills(lab, numbered((5, 6, 7), 50), s![..;2, ..;3, ..], with)?;
            fills(lab, numbered((3, 4, 5, 4), 50), s![..;2, 1..3, ..;2, 1..], with)?;
            fills(lab, numbered((2, 3, 2, 3, 4), 50), s![.., ..;2, 1, 1.., ..;3], with)
        })
    }
    of::<u8>(lab)?;
    of::<u16>(lab)?;
    of::<u32>(lab)?;
    of::<u64>(lab)?;
    of::<[u8; 3]>(lab)
}

/// The host writes the pattern up to 4 KiB, and copies on the device then double the filled part.
pub(crate) fn fills_around_the_sizes_at_which_the_way_changes(lab: &Lab) -> Result<()> {
    for len_bytes in [4 << 10, 8 << 10, 64 << 10, 1 << 20] {
        for len in [len_bytes / 8 - 1, len_bytes / 8, len_bytes / 8 + 1] {
            fills_whole(lab, len, 0x0102_0304_0506_0708_u64)?;
        }
        fills_whole(lab, len_bytes / 12 + 1, [1_u32, 2, 3])?;
    }
    fills_whole(lab, (5 << 20) / 4 + 3, 0x0102_0304_u32)
}

/// Elements whose size exceeds their alignment may lie at any offset.
pub(crate) fn a_fill_at_an_odd_offset(lab: &Lab) -> Result<()> {
    fills(lab, numbered::<[u8; 4], _>((7, 5), 1), s![1..6, 1..4], [1, 2, 3, 4])?;
    let mut bytes = numbered::<u8, _>(100, 1);
    let mut array = SmartArray::from(bytes.clone());
    make_newest(&mut array, &lab.stream())?;
    for (start, end) in [(1, 2), (3, 10), (11, 74), (75, 99)] {
        bytes.slice_mut(s![start..end]).fill(start as u8);
        array.slice_mut(s![start..end]).fill_on(&lab.stream(), start as u8)?;
    }
    make_newest(&mut array, &lab.stream())?;
    assert_eq!(*array.host()?, bytes);
    Ok(())
}

pub(crate) fn a_constant_moves_nothing(lab: &Lab) -> Result<()> {
    let mut array = SmartArray::from(numbered::<f64, _>((30, 30), 0).mapv(|_| 0.25));
    drop(array.gpu_on(&lab.stream())?);
    array.fill(1.5)?;
    assert_eq!(array.get([3, 4])?, 1.5);
    drop(array.gpu_on(&lab.new_stream()?)?);
    assert_eq!(array.host()?.sum(), 1350.0);
    array.fill_on(&lab.stream(), 2.0)?;
    assert_eq!(array.residency().on(&lab.device()), Valid);
    assert_eq!(array.host()?.sum(), 1800.0);
    assert_eq!(bytes(array.traffic()), [7200, 0, 0]);
    Ok(())
}

pub(crate) fn a_fill_behind_a_write_and_a_write_behind_a_fill(lab: &Lab) -> Result<()> {
    let [one, other] = lab.two_streams()?;
    let mut array = SmartArray::<u64, Ix2>::zeros((50, 50));
    for turn in 0..20_u64 {
        array.slice_mut(s![..25, ..]).fill_on(&one, turn)?;
        array.slice_mut(s![20.., 10..]).fill_on(&other, 100 + turn)?;
        make_newest(&mut array, &one)?;
        array.slice_mut(s![49, ..]).host_mut()?.fill(1000 + turn);
    }
    let host = array.host()?;
    assert_eq!(
        [[0, 0], [19, 49], [20, 9], [20, 10], [48, 49], [49, 49]].map(|at| host[at]),
        [19, 19, 19, 119, 119, 1019]
    );
    Ok(())
}

pub(crate) fn single_elements_are_set_on_the_device(lab: &Lab) -> Result<()> {
    fn of<T: Sample>(lab: &Lab) -> Result<()> {
        let mut expected = numbered::<T, _>(64, 0);
        let mut array = SmartArray::from(expected.clone());
        make_newest(&mut array, &lab.stream())?;
        for index in [0, 1, 31, 63] {
            expected[index] = value(500 + index);
            array.set(index, expected[index])?;
        }
        make_newest(&mut array, &lab.stream())?;
        assert_eq!(array.host()?.view(), expected.view());
        Ok(())
    }
    of::<u8>(lab)?;
    of::<u16>(lab)?;
    of::<[u8; 3]>(lab)?;
    of::<u64>(lab)?;
    of::<[u32; 3]>(lab)?;
    of::<[u64; 2]>(lab)
}
