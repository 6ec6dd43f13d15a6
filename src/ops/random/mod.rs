//! Random numbers, which are the same on all devices.

pub(super) mod functions;
mod host;

use ndarray::IxDyn;

use super::align;
use super::arithmetic::Float;
use super::cache;
use super::call::{self, Call};
use super::source;
use crate::array::{AnyViewMut, OperandMut};
use crate::error::Result;
use crate::launch::{Kernel, Out};
use resident_backend::GpuSource;

pub(super) use host::{fill as fill_blocks, uniform_f32, uniform_f64};

type RandomKernel<T> = Kernel<(u64, Out<T, IxDyn>)>;

/// How the numbers are distributed.
#[derive(Clone, Copy)]
pub(super) enum Distribution {
    Uniform,
    Normal,
}

impl Distribution {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Uniform => ("ops::random_uniform", "uniform"),
            Self::Normal => ("ops::random_normal", "normal"),
        }
    }
}

/// Fills the array with numbers that depend on the seed and on places in row-major order alone.
pub(super) fn fill<T: Float>(
    call: &Call<'_>,
    distribution: Distribution,
    seed: u64,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let mut out = OperandMut::of(out);
    align::in_row_order([out.axes_mut()]);
    let kernel = kernel::<T>(distribution, out.axes().shape().len());
    call.launch(kernel, call::cover(out.axes().len()), (seed, &mut out))
}

fn kernel<T: Float>(distribution: Distribution, rank: usize) -> &'static RandomKernel<T> {
    let (title, entry) = distribution.names();
    cache::kernel(title, rank, || {
        let kernel = RandomKernel::<T>::new(title);
        let kernel = match distribution {
            Distribution::Uniform => kernel.own_host(|_, (seed, out)| T::fill_uniform(seed, out)),
            Distribution::Normal => kernel.own_host(|_, (seed, out)| {
                host::fill(out, &|number| [T::from_f64(host::normal(seed, number))]);
            }),
        };
        // SAFETY: each thread writes one element.
        unsafe { kernel.cuda(source::<T>(entry, rank)) }
    })
}

/// Products and sums are rounded one by one, as in Rust.
fn source<T: Float>(entry: &'static str, rank: usize) -> GpuSource {
    let declarations = source::declarations(rank, T::C, T::C);
    source::of_file(&[include_str!("kernel.cu")], entry, &declarations).option("--fmad=false")
}
