//! Kernels on the views at the ends of chains, for arrays of any number of axes.

use resident::ndarray::{ArrayD, IxDyn, ShapeBuilder, Zip};
use resident::{Argument, CudaSource, Grid, In, InOut, Kernel, Out, Result, SmartArray, Stream};

use super::chain::AXES_MAX;

/// What is added by each launch.
pub const STEP: u32 = 500_000;

type Plus = Kernel<(u32, In<u32, IxDyn>, Out<u32, IxDyn>)>;
type Add = Kernel<(u32, InOut<u32, IxDyn>)>;

/// For each number of axes `y = x + k` and `x += k`. Host bodies are the same for all, but device
/// code has a view type for each.
pub struct Kernels(Vec<(Plus, Add)>);

impl Kernels {
    /// With device code that has `plus_of_rank_0`, `add_of_rank_0` and so on, if there is some.
    pub fn new(code: Option<&CudaSource>) -> Self {
        Self((0..=AXES_MAX).map(|ndim| (plus(ndim, code), add(ndim, code))).collect())
    }

    /// The view has the expected elements in a kernel too.
    pub fn read<V>(&self, stream: &Stream, view: &V, expected: &ArrayD<u32>) -> Result<()>
    where
        for<'v> &'v V: Argument<In<u32, IxDyn>>,
    {
        let mut sums = SmartArray::<u32, _>::uninit(expected.raw_dim().f());
        let grid = Grid::cover(expected.len());
        self.0[expected.ndim()].0.launch_on(stream, grid, (STEP, view, &mut sums))?;
        assert_eq!(*sums.host()?, expected.mapv(|element| element + STEP));
        Ok(())
    }

    /// Adds [`STEP`] to each element of the view.
    pub fn change<V>(&self, stream: &Stream, view: &mut V, shape: &[usize]) -> Result<()>
    where
        for<'v> &'v mut V: Argument<InOut<u32, IxDyn>>,
    {
        let grid = Grid::cover(shape.iter().product());
        self.0[shape.len()].1.launch_on(stream, grid, (STEP, view))
    }
}

fn plus(ndim: usize, code: Option<&CudaSource>) -> Plus {
    let kernel = Plus::new(format!("plus_of_rank_{ndim}"))
        .require("both have one shape", |_, (_, x, y)| x.shape() == y.shape())
        .host(|_, (k, x, mut y)| Zip::from(&mut y).and(&x).for_each(|y, x| *y = x + k));
    match code {
        // SAFETY: the code accesses only elements that both views have: the requirement.
        Some(code) => unsafe { kernel.cuda(code.clone()) },
        None => kernel,
    }
}

fn add(ndim: usize, code: Option<&CudaSource>) -> Add {
    let kernel = Add::new(format!("add_of_rank_{ndim}")).host(|_, (k, mut x)| x += k);
    match code {
        // SAFETY: the code accesses only elements that the view has.
        Some(code) => unsafe { kernel.cuda(code.clone()) },
        None => kernel,
    }
}
