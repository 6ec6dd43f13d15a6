//! The limits that a kernel itself has: its static shared memory, and `__launch_bounds__`.

use std::sync::LazyLock;

use resident::{
    CudaSource, Device, Emulation, Error, Grid, GridLimits, InOut, Kernel, Result, Signature,
    SmartArray,
};

use crate::{checking, device};

const SOURCE: &str = r#"
    constexpr int WIDTH = 64;
    __device__ float block_sum(float value) {
        __shared__ float parts[2000];
        parts[threadIdx.x] = value;
        __syncthreads();
        float sum = 0;
        for (int i = 0; i < blockDim.x; ++i) sum += parts[i];
        return sum;
    }
    extern "C" __global__ void __launch_bounds__(WIDTH, 2) bounded(float *x) {
        __shared__ float tile[WIDTH];
        tile[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
    }
    extern "C" __global__ void summed(float *x) { x[threadIdx.x] = block_sum(x[threadIdx.x]); }
    extern "C" __global__ void plain(float *x) { x[threadIdx.x] += 1; }
    namespace ns {
    template <typename T, int n = WIDTH>
    __global__ __launch_bounds__(2 * n) void reversed(T *x) {
        __shared__ T tile[2 * n];
        tile[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
    }
    }

    #define BOUNDS __launch_bounds__(96)
    #define THREADS 64
    #define AT_MOST(n) __launch_bounds__(n)
    constexpr int HALF = 32;
    #define OF_HALF __launch_bounds__(HALF, 2)
    extern "C" __global__ void BOUNDS by_macro(float *x) {}
    extern "C" __global__ void __launch_bounds__(THREADS) named(float *x) {}
    extern "C" __global__ AT_MOST(2 * THREADS) void called(float *x) {}
    extern "C" __global__ OF_HALF void of_constant(float *x) {}
    extern "C" __global__ void GIVEN given(float *x) {}
    namespace ns { __global__ __launch_bounds__(8) void inside(float *x) {} }
    template <typename T> __global__ BOUNDS void instance(T *x) {}

    extern "C" __global__ void __launch_bounds__(96) wide(int *x) {
        if (resident::thread() < 1000) x[resident::thread()] = blockDim.x;
    }
    extern "C" __global__ void big(int *x) {
        __shared__ unsigned char tile[48 << 10];
        tile[threadIdx.x] = x[0];
        __syncthreads();
        x[0] = tile[blockDim.x - 1 - threadIdx.x];
    }
"#;

type Changed = (InOut<f32>,);

/// A kernel of that source, which is compiled once, with all instances that the tests use.
fn of<S: Signature>(entry: &str) -> Kernel<S> {
    static ALL: LazyLock<CudaSource> = LazyLock::new(|| {
        let source = CudaSource::c(SOURCE).define("GIVEN", "__launch_bounds__(16)");
        for name in
            ["ns::reversed<float>", "ns::reversed<float, 8>", "instance<float>", "ns::inside"]
        {
            drop(one::<Changed>(&source, name));
        }
        source
    });
    one(&ALL, entry)
}

fn one<S: Signature>(source: &CudaSource, entry: &str) -> Kernel<S> {
    // SAFETY: the kernels access only elements of their arguments.
    unsafe { Kernel::new("kernel").cuda(source.clone().entry(entry)) }
}

#[test]
#[cfg(target_os = "linux")]
fn attributes_are_those_of_the_kernel() -> Result<()> {
    // Static shared bytes, of functions too, and the most threads of a block.
    let kernels: [(Kernel<Changed>, _, _); 5] = [
        (of("bounded"), 256, 64),
        (of("summed"), 8000, 1024),
        (of("plain"), 0, 1024),
        (of("ns::reversed<float>"), 512, 128),
        (of("ns::reversed<float, 8>"), 64, 16),
    ];
    for device in [Device::cpu(), checking()] {
        for (kernel, shared_bytes, threads_max) in &kernels {
            let seen = kernel.attributes(&device)?;
            let expected = (*shared_bytes, *threads_max);
            assert_eq!((seen.shared_bytes, seen.block_threads_max), expected);
        }
    }
    Ok(())
}

#[test]
fn launch_bounds_behind_macros_are_seen() -> Result<()> {
    let kernels = [
        ("by_macro", 96),
        ("named", 64),
        ("called", 128),
        ("of_constant", 32),
        ("given", 16),
        ("ns::inside", 8),
        ("instance<float>", 96),
    ];
    let kernels = kernels.map(|(name, most)| (name, of::<Changed>(name), most));
    for device in [Device::cpu(), checking()] {
        for (name, kernel, most) in &kernels {
            assert_eq!(kernel.attributes(&device)?.block_threads_max, *most, "{name}");
        }
    }
    let mut x = SmartArray::<f32, _>::zeros(1);
    let refused = kernels[0].1.launch_on(&device().stream(), Grid::new(1, 97), (&mut x,));
    assert!(matches!(&refused, Err(Error::Grid { .. })), "{refused:?}");
    Ok(())
}

#[test]
fn blocks_larger_than_the_launch_bounds_are_refused() -> Result<()> {
    let bounded = of::<Changed>("bounded");
    let mut x: SmartArray<f32, _> = (0..65_u8).map(f32::from).collect::<Vec<_>>().into();
    let refused = bounded.launch_on(&device().stream(), Grid::new(1, 65), (&mut x,));
    let Err(Error::Grid { fault, .. }) = &refused else { panic!("{refused:?}") };
    assert!(fault.contains("65 threads in a block") && fault.contains("__launch_bounds__(64)"));
    assert_eq!(x.traffic().to_device.count, 0, "before anything moves");
    bounded.launch_on(&device().stream(), Grid::new(1, 64), (&mut x,))?;
    assert_eq!((x.get(0)?, x.get(64)?), (63.0, 64.0));
    Ok(())
}

#[test]
fn automatic_blocks_are_as_large_as_the_bounds_allow() -> Result<()> {
    let wide = of::<(InOut<i32>,)>("wide");
    let mut x = SmartArray::<i32, _>::zeros(1000);
    wide.launch_on(&device().stream(), Grid::cover(1000).auto(), (&mut x,))?;
    assert!(x.to_vec()?.iter().all(|threads| *threads == 96), "{:?}", x.get(0)?);
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn static_and_dynamic_shared_memory_share_a_limit() -> Result<()> {
    let bounded = of::<Changed>("bounded");
    let mut x = SmartArray::<f32, _>::zeros(64);
    let grid = |bytes| Grid::new(1, 64).shared_bytes(bytes);
    let most = (227 << 10) - 256;
    bounded.launch_on(&device().stream(), grid(most), (&mut x,))?;
    let limits = GridLimits { shared_bytes_max: 4096, ..GridLimits::default() };
    let small = Device::emulated(Emulation::new().limits(limits));
    for (device, bytes, words) in [
        (
            device(),
            most + 1,
            "232192 is the most for this kernel there (256 of 232448 are its own)",
        ),
        (small, 3841, "3840 is the most for this kernel there"),
    ] {
        let refused = bounded.launch_on(&device.stream(), grid(bytes), (&mut x,));
        let Err(Error::Grid { fault, .. }) = &refused else { panic!("{refused:?}") };
        assert!(fault.contains(words), "{fault}");
    }
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn more_static_shared_memory_than_gpus_have_is_refused() {
    of::<(InOut<i32>,)>("big").prepare(&Device::cpu()).expect("it is as large as allowed");
    for (declaration, body) in [
        (
            "__shared__ unsigned char tile[(48 << 10) + 1];",
            "tile[t] = x[0]; __syncthreads(); x[0] = tile[blockDim.x - 1 - t];",
        ),
        // The compiler needs no memory for these.
        ("__shared__ char tile[(48 << 10) + 1];", "tile[t] = x[t]; x[t] = tile[t];"),
        ("__shared__ char tile[(48 << 10) + 1];", "tile[t] = x[t];"),
        ("__shared__ char a[24 << 10], b[(24 << 10) + 1];", "a[t] = b[t] = x[t]; x[t] = a[t];"),
    ] {
        let source = format!(
            "extern \"C\" __global__ void big(int *x) {{
                int t = threadIdx.x;
                {declaration}
                {body}
            }}"
        );
        // SAFETY: it does not run.
        let big = unsafe { Kernel::<(InOut<i32>,)>::new("big").cuda(&*source) };
        for device in [Device::cpu(), Device::emulated(Emulation::new().sanitize(true))] {
            let refused = big.prepare(&device);
            let Err(Error::Compile { kernel, log, .. }) = &refused else {
                panic!("{source}: {refused:?}")
            };
            assert_eq!(kernel, "\"big\"");
            let words =
                ["`big` has 49153 bytes of static", "49152 (48 KiB)", "`Grid::shared_bytes`"];
            words.iter().for_each(|words| assert!(log.contains(words), "{log}"));
        }
    }
}
