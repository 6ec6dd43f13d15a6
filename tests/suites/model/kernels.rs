//! The kernels that a run launches, and their effect on a value.

use resident::ndarray::{IxDyn, Zip};
use resident::{In, InOut, Kernel, Out};

use super::lab::Lab;

type AnyAxes = IxDyn;
type Combine = (In<u32, AnyAxes>, In<u32, AnyAxes>, InOut<u32, AnyAxes>);

/// The kernels for views with one particular number of dimensions. Their device code is compiled
/// for that number.
pub(crate) struct Set {
    pub(crate) stamp: Kernel<(u32, Out<u32, AnyAxes>)>,
    pub(crate) stamp_flat: Kernel<(u32, Out<u32>, u64)>,
    pub(crate) mix: Kernel<(u32, InOut<u32, AnyAxes>)>,
    pub(crate) mix_flat: Kernel<(u32, InOut<u32>, u64)>,
    pub(crate) copy: Kernel<(In<u32, AnyAxes>, Out<u32, AnyAxes>)>,
    pub(crate) copy_flat: Kernel<(In<u32>, Out<u32>, u64)>,
    pub(crate) combine: Kernel<Combine>,
}

/// The largest number of dimensions of an array.
pub(crate) const AXES_MAX: usize = 3;

/// The kernels, by number of dimensions.
pub(crate) struct Kernels([Set; AXES_MAX + 1]);

impl Kernels {
    pub(crate) fn new(lab: &Lab) -> Self {
        Self(std::array::from_fn(|axes| Set::new(lab, axes)))
    }

    /// The kernels for views with this number of dimensions.
    pub(crate) fn of(&self, axes: usize) -> &Set {
        &self.0[axes]
    }
}

/// The result of `mix` for an element.
pub(crate) fn mixed(old: u32, value: u32) -> u32 {
    old.wrapping_mul(31).wrapping_add(value)
}

/// The result of `combine` for three elements.
pub(crate) fn combined(x: u32, y: u32, z: u32) -> u32 {
    x.wrapping_mul(3).wrapping_add(y.wrapping_mul(5)).wrapping_add(z.wrapping_mul(7))
}

/// Adds the device code to a kernel.
macro_rules! with_code {
    ($lab:expr, $kernel:expr, $axes:expr) => {{
        let kernel = $kernel;
        let code = ($lab.code)(kernel.name(), $axes);
        // SAFETY: it accesses only the kernel's arguments: views within their shape, flat arrays
        // (slices) within the length that is passed.
        unsafe { kernel.cuda(code) }
    }};
}

impl Set {
    fn new(lab: &Lab, axes: usize) -> Self {
        let stamp =
            Kernel::<(u32, Out<u32, AnyAxes>)>::new("stamp").host(|_grid, (value, mut out)| {
                out.iter_mut().zip(value..).for_each(|(out, value)| *out = value);
            });
        let stamp_flat =
            Kernel::<(u32, Out<u32>, u64)>::new("stamp_flat").host(|_grid, (value, out, _)| {
                out.iter_mut().zip(value..).for_each(|(out, value)| *out = value);
            });
        let mix = Kernel::<(u32, InOut<u32, AnyAxes>)>::new("mix")
            .host(|_grid, (value, mut x)| x.iter_mut().for_each(|x| *x = mixed(*x, value)));
        let mix_flat = Kernel::<(u32, InOut<u32>, u64)>::new("mix_flat")
            .host(|_grid, (value, x, _)| x.iter_mut().for_each(|x| *x = mixed(*x, value)));
        let copy = Kernel::<(In<u32, AnyAxes>, Out<u32, AnyAxes>)>::new("copy")
            .host(|_grid, (from, mut to)| to.assign(&from));
        let copy_flat = Kernel::<(In<u32>, Out<u32>, u64)>::new("copy_flat")
            .host(|_grid, (from, to, _)| to.copy_from_slice(from));
        let combine = Kernel::<Combine>::new("combine").host(|_grid, (x, y, mut z)| {
            Zip::from(&mut z).and(&x).and(&y).for_each(|z, x, y| *z = combined(*x, *y, *z));
        });
        Self {
            stamp: with_code!(lab, stamp, axes),
            stamp_flat: with_code!(lab, stamp_flat, axes),
            mix: with_code!(lab, mix, axes),
            mix_flat: with_code!(lab, mix_flat, axes),
            copy: with_code!(lab, copy, axes),
            copy_flat: with_code!(lab, copy_flat, axes),
            combine: with_code!(lab, combine, axes),
        }
    }
}
