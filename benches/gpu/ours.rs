//! The kernels, written with this library.

use resident::{CudaSource, Grid, In, InOut, Kernel, Out, Signature};

/// The source of all kernels.
pub const SOURCE: &str = include_str!("kernels.cu");

/// Threads per block.
pub const THREADS: u32 = 256;

/// The number of partial sums, one per block.
pub const PARTS: usize = 256;

type I = In<f32>;
pub type Touch1 = Kernel<(InOut<f32>,)>;
pub type Touch4 = Kernel<(I, I, I, InOut<f32>)>;
pub type Touch8 = Kernel<(I, I, I, I, I, I, I, InOut<f32>)>;
/// The parameters: factor, offset, x, y, length.
pub type Affine = Kernel<(f32, f32, In<f32>, Out<f32>, u64)>;
/// x, parts, length.
pub type PartialSum = Kernel<(In<f32>, Out<f32>, u64)>;

/// A grid with a thread for each element.
pub fn cover(len: usize) -> Grid {
    Grid::new(len.div_ceil(THREADS as usize) as u32, THREADS)
}

/// One block, for the kernels with almost no work.
pub fn one_block() -> Grid {
    Grid::new(1, THREADS)
}

/// One block per partial sum.
pub fn parts() -> Grid {
    Grid::new(PARTS as u32, THREADS)
}

/// Adds the CUDA body to a kernel.
pub fn with_cuda_body<S: Signature>(kernel: Kernel<S>) -> Kernel<S> {
    // SAFETY: each function in the source has the signature of the kernel with the same name. A
    // function accesses elements below the given length, or one element per thread. The kernels'
    // requirements check that the arrays have that many elements.
    unsafe { kernel.cuda(CudaSource::c(SOURCE)) }
}

fn threads(grid: Grid) -> usize {
    (grid.blocks().count() * grid.threads().count()) as usize
}

const ONE_EACH: &str = "there is an element for each thread";

pub fn touch1() -> Touch1 {
    with_cuda_body(Touch1::new("touch1").require(ONE_EACH, |grid, (a,)| a.len() >= threads(grid)))
}

pub fn touch4() -> Touch4 {
    with_cuda_body(Touch4::new("touch4").require(ONE_EACH, |grid, (a, b, c, d)| {
        [a.len(), b.len(), c.len(), d.len()].iter().all(|len| *len >= threads(grid))
    }))
}

pub fn touch8() -> Touch8 {
    with_cuda_body(Touch8::new("touch8").require(ONE_EACH, |grid, (a, b, c, d, e, f, g, h)| {
        [a.len(), b.len(), c.len(), d.len(), e.len(), f.len(), g.len(), h.len()]
            .iter()
            .all(|len| *len >= threads(grid))
    }))
}

pub fn affine() -> Affine {
    with_cuda_body(
        Affine::new("affine")
            .require("both have the length that is passed", |_grid, (_, _, x, y, len)| {
                x.len() as u64 == len && y.len() as u64 == len
            }),
    )
}

pub fn partial_sum() -> PartialSum {
    with_cuda_body(PartialSum::new("partial_sum").require(
        "256 threads per block, and a partial sum for each block",
        |grid, (x, parts, len)| {
            x.len() as u64 == len
                && parts.len() as u64 == grid.blocks().count()
                && grid.threads().count() == u64::from(THREADS)
        },
    ))
}
