//! What is refused, and how a launch fails.

use resident::ndarray::{Ix2, IxDyn};
use resident::ops::Elementwise;
use resident::{
    CudaSource, Device, Emulation, Error, Grid, GridLimits, In, InOut, Kernel, Result, Signature,
    SmartArray,
};
use support::own_process;

use crate::{device, kernel, one_of};

/// What `prepare` says to a source that cannot be used.
fn refused<S: Signature>(source: impl Into<CudaSource>) -> String {
    crate::refused::<S>(&Device::cpu(), "wrong", source)
}

#[test]
fn errors_of_the_source_have_its_lines() {
    let source = "extern \"C\" __global__ void wrong(float *x) {\n    x[0] = missing;\n}\n";
    let log = refused::<(InOut<f32>,)>(source);
    assert!(log.contains("wrong.cu:2:") && log.contains("missing"), "{log}");
    let log = refused::<(InOut<f32>,)>("__global__ void other(float *x) { }");
    assert!(log.contains("wrong"), "{log}");
}

#[test]
fn what_compilers_for_gpus_lack_is_refused() {
    for (statement, words) in [
        ("atomicAdd((long long *)x, 1ll);", "CUDA has no `atomicAdd` for numbers of this type"),
        ("atomicAdd((short *)x, (short)1);", "CUDA has no `atomicAdd` for numbers of this type"),
        ("atomicMax(x, 1.0f);", "CUDA has no `atomicMax` for numbers of this type"),
        ("atomicSub(x, 1.0f);", "CUDA has no `atomicSub` for numbers of this type"),
        ("atomicInc((int *)x, 1);", "CUDA has no `atomicInc` for numbers of this type"),
        ("atomicCAS(x, 1.0f, 2.0f);", "CUDA has no `atomicCAS` for numbers of this type"),
        ("atomicExch((double *)x, 1.0);", "CUDA has no `atomicExch` for numbers of this type"),
        ("int n = x[0], a[n]; a[0] = 1; x[0] = a[0];", "variable length array"),
    ] {
        let source = format!("extern \"C\" __global__ void wrong(float *x) {{\n{statement}\n}}");
        let log = refused::<(InOut<f32>,)>(source.as_str());
        assert!(log.contains("wrong.cu:2:") && log.contains(words), "{log}");
    }
}

#[test]
fn signatures_that_do_not_fit_are_refused() {
    let source = "extern \"C\" __global__ void wrong(double a, float *x) { }";
    let log = refused::<(f32, InOut<f32>)>(source);
    assert!(log.contains("compiled are 2 of [8, 8] bytes"), "{log}");
    assert!(log.ends_with("void wrong(float a, float *x)"), "{log}");
    let log = refused::<(f64,)>(source);
    assert!(log.contains("the signature has 1 of [8] bytes"), "{log}");
}

#[test]
fn code_of_a_gpu_is_refused() {
    let log = refused::<(InOut<f32>,)>(CudaSource::ptx(".version 8.0"));
    assert!(log.contains("PTX or machine code of a GPU") && log.contains(".host(..)"), "{log}");
    let log = refused::<(InOut<f32>,)>(CudaSource::file("no/such.cu"));
    assert!(log.contains("no/such.cu cannot be read"), "{log}");
}

/// Kernels that compile, of which some fail.
const SOURCE: &str = r#"
    extern "C" __global__ void asserting(int *x) { assert(threadIdx.x < 40); }
    extern "C" __global__ void trapped(int *x) {
        __syncthreads();
        if (threadIdx.x == 7) __trap();
        __syncthreads();
    }
    extern "C" __global__ void waiting(int *x) {
        if (threadIdx.x < 32) __syncthreads();
        else __shfl_sync(0xffffffff, 1, threadIdx.x == 40 ? __syncthreads_count(1) : 0);
    }
    extern "C" __global__ void much(int *x) { *x = 1; }
    extern "C" __global__ void sum(resident::View2<const int> a, int *x) {
        *x = a(0, 0) + a(1, 1);
    }
"#;

/// The launch fails as one whose body panics: what it was to write is lost.
fn lost(kernel: &Kernel<(InOut<i32>,)>, expected: &str) -> Result<()> {
    let (device, mut x) = (device(), SmartArray::from(vec![1, 2, 3]));
    kernel.launch_on(&device.stream(), Grid::new(2, 64), (&mut x,))?;
    let Err(Error::Lost { cause, .. }) = x.host().map(drop) else { panic!("it is lost") };
    assert!(cause.contains(expected), "{cause}");
    let told = device.synchronize().unwrap_err().to_string();
    assert!(told.contains(expected), "{told}");
    // The device goes on.
    x.fill(5)?;
    assert_eq!(x.to_vec()?, [5; 3]);
    Ok(())
}

#[test]
fn a_failed_assertion_fails_the_launch_and_names_the_thread() -> Result<()> {
    let expected =
        "kernel.cu:2: assertion `threadIdx.x < 40` failed in block (0, 0, 0), thread (40, 0, 0)";
    lost(&one_of(SOURCE, "asserting"), expected)
}

