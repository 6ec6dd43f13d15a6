//! A kernel in Rust and in CUDA C, launched twice with host code in between, and the report of its
//! copies. The README shows both.

#![allow(unreachable_pub, reason = "a test calls it too")]

use resident::ndarray::{Array2, Ix2, s};
use resident::{Device, Grid, In, Kernel, Out, Result, SmartArray, audit};

const CUDA: &str = r#"
extern "C" __global__ void blur(resident::View2<const float> src, resident::View2<float> dst) {
    long long i = blockIdx.y * (long long)blockDim.y + threadIdx.y;
    long long j = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (!dst.contains(i, j)) return;
    long long up = i > 0 ? i - 1 : i, down = i + 1 < dst.shape[0] ? i + 1 : i;
    dst(i, j) = (src(up, j) + src(i, j) + src(down, j)) / 3;
}"#;

pub fn main() -> Result<()> {
    let _here = Device::cpu().enter(); // on a GPU: Device::cuda(0)?.enter()
    let blur = Kernel::<(In<f32, Ix2>, Out<f32, Ix2>)>::new("blur")
        .require("`dst` has the shape of `src`", |_, (src, dst)| src.shape() == dst.shape())
        .require("the grid covers `dst`", |grid, (_, dst)| grid.covers(dst.shape()))
        .host_each(|(i, j), (src, dst)| {
            let (up, down) = (i.saturating_sub(1), (i + 1).min(src.nrows() - 1));
            *dst = (src[[up, j]] + src[[i, j]] + src[[down, j]]) / 3.0;
        });
    // SAFETY: each thread writes its element of `dst`, and reads `src` within the same shape.
    let blur = unsafe { blur.cuda(CUDA) };

    let (sum, report) = audit::capture(|| -> Result<f32> {
        let photo = SmartArray::from(Array2::<f32>::ones((1024, 768))).named("photo");
        let mut soft = SmartArray::uninit((1024, 768)).named("soft");
        let mut softer = SmartArray::uninit((1024, 768)).named("softer");
        let grid = Grid::cover_2d((1024, 768), (8, 32));
        blur.launch(grid, (&photo, &mut soft))?; // line 35: uploads `photo`
        soft.slice_mut(s![500, ..]).host_overwrite()?.fill(0.0); // line 36: clears a row
        blur.launch(grid, (&soft, &mut softer))?; // line 37: uploads that row
        Ok(softer.slice(s![.., 99]).host()?.sum()) // line 38: downloads a column
    });
    println!("{}\n{report}", sum?);
    Ok(())
}
