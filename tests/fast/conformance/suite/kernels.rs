//! The kernels of the suite: signatures and host bodies. Each backend provides its device code.

use resident::ndarray::Zip;
use resident::{AnyView, AnyViewMut, CudaSource, Signature, WithDimension};
use support::prelude::*;

use super::gates::{self, Gate};
use super::lab::Lab;
use super::values::numbers;

/// A grid with a thread for each element.
pub(crate) fn over(len: usize) -> Grid {
    Grid::cover(len)
}

/// A grid with a thread for each element of a matrix.
pub(crate) fn over_2d(rows: usize, columns: usize) -> Grid {
    Grid::cover_2d((rows, columns), (8, 32))
}

/// An array or a part. Its shape says how many threads a kernel needs.
pub(crate) trait Shaped: AnyView<u32> {
    fn lengths(&self) -> &[usize];
}

macro_rules! shaped {
    ($($type:ty),+) => {
        $(impl<D: Dimension> Shaped for $type {
            fn lengths(&self) -> &[usize] {
                self.shape()
            }
        })+
    };
}

shaped!(SmartArray<u32, D>, SmartView<'_, u32, D>, SmartViewMut<'_, u32, D>);
shaped!(DeviceArray<u32, D>, DeviceView<'_, u32, D>, DeviceViewMut<'_, u32, D>);
shaped!(PinnedArray<u32, D>, MappedArray<u32, D>, ManagedArray<u32, D>);

fn threads(x: &impl Shaped) -> (Grid, u64) {
    let len = x.lengths().iter().product();
    (over(len), len as u64)
}

pub(crate) struct Kernels {
    pub(crate) add: Kernel<(u32, InOut<u32>, u64)>,
    pub(crate) plus: Kernel<(u32, In<u32>, Out<u32>, u64)>,
    pub(crate) accumulate: Kernel<(In<u32>, InOut<u32>, u64)>,
    gated: Kernel<(u64, InOut<u32>, u64)>,
    gated_copy: Kernel<(u64, In<u32>, Out<u32>, u64)>,
    pub(crate) add_sized: Kernel<(u32, InOut<u32, Ix2>)>,
    pub(crate) copy_sized: Kernel<(In<u32, Ix2>, Out<u32, Ix2>)>,
}

/// Names the length that a flat kernel is passed, which is that of its arrays.
const HAS_LENGTH: &str = "the length is that of each array";

impl Kernels {
    pub(crate) fn new(code: &CudaSource) -> Self {
        let add = Kernel::<(u32, InOut<u32>, u64)>::new("add")
            .require(HAS_LENGTH, |_grid, (_, x, len)| x.len() as u64 == len)
            .host(|_grid, (k, x, _)| x.iter_mut().for_each(|x| *x = x.wrapping_add(k)));
        let plus = Kernel::<(u32, In<u32>, Out<u32>, u64)>::new("plus")
            .require(HAS_LENGTH, |_grid, (_, x, y, len)| [x.len(), y.len()] == [len as usize; 2])
            .host(|_grid, (k, x, y, _)| {
                y.iter_mut().zip(x).for_each(|(y, x)| *y = x.wrapping_add(k));
            });
        let accumulate = Kernel::<(In<u32>, InOut<u32>, u64)>::new("accumulate")
            .require(HAS_LENGTH, |_grid, (x, y, len)| [x.len(), y.len()] == [len as usize; 2])
            .host(|_grid, (x, y, _)| {
                y.iter_mut().zip(x).for_each(|(y, x)| *y = y.wrapping_add(*x));
            });
        let add_sized = Kernel::<(u32, InOut<u32, Ix2>)>::new("add_sized")
            .host(|_grid, (k, mut x)| x.mapv_inplace(|x| x.wrapping_add(k)));
        let copy_sized = Kernel::<(In<u32, Ix2>, Out<u32, Ix2>)>::new("copy_sized")
            .require("both have one shape", |_grid, (x, y)| x.shape() == y.shape())
            .host(|_grid, (x, mut y)| Zip::from(&mut y).and(&x).for_each(|y, x| *y = *x));
        Self {
            add: with_code(add, code),
            plus: with_code(plus, code),
            accumulate: with_code(accumulate, code),
            gated: with_code(gated(), code),
            gated_copy: with_code(gated_copy(), code),
            add_sized: with_code(add_sized, code),
            copy_sized: with_code(copy_sized, code),
        }
    }
}

