//! A first program: two arrays, two kernels, and no copy that anybody had to ask for.
//!
//! `photo` goes up when `blur` reads it, `soft` comes down when the host looks at it, and neither
//! moves twice.

use resident::{
    Grid, In, InOut, Kernel, Out, Result, SmartArray,
    ndarray::{Array2, ArrayView2, Ix2, s},
};

/// What GPUs run: both kernels in CUDA C, with an array that has a dimension as a view by value,
/// and one without as a bare pointer.
const CUDA: &str = include_str!("first_array.cu");

fn main() -> Result<()> {
    let blur = Kernel::<(In<f32, Ix2>, Out<f32, Ix2>)>::new("blur") // the signature says what is read, what is written
        .require("both pictures have one shape", |_grid, (src, dst)| src.shape() == dst.shape())
        .host(|_grid, (src, mut dst)| dst.indexed_iter_mut().for_each(|(place, pixel)| *pixel = mean_around(src, place)));
    let scale = Kernel::<(f32, InOut<f32>)>::new("scale") // flat: &mut [f32] in memory order
        .require("one thread for each element", |grid, (_, xs)| {
            grid.blocks().count() * grid.threads().count() == xs.len() as u64
        })
        .host(|_grid, (k, xs)| xs.iter_mut().for_each(|x| *x *= k));
    // SAFETY: `blur` looks at elements inside of both views alone, which have one shape.
    let blur = unsafe { blur.cuda(CUDA) };
    // SAFETY: `scale` looks at as many elements as there are threads, and is required to have no
    // more.
    let scale = unsafe { scale.cuda(CUDA) };

    let photo = SmartArray::from(Array2::<f32>::ones((1024, 768))); // adopts the allocation, copies nothing
    let mut soft = SmartArray::<f32, _>::uninit((1024, 768)); // no memory anywhere yet
    blur.launch(Grid::cover(photo.len()), (&photo, &mut soft))?; // uploads `photo`; `soft` is not uploaded
    scale.launch(Grid::cover(soft.len()), (0.5, &mut soft))?; // moves nothing
    println!("{}", soft.host()?.sum()); // downloads `soft`, once
    println!("{}", soft.host()?[[0, 0]]); // moves nothing
    Ok(())
}

/// The mean of a pixel and those of its eight neighbours that lie inside.
fn mean_around(src: ArrayView2<'_, f32>, (row, column): (usize, usize)) -> f32 {
    let (rows, columns) = src.dim();
    let around = s![
        row.saturating_sub(1)..(row + 2).min(rows),
        column.saturating_sub(1)..(column + 2).min(columns)
    ];
    src.slice(around).mean().unwrap_or_default()
}
