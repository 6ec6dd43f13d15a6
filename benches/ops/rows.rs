//! Operations on tables, each by ndarray and by this library.

use std::hint::black_box;

use rayon::prelude::*;
use resident::ndarray::{Array1, Array2, Axis, Zip, linalg::general_mat_mul};
use resident::ops::{Elementwise, Reduction};
use resident::{Device, DeviceArray, In, Out, Stream, ops};

pub(crate) type Run = Box<dyn FnMut()>;

/// One operation.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) plain: Run,
    pub(crate) ours: Run,
}

/// Tables and lines of both kinds, of `side` rows and columns.
struct Operands {
    table: Array2<f32>,
    ours: DeviceArray<f32, resident::ndarray::Ix2>,
    stream: Stream,
}

impl Operands {
    fn new(side: usize) -> Self {
        let table = Array2::from_shape_fn((side, side), |(i, j)| ((i * 7 + j) % 13) as f32);
        let stream = Device::cpu().stream();
        let ours = DeviceArray::from_host_on(&stream, &table).expect("there is room");
        Self { table, ours, stream }
    }

    fn row(self, name: &'static str, of: impl FnOnce(Self) -> (Run, Run)) -> Row {
        let (plain, ours) = of(self);
        Row { name, plain, ours }
    }

    fn zeros(&self, side: usize) -> DeviceArray<f32, resident::ndarray::Ix2> {
        DeviceArray::zeros_on(&self.stream, (side, side)).expect("there is room")
    }
}

/// What ndarray or a loop does, and what this library does on a stream, for which it waits.
pub(crate) fn runs<T>(
    stream: &Stream,
    mut plain: impl FnMut() -> T + 'static,
    mut ours: impl FnMut(&Stream) -> resident::Result<()> + 'static,
) -> (Run, Run) {
    let stream = stream.clone();
    let plain = move || drop(black_box(plain()));
    let ours = move || {
        ours(&stream).and_then(|()| stream.synchronize()).expect("nothing fails");
    };
    (Box::new(plain), Box::new(ours))
}

pub(crate) fn rows(side: usize) -> Vec<Row> {
    let new = || Operands::new(side);
    let mut rows = vec![
        new().row("sum", sum),
        new().row("sum along axis 0", |operands| sum_axis(operands, 0)),
        new().row("sum along axis 1", |operands| sum_axis(operands, 1)),
        new().row("sum, of one text", |operands| reduction(operands, sum_text())),
        new().row("sum, of closures", |operands| reduction(operands, sum_of_closures())),
        new().row("sum along axis 0, of closures", |operands| reduction_axis(operands, 0)),
        new().row("sum along axis 1, of closures", |operands| reduction_axis(operands, 1)),
        new().row("scaled_add", scaled_add),
        new().row("add", add),
        new().row("cast to f64", cast),
        new().row("copy of a transpose", transpose),
        new().row("a * b + c, of one text", |operands| fused(operands, fused_text())),
        new().row("a * b + c, of a closure", |operands| {
            fused(operands, fused_text().host(|(a, b, c, d)| *d = a * b + c))
        }),
        new().row("a * b + c, of mul and add", chain),
    ];
    // Larger tables take seconds.
    if side <= 1024 {
        rows.push(new().row("matmul", matmul));
    }
    rows
}

fn sum(operands: Operands) -> (Run, Run) {
    let Operands { table, ours, stream } = operands;
    let mut out = DeviceArray::<f32, _>::zeros_on(&stream, 1).expect("there is room");
    runs(&stream, move || table.sum(), move |stream| ops::sum_on(stream, &ours, &mut out))
}

fn sum_axis(operands: Operands, axis: usize) -> (Run, Run) {
    let Operands { table, ours, stream } = operands;
    let mut out = DeviceArray::<f32, _>::zeros_on(&stream, table.nrows()).expect("there is room");
    let plain = move || -> Array1<f32> { table.sum_axis(Axis(axis)) };
    runs(&stream, plain, move |stream| ops::sum_axis_on(stream, &ours, Axis(axis), &mut out))
}

type SumReduction = Reduction<(In<f32>,), f32>;

fn sum_text() -> SumReduction {
    Reduction::new("sum", ["x"], "x", "a + b", 0.0)
}

fn sum_of_closures() -> SumReduction {
    sum_text().host(|(x,)| x, |a, b| a + b)
}

fn reduction(operands: Operands, reduction: SumReduction) -> (Run, Run) {
    let Operands { table, ours, stream } = operands;
    (
        Box::new(move || {
            black_box(table.sum());
        }),
        Box::new(move || {
            black_box(reduction.apply_on(&stream, (&ours,)).expect("nothing fails"));
        }),
    )
}

fn reduction_axis(operands: Operands, axis: usize) -> (Run, Run) {
    let Operands { table, ours, stream } = operands;
    let mut out = DeviceArray::<f32, _>::zeros_on(&stream, table.nrows()).expect("there is room");
    let reduction = sum_of_closures();
    let plain = move || black_box::<Array1<f32>>(table.sum_axis(Axis(axis)));
    runs(&stream, plain, move |stream| {
        reduction.apply_axis_on(stream, Axis(axis), (&ours,), &mut out)
    })
}

