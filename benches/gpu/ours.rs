//! The kernels as this library's users write them.

use resident::{CudaSource, Grid, In, InOut, Kernel, Out, Signature};

/// The one text that all are compiled from.
pub const SOURCE: &str = include_str!("kernels.cu");

/// Threads of every block.
pub const THREADS: u32 = 256;

/// Parts that a sum is made of, and blocks that make them.
pub const PARTS: usize = 256;

type I = In<f32>;
pub type Touch1 = Kernel<(InOut<f32>,)>;
pub type Touch4 = Kernel<(I, I, I, InOut<f32>)>;
pub type Touch8 = Kernel<(I, I, I, I, I, I, I, InOut<f32>)>;
/// Factor, offset, x, y, length.
pub type Affine = Kernel<(f32, f32, In<f32>, Out<f32>, u64)>;
/// x, parts, length.
pub type PartialSum = Kernel<(In<f32>, Out<f32>, u64)>;

/// As many threads as there are elements.
pub fn cover(len: usize) -> Grid {
    Grid::new(len.div_ceil(THREADS as usize) as u32, THREADS)
}

/// One block, for the kernels that hardly do anything.
pub fn one_block() -> Grid {
    Grid::new(1, THREADS)
}

/// A block for each part.
pub fn parts() -> Grid {
    Grid::new(PARTS as u32, THREADS)
}

/// Gives a kernel of this folder its device body.
pub fn on_gpus<S: Signature>(kernel: Kernel<S>) -> Kernel<S> {
    // SAFETY: each function of the source has the signature of the kernel that is called like it,
    // and looks at elements below the length that it is given, or at one for each thread: the
    // requirements of the kernels tie both to the lengths of the arrays.
    unsafe { kernel.cuda(CudaSource::c(SOURCE)) }
}

fn threads(grid: Grid) -> usize {
    (grid.blocks().count() * grid.threads().count()) as usize
}

const ONE_EACH: &str = "there is an element for each thread";

pub fn touch1() -> Touch1 {
    on_gpus(Touch1::new("touch1").require(ONE_EACH, |grid, (a,)| a.len() >= threads(grid)))
}

pub fn touch4() -> Touch4 {
    on_gpus(Touch4::new("touch4").require(ONE_EACH, |grid, (a, b, c, d)| {
        [a.len(), b.len(), c.len(), d.len()].iter().all(|len| *len >= threads(grid))
    }))
}

pub fn touch8() -> Touch8 {
    on_gpus(Touch8::new("touch8").require(ONE_EACH, |grid, (a, b, c, d, e, f, g, h)| {
        [a.len(), b.len(), c.len(), d.len(), e.len(), f.len(), g.len(), h.len()]
            .iter()
            .all(|len| *len >= threads(grid))
    }))
}

pub fn affine() -> Affine {
    on_gpus(
        Affine::new("affine")
            .require("both have the length that is passed", |_grid, (_, _, x, y, len)| {
                x.len() as u64 == len && y.len() as u64 == len
            }),
    )
}

pub fn partial_sum() -> PartialSum {
    on_gpus(PartialSum::new("partial_sum").require(
        "256 threads a block, and a part for each block",
        |grid, (x, parts, len)| {
            x.len() as u64 == len
                && parts.len() as u64 == grid.blocks().count()
                && grid.threads().count() == u64::from(THREADS)
        },
    ))
}
