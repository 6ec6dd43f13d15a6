//! Operations that ndarray has not, each by the loop that a user would write and by this library:
//! masks, running sums, orders, indices, sparse matrices.

use std::hint::black_box;

use resident::ndarray::{Array1, Ix1, Zip};
use resident::{Device, DeviceArray, Element, Stream, ops};

use crate::rows::{Row, Run, runs};

/// The elements that a row of the sparse matrix has.
const ROW_LEN: usize = 8;

type Operation = fn(usize, &Stream) -> (Run, Run);

pub(crate) fn rows(len: usize, is_wanted: &impl Fn(&str) -> bool) -> Vec<Row> {
    let stream = Device::cpu().stream();
    let operations: [(&'static str, Operation); 9] = [
        ("less than a number", less),
        ("count of a mask", count_nonzero),
        ("exclusive sum", exclusive_sum),
        ("sort", sort),
        ("argsort", argsort),
        ("gather", gather),
        ("scatter", scatter),
        ("bincount", bincount),
        ("csr_matvec", csr_matvec),
    ];
    let wanted = operations.into_iter().filter(|(name, _)| is_wanted(name));
    let rows = wanted.map(|(name, of)| {
        let (plain, ours) = of(len, &stream);
        Row { name, plain, ours }
    });
    rows.collect()
}

/// Numbers in no order: each of 0 to `len - 1` once, as 7,919 divides no length that is measured.
fn places(len: usize) -> Array1<u64> {
    (0..len as u64).map(|i| i * 7919 % len as u64).collect()
}

fn numbers(len: usize) -> Array1<f32> {
    places(len).mapv(|place| place as f32)
}

fn on_device<T: Element>(stream: &Stream, line: &Array1<T>) -> DeviceArray<T, Ix1> {
    DeviceArray::from_host_on(stream, line).expect("there is room")
}

fn zeros<T: Element>(stream: &Stream, len: usize) -> DeviceArray<T, Ix1> {
    DeviceArray::zeros_on(stream, len).expect("there is room")
}

fn less(len: usize, stream: &Stream) -> (Run, Run) {
    let (a, middle) = (numbers(len), len as f32 / 2.0);
    let (ours, mut out) = (on_device(stream, &a), zeros::<u8>(stream, len));
    let mut mask = Array1::<u8>::zeros(len);
    let plain = move || {
        Zip::from(black_box(&mut mask)).and(&a).for_each(|out, a| *out = u8::from(*a < middle));
    };
    runs(stream, plain, move |stream| ops::less_on(stream, &ours, middle, &mut out))
}

fn count_nonzero(len: usize, stream: &Stream) -> (Run, Run) {
    let mask = places(len).mapv(|place| u8::from(place % 3 == 0));
    let (ours, mut out) = (on_device(stream, &mask), zeros::<u64>(stream, 1));
    let plain = move || mask.iter().filter(|it| **it != 0).count();
    runs(stream, plain, move |stream| ops::count_nonzero_on(stream, &ours, &mut out))
}

fn exclusive_sum(len: usize, stream: &Stream) -> (Run, Run) {
    let a = places(len);
    let (ours, mut out) = (on_device(stream, &a), zeros::<u64>(stream, len));
    let mut sums = Array1::<u64>::zeros(len);
    let plain = move || {
        let mut sum = 0_u64;
        Zip::from(black_box(&mut sums)).and(&a).for_each(|out, a| {
            *out = sum;
            sum = sum.wrapping_add(*a);
        });
    };
    runs(stream, plain, move |stream| ops::exclusive_sum_on(stream, &ours, &mut out))
}

/// Both sort a copy, which they make.
fn sort(len: usize, stream: &Stream) -> (Run, Run) {
    let a = numbers(len);
    let (ours, mut out) = (on_device(stream, &a), zeros::<f32>(stream, len));
    let mut sorted = Vec::with_capacity(len);
    let plain = move || {
        sorted.clear();
        sorted.extend_from_slice(a.as_slice().expect("a line"));
        black_box(&mut sorted).sort_by(f32::total_cmp);
    };
    runs(stream, plain, move |stream| {
        ops::copy_on(stream, &ours, &mut out)?;
        ops::sort_on(stream, &mut out)
    })
}

fn argsort(len: usize, stream: &Stream) -> (Run, Run) {
    let a = numbers(len);
    let (ours, mut out) = (on_device(stream, &a), zeros::<u64>(stream, len));
    let mut order = Vec::with_capacity(len);
    let plain = move || {
        order.clear();
        order.extend(0..len as u64);
        let key = |place: &u64| a[*place as usize];
        black_box(&mut order).sort_by(|one, other| key(one).total_cmp(&key(other)));
    };
    runs(stream, plain, move |stream| ops::argsort_on(stream, &ours, &mut out))
}

fn gather(len: usize, stream: &Stream) -> (Run, Run) {
    let (a, index) = (numbers(len), places(len));
    let (ours, places) = (on_device(stream, &a), on_device(stream, &index));
    let (mut out, mut taken) = (zeros::<f32>(stream, len), Array1::<f32>::zeros(len));
    let plain = move || {
        Zip::from(black_box(&mut taken)).and(&index).for_each(|to, i| *to = a[*i as usize]);
    };
    runs(stream, plain, move |stream| ops::gather_on(stream, &ours, &places, &mut out))
}

fn scatter(len: usize, stream: &Stream) -> (Run, Run) {
    let (a, index) = (numbers(len), places(len));
    let (ours, places) = (on_device(stream, &a), on_device(stream, &index));
    let (mut out, mut put) = (zeros::<f32>(stream, len), Array1::<f32>::zeros(len));
    let plain = move || {
        let put = black_box(&mut put);
        Zip::from(&a).and(&index).for_each(|a, i| put[*i as usize] = *a);
    };
    runs(stream, plain, move |stream| ops::scatter_on(stream, &ours, &places, &mut out))
}

/// Into 256 counts.
fn bincount(len: usize, stream: &Stream) -> (Run, Run) {
    let index = places(len).mapv(|place| place % 256);
    let (ours, mut out) = (on_device(stream, &index), zeros::<u64>(stream, 256));
    let mut counts = Array1::<u64>::zeros(256);
    let plain = move || {
        let counts = black_box(&mut counts);
        counts.fill(0);
        index.iter().for_each(|i| counts[*i as usize] += 1);
    };
    runs(stream, plain, move |stream| ops::bincount_on(stream, &ours, &mut out))
}

/// A matrix of `len` elements, `ROW_LEN` in each row, all over the columns.
fn csr_matvec(len: usize, stream: &Stream) -> (Run, Run) {
    let rows = len / ROW_LEN;
    let starts: Array1<u64> = (0..=rows).map(|row| (row * ROW_LEN) as u64).collect();
    let columns = places(len).mapv(|place| place % rows as u64);
    let (values, x) = (numbers(len), numbers(rows));
    let [our_starts, our_columns] = [&starts, &columns].map(|line| on_device(stream, line));
    let [our_values, our_x] = [&values, &x].map(|line| on_device(stream, line));
    let (mut out, mut y) = (zeros::<f32>(stream, rows), Array1::<f32>::zeros(rows));
    let plain = move || {
        Zip::from(black_box(&mut y)).and(starts.windows(2)).for_each(|y, row| {
            let row = row[0] as usize..row[1] as usize;
            *y = row.map(|at| values[at] * x[columns[at] as usize]).sum();
        });
    };
    runs(stream, plain, move |stream| {
        ops::csr_matvec_on(stream, &our_starts, &our_columns, &our_values, &our_x, &mut out)
    })
}
