//! The kernels that a program launches.

use resident::ndarray::{IxDyn, Zip};
use resident::{In, InOut, Kernel, Out, Signature};

use super::lab::Lab;
use super::value::{Value, combined, counting};

type Combine<T> = (In<T, IxDyn>, In<T, IxDyn>, InOut<T, IxDyn>);

/// The panic message of `broken`.
pub(super) const BREAKS: &str = "it breaks";

/// The largest number of axes of a view for which there must be device code.
pub const AXES_MAX: usize = 4;

/// The kernels that have device code.
pub const NAMES: [&str; 7] =
    ["stamp", "stamp_flat", "mix", "mix_flat", "copy", "copy_flat", "combine"];

/// The kernels for views with one particular number of axes, for which their device code is
/// compiled. Flat kernels get the length too.
pub(super) struct Set<T: Value> {
    pub(super) stamp: Kernel<(u32, Out<T, IxDyn>)>,
    pub(super) stamp_flat: Kernel<(u32, Out<T>, u64)>,
    pub(super) mix: Kernel<(u32, InOut<T, IxDyn>)>,
    pub(super) mix_flat: Kernel<(u32, InOut<T>, u64)>,
    pub(super) copy: Kernel<(In<T, IxDyn>, Out<T, IxDyn>)>,
    pub(super) copy_flat: Kernel<(In<T>, Out<T>, u64)>,
    pub(super) combine: Kernel<Combine<T>>,
    pub(super) broken: Kernel<(InOut<T, IxDyn>,)>,
}

/// The kernels by number of axes, or one set for all if only host bodies run.
pub(super) struct Kernels<T: Value>(Vec<Set<T>>);

impl<T: Value> Kernels<T> {
    pub(super) fn new(lab: &Lab) -> Self {
        let sets = if lab.code.is_some() { AXES_MAX + 1 } else { 1 };
        Self((0..sets).map(|axes| Set::new(lab, axes)).collect())
    }

    /// The kernels for views with this number of axes.
    pub(super) fn of(&self, axes: usize) -> &Set<T> {
        if self.0.len() == 1 { &self.0[0] } else { &self.0[axes] }
    }
}

/// Adds the device code to a kernel.
fn with_code<S: Signature>(lab: &Lab, axes: usize, kernel: Kernel<S>) -> Kernel<S> {
    let Some(code) = lab.code else { return kernel };
    let code = code(kernel.name(), axes);
    // SAFETY: it accesses only the kernel's arguments: views within their shape, flat arrays
    // (slices) within the length that is passed.
    unsafe { kernel.cuda(code) }
}

impl<T: Value> Set<T> {
    fn new(lab: &Lab, axes: usize) -> Self {
        let stamp = Kernel::<(u32, Out<T, IxDyn>)>::new("stamp").host(|_grid, (from, mut out)| {
            out.iter_mut().zip(counting(from)).for_each(|(out, value)| *out = value);
        });
        let stamp_flat =
            Kernel::<(u32, Out<T>, u64)>::new("stamp_flat").host(|_grid, (from, out, _)| {
                out.iter_mut().zip(counting(from)).for_each(|(out, value)| *out = value);
            });
        let mix = Kernel::<(u32, InOut<T, IxDyn>)>::new("mix")
            .host(|_grid, (number, mut x)| x.iter_mut().for_each(|x| *x = x.mixed(number)));
        let mix_flat = Kernel::<(u32, InOut<T>, u64)>::new("mix_flat")
            .host(|_grid, (number, x, _)| x.iter_mut().for_each(|x| *x = x.mixed(number)));
        let copy = Kernel::<(In<T, IxDyn>, Out<T, IxDyn>)>::new("copy")
            .require("both have one shape", |_grid, (from, to)| from.shape() == to.shape())
            .host(|_grid, (from, mut to)| to.assign(&from));
        let copy_flat = Kernel::<(In<T>, Out<T>, u64)>::new("copy_flat")
            .require("both have one shape", |_grid, (from, to, _)| from.shape() == to.shape())
            .host(|_grid, (from, to, _)| to.copy_from_slice(from));
        let combine = Kernel::<Combine<T>>::new("combine")
            .require("all have one shape", |_grid, (x, y, z)| {
                x.shape() == z.shape() && y.shape() == z.shape()
            })
            .host(|_grid, (x, y, mut z)| {
                Zip::from(&mut z).and(&x).and(&y).for_each(|z, x, y| *z = combined(*x, *y, *z));
            });
        Self {
            stamp: with_code(lab, axes, stamp),
            stamp_flat: with_code(lab, axes, stamp_flat),
            mix: with_code(lab, axes, mix),
            mix_flat: with_code(lab, axes, mix_flat),
            copy: with_code(lab, axes, copy),
            copy_flat: with_code(lab, axes, copy_flat),
            combine: with_code(lab, axes, combine),
            // Panics without calling the panic hook: the fuzzer's hook would end the process.
            broken: Kernel::<(InOut<T, IxDyn>,)>::new("broken")
                .host(|_grid, _x| std::panic::resume_unwind(Box::new(BREAKS))),
        }
    }
}