fn gated() -> Kernel<(u64, InOut<u32>, u64)> {
    Kernel::<(u64, InOut<u32>, u64)>::new("gated")
        .require(HAS_LENGTH, |_grid, (_, x, len)| x.len() as u64 == len)
        .host(|_grid, (gate, x, _)| {
            gates::pass(gate);
            x.iter_mut().for_each(|x| *x = x.wrapping_add(1));
        })
}

fn gated_copy() -> Kernel<(u64, In<u32>, Out<u32>, u64)> {
    Kernel::<(u64, In<u32>, Out<u32>, u64)>::new("gated_copy")
        .require(HAS_LENGTH, |_grid, (_, x, y, len)| [x.len(), y.len()] == [len as usize; 2])
        .host(|_grid, (gate, x, y, _)| {
            gates::pass(gate);
            y.copy_from_slice(x);
        })
}

fn with_code<S: Signature>(kernel: Kernel<S>, code: &CudaSource) -> Kernel<S> {
    // SAFETY: the code of a flat kernel accesses only elements below the length that is passed, and
    // the requirement compares this length with that of the arrays. The code of the others accesses
    // only elements that the views contain; the requirement makes their shapes equal.
    unsafe { kernel.cuda(code.clone()) }
}

/// Launches with a thread for each element.
impl Lab {
    /// `x += k`.
    pub(crate) fn add(
        &self,
        stream: &Stream,
        k: u32,
        x: &mut (impl Shaped + AnyViewMut<u32>),
    ) -> Result<()> {
        let (grid, len) = threads(x);
        self.kernels().add.launch_on(stream, grid, (k, x, len))
    }

    /// `y = x + k`.
    pub(crate) fn plus(
        &self,
        stream: &Stream,
        k: u32,
        x: &impl Shaped,
        y: &mut impl AnyViewMut<u32>,
    ) -> Result<()> {
        let (grid, len) = threads(x);
        self.kernels().plus.launch_on(stream, grid, (k, x, y, len))
    }

    /// `y += x`.
    pub(crate) fn accumulate(
        &self,
        stream: &Stream,
        x: &impl Shaped,
        y: &mut impl AnyViewMut<u32>,
    ) -> Result<()> {
        let (grid, len) = threads(x);
        self.kernels().accumulate.launch_on(stream, grid, (x, y, len))
    }

    /// `x += 1` once the gate is open.
    pub(crate) fn gated(
        &self,
        stream: &Stream,
        gate: &Gate,
        x: &mut (impl Shaped + AnyViewMut<u32>),
    ) -> Result<()> {
        let (grid, len) = threads(x);
        self.kernels().gated.launch_on(stream, grid, (gate.number(), x, len))
    }

    /// An array of `0, 1, 2, ..`, to which queued work on `stream` adds one once the gate is open.
    pub(crate) fn gated_numbers(
        &self,
        stream: &Stream,
        gate: &Gate,
        len: usize,
    ) -> Result<SmartArray<u32, Ix1>> {
        let mut array = numbers(len);
        self.gated(stream, gate, &mut array).map(|()| array)
    }

    /// `y = x` once the gate is open.
    pub(crate) fn gated_copy(
        &self,
        stream: &Stream,
        gate: &Gate,
        x: &impl Shaped,
        y: &mut impl AnyViewMut<u32>,
    ) -> Result<()> {
        let (grid, len) = threads(x);
        self.kernels().gated_copy.launch_on(stream, grid, (gate.number(), x, y, len))
    }

    /// `x += k`, for any layout.
    pub(crate) fn add_sized<X>(&self, stream: &Stream, k: u32, x: &mut X) -> Result<()>
    where
        X: Shaped + AnyViewMut<u32> + WithDimension<u32, Ix2>,
    {
        let grid = over_2d(x.lengths()[0], x.lengths()[1]);
        self.kernels().add_sized.launch_on(stream, grid, (k, x))
    }

    /// `y = x`, for any layouts.
    pub(crate) fn copy_sized<X, Y>(&self, stream: &Stream, x: &X, y: &mut Y) -> Result<()>
    where
        X: Shaped + WithDimension<u32, Ix2>,
        Y: AnyViewMut<u32> + WithDimension<u32, Ix2>,
    {
        let grid = over_2d(x.lengths()[0], x.lengths()[1]);
        self.kernels().copy_sized.launch_on(stream, grid, (x, y))
    }
}
