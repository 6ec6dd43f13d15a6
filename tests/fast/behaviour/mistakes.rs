//! Mistakes of newcomers, and the whole message of each. `INSTA_UPDATE=always cargo test --test
//! behaviour mistakes::` writes the messages anew; then read the difference. Mistakes for which a
//! C++ compiler is needed are in `tests/kernels/cuda_on_host/mistakes.rs`, and those that rustc
//! reports in `tests/long/compile_fail/mistakes.rs`.

use resident::ndarray::{Array2, Axis, Ix1, Ix2, IxDyn, s};
use resident::ops::{self, Elementwise, Reduction};
use resident::{Device, DeviceArray, Emulation, Grid, In, InOut, Kernel, Out, Result, SmartArray};
use support::mistakes::{Mistake, messages};

type Line = SmartArray<f32, Ix1>;
type Table = SmartArray<f32, Ix2>;

fn x() -> Line {
    SmartArray::from(vec![1.0; 8]).named("x")
}

fn line(len: usize) -> Line {
    SmartArray::uninit(len).named("y")
}

fn table(name: &str, shape: (usize, usize)) -> Table {
    SmartArray::from(Array2::ones(shape)).named(name)
}

fn a() -> Table {
    table("a", (4, 5))
}

fn b() -> Table {
    table("b", (5, 4))
}

fn c() -> Table {
    SmartArray::uninit((4, 5)).named("c")
}

fn device(emulation: Emulation) -> Device {
    Device::emulated(emulation)
}

/// A text of an [`Elementwise`] of `x` and `z`.
fn text(text: &'static str) -> Result<()> {
    Elementwise::<(In<f32>, Out<f32>)>::new("e", text, ["x", "z"]).apply((&x(), &mut line(8)))
}

/// As [`text`], where the output has elements `T`.
fn stored<T: ops::Arithmetic>() -> Result<()> {
    let kernel = Elementwise::<(In<f32>, Out<T>)>::new("e", "z = x * 2", ["x", "z"]);
    kernel.apply((&x(), &mut SmartArray::<T, _>::uninit(8)))
}

/// The product of a sparse table of two rows and two columns.
fn csr(starts: &[u32], columns: &[u32], values: &[f32]) -> Result<()> {
    let (starts, columns) = (SmartArray::from(starts), SmartArray::from(columns));
    let (values, right) = (SmartArray::from(values), SmartArray::from([1.0_f32, 1.0]));
    ops::csr_matvec(&starts, &columns, &values, &right, &mut line(2))
}

/// A kernel with a body in Rust that does nothing.
fn kernel() -> Kernel<(InOut<f32>,)> {
    Kernel::new("k").host(|_grid, (_x,)| ())
}

const SHAPES: &[Mistake] = &[
    ("shapes of add", || ops::add(&a(), &b(), &mut c())),
    ("shapes of add, a line of rows", || ops::add(&a(), &SmartArray::ones(4), &mut c())),
    ("shapes of add, no shape fits", || ops::add(&a(), &SmartArray::ones(3), &mut c())),
    ("shapes of add, more axes", || ops::add(&a(), &SmartArray::ones((2, 4, 5)), &mut c())),
    ("shapes of add, too long", || ops::add(&a(), &SmartArray::ones((4, 9)), &mut c())),
    ("shapes of copy", || ops::copy(&table("t", (4, 3)), &mut table("u", (3, 4)))),
    ("shapes of select", || ops::select(&SmartArray::ones(3), &a(), &a(), &mut c())),
    ("shapes of assign", || x().assign(&SmartArray::ones(3))),
    ("shapes of assign, transposed", || a().assign(&b())),
    ("shapes of a device copy", || {
        DeviceArray::<f32, _>::zeros((2, 3))?.copy_from_host(&Array2::ones((3, 2)))
    }),
    ("copy_from_slice, too long", || x().copy_from_slice(&[1.0; 9])),
    ("copy_from_slice, too short", || x().copy_from_slice(&[1.0; 7])),
    ("reshape", || a().reshape((3, 3)).map(drop)),
    ("reshape of columns", || a().slice(s![.., ..2]).reshape(8).map(drop)),
    ("broadcast", || a().broadcast((4, 4)).map(drop)),
    ("get", || x().get(8).map(drop)),
    ("get of a table", || a().get((1, 5)).map(drop)),
    ("get of nothing", || Line::zeros(0).named("none").get(0).map(drop)),
    ("get by fewer indices", || a().into_dyn().get(IxDyn(&[1])).map(drop)),
    ("inner dimensions of matmul", || ops::matmul(&a(), &a(), &mut c())),
    ("inner dimensions of matmul, no transpose", || {
        ops::matmul(&a(), &table("b", (3, 2)), &mut c())
    }),
    ("lines in matmul", || ops::matmul(&x(), &x(), &mut line(1))),
    ("result of matmul", || ops::matmul(&a(), &b(), &mut c())),
    ("lengths of dot", || ops::dot(&x(), &SmartArray::ones(5), &mut line(1))),
    ("axis of sum_axis", || ops::sum_axis(&a(), Axis(2), &mut line(4))),
    ("result of sum_axis", || ops::sum_axis(&a(), Axis(0), &mut line(4))),
    ("result of sum", || ops::sum(&a(), &mut line(4))),
    ("result of cumulative_sum", || ops::cumulative_sum(&x(), &mut line(4))),
    ("argmin of nothing", || Line::zeros(0).named("none").argmin().map(drop)),
    ("mask of compress", || x().compress(&SmartArray::<u8, _>::zeros(3)).map(drop)),
    ("index of gather", || ops::gather(&x(), &SmartArray::from([0_u64, 99]), &mut line(2))),
    ("index of bincount", || {
        ops::bincount(&SmartArray::from([0_u32, 9]), &mut SmartArray::<u32, _>::uninit(4))
    }),
    ("csr, columns too short", || csr(&[0, 2, 3], &[0, 1], &[1.0; 3])),
    ("csr, values too short", || csr(&[0, 2, 3], &[0, 1, 1], &[1.0; 2])),
    ("csr, starts too short", || csr(&[0, 3], &[0, 1, 1], &[1.0; 3])),
    ("csr, starts beyond the end", || csr(&[0, 9, 3], &[0, 1, 1], &[1.0; 3])),
    ("csr, column out of range", || csr(&[0, 2, 3], &[0, 1, 9], &[1.0; 3])),
];

