//! Guards as arguments of cuBLAS, which launches kernels on the guards' stream and on another.

use std::fmt::Debug;

use resident::cudarc::cublas::{CudaBlas, Gemm, GemmConfig, sys::cublasOperation_t};
use resident::ndarray::{Array2, Ix2, LinalgScalar, s};
use resident::{Error, SmartArray, Stream, audit, ops};

use super::bench::{Bench, Gate, gated, launch};
use support::{in_own_process, own_process};

#[path = "../../../../examples/programs/conjugate_gradient/main.rs"]
#[allow(dead_code, reason = "it is the test that runs it, and not `main`")]
mod example;

const SIDE: usize = 12;

type Matrix = SmartArray<f32, Ix2>;

fn open() -> Bench {
    let bench = Bench::new();
    resident_stand_in_cublas::load().expect("what stands for cuBLAS loads");
    bench
}

fn numbers(seed: usize) -> Array2<f32> {
    Array2::from_shape_fn((SIDE, SIDE), |(row, column)| {
        ((row * 7 + column * 5 + seed) % 9) as f32 - 4.0
    })
}

/// The product of two matrices into a third. BLAS is column-major, so this multiplies the
/// transposed matrices in the opposite order.
fn multiply(blas: &CudaBlas, stream: &Stream, (a, b): (&Matrix, &Matrix), product: &mut Matrix) {
    let side = SIDE as i32;
    let as_they_are = cublasOperation_t::CUBLAS_OP_N;
    let config = GemmConfig {
        transa: as_they_are,
        transb: as_they_are,
        m: side,
        n: side,
        k: side,
        alpha: 1.0_f32,
        lda: side,
        ldb: side,
        beta: 0.0,
        ldc: side,
    };
    let (a, b, mut product) = (
        a.gpu_on(stream).unwrap(),
        b.gpu_on(stream).unwrap(),
        product.gpu_overwrite_on(stream).unwrap(),
    );
    // SAFETY: all three matrices are square with this side, and their rows are contiguous.
    unsafe { blas.gemm(config, &b, &a, &mut product) }.unwrap();
}

#[test]
fn a_product_on_the_guards_stream_costs_only_its_launch() {
    let bench = in_own_process!(open());
    let stream = bench.gpu.new_stream().unwrap();
    let blas = CudaBlas::new(stream.cudarc()).unwrap();
    let (a, b, mut product) =
        (Matrix::from(numbers(1)), Matrix::from(numbers(2)), Matrix::uninit((SIDE, SIDE)));
    multiply(&blas, &stream, (&a, &b), &mut product);
    bench.calls();
    let ((), report) = audit::capture(|| multiply(&blas, &stream, (&a, &b), &mut product));
    assert_eq!(bench.calls(), ["cuLaunchKernel"]);
    assert_eq!(report.waited_for(), vec![]);
    assert_eq!(*product.host().unwrap(), numbers(1).dot(&numbers(2)));
    bench.finish();
}

#[test]
fn a_factor_may_be_overwritten_right_after_a_product_on_a_foreign_stream() {
    let bench = in_own_process!(open());
    let (stream, gate) = (bench.gpu.new_stream().unwrap(), Gate::default());
    let wait = gated(&bench.gpu, "wait_before_product", &gate);
    let foreign = bench.gpu.cuda_context().unwrap().new_stream().unwrap();
    let blas = CudaBlas::new(foreign.clone()).unwrap();
    let (mut a, b) = (Matrix::from(numbers(3)).named("a"), Matrix::from(numbers(4)).named("b"));
    let mut product = Matrix::uninit((SIDE, SIDE)).named("product");
    launch(&foreign, &wait);
    bench.calls();
    // Work on the stream of cuBLAS delays the product. Nevertheless the product is complete when
    // the call returns.
    let opening = gate.open_after("cuLaunchKernel");
    let ((), report) = audit::capture(|| multiply(&blas, &stream, (&a, &b), &mut product));
    let waits = bench.calls_so_far().iter().filter(|call| *call == "cuStreamSynchronize").count();
    stream.cudarc().memset_zeros(&mut a.gpu_overwrite_on(&stream).unwrap()).unwrap();
    opening.join().unwrap();
    assert_eq!(*product.host().unwrap(), numbers(3).dot(&numbers(4)));
    assert_eq!(*a.host().unwrap(), Array2::<f32>::zeros((SIDE, SIDE)));
    assert_eq!(waits, 3, "once for each of the three");
    assert_eq!(report.waited_for(), [("a", 1), ("b", 1), ("product", 1)]);
    bench.finish();
}

