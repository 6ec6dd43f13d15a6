//! Guards as arguments of cuBLAS, which launches kernels on the guards' stream and on another.

use resident::cudarc::cublas::{CudaBlas, Gemm, GemmConfig, sys::cublasOperation_t};
use resident::ndarray::{Array2, Ix2};
use resident::{SmartArray, Stream, audit};

use super::bench::{Bench, Gate, gated, launch};
use support::own_process;

#[path = "../../../../examples/conjugate_gradient/main.rs"]
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
    own_process!();
    let bench = open();
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
    own_process!();
    let bench = open();
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

/// The example, with cuBLAS and its own kernels on one stream, finds the solution, and only the
/// residual is copied in its loop.
#[test]
fn the_example_solves_with_cublas_and_moves_nothing_but_the_residual() {
    own_process!();
    if !resident_stand_in_nvrtc::compiles() {
        return;
    }
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
