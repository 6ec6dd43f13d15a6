//! Kernels compiled for GPUs that are not there, by a real NVRTC: if `RESIDENT_NVRTC` names it.

use resident::{CudaSource, Device, Error, Grid, In, InOut, Kernel, Result, Signature, SmartArray};
use support::own_process::{self, assert_success};
use support::test_name;

const SOURCE: &str = r#"
    __constant__ float coef[2];
    extern "C" __global__ void __launch_bounds__(96) scale(unsigned n, const float *x, float *y) {
        __shared__ float part[96];
        part[threadIdx.x] = threadIdx.x < n ? x[threadIdx.x] : INFINITY;
        __syncthreads();
        y[threadIdx.x] = coef[1] * part[95 - threadIdx.x];
    }
    template <typename T> __global__ void set(T *x) { x[0] = 1; }
"#;

type Scale = (u32, In<f32>, InOut<f32>);

fn is_there() -> bool {
    let is_there = std::env::var_os("RESIDENT_NVRTC").is_some();
    if !is_there {
        eprintln!("RESIDENT_NVRTC is not set: nothing was compiled");
    }
    is_there
}

fn of<S: Signature>(name: &str, source: impl Into<CudaSource>) -> Kernel<S> {
    // SAFETY: it is launched on arrays of one element, with one thread.
    unsafe { Kernel::<S>::new(name).cuda(source) }
}

fn log<T: std::fmt::Debug>(outcome: Result<T>) -> String {
    match outcome {
        Err(Error::Compile { log, .. }) => log,
        other => panic!("{other:?}"),
    }
}

#[test]
fn code_and_attributes_need_no_gpu() {
    if !is_there() {
        return;
    }
    let compiled = of::<Scale>("scale", SOURCE).compile_for("sm_90").expect("it is right");
    assert!(compiled.code.starts_with(b"\x7FELF"));
    assert_eq!(compiled.attributes.shared_bytes, 384);
    assert_eq!(compiled.attributes.block_threads_max, 96);
    assert!((4..=255).contains(&compiled.attributes.registers), "{compiled:?}");
    let set = of::<(InOut<f64>,)>("set", CudaSource::c(SOURCE).entry("set<double>"));
    assert_eq!(set.compile_for("sm_80").expect("right").attributes.block_threads_max, 1024);
    let ptx = of::<Scale>("scale", SOURCE).compile_for("compute_80").expect("it is right").code;
    assert!(String::from_utf8(ptx).expect("text").contains(".entry scale"));
    let warned = of::<(InOut<f32>,)>("f", "extern \"C\" __global__ void f(float *x) { int y; }");
    let log = warned.compile_for("sm_90").expect("a warning").log;
    assert!(log.contains("never referenced"), "{log}");
}

