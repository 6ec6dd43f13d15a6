//! Code that is common in public sources and means another thing in C++: it computes here what it
//! computes on a GPU.

use bytemuck::{Pod, Zeroable};
use resident::{CudaSource, Grid, In, InOut, Kernel, Result, SmartArray};

use crate::{checking, device, kernel, one_of, refused};

/// Kernels that compile as one source.
const SOURCE: &str = r#"
    struct __align__(64) Wide { unsigned x[16]; };
    struct alignas(128) Wider { unsigned x[32]; };
    extern "C" __global__ void aligned(Wide a, char b, Wider c, unsigned *y) {
        unsigned t = threadIdx.x;
        y[t] = a.x[t % 16] + b + c.x[t];
        y[32 + t] = ((size_t)&a % 64) + ((size_t)&c % 128);
        __syncthreads();
        y[t] += a.x[0];
    }
    extern "C" __global__
    void divided(const int *d, int *q, unsigned *u, unsigned long long *w) {
        int t = threadIdx.x, by = d[t];
        q[t] = 100 / by;
        q[4 + t] = 100 % by;
        u[t] = 100u / (unsigned)by;
        u[4 + t] = (unsigned char)200 / (unsigned char)by;
        w[t] = 5000000000ull / (unsigned long long)by;
        w[4 + t] = 5ull / (unsigned long long)by;
        if (by == 0) u[8] = 7;
        q[8] = (-2147483647 - 1) / d[4];
    }
    __device__ int missing(int);
    extern "C" __global__ void punned(unsigned *y, int zero) {
        __shared__ float f[4];
        int *n = (int *)f;
        n[0] = 0;
        f[0] = 1.0f;
        y[0] = n[0];
        extern __shared__ float floats[];
        extern __shared__ int words[];
        words[0] = 3;
        floats[0] = 2.0f;
        y[1] = words[0];
        union { float f; unsigned u; } both;
        both.f = -1.0f;
        y[2] = both.u;
        float *punned = (float *)y;
        unsigned before = y[3];
        punned[3] = 1.5f;
        y[4] = before + y[3];
    }
    extern "C" __global__ void numbers(unsigned *y, int zero) {
        float big = INFINITY, none = NAN;
        uint32_t all = UINT32_MAX;
        uint64_t wide = UINT64_MAX;
        int64_t signed_wide = INT64_MIN;
        y[0] = __float_as_uint(big);
        y[1] = none != none;
        y[2] = all;
        y[3] = max(wide, 1ull) >> 60;
        y[4] = signed_wide < LLONG_MAX;
        y[5] = FLT_MAX > 1e38f && DBL_EPSILON < 1e-15 && M_PI > 3.14;
        y[6] = (uint8_t)300 + (int16_t)-1 + INT_MAX;
        uintptr_t at = (uintptr_t)y;
        y[7] = at != 0;
    }
"#;

/// What a kernel writes into eight numbers, with one thread.
fn written(kernel: &Kernel<(InOut<u32>, i32)>) -> Result<Vec<u32>> {
    let mut y = SmartArray::<u32, _>::zeros(8);
    kernel.launch_on(&device().stream(), Grid::new(1, 1), (&mut y, 0))?;
    y.to_vec()
}

/// A kernel `same` with this body.
fn body(text: &str) -> String {
    format!("extern \"C\" __global__ void same(unsigned *y, int zero) {{ {text} }}")
}

