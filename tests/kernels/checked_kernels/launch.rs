//! The launch of one kernel, with arrays of its types.

use half::f16;
use resident::bytemuck::{Pod, Zeroable};
use resident::ndarray::{Array2, Ix2, s};
use resident::{
    Arguments, CudaSource, Device, Element, Error, Grid, In, InOut, Kernel, Out, Signature,
    SmartArray,
};

use crate::text::Text;

/// The length of the arrays of kernels with a switch.
const LEN: usize = 256;

/// The columns of a table.
const COLUMNS: usize = 16;

/// What kernels get by value.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Settings {
    shift: i32,
    zero: i32,
    rows: i32,
    columns: i32,
}

/// An element of the arrays: 0, 1, 2, ...
trait Number: Element {
    fn number(index: usize) -> Self;
}

macro_rules! numbers {
    ($($T:ty),*) => { $(impl Number for $T {
        fn number(index: usize) -> Self {
            index as $T
        }
    })* };
}
numbers!(f32, f64, i32, u32, u8, i16, i64);

impl Number for f16 {
    fn number(index: usize) -> Self {
        Self::from_f32(index as f32)
    }
}

/// A launch of a kernel.
struct Launch<'a> {
    device: &'a Device,
    source: CudaSource,
    grid: Grid,
}

/// Runs a kernel: one with a switch as the variant says, others with arrays of as many elements as
/// the grid has threads.
pub(crate) fn launch(
    device: &Device,
    source: &CudaSource,
    text: &Text,
    type_name: &str,
    variant: usize,
) -> Result<(), Error> {
    let source = source.clone().entry(text.kernel_name(type_name, variant));
    let launch = Launch { device, source, grid: text.grid };
    let Some(names) = &text.parameters else { return launch.run_with_a_switch(variant) };
    match type_name {
        "float" => launch.run::<f32>(names),
        "double" => launch.run::<f64>(names),
        "int" => launch.run::<i32>(names),
        "unsigned" => launch.run::<u32>(names),
        "byte" => launch.run::<u8>(names),
        "short" => launch.run::<i16>(names),
        "int64_t" => launch.run::<i64>(names),
        "half" => launch.run::<f16>(names),
        other => panic!("{other} is no type"),
    }
}

impl Launch<'_> {
    fn run_with_a_switch(self, variant: usize) -> Result<(), Error> {
        let numbers = || SmartArray::from((0..LEN).map(|i| i as f32).collect::<Vec<_>>());
        let (input, mut both, mut output) = (numbers(), numbers(), SmartArray::uninit(LEN));
        let is_bad = i32::from(variant > 0);
        let arguments = (&input, &mut both, &mut output, is_bad);
        self.queue::<(In<f32>, InOut<f32>, Out<f32>, i32)>(arguments)
    }

    fn run<T: Number>(self, parameters: &str) -> Result<(), Error> {
        match parameters.split_once(' ') {
            Some(("view", names)) => self.run_views::<T>(names),
            Some(("part", names)) => self.run_parts::<T>(names),
            _ => self.run_flat::<T>(parameters),
        }
    }

    fn len(&self) -> usize {
        (self.grid.blocks().count() * self.grid.threads().count()) as usize
    }

    fn run_flat<T: Number>(self, names: &str) -> Result<(), Error> {
        let len = self.len();
        let numbers = || SmartArray::from((0..len).map(T::number).collect::<Vec<_>>());
        let (input, mut both, mut output) = (numbers(), numbers(), SmartArray::uninit(len));
        let (x, y, z) = (&input, &mut both, &mut output);
        let (s, n) = (settings(len), len as i32);
        match names {
            "in out" => self.queue::<(In<T>, Out<T>, Settings, i32)>((x, z, s, n)),
            "in io" => self.queue::<(In<T>, InOut<T>, Settings, i32)>((x, y, s, n)),
            "io out" => self.queue::<(InOut<T>, Out<T>, Settings, i32)>((y, z, s, n)),
            "out" => self.queue::<(Out<T>, Settings, i32)>((z, s, n)),
            "io" => self.queue::<(InOut<T>, Settings, i32)>((y, s, n)),
            "in io out" => self.queue::<(In<T>, InOut<T>, Out<T>, Settings, i32)>((x, y, z, s, n)),
            other => panic!("{other}"),
        }
    }

    fn run_views<T: Number>(self, names: &str) -> Result<(), Error> {
        let len = self.len();
        let shape = (len / COLUMNS, COLUMNS);
        let numbers = || SmartArray::from(Array2::from_shape_fn(shape, |at| number_at(at)));
        let (input, mut both, mut output) = (numbers(), numbers(), SmartArray::uninit(shape));
        let (x, y, z) = (&input, &mut both, &mut output);
        let (s, n) = (settings(len), len as i32);
        match names {
            "in out" => self.queue::<(In<T, Ix2>, Out<T, Ix2>, Settings, i32)>((x, z, s, n)),
            "in io" => self.queue::<(In<T, Ix2>, InOut<T, Ix2>, Settings, i32)>((x, y, s, n)),
            "io" => self.queue::<(InOut<T, Ix2>, Settings, i32)>((y, s, n)),
            other => panic!("{other}"),
        }
    }

    /// With every second column of tables twice as wide, the last row first.
    fn run_parts<T: Number>(self, names: &str) -> Result<(), Error> {
        let len = self.len();
        let shape = (len / COLUMNS, 2 * COLUMNS);
        let numbers = || SmartArray::from(Array2::from_shape_fn(shape, |at| number_at(at)));
        let (input, mut both, mut output) = (numbers(), numbers(), numbers());
        let x = input.slice(s![..;-1, ..;2]);
        let mut y = both.slice_mut(s![..;-1, ..;2]);
        let mut z = output.slice_mut(s![..;-1, ..;2]);
        let (y, z, s, n) = (&mut y, &mut z, settings(len), len as i32);
        match names {
            "in out" => self.queue::<(In<T, Ix2>, Out<T, Ix2>, Settings, i32)>((&x, z, s, n)),
            "in io" => self.queue::<(In<T, Ix2>, InOut<T, Ix2>, Settings, i32)>((&x, y, s, n)),
            other => panic!("{other}"),
        }
    }

    fn queue<S: Signature>(self, arguments: impl Arguments<S>) -> Result<(), Error> {
        let Self { device, source, grid } = self;
        // SAFETY: the device ends threads before they access what they must not; and on a GPU they
        // run for another checker, in a process of their own.
        let kernel = unsafe { Kernel::<S>::new("kernel").cuda(source) };
        kernel.launch_on(&device.stream(), grid, arguments)?;
        device.synchronize()
    }
}

fn number_at<T: Number>((row, column): (usize, usize)) -> T {
    T::number(row * COLUMNS + column)
}

fn settings(len: usize) -> Settings {
    Settings { shift: 1, zero: 0, rows: (len / COLUMNS) as i32, columns: COLUMNS as i32 }
}