/// Static shared memory as a compiler for GPUs counts it: what is used, in functions too.
const SHARED: &str = r#"
    #define TILE 128
    __shared__ double of_file[100];
    template <typename T, int n> __device__ T sum(T value) {
        __shared__ T parts[n];
        parts[threadIdx.x] = value;
        __syncthreads();
        T sum = 0;
        for (int i = 0; i < blockDim.x; ++i) sum += parts[i];
        return sum;
    }
    __device__ __noinline__ int of_two(int value) { return sum<int, 300>(value) + sum<int, 64>(1); }
    extern "C" __global__ void nothing(int *x) { __shared__ int unused[64]; x[0] = 1; }
    extern "C" __global__ void __launch_bounds__(TILE) tiles(int *x) {
        __shared__ int tile[TILE][TILE / 2 + 1];
        __shared__ float2 pairs[TILE];
        tile[threadIdx.x][0] = x[threadIdx.x];
        pairs[threadIdx.x] = make_float2(threadIdx.x, 1);
        __syncthreads();
        x[threadIdx.x] = tile[TILE - 1 - threadIdx.x][0] + pairs[TILE - 1 - threadIdx.x].x;
    }
    extern "C" __global__ void functions(int *x) {
        of_file[threadIdx.x] = x[0];
        __syncthreads();
        x[threadIdx.x] = sum<int, 32>(x[threadIdx.x]) + of_two(x[0]) + of_file[blockDim.x - 1];
    }
    template <int n> __global__ void __launch_bounds__(n * 2, 1) templated(int *x) {
        x[threadIdx.x] = sum<int, n>(x[threadIdx.x]);
    }
    extern "C" __global__ void dynamic(int *x) {
        extern __shared__ int given[];
        __shared__ int four[4];
        if (threadIdx.x < 4) four[threadIdx.x] = x[threadIdx.x];
        given[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = given[blockDim.x - 1 - threadIdx.x] + four[x[0] & 3];
    }
"#;

#[test]
fn the_embedded_device_counts_shared_memory_and_threads_as_a_gpu() {
    if !is_there() || !cfg!(target_os = "linux") {
        return;
    }
    for entry in ["nothing", "tiles", "functions", "templated<96>", "templated<16>", "dynamic"] {
        let kernel = of::<(InOut<i32>,)>("counted", CudaSource::c(SHARED).entry(entry));
        let by_nvrtc = kernel.compile_for("sm_90").expect("it is right").attributes;
        match kernel.attributes(&Device::cpu()) {
            Err(Error::Compile { log, .. }) if log.contains("there is no C++ compiler") => return,
            outcome => {
                let on_host = outcome.expect("it is right");
                assert_eq!(on_host.shared_bytes, by_nvrtc.shared_bytes, "{entry}");
                assert_eq!(on_host.block_threads_max, by_nvrtc.block_threads_max, "{entry}");
            }
        }
    }
}

#[test]
fn what_a_gpu_would_refuse_is_an_error() {
    if !is_there() {
        return;
    }
    let text = log(of::<(InOut<f32>,)>("k", "int f() { return 1; }").compile_for("sm_90"));
    assert!(text.contains("host function"), "{text}");
    let text = log(of::<(f32, In<f32>, InOut<f32>)>("scale", SOURCE).compile_for("sm_90"));
    assert!(text.contains("parameter 0 is `int`") && text.contains("float a, const"), "{text}");
    let text = log(of::<(u32, In<i32>, InOut<f32>)>("scale", SOURCE).compile_for("sm_90"));
    assert!(text.contains("`const float *`") && text.contains("const int *x"), "{text}");
    let text = log(of::<(In<f32>,)>("scale", SOURCE).compile_for("sm_90"));
    assert!(text.contains("compiled are 3 of [4, 8, 8] bytes"), "{text}");
    let text = log(of::<Scale>("shear", SOURCE).compile_for("sm_90"));
    assert!(text.contains("no `__global__` function `shear`"), "{text}");
    let text = log(of::<Scale>("scale", SOURCE).compile_for("volta"));
    assert!(text.contains("`volta`") && text.contains("sm_90"), "{text}");
    let ptx = of::<Scale>("scale", CudaSource::ptx(".version 8.0"));
    assert!(log(ptx.compile_for("sm_90")).contains("compiled already"));
    let none = Kernel::<Scale>::new("none").compile_for("sm_90");
    assert!(matches!(none, Err(Error::NoKernelBody { .. })), "{none:?}");
}

#[test]
#[ignore = "run in processes of its own by the test below"]
fn with_the_variable() -> Result<()> {
    let set = "extern \"C\" __global__ void set(float *x) { x[0] = BODY; }";
    let (device, mut x) = (Device::cpu(), SmartArray::<f32, _>::zeros(1));
    let right = of::<(InOut<f32>,)>("set", CudaSource::c(set).define("BODY", "sqrtf(16.0f)"));
    right.launch_on(&device.stream(), Grid::new(1, 1), (&mut x,))?;
    assert_eq!(x.get(0)?, 4.0);
    let wrong = of::<(InOut<f32>,)>("set", CudaSource::c(set).define("BODY", "sqrt(16)"));
    let text = log(wrong.launch_on(&device.stream(), Grid::new(1, 1), (&mut x,)));
    assert!(text.contains("for sm_80, which RESIDENT_COMPILE_FOR names"), "{text}");
    assert!(text.contains("set.cu(1)"), "{text}");
    assert_eq!(x.get(0)?, 4.0, "nothing was queued");
    Ok(())
}

#[test]
#[ignore = "run in processes of its own by the test below"]
fn with_a_wrong_variable() {
    let set = of::<(InOut<f32>,)>("set", "extern \"C\" __global__ void set(float *x) {}");
    let text = log(set.prepare(&Device::cpu()));
    assert!(text.contains("RESIDENT_COMPILE_FOR=volta: expected architectures"), "{text}");
}

#[test]
fn the_variable_lets_tests_compile_for_gpus() {
    let part = test_name!(with_a_wrong_variable);
    let output = own_process::run(part, &[("RESIDENT_COMPILE_FOR", "volta")]);
    assert_success(&output, "with_a_wrong_variable");
    if is_there() {
        let environment = [("RESIDENT_COMPILE_FOR", "sm_80, sm_90")];
        let output = own_process::run(test_name!(with_the_variable), &environment);
        assert_success(&output, "with_the_variable");
    }
}

/// As above, by the hiprtc that `RESIDENT_HIPRTC` names.
#[cfg(feature = "hip")]
#[test]
fn code_for_amd_needs_no_gpu() {
    if std::env::var_os("RESIDENT_HIPRTC").is_none() {
        return eprintln!("RESIDENT_HIPRTC is not set: nothing was compiled for AMD's GPUs");
    }
    let compiled = of::<Scale>("scale", SOURCE).compile_for("gfx90a").expect("it is right");
    assert!(compiled.code.starts_with(b"\x7FELF"));
    assert_eq!(compiled.attributes.shared_bytes, 384);
    assert_eq!(compiled.attributes.block_threads_max, 96);
    let set = of::<(InOut<f64>,)>("set", CudaSource::c(SOURCE).entry("set<double>"));
    set.compile_for("gfx90a").expect("it is right");
    let text = log(of::<(f32, In<f32>, InOut<f32>)>("scale", SOURCE).compile_for("gfx90a"));
    assert!(text.contains("parameter 0 is `int`"), "{text}");
    let text = log(of::<(u32, In<i32>, InOut<f32>)>("scale", SOURCE).compile_for("gfx90a"));
    assert!(text.contains("`const float *`") && text.contains("const int *x"), "{text}");
}

/// The hiprtc of ROCm 5 would end the process.
#[cfg(feature = "hip")]
#[test]
fn several_threads_compile_for_amd_at_once() {
    if std::env::var_os("RESIDENT_HIPRTC").is_none() {
        return eprintln!("RESIDENT_HIPRTC is not set: nothing was compiled for AMD's GPUs");
    }
    let test = test_name!(threads_compile);
    assert_success(&own_process::run(test, &[("RESIDENT_CACHE", "off")]), test);
}

#[cfg(feature = "hip")]
#[test]
#[ignore = "compiles anew: run in processes of its own by the test above"]
fn threads_compile() {
    let compile = |thread: u32| {
        let source = CudaSource::c(SOURCE).entry("set<double>");
        let source = source.define("THREAD", thread.to_string());
        of::<(InOut<f64>,)>("set", source).compile_for("gfx90a").expect("it is right");
    };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || compile(thread));
        }
    });
}
