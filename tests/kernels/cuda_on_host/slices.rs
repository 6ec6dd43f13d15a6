//! Parameters that are a pointer and a length.

use resident::emulation::FindingKind;
use resident::launch::Slice;
use resident::ndarray::{Array2, Ix2, s};
use resident::{
    CudaSource, Device, Emulation, Error, Grid, In, InOut, Kernel, Out, Result, Signature,
    SmartArray,
};

use crate::{checking, device, one_of, refused};

const SOURCE: &str = r#"
    extern "C" __global__ void scale_into(const float *x, unsigned long long x_len, float k,
                                          double *sums, unsigned long long sums_len,
                                          float *y, unsigned long long y_len) {
        unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
        if (i < x_len && i < y_len) y[i] = k * x[i];
        if (i < sums_len) sums[i] += x_len + 100.0 * y_len;
    }
    extern "C" __global__ void past(const int *x, unsigned long long x_len,
                                    resident::View2<const int> table,
                                    int *y, unsigned long long y_len) {
        y[y_len] = table(0, 0) + x[0];
    }
    extern "C" __global__ void copy0(const float *x, float *y) {}
    extern "C" __global__ void copy1(const float *x, float x_len, float *y) {}
    extern "C" __global__ void copy2(const float *x, double x_len, float *y) {}
    extern "C" __global__ void copy3(const float *x, float *x_len, float *y) {}
"#;

type ScaleInto = (Slice<In<f32>>, f32, Slice<InOut<f64>>, Slice<Out<f32>>);

/// A kernel with sixteen slices, which adds an element of each, and their lengths.
fn sum_of_all() -> String {
    let letters: Vec<char> = ('a'..='p').collect();
    let list = |of: &dyn Fn(char) -> String| letters.iter().map(|x| of(*x)).collect::<Vec<_>>();
    format!(
        "extern \"C\" __global__ void sum_of_all({}) {{ a[0] = {}; a[1] = {}; }}",
        list(&|x| {
            let constness = if x == 'a' { "" } else { "const " };
            format!("{constness}unsigned *{x}, unsigned long long {x}_len")
        })
        .join(", "),
        list(&|x| format!("{x}[2]")).join(" + "),
        list(&|x| format!("{x}_len")).join(" + "),
    )
}

/// One of these kernels, which are one source.
fn one<S: Signature>(entry: &str) -> Kernel<S> {
    one_of(&[SOURCE, &sum_of_all()].concat(), entry)
}

fn in_both() -> Kernel<ScaleInto> {
    let kernel = one::<ScaleInto>("scale_into");
    kernel.host(|_grid, (x, k, sums, y)| {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = k * x);
        sums.iter_mut().for_each(|sum| *sum += x.len() as f64 + 100.0 * y.len() as f64);
    })
}

#[test]
fn both_bodies_get_the_elements_and_their_number() -> Result<()> {
    let kernel = in_both();
    for prefer_cuda in [false, true] {
        let device = Device::emulated(Emulation::new().prefer_cuda(prefer_cuda));
        let table = Array2::from_shape_fn((4, 5), |(i, j)| (10 * i + j) as f32);
        let x = SmartArray::from(table.clone());
        let mut sums = SmartArray::from(vec![0.5_f64, 1.5]);
        let mut y = SmartArray::<f32, _>::uninit((6, 5));
        let rows = x.slice(s![1..3, ..]);
        let mut into = y.slice_mut(s![2..4, ..]);
        let arguments = (&rows, 2.0, &mut sums, &mut into);
        kernel.launch_on(&device.stream(), Grid::cover(10), arguments)?;
        assert_eq!(sums.to_vec()?, [1010.5, 1011.5]);
        assert_eq!(y.slice(s![2..4, ..]).host()?, table.slice(s![1..3, ..]).mapv(|x| 2.0 * x));
    }
    Ok(())
}