fn scaled_add(operands: Operands) -> (Run, Run) {
    let mut out = operands.zeros(operands.table.nrows());
    let Operands { table, ours, stream } = operands;
    let mut sums = Array2::zeros(table.raw_dim());
    let plain = move || black_box(&mut sums).scaled_add(0.5, &table);
    runs(&stream, plain, move |stream| ops::scaled_add_on(stream, 0.5, &ours, &mut out))
}

fn add(operands: Operands) -> (Run, Run) {
    let mut out = operands.zeros(operands.table.nrows());
    let Operands { table, ours, stream } = operands;
    let mut sums = Array2::<f32>::zeros(table.raw_dim());
    let plain = move || {
        let all = Zip::from(black_box(&mut sums)).and(&table).and(&table);
        all.for_each(|sum, a, b| *sum = a + b);
    };
    runs(&stream, plain, move |stream| ops::add_on(stream, &ours, &ours, &mut out))
}

fn cast(operands: Operands) -> (Run, Run) {
    let Operands { table, ours, stream } = operands;
    let mut out = DeviceArray::<f64, _>::zeros_on(&stream, table.dim()).expect("there is room");
    let mut wide = Array2::<f64>::zeros(table.raw_dim());
    let plain = move || {
        Zip::from(black_box(&mut wide)).and(&table).for_each(|to, x| *to = f64::from(*x));
    };
    runs(&stream, plain, move |stream| ops::cast_on(stream, &ours, &mut out))
}

/// `out = a * b + c` by a loop of Rust, on all cores.
fn loop_of_four(table: &Array2<f32>) -> impl FnMut() + use<> {
    const PART_LEN: usize = 1 << 16;
    let lines = [0.5_f32, 1.0, 2.0].map(|factor| (table * factor).into_raw_vec_and_offset().0);
    let mut out = vec![0.0_f32; table.len()];
    move || {
        let [a, b, c] = &lines;
        let part = |(number, out): (usize, &mut [f32])| {
            let range = number * PART_LEN..number * PART_LEN + out.len();
            let (a, b, c) = (&a[range.clone()], &b[range.clone()], &c[range]);
            for index in 0..out.len() {
                out[index] = a[index] * b[index] + c[index];
            }
        };
        let out = black_box(&mut out);
        // As `ops` do, small ones on the calling thread.
        if out.len() < 1 << 20 {
            out.chunks_mut(PART_LEN).enumerate().for_each(part);
        } else {
            out.par_chunks_mut(PART_LEN).enumerate().for_each(part);
        }
    }
}

type Table = DeviceArray<f32, resident::ndarray::Ix2>;

/// Three tables beside each other.
fn three(operands: &Operands) -> [Table; 3] {
    [0.5_f32, 1.0, 2.0].map(|factor| {
        let table = &operands.table * factor;
        DeviceArray::from_host_on(&operands.stream, &table).expect("there is room")
    })
}

type Four = (In<f32>, In<f32>, In<f32>, Out<f32>);

fn fused_text() -> Elementwise<Four> {
    Elementwise::new("fused", "d = a * b + c", ["a", "b", "c", "d"])
}

fn fused(operands: Operands, operation: Elementwise<Four>) -> (Run, Run) {
    let mut out = operands.zeros(operands.table.nrows());
    let [a, b, c] = three(&operands);
    let ours = move |stream: &Stream| operation.apply_on(stream, (&a, &b, &c, &mut out));
    runs(&operands.stream, loop_of_four(&operands.table), ours)
}

fn chain(operands: Operands) -> (Run, Run) {
    let mut product = operands.zeros(operands.table.nrows());
    let mut out = operands.zeros(operands.table.nrows());
    let [a, b, c] = three(&operands);
    let both = move |stream: &Stream| {
        ops::mul_on(stream, &a, &b, &mut product)?;
        ops::add_on(stream, &product, &c, &mut out)
    };
    runs(&operands.stream, loop_of_four(&operands.table), both)
}

fn transpose(operands: Operands) -> (Run, Run) {
    let mut out = operands.zeros(operands.table.nrows());
    let Operands { table, ours, stream } = operands;
    let mut turned = Array2::zeros(table.raw_dim());
    let plain = move || black_box(&mut turned).assign(&table.t());
    runs(&stream, plain, move |stream| ops::copy_on(stream, &ours.t(), &mut out))
}

fn matmul(operands: Operands) -> (Run, Run) {
    let mut out = operands.zeros(operands.table.nrows());
    let Operands { table, ours, stream } = operands;
    let mut product = Array2::zeros(table.raw_dim());
    let plain = move || general_mat_mul(1.0, &table, &table, 0.0, black_box(&mut product));
    runs(&stream, plain, move |stream| ops::matmul_on(stream, &ours, &ours, &mut out))
}
