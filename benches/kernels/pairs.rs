//! The kernels, and the loops with which they are compared.

use std::rc::Rc;

use resident::ndarray::Ix1;
use resident::{Device, Grid, In, InOut, Kernel, Signature, SmartArray, Stream};

use crate::loops::Loops;

pub(crate) const SOURCE: &str = include_str!("kernels.cu");

/// The elements of arrays that fit the caches, and of those that do not.
const FEW: usize = 1 << 17;
const MANY: usize = 1 << 24;

/// The rows of a picture, and the threads of a tile along each axis.
const ROWS: usize = 2048;
const TILE: usize = 16;

type Array = SmartArray<f32, Ix1>;

type RunKernel = dyn FnMut(&Stream, &mut Array);
type RunLoop = dyn FnMut(&mut [f32]);

/// A kernel and a loop that do the same to arrays of their own.
pub(crate) struct Pair {
    pub(crate) name: &'static str,
    /// The largest ratio of their times that is wanted.
    pub(crate) target: f64,
    run_kernel: Box<RunKernel>,
    run_loop: Box<RunLoop>,
    by_kernel: Array,
    by_loop: Vec<f32>,
}

impl Pair {
    fn new(
        (name, target): (&'static str, f64),
        len: usize,
        run_kernel: impl FnMut(&Stream, &mut Array) + 'static,
        run_loop: impl FnMut(&mut [f32]) + 'static,
    ) -> Self {
        Self {
            name,
            target,
            run_kernel: Box::new(run_kernel),
            run_loop: Box::new(run_loop),
            by_kernel: Array::zeros(len),
            by_loop: vec![0.0; len],
        }
    }

    /// Runs the kernel, and waits for it.
    pub(crate) fn run_kernel(&mut self) {
        self.run_kernel_on(&Device::cpu().stream());
    }

    /// The same on a stream.
    pub(crate) fn run_kernel_on(&mut self, stream: &Stream) {
        (self.run_kernel)(stream, &mut self.by_kernel);
        stream.synchronize().expect("nothing failed");
    }

    pub(crate) fn run_loop(&mut self) {
        (self.run_loop)(&mut self.by_loop);
    }

    /// Panics unless both have the same results, after as many runs of the one as of the other.
    pub(crate) fn assert_same(&self) {
        let by_kernel = self.by_kernel.to_vec().expect("valid");
        assert!(by_kernel == self.by_loop, "{}: the results differ", self.name);
    }
}

pub(crate) fn pairs(loops: &Rc<Loops>) -> Vec<Pair> {
    vec![
        axpy("axpy, 2^17 elements, 20 times", FEW, 20, Rc::clone(loops)),
        axpy("axpy, 2^24 elements", MANY, 1, Rc::clone(loops)),
        stencil("five points, 2048 by 2048", ROWS, 1, Rc::clone(loops)),
        stencil("five points, 256 by 256, 20 times", 256, 20, Rc::clone(loops)),
        block_sum("sums of blocks of 256, 2^20 elements", 1 << 12, Rc::clone(loops)),
        matmul("product of 512 by 512, tiles of 16", 512, Rc::clone(loops)),
    ]
}

/// Of sizes at which they can be checked in a moment, and the largest ratio of checked to unchecked
/// time that is wanted: less for kernels without barriers.
pub(crate) fn small_pairs(loops: &Rc<Loops>) -> Vec<(Pair, f64)> {
    vec![
        (axpy("axpy, 2^17 elements", FEW, 1, Rc::clone(loops)), 40.0),
        (stencil("five points, 256 by 256", 256, 1, Rc::clone(loops)), 40.0),
        (block_sum("sums of blocks of 256, 2^16 elements", 1 << 8, Rc::clone(loops)), 60.0),
        (matmul("product of 128 by 128, tiles of 16", 128, Rc::clone(loops)), 60.0),
    ]
}

fn kernel<S: Signature>(name: &str) -> Kernel<S> {
    // SAFETY: the callers below pass the sizes of their arrays.
    unsafe { Kernel::<S>::new(name).cuda(SOURCE) }
}

fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i * 7919 % 1024) as f32 / 1024.0).collect()
}

fn axpy(name: &'static str, len: usize, turns: usize, loops: Rc<Loops>) -> Pair {
    let kernel = kernel::<(u64, f32, In<f32>, InOut<f32>)>("axpy");
    let (x, of_loop) = (Array::from(numbers(len)), numbers(len));
    let run_kernel = move |stream: &Stream, y: &mut Array| {
        for _ in 0..turns {
            let arguments = (len as u64, 3.0, &x, &mut *y);
            kernel.launch_on(stream, Grid::cover(len), arguments).expect("launched");
        }
    };
    let run_loop = move |z: &mut [f32]| {
        (0..turns).for_each(|_| loops.run("axpy", len, len, [&of_loop, &of_loop], z));
    };
    Pair::new((name, 1.1), len, run_kernel, run_loop)
}

fn stencil(name: &'static str, rows: usize, turns: usize, loops: Rc<Loops>) -> Pair {
    let kernel = kernel::<(i64, i64, In<f32>, InOut<f32>)>("stencil");
    let len = rows * rows;
    let (x, of_loop) = (Array::from(numbers(len)), numbers(len));
    let grid = Grid::cover_2d((rows, rows), (8, 32));
    let run_kernel = move |stream: &Stream, y: &mut Array| {
        for _ in 0..turns {
            let arguments = (rows as i64, rows as i64, &x, &mut *y);
            kernel.launch_on(stream, grid, arguments).expect("launched");
        }
    };
    let run_loop = move |z: &mut [f32]| {
        (0..turns).for_each(|_| loops.run("stencil", rows, rows, [&of_loop, &of_loop], z));
    };
    Pair::new((name, 1.1), len, run_kernel, run_loop)
}

fn block_sum(name: &'static str, blocks: u32, loops: Rc<Loops>) -> Pair {
    let kernel = kernel::<(In<f32>, InOut<f32>)>("block_sum");
    let len = 256 * blocks as usize;
    let (x, of_loop) = (Array::from(numbers(len)), numbers(len));
    let run_kernel = move |stream: &Stream, sums: &mut Array| {
        let grid = Grid::new(blocks, 256);
        kernel.launch_on(stream, grid, (&x, sums)).expect("launched");
    };
    let blocks = blocks as usize;
    let run_loop = move |z: &mut [f32]| loops.run("block_sum", blocks, len, [&of_loop; 2], z);
    Pair::new((name, 12.0), blocks, run_kernel, run_loop)
}

fn matmul(name: &'static str, rows: usize, loops: Rc<Loops>) -> Pair {
    let kernel = kernel::<(i64, In<f32>, In<f32>, InOut<f32>)>("matmul");
    let tiles = rows / TILE;
    let (a, b) = (numbers(rows * rows), numbers(rows * rows + 1)[1..].to_vec());
    let (x, y) = (Array::from(a.clone()), Array::from(b.clone()));
    let grid = Grid::cover_2d((rows, rows), (TILE as u32, TILE as u32));
    let run_kernel = move |stream: &Stream, c: &mut Array| {
        kernel.launch_on(stream, grid, (rows as i64, &x, &y, c)).expect("launched");
    };
    let run_loop = move |z: &mut [f32]| loops.run("matmul", tiles, rows, [&a, &b], z);
    Pair::new((name, 12.0), rows * rows, run_kernel, run_loop)
}
