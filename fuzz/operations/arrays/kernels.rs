//! The kernels that a program launches.

use resident::ndarray::{IxDyn, Zip};
use resident::{In, InOut, Kernel, Out};

use super::value::{Value, combined, counting};

type Combine<T> = (In<T, IxDyn>, In<T, IxDyn>, InOut<T, IxDyn>);

/// The panic message of `broken`.
pub(super) const BREAKS: &str = "it breaks";

pub(super) struct Kernels<T: Value> {
    pub(super) stamp: Kernel<(u32, Out<T, IxDyn>)>,
    pub(super) stamp_flat: Kernel<(u32, Out<T>)>,
    pub(super) mix: Kernel<(u32, InOut<T, IxDyn>)>,
    pub(super) mix_flat: Kernel<(u32, InOut<T>)>,
    pub(super) copy: Kernel<(In<T, IxDyn>, Out<T, IxDyn>)>,
    pub(super) copy_flat: Kernel<(In<T>, Out<T>)>,
    pub(super) combine: Kernel<Combine<T>>,
    pub(super) broken: Kernel<(InOut<T, IxDyn>,)>,
}

impl<T: Value> Kernels<T> {
    pub(super) fn new() -> Self {
        Self {
            stamp: Kernel::<(u32, Out<T, IxDyn>)>::new("stamp").host(|_grid, (from, mut out)| {
                out.iter_mut().zip(counting(from)).for_each(|(out, value)| *out = value);
            }),
            stamp_flat: Kernel::<(u32, Out<T>)>::new("stamp_flat").host(|_grid, (from, out)| {
                out.iter_mut().zip(counting(from)).for_each(|(out, value)| *out = value);
            }),
            mix: Kernel::<(u32, InOut<T, IxDyn>)>::new("mix")
                .host(|_grid, (number, mut x)| x.iter_mut().for_each(|x| *x = x.mixed(number))),
            mix_flat: Kernel::<(u32, InOut<T>)>::new("mix_flat")
                .host(|_grid, (number, x)| x.iter_mut().for_each(|x| *x = x.mixed(number))),
            copy: Kernel::<(In<T, IxDyn>, Out<T, IxDyn>)>::new("copy")
                .require("both have one shape", |_grid, (from, to)| from.shape() == to.shape())
                .host(|_grid, (from, mut to)| to.assign(&from)),
            copy_flat: Kernel::<(In<T>, Out<T>)>::new("copy_flat")
                .require("both have one shape", |_grid, (from, to)| from.shape() == to.shape())
                .host(|_grid, (from, to)| to.copy_from_slice(from)),
            combine: Kernel::<Combine<T>>::new("combine")
                .require("all have one shape", |_grid, (x, y, z)| {
                    x.shape() == z.shape() && y.shape() == z.shape()
                })
                .host(|_grid, (x, y, mut z)| {
                    Zip::from(&mut z).and(&x).and(&y).for_each(|z, x, y| *z = combined(*x, *y, *z));
                }),
            // Panics without calling the panic hook: the fuzzer's hook would end the process.
            broken: Kernel::<(InOut<T, IxDyn>,)>::new("broken")
                .host(|_grid, _x| std::panic::resume_unwind(Box::new(BREAKS))),
        }
    }
}