#[test]
fn bodies_are_called_and_compared_and_get_arrays_without_elements() -> Result<()> {
    let kernel = in_both();
    let preferring = Device::emulated(Emulation::new().prefer_cuda(true));
    let empty = SmartArray::from(Vec::<f32>::new());
    let x = SmartArray::from(vec![1.0_f32, 2.0, 3.0]);
    let mut sums = SmartArray::from(vec![0.0_f64]);
    let (mut none, mut y) = (SmartArray::<f32, _>::uninit(0), SmartArray::<f32, _>::uninit(3));
    let grid = Grid::cover(3);
    assert_eq!(kernel.compare(&preferring, grid, (&x, 3.0, &mut sums, &mut y), 0.0)?, None);
    kernel.call(grid, (&x, 3.0, &mut sums, &mut y))?;
    kernel.launch_on(&preferring.stream(), grid, (&empty, 3.0, &mut sums, &mut none))?;
    assert_eq!((sums.to_vec()?, y.to_vec()?), (vec![303.0], vec![3.0, 6.0, 9.0]));
    Ok(())
}

#[test]
fn only_unbroken_memory_is_a_slice_and_requirements_see_its_shape() -> Result<()> {
    let kernel = Kernel::<(Slice<In<f32>>, Slice<Out<f32>>)>::new("copy")
        .require("one length", |_grid, (x, y)| x.len() == y.len() && x.shape().len() == 2)
        .host(|_grid, (x, y)| y.copy_from_slice(x));
    let stream = device().stream();
    let x = SmartArray::from(Array2::<f32>::ones((3, 4)));
    let mut y = SmartArray::<f32, _>::zeros((2, 4));
    let refused = kernel.launch_on(&stream, Grid::cover(12), (&x, &mut y));
    assert!(matches!(refused, Err(Error::Requirement { .. })), "{refused:?}");
    let mut y = SmartArray::<f32, _>::zeros((3, 2));
    let refused = kernel.launch_on(&stream, Grid::cover(6), (&x.slice(s![.., ..2]), &mut y));
    assert!(matches!(refused, Err(Error::NotContiguous { .. })), "{refused:?}");
    kernel.launch_on(
        &stream,
        Grid::cover(6),
        (&x.slice(s![1..2, ..]), &mut y.slice_mut(s![..2, ..])),
    )
}

#[test]
fn a_source_without_the_length_is_refused_and_told_the_declaration() {
    for (name, expected) in [
        ("copy0", "compiled are 2 of [8, 8] bytes"),
        ("copy1", "[8, 4, 8] bytes"),
        ("copy2", "parameter 1 is `double` in the source"),
        ("copy3", "parameter 1 is `float *` in the source"),
    ] {
        let source = CudaSource::c([SOURCE, &sum_of_all()].concat()).entry(name);
        let log = refused::<(Slice<In<f32>>, Out<f32>)>(&device(), "kernel", source);
        assert!(log.contains(expected), "{log}");
        let declared = "(const float *x, unsigned long long x_len, float *y)";
        assert!(log.ends_with(&format!("void {name}{declared}")), "{log}");
    }
}

#[test]
fn sixteen_slices_are_thirty_two_arguments() -> Result<()> {
    type S = Slice<In<u32>>;
    type All = (Slice<InOut<u32>>, S, S, S, S, S, S, S, S, S, S, S, S, S, S, S);
    let kernel = one::<All>("sum_of_all");
    let mut a = SmartArray::from(vec![0_u32, 0, 1]);
    let others: Vec<_> = (1..16).map(|i| SmartArray::from(vec![1 << i; 3 + i])).collect();
    let [b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = &others[..] else { panic!("15 of them") };
    let arguments = (&mut a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
    kernel.launch_on(&device().stream(), Grid::new(1, 1), arguments)?;
    assert_eq!(a.to_vec()?, [(1 << 16) - 1, (0..16).map(|i| 3 + i).sum(), 1]);
    Ok(())
}

#[test]
fn a_finding_counts_the_parameters_of_the_signature() -> Result<()> {
    type Past = (Slice<In<i32>>, In<i32, Ix2>, Slice<InOut<i32>>);
    let kernel = one::<Past>("past");
    let device = checking();
    let x = SmartArray::from(vec![1, 2]);
    let table = SmartArray::from(Array2::<i32>::ones((2, 2)));
    let mut y = SmartArray::from(vec![1, 2, 3]).named("results");
    kernel.launch_on(&device.stream(), Grid::new(1, 1), (&x, &table, &mut y))?;
    assert!(device.synchronize().is_err());
    let [finding] = &device.emulation().expect("it is emulated").findings()[..] else { panic!() };
    assert_eq!((finding.kind, finding.argument), (FindingKind::OutOfBounds, Some(2)));
    assert_eq!(finding.parameter.as_deref(), Some("y"));
    assert_eq!(finding.element, Some(vec![3]));
    Ok(())
}
