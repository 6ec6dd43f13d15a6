//! A scenario for runs in many orders. It has two parts: a pipeline of pictures, and a plate that
//! is cut in two. This file has the common code, and the expected results in plain ndarray.

use resident::ndarray::{Array2, ArrayView2, Axis, Ix2, concatenate, s};
use resident::{Grid, In, Kernel, Out, Result, SmartArray, Stream};

/// The number of pictures in the pipeline.
pub(crate) const PICTURES: u32 = 4;

/// The number of steps of the plate.
const STEPS: u32 = 3;

pub(crate) type Picture = SmartArray<u32, Ix2>;
pub(crate) type Transform = (u32, In<u32, Ix2>, Out<u32, Ix2>);

/// Each cell becomes a mix of itself and its neighbours above and below. The first and the last row
/// keep their values.
pub(crate) fn relaxed(from: ArrayView2<'_, u32>) -> Array2<u32> {
    let mut to = from.to_owned();
    for row in 1..from.nrows() - 1 {
        for column in 0..from.ncols() {
            let sum = from[[row - 1, column]]
                .wrapping_add(from[[row, column]].wrapping_mul(3))
                .wrapping_add(from[[row + 1, column]]);
            to[[row, column]] = sum.wrapping_add(1);
        }
    }
    to
}

pub(crate) fn picture(number: u32) -> Array2<u32> {
    Array2::from_shape_fn((6, 5), |(row, column)| number * 1000 + (row * 5 + column) as u32)
}

/// The pipeline's result for a picture, computed without this library.
pub(crate) fn processed(number: u32) -> Array2<u32> {
    let scaled = picture(number).mapv(|x| x.wrapping_mul(3).wrapping_add(number));
    let mut mirrored = scaled.slice(s![.., ..;-1]).to_owned();
    mirrored.slice_mut(s![..;2, 1..4]).mapv_inplace(|x| x.wrapping_add(7));
    mirrored
        .slice_mut(s![1..;2, ..])
        .mapv_inplace(|x| x.wrapping_mul(3).wrapping_add(100 + number));
    mirrored
}

pub(crate) fn plate() -> Array2<u32> {
    Array2::from_shape_fn((12, 4), |(row, column)| (row * row + 3 * column) as u32)
}

/// The plate's final values, computed without this library.
pub(crate) fn cooled() -> Array2<u32> {
    (0..STEPS).fold(plate(), |plate, _| relaxed(plate.view()))
}

/// The plate in two halves that overlap by two rows, each half on its own device.
pub(crate) fn heat(relax: &Kernel<Transform>, streams: [&Stream; 2]) -> Result<[Picture; 2]> {
    let whole = plate();
    let half = |rows: std::ops::Range<usize>| Picture::from(whole.slice(s![rows, ..]).to_owned());
    let mut now = [half(0..7).named("upper"), half(5..12).named("lower")];
    let mut next =
        [Picture::uninit((7, 4)).named("upper next"), Picture::uninit((7, 4)).named("lower next")];
    for step in 0..STEPS {
        for side in 0..2 {
            relax.launch_on(
                streams[side],
                Grid::cover(1),
                (1000 * (step + 1) + side as u32, &now[side], &mut next[side]),
            )?;
        }
        std::mem::swap(&mut now, &mut next);
        let [upper, lower] = &mut now;
        upper.slice_mut(s![6, ..]).assign(&lower.slice(s![1, ..]))?;
        lower.slice_mut(s![0, ..]).assign(&upper.slice(s![5, ..]))?;
    }
    Ok(now)
}

pub(crate) fn joined([upper, lower]: &[Picture; 2]) -> Result<Array2<u32>> {
    let (upper, lower) = (upper.slice(s![..6, ..]).host()?, lower.slice(s![1.., ..]).host()?);
    Ok(concatenate(Axis(0), &[upper.view(), lower.view()]).expect("rows of one length"))
}