/// `ops::matmul` of tables in all layouts that BLAS addresses. Without a compiler of CUDA C, only
/// cuBLAS can compute them.
fn products_by_cublas<T: ops::Number + LinalgScalar + Debug>(of: fn(f32) -> T) {
    let bench = open();
    let stream = bench.gpu.new_stream().unwrap();
    let (a, b) = (numbers(5).mapv(of), numbers(6).mapv(of));
    let (ours_a, ours_b) = (SmartArray::from(a.clone()), SmartArray::from(b.clone()));
    // The same tables, by columns.
    let turned = [&a, &b].map(|table| SmartArray::from(table.t().as_standard_layout().to_owned()));
    let mut product = SmartArray::from(b.clone());
    // What stands for cuBLAS is not told how much of the memory it uses: all has to be there.
    for table in [&ours_a, &ours_b, &product, &turned[0], &turned[1]] {
        drop(table.gpu_on(&stream).unwrap());
    }
    for [rows, inner, columns] in [[12, 12, 12], [7, 3, 5], [1, 4, 6], [6, 4, 1], [1, 1, 1]] {
        let (of_a, of_b) = (s![..rows, ..inner], s![..inner, ..columns]);
        let expected = a.slice(of_a).dot(&b.slice(of_b));
        let (x, y) = (ours_a.slice(of_a), ours_b.slice(of_b));
        let (turned_x, turned_y) =
            (turned[0].slice(s![..inner, ..rows]), turned[1].slice(s![..columns, ..inner]));
        for x in [&x, &turned_x.t()] {
            for y in [&y, &turned_y.t()] {
                let mut part = product.slice_mut(s![..rows, ..columns]);
                ops::matmul_on(&stream, x, y, &mut part).unwrap();
                assert_eq!(part.host().unwrap(), expected);
                let mut part = product.slice_mut(s![..columns, ..rows]).reversed_axes();
                ops::matmul_on(&stream, x, y, &mut part).unwrap();
                assert_eq!(part.host().unwrap(), expected);
            }
        }
    }
    // Tables with steps are left to the library's own kernel, which needs a compiler.
    let with_steps = ours_a.slice(s![..;2, ..;2]);
    let refused =
        ops::matmul_on(&stream, &with_steps, &with_steps, &mut product.slice_mut(s![..6, ..6]));
    assert!(matches!(refused, Err(Error::Compile { .. })), "{refused:?}");
    bench.finish();
}

#[test]
fn operations_multiply_by_cublas() {
    own_process!();
    products_by_cublas::<f32>(|number| number);
}

#[test]
fn operations_multiply_numbers_of_double_precision_by_cublas() {
    own_process!();
    products_by_cublas::<f64>(f64::from);
}

/// The example, with cuBLAS and its own kernels on one stream, finds the solution, and only the
/// residual is copied in its loop.
#[test]
fn the_example_solves_with_cublas_and_moves_nothing_but_the_residual() {
    own_process!();
    // Before a device is opened: it switches the cache of compiled code off.
    resident_stand_in_nvrtc::load().expect("what stands for NVRTC loads");
    let bench = open();
    let _here = bench.gpu.enter();
    let (outcome, report) = audit::capture(example::run);
    assert!(outcome.unwrap(), "{report}");
    let launches = |name: &str| bench.calls_so_far().iter().filter(|call| *call == name).count();
    assert!(launches("cuLaunchKernel") > 100);
    assert!(launches("cuEventRecord") < 10, "a chain on one stream needs no events");
    bench.finish();
}