#[test]
fn memory_can_be_read_as_another_type() -> Result<()> {
    let kernel = one_of::<(InOut<u32>, i32)>(SOURCE, "punned");
    let mut y = SmartArray::<u32, _>::zeros(5);
    kernel.launch_on(&device().stream(), Grid::new(1, 1).shared_bytes(16), (&mut y, 0))?;
    let expected = [1.0_f32, 2.0, -1.0, 1.5, 1.5].map(f32::to_bits);
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

#[test]
fn sources_see_the_architecture_of_a_gpu() -> Result<()> {
    let text = body(
        "\n#if defined(__CUDA_ARCH__) && defined(__CUDACC__) && defined(__CUDACC_RTC__)\n\
            y[0] = __CUDA_ARCH__;\n\
        #endif\n",
    );
    let source = CudaSource::c(text);
    for (source, expected) in [
        (source.clone(), 900),
        (source.clone().option("-arch=sm_80"), 800),
        (source.clone().option("--gpu-architecture").option("compute_100a"), 1000),
        (source.define("__CUDA_ARCH__", 700), 700),
    ] {
        let y = written(&kernel("same", source))?;
        assert_eq!(y[0], expected);
    }
    Ok(())
}

#[test]
fn numbers_and_types_of_headers_are_there_without_them() -> Result<()> {
    let y = written(&one_of(SOURCE, "numbers"))?;
    let sum = (44 - 1 + i64::from(i32::MAX)) as u32;
    assert_eq!(y, [f32::INFINITY.to_bits(), 1, u32::MAX, 15, 1, 1, sum, 1]);
    Ok(())
}

#[test]
fn a_source_may_declare_such_types_itself() -> Result<()> {
    for types in [
        "typedef unsigned int uint32_t; typedef unsigned long long uint64_t;",
        "typedef unsigned int uint32_t; typedef unsigned long uint64_t;",
        "using uint32_t = unsigned int; using uint64_t = unsigned long long;
         static const float FLT_MAX = 8;
         #define INFINITY __int_as_float(0x7f800000)",
        "#include <stdint.h>\n#include <cstdint>\n#include <float.h>\n#include <cmath>",
    ] {
        let text = "uint64_t x = 7; uint32_t z = 1; y[0] = x + z; y[1] = FLT_MAX >= 8.0f;";
        let y = written(&kernel("same", format!("{types}\n{}", body(text))))?;
        assert_eq!(y[..2], [8, 1], "{types}");
    }
    Ok(())
}

#[test]
fn the_usual_headers_can_be_included() -> Result<()> {
    let headers = "#include <cuda_runtime.h>\n#include \"device_launch_parameters.h\"\n\
        #include <math_constants.h>\n#include <cooperative_groups.h>\n#include <cuda_fp16.h>\n\
        #include <cuda_bf16.h>\n#include <vector_types.h>\n#include <cuda.h>\n";
    let text = body(
        "half h = __float2half(2.0f);
        float4 v = make_float4(1, 2, 3, 4);
        y[0] = __float_as_uint(CUDART_INF_F);
        y[1] = (unsigned)(__half2float(h) + v.w);
        y[2] = CUDART_PI > 3.14 && CUDART_PI < 3.15;",
    );
    let y = written(&kernel("same", format!("{headers}{text}")))?;
    assert_eq!(y[..3], [f32::INFINITY.to_bits(), 6, 1]);
    Ok(())
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Wide([u32; 16]);

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(128))]
struct Wider([u32; 32]);

#[test]
fn parameters_may_be_aligned_to_128_bytes() -> Result<()> {
    type Aligned = (Wide, i8, Wider, InOut<u32>);
    let aligned = one_of::<Aligned>(SOURCE, "aligned");
    for device in [device(), checking()] {
        let mut y = SmartArray::<u32, _>::zeros(64);
        let (a, c) = (Wide([5; 16]), Wider(std::array::from_fn(|i| i as u32)));
        aligned.launch_on(&device.stream(), Grid::new(1, 32), (a, 1, c, &mut y))?;
        let expected: Vec<u32> = (0..32).map(|i| i + 11).chain([0; 32]).collect();
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

/// The values are those of the machine code that NVRTC makes (`faults/division.rs`).
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_division_by_zero_has_the_value_of_a_gpu() -> Result<()> {
    type Divided = (In<i32>, InOut<i32>, InOut<u32>, InOut<u64>);
    let divided = one_of::<Divided>(SOURCE, "divided");
    let d = SmartArray::from(vec![3, 0, 7, 0, -1]);
    let (mut q, mut u) = (SmartArray::<i32, _>::zeros(9), SmartArray::<u32, _>::zeros(9));
    let mut w = SmartArray::<u64, _>::zeros(8);
    divided.launch_on(&device().stream(), Grid::new(1, 4), (&d, &mut q, &mut u, &mut w))?;
    assert_eq!(q.to_vec()?, [33, -1, 14, -1, 1, -1, 2, -1, i32::MIN]);
    let (ones, byte) = (u32::MAX, 200);
    assert_eq!(u.to_vec()?[..4], [33, ones, 14, ones]);
    assert_eq!([u.get(4)?, u.get(6)?, u.get(8)?], [byte / 3, byte / 7, 7]);
    let small = u64::from(ones);
    assert_eq!(w.to_vec()?, [1_666_666_666, u64::MAX, 714_285_714, u64::MAX, 1, small, 0, small]);
    Ok(())
}

#[test]
fn a_function_that_is_declared_and_not_defined_is_an_error_of_prepare() {
    let source = "__device__ int missing(int);
        extern \"C\" __global__ void calls(int *x) { x[0] = missing(x[0]); }";
    for device in [device(), checking()] {
        let log = refused::<(InOut<i32>,)>(&device, "calls", source);
        assert!(log.contains("declares and uses `missing(int)`, and defines it nowhere"), "{log}");
    }
    let _unused_is_fine = one_of::<(InOut<u32>, i32)>(SOURCE, "punned");
}
