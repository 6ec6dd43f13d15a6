//! The kernels that a run launches, and what they do to a value.

use resident::ndarray::{IxDyn, Zip};
use resident::{In, InOut, Kernel, Out};

type AnyAxes = IxDyn;
type Combine = (In<u32, AnyAxes>, In<u32, AnyAxes>, InOut<u32, AnyAxes>);

pub(crate) struct Kernels {
    pub(crate) stamp: Kernel<(u32, Out<u32, AnyAxes>)>,
    pub(crate) stamp_flat: Kernel<(u32, Out<u32>)>,
    pub(crate) mix: Kernel<(u32, InOut<u32, AnyAxes>)>,
    pub(crate) mix_flat: Kernel<(u32, InOut<u32>)>,
    pub(crate) copy: Kernel<(In<u32, AnyAxes>, Out<u32, AnyAxes>)>,
    pub(crate) copy_flat: Kernel<(In<u32>, Out<u32>)>,
    pub(crate) combine: Kernel<Combine>,
}

/// What `mix` makes of an element.
pub(crate) fn mixed(old: u32, value: u32) -> u32 {
    old.wrapping_mul(31).wrapping_add(value)
}

/// What `combine` makes of three elements.
pub(crate) fn combined(x: u32, y: u32, z: u32) -> u32 {
    x.wrapping_mul(3).wrapping_add(y.wrapping_mul(5)).wrapping_add(z.wrapping_mul(7))
}

impl Kernels {
    pub(crate) fn new() -> Self {
        Self {
            stamp: Kernel::<(u32, Out<u32, AnyAxes>)>::new("stamp")
                .host(|_grid, (value, mut out)| out.iter_mut().zip(value..).for_each(|(out, value)| *out = value)),
            stamp_flat: Kernel::<(u32, Out<u32>)>::new("stamp_flat")
                .host(|_grid, (value, out)| out.iter_mut().zip(value..).for_each(|(out, value)| *out = value)),
            mix: Kernel::<(u32, InOut<u32, AnyAxes>)>::new("mix")
                .host(|_grid, (value, mut x)| x.iter_mut().for_each(|x| *x = mixed(*x, value))),
            mix_flat: Kernel::<(u32, InOut<u32>)>::new("mix_flat")
                .host(|_grid, (value, x)| x.iter_mut().for_each(|x| *x = mixed(*x, value))),
            copy: Kernel::<(In<u32, AnyAxes>, Out<u32, AnyAxes>)>::new("copy").host(|_grid, (from, mut to)| to.assign(&from)),
            copy_flat: Kernel::<(In<u32>, Out<u32>)>::new("copy_flat").host(|_grid, (from, to)| to.copy_from_slice(from)),
            combine: Kernel::<Combine>::new("combine")
                .host(|_grid, (x, y, mut z)| Zip::from(&mut z).and(&x).and(&y).for_each(|z, x, y| *z = combined(*x, *y, *z))),
        }
    }
}