const TEXTS: &[Mistake] = &[
    ("shapes of an Elementwise", || {
        let kernel = Elementwise::<(In<f32>, Out<f32>)>::new("e", "z = x", ["x", "z"]);
        kernel.apply((&b(), &mut c()))
    }),
    ("a function's name", || text("z = expp(x)")),
    ("a function of Rust", || text("z = ln(x)")),
    ("a function that is not there", || text("z = lookup(x)")),
    ("a variable's name", || text("float scale = 2; z = x * scael")),
    ("a variable that is not there", || text("z = x * w")),
    ("a method", || text("z = x.powi(2)")),
    ("a method of a value", || text("z = (x + 1).sqrt()")),
    ("a field", || text("z = x.len")),
    ("a power", || text("z = x ** 2")),
    ("a power of a value", || text("z = (x + 1) ** 3")),
    ("an input is written", || text("x = x + 1; z = x")),
    ("an output is not written", || text("float q = x")),
    ("a cast of C++", || text("z = int(x)")),
    ("a float into i32", stored::<i32>),
    ("a float into i64", stored::<i64>),
    ("a float into u32", stored::<u32>),
    ("a float into u64", stored::<u64>),
    ("a float into u8", stored::<u8>),
    ("three names for two parameters", || {
        let kernel = Elementwise::<(In<f32>, Out<f32>)>::new("e", "z = x", ["x", "y", "z"]);
        kernel.apply((&x(), &mut line(8)))
    }),
    ("a name in the text that joins", || {
        let sum = Reduction::<(In<f32>,), f32>::new("r", ["x"], "x", "x + y", 0.0);
        sum.apply((&a(),)).map(drop)
    }),
];

const LAUNCHES: &[Mistake] = &[
    ("reading what was never written", || c().host().map(drop)),
    ("a kernel without a body", || Kernel::<(InOut<f32>,)>::new("empty").launch(8, (&mut x(),))),
    ("a grid without blocks", || kernel().launch(Grid::new(0, 256), (&mut x(),))),
    ("a block of 2000 threads", || kernel().launch(Grid::new(1, 2000), (&mut x(),))),
    ("blocks of 64 x 64 threads", || {
        kernel().launch(Grid::cover_2d((4, 3000), (64, 64)), (&mut x(),))
    }),
    ("a device array on another device", || {
        let [one, other] = [(); 2].map(|()| device(Emulation::new()));
        let mut array = DeviceArray::<f32, _>::zeros_on(&one.stream(), 8)?;
        kernel().launch_on(&other.stream(), 8, (&mut array,))
    }),
    ("a stream of another device", || {
        let mut array = DeviceArray::<f32, _>::zeros(8)?;
        array.fill_on(&device(Emulation::new()).stream(), 1.0)
    }),
    ("a column for a flat parameter", || kernel().launch(4, (&mut a().slice_mut(s![.., 1]),))),
    ("a requirement", || {
        let copy = Kernel::<(In<f32>, Out<f32>)>::new("copy")
            .require("one length", |_grid, (from, to)| from.len() == to.len())
            .host(|_grid, (from, to)| to.copy_from_slice(from));
        copy.launch(8, (&x(), &mut line(3)))
    }),
    ("a body panics", || {
        let shift = Kernel::<(In<f32>, Out<f32>)>::new("shift")
            .host(|_grid, (x, y)| (0..y.len()).for_each(|i| y[i] = x[i + 1]));
        let mut y = line(8);
        shift.launch(8, (&x(), &mut y))?;
        y.to_vec().map(drop)
    }),
    ("no such GPU", || Device::hip(99).map(drop)),
    ("memory of a device", || {
        let device = device(Emulation::new().memory(1000));
        SmartArray::<f32, _>::zeros(1000).named("big").gpu_on(&device.stream()).map(drop)
    }),
    ("a slice out of range", || x().slice(s![2..20]).host().map(drop)),
    ("a row out of range", || a().row(7).host().map(drop)),
    ("slices that overlap", || {
        let mut x = x();
        x.multi_slice_mut((s![..5], s![4..])).0.fill(0.0)
    }),
];

#[test]
fn shapes_and_indices() {
    insta::assert_snapshot!(messages(SHAPES));
}

#[test]
fn texts() {
    insta::assert_snapshot!(messages(TEXTS));
}

#[test]
fn launches_and_contents() {
    insta::assert_snapshot!(messages(LAUNCHES));
}