#[test]
fn an_assertion_of_the_c_library_fails_the_launch() -> Result<()> {
    let source = "#include <assert.h>
        extern \"C\" __global__ void failing(int *x) { assert(threadIdx.x < 40); }";
    let expected =
        "failing.cu:2: assertion `threadIdx.x < 40` failed in block (0, 0, 0), thread (40, 0, 0)";
    lost(&kernel("failing", source), expected)
}

#[test]
fn a_trap_behind_a_barrier_fails_the_launch() -> Result<()> {
    lost(&one_of(SOURCE, "trapped"), "__trap()")
}

#[test]
fn threads_that_wait_for_ever_fail_the_launch() -> Result<()> {
    let expected =
        "wait for each other for ever: 33 at `__syncthreads` and 31 at operations of a warp";
    lost(&one_of(SOURCE, "waiting"), expected)
}

#[test]
fn grids_that_no_gpu_launches_are_refused_before_anything_moves() -> Result<()> {
    let much = one_of::<(InOut<i32>,)>(SOURCE, "much");
    assert_eq!(much.attributes(&Device::cpu())?.block_threads_max, 1024);
    let mut x = SmartArray::<i32, _>::zeros(1);
    for grid in [Grid::new(1, (32, 33)), Grid::new(1, 1).shared_bytes(300 << 10)] {
        let refused = much.launch_on(&device().stream(), grid, (&mut x,));
        assert!(matches!(refused, Err(Error::Grid { .. })), "{refused:?}");
        assert!(matches!(much.call(grid, (&mut x,)), Err(Error::Grid { .. })));
    }
    assert_eq!(x.traffic().to_device.count, 0);
    Ok(())
}

/// Whatever the device's limits.
#[test]
fn more_shared_memory_than_compiled_code_has_fails_the_launch() -> Result<()> {
    let much = one_of::<(InOut<i32>,)>(SOURCE, "much");
    let mut x = SmartArray::<i32, _>::zeros(1);
    let limits = GridLimits { shared_bytes_max: 1 << 20, ..GridLimits::default() };
    let device = Device::emulated(Emulation::new().limits(limits));
    much.launch_on(&device.stream(), Grid::new(1, 1).shared_bytes(300 << 10), (&mut x,))?;
    let Err(Error::Lost { cause, .. }) = x.host().map(drop) else { panic!("it is lost") };
    assert!(cause.contains("307200 bytes of shared memory") && cause.contains("232448"), "{cause}");
    Ok(())
}

/// A view whose number of axes is known only at the launch is compared there.
#[test]
fn a_view_of_another_number_of_axes_fails_the_launch() -> Result<()> {
    type Sum = (In<i32, IxDyn>, InOut<i32>);
    let sum = one_of::<Sum>(SOURCE, "sum");
    let table = SmartArray::<i32, Ix2>::ones((2, 2)).into_dyn();
    let mut x = SmartArray::<i32, _>::zeros(1);
    sum.launch_on(&device().stream(), Grid::new(1, 1), (&table, &mut x))?;
    assert_eq!(x.get(0)?, 2);
    let line = SmartArray::<i32, _>::ones(4).into_dyn();
    sum.launch_on(&device().stream(), Grid::new(1, 1), (&line, &mut x))?;
    let Err(Error::Lost { cause, .. }) = x.host().map(drop) else { panic!("it is lost") };
    assert!(cause.contains("a view of 2 axes, and the argument has 1"), "{cause}");
    Ok(())
}

#[test]
fn a_compiler_that_is_missing_is_an_error_at_the_launch() {
    own_process!([("RESIDENT_CXX", "/nowhere/c++")]);
    // SAFETY: it does not run.
    let kernel = unsafe { Kernel::<(InOut<f32>,)>::new("scale").cuda("anything") };
    let mut x = SmartArray::<f32, _>::ones(3);
    let error = kernel.launch_on(&Device::cpu().stream(), Grid::cover(3), (&mut x,)).unwrap_err();
    let text = error.to_string();
    for part in ["RESIDENT_CXX", "/nowhere/c++"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(x.to_vec().expect("unchanged"), [1.0; 3]);

    // What a text describes needs one too, unless it has a body in Rust.
    let double = Elementwise::<(InOut<f32>,)>::new("double", "x *= 2", ["x"]);
    let text = double.apply_on(&Device::cpu().stream(), (&mut x,)).unwrap_err().to_string();
    assert!(text.contains("\"double\"") && text.contains("/nowhere/c++"), "{text}");
    let double = double.host(|(x,)| *x *= 2.0);
    double.apply_on(&Device::cpu().stream(), (&mut x,)).expect("it needs no compiler");
    assert_eq!(x.to_vec().expect("written"), [2.0; 3]);
}

#[test]
fn a_kernel_that_the_source_lacks_is_named_beside_those_that_it_declares() {
    let source = "extern \"C\" __global__ void blur(float *x) { x[0] = 1; }";
    let log = crate::refused::<(InOut<f32>,)>(&device(), "sharpen", source);
    let expected = "the source declares `blur`, and no `sharpen`; give the kernel that name";
    assert!(log.contains(expected), "{log}");
}
