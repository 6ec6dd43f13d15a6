//! The kernels of the suite: signatures and host bodies. Each backend provides its device code.

use resident::ndarray::{Ix2, Zip};
use resident::{Grid, In, InOut, Kernel, Out};

use super::gates;
use super::lab::Lab;

pub(crate) type Add = (u32, InOut<u32>, u64);
pub(crate) type Plus = (u32, In<u32>, Out<u32>, u64);
pub(crate) type Accumulate = (In<u32>, InOut<u32>, u64);
pub(crate) type Gated = (u64, InOut<u32>, u64);
pub(crate) type GatedPlus = (u64, In<u32>, Out<u32>, u64);
pub(crate) type AddSized = (u32, InOut<u32, Ix2>);
pub(crate) type CopySized = (In<u32, Ix2>, Out<u32, Ix2>);

/// A grid with a thread for each element.
pub(crate) fn over(len: usize) -> Grid {
    Grid::cover(len)
}

/// A grid with a thread for each element of a matrix.
pub(crate) fn over_2d(rows: usize, columns: usize) -> Grid {
    Grid::cover_2d((rows, columns), (8, 32))
}

/// `x += k`.
pub(crate) fn add(lab: &Lab<'_>) -> Kernel<Add> {
    let kernel = Kernel::<Add>::new("add")
        .require("the length is the array's", |_grid, (_, x, len)| x.len() as u64 == len)
        .host(|_grid, (k, x, _)| x.iter_mut().for_each(|x| *x = x.wrapping_add(k)));
    // SAFETY: the code accesses only elements below the length that is passed, and the requirement
    // compares this length with that of the array.
    unsafe { kernel.cuda(lab.code("add")) }
}

/// `y = x + k`.
pub(crate) fn plus(lab: &Lab<'_>) -> Kernel<Plus> {
    let kernel = Kernel::<Plus>::new("plus")
        .require("both have the length", |_grid, (_, x, y, len)| {
            x.len() as u64 == len && y.len() as u64 == len
        })
        .host(|_grid, (k, x, y, _)| y.iter_mut().zip(x).for_each(|(y, x)| *y = x.wrapping_add(k)));
    // SAFETY: as for `add`.
    unsafe { kernel.cuda(lab.code("plus")) }
}

/// `y += x`.
pub(crate) fn accumulate(lab: &Lab<'_>) -> Kernel<Accumulate> {
    let kernel = Kernel::<Accumulate>::new("accumulate")
        .require("both have the length", |_grid, (x, y, len)| {
            x.len() as u64 == len && y.len() as u64 == len
        })
        .host(|_grid, (x, y, _)| y.iter_mut().zip(x).for_each(|(y, x)| *y = y.wrapping_add(*x)));
    // SAFETY: as for `add`.
    unsafe { kernel.cuda(lab.code("accumulate")) }
}

/// `x += 1` once the gate is open.
pub(crate) fn gated(lab: &Lab<'_>) -> Kernel<Gated> {
    let kernel = Kernel::<Gated>::new("gated")
        .require("the length is the array's", |_grid, (_, x, len)| x.len() as u64 == len)
        .host(|_grid, (gate, x, _)| {
            gates::pass(gate);
            x.iter_mut().for_each(|x| *x = x.wrapping_add(1));
        });
    // SAFETY: as for `add`.
    unsafe { kernel.cuda(lab.code("gated")) }
}

/// `y = x` once the gate is open.
pub(crate) fn gated_copy(lab: &Lab<'_>) -> Kernel<GatedPlus> {
    let kernel = Kernel::<GatedPlus>::new("gated_copy")
        .require("both have the length", |_grid, (_, x, y, len)| {
            x.len() as u64 == len && y.len() as u64 == len
        })
        .host(|_grid, (gate, x, y, _)| {
            gates::pass(gate);
            y.copy_from_slice(x);
        });
    // SAFETY: as for `add`.
    unsafe { kernel.cuda(lab.code("gated_copy")) }
}

/// `x += k`, for any layout.
pub(crate) fn add_sized(lab: &Lab<'_>) -> Kernel<AddSized> {
    let kernel = Kernel::<AddSized>::new("add_sized")
        .host(|_grid, (k, mut x)| x.mapv_inplace(|x| x.wrapping_add(k)));
    // SAFETY: the code accesses only elements that the view contains.
    unsafe { kernel.cuda(lab.code("add_sized")) }
}

/// `y = x`, for any layouts.
pub(crate) fn copy_sized(lab: &Lab<'_>) -> Kernel<CopySized> {
    let kernel = Kernel::<CopySized>::new("copy_sized")
        .require("both have one shape", |_grid, (x, y)| x.shape() == y.shape())
        .host(|_grid, (x, mut y)| Zip::from(&mut y).and(&x).for_each(|y, x| *y = *x));
    // SAFETY: as for `add_sized`; the requirement makes the shapes equal.
    unsafe { kernel.cuda(lab.code("copy_sized")) }
}
