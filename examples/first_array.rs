//! A first program: two arrays, two kernels, and no explicit copy.
//!
//! `blur` uploads `photo` because it reads it. The host downloads `soft` when it reads it. Neither
//! array is copied twice.

use resident::{
    Grid, In, InOut, Kernel, Out, Result, SmartArray,
    ndarray::{Array2, ArrayView2, Ix2, s},
};

/// Both kernels in CUDA C, for GPUs. An argument with a dimension is a view, passed by value. An
/// argument without a dimension is a pointer.
const CUDA: &str = include_str!("first_array.cu");

fn main() -> Result<()> {
    // The type lists the parameters and says which arrays the kernel reads and which it writes.
    let blur = Kernel::<(In<f32, Ix2>, Out<f32, Ix2>)>::new("blur")
        .require("both pictures have one shape", |_grid, (src, dst)| src.shape() == dst.shape())
        // Called for each element of `dst`, on all cores.
        .host_each(|index, (src, pixel)| *pixel = mean_around(src, index));
    // Without a dimension the argument is flat (a slice): `&mut [f32]` in memory order.
    let scale = Kernel::<(f32, InOut<f32>)>::new("scale")
        .require("one thread for each element", |grid, (_, xs)| {
            grid.blocks().count() * grid.threads().count() == xs.len() as u64
        })
        .host(|_grid, (k, xs)| xs.iter_mut().for_each(|x| *x *= k));
    // SAFETY: `blur` accesses only elements inside both views, which have the same shape.
    let blur = unsafe { blur.cuda(CUDA) }; // compiled at the first launch on a GPU, then cached
    // SAFETY: `scale` accesses one element per thread; the requirement makes the counts equal.
    let scale = unsafe { scale.cuda(CUDA) };

    let photo = SmartArray::from(Array2::<f32>::ones((1024, 768))); // takes over the allocation
    let mut soft = SmartArray::<f32, _>::uninit((1024, 768)); // allocates nothing yet
    blur.launch(Grid::cover(photo.len()), (&photo, &mut soft))?; // uploads `photo`, not `soft`
    scale.launch(Grid::cover(soft.len()), (0.5, &mut soft))?; // copies nothing
    println!("{}", soft.host()?.sum()); // downloads `soft`
    println!("{}", soft.host()?[[0, 0]]); // copies nothing
    Ok(())
}

/// The mean of a pixel and its neighbours, of which there are up to eight inside the picture.
fn mean_around(src: ArrayView2<'_, f32>, (row, column): (usize, usize)) -> f32 {
    let (rows, columns) = src.dim();
    let around = s![
        row.saturating_sub(1)..(row + 2).min(rows),
        column.saturating_sub(1)..(column + 2).min(columns)
    ];
    src.slice(around).mean().unwrap_or_default()
}
