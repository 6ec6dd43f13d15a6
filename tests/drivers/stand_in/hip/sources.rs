//! Compiles every device source of the repository by a real hiprtc, which needs no GPU, and
//! compares what it says of the parameters with the sizes that the compiler for the host finds.
//!
//! `RESIDENT_HIPRTC` names the library, for example `/usr/lib/x86_64-linux-gnu/libamdhip64.so.5`;
//! without it the tests say that they are skipped.

use std::collections::BTreeMap;

use support::device_sources;

use super::api::{Compiled, Hiprtc, hiprtc, open};
use resident_code::code_object::{self, architecture, kernels, parameter_bytes};
use resident_code::numbers;

/// The declarations that are put before sources with sized parameters (views).
const PRELUDE: &str = concat!(
    include_str!("../../../../crates/code/src/prelude.cuh"),
    include_str!("../../../../crates/code/src/prelude_amd.cuh")
);

/// What `#include <cuda_bf16.h>` brings.
const BF16: &str = include_str!("../../../../crates/gpu/src/code/cuda_bf16_of_amd.h");

/// Architectures with wavefronts of 64 and of 32 lanes, and those that hiprtc 6 knows too.
const ARCHITECTURES: [(&str, u32); 2] = [("gfx90a", 64), ("gfx1030", 32)];
const SINCE_6: [(&str, u32); 3] = [("gfx942", 64), ("gfx1100", 32), ("gfx1201", 32)];

/// A kernel that uses all declarations of the prelude.
const ALL_VIEWS: &str = r#"
static_assert(resident::wave_size() == LANES, "lanes");
extern "C" __global__ void all_views(resident::View0<float> x0, resident::View1<const float> x1,
                                     resident::View2<float> x2, resident::View3<double> x3,
                                     resident::View4<unsigned char> x4,
                                     resident::View5<const long long> x5,
                                     resident::View6<short> x6, char last) {
    long long i = resident::thread();
    if (i >= x6.size() || !x0.contains() || !x1.contains(i) || !x2.contains(i, 0)
        || !x3.contains(i, 0, 0) || !x4.contains(i, 0, 0, 0)) return;
    x2(i, 0) = x0() + x1(i) + x2.at(i) + x1.shape[0] + x2.strides[1] + last;
    x3(i, 0, 0) = x4(i, 0, 0, 0) + x5(0, 0, 0, 0, i) + x6(0, 0, 0, 0, 0, i);
    *x0.data = static_cast<float>(x0.size());
}
"#;

/// The machine's own hiprtc, unless the variable names none.
fn real() -> Option<Hiprtc> {
    let path = std::env::var("RESIDENT_HIPRTC").ok().filter(|path| !path.is_empty());
    let Some(path) = path else {
        println!("skipped: RESIDENT_HIPRTC names no hiprtc");
        return None;
    };
    let library = open(&path);
    let compiler = Hiprtc::find_in(&library);
    // It stays loaded.
    std::mem::forget(library);
    Some(compiler)
}

/// The architectures of a compiler. At one that it does not know, hiprtc 5.2 ends the process.
fn architectures(compiler: &Hiprtc) -> Vec<(&'static str, u32)> {
    let text = "#if HIP_VERSION_MAJOR < 6\n#error before 6\n#endif";
    let made = compiler.compile(text, &["--offload-arch=gfx90a"], &[]);
    let newer = if made.outcome.is_ok() { &SINCE_6[..] } else { &[] };
    ARCHITECTURES.iter().chain(newer).copied().collect()
}

fn compile(compiler: &Hiprtc, name: &str, text: &str, architecture: (&str, u32)) -> Compiled {
    let numbers = numbers::for_gpu(text, |_| false);
    let text = format!("{numbers}{PRELUDE}\n#line 1 \"{name}\"\n{text}");
    let target = format!("--offload-arch={}", architecture.0);
    let lanes = format!("-DLANES={}", architecture.1);
    let options = [&*target, "-O3", "-std=c++17", "-ffp-contract=off", &*lanes];
    compiler.compile(&text, &options, &[])
}

/// The bytes of each parameter, by kernel.
fn sizes(image: &[u8]) -> BTreeMap<String, Vec<usize>> {
    let known = kernels(image).expect("it is whole").expect("it describes its kernels");
    let sizes = |kernel: &code_object::CompiledKernel| {
        kernel.parameters.iter().map(|parameter| parameter.len_bytes).collect()
    };
    known.iter().map(|kernel| (kernel.name.clone(), sizes(kernel))).collect()
}

// Two tests, which run beside each other, in processes of their own.
#[test]
fn every_source_compiles_and_has_the_parameters_of_the_host_with_64_lanes() {
    support::own_process!();
    every_source_compiles(64);
}

#[test]
fn every_source_compiles_and_has_the_parameters_of_the_host_with_32_lanes() {
    support::own_process!();
    every_source_compiles(32);
}

/// For the architectures whose wavefronts have so many lanes.
fn every_source_compiles(lanes: u32) {
    let Some(real) = real() else { return };
    // This sets the variable to the stand-in, which gives the sizes in C++ for the host.
    let stand_in = hiprtc();
    let mut architectures = architectures(&real);
    architectures.retain(|architecture| architecture.1 == lanes);
    let mut faults = Vec::new();
    for (name, text) in device_sources::all() {
        let host = compile(&stand_in, &name, &text, ARCHITECTURES[0]).outcome.ok();
        for &architecture in &architectures {
            let made = compile(&real, &name, &text, architecture);
            let target = architecture.0;
            match made.outcome {
                Err(code) => faults.push(format!("{name} for {target}: {code}:\n{}", made.log)),
                Ok(_) if made.log.contains("warning") => {
                    faults.push(format!("{name} for {target}:\n{}", made.log));
                }
                Ok(image) => {
                    let expected = host.as_deref().map(sizes);
                    assert_eq!(Some(sizes(&image)), expected, "{name} for {target}");
                    println!("{name} for {target}: {} bytes", image.len());
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn views_have_their_sizes_and_warps_their_lanes() {
    support::own_process!();
    let Some(real) = real() else { return };
    for (target, lanes) in architectures(&real) {
        let made = compile(&real, "all_views.cu", ALL_VIEWS, (target, lanes));
        let image = made.outcome.expect(&made.log);
        assert_eq!(
            parameter_bytes(&image, "all_views"),
            Ok(Some(vec![8, 24, 40, 56, 72, 88, 104, 1])),
            "{target}"
        );
        let known = architecture(&image).expect("it tells");
        assert_eq!(known, format!("amdgcn-amd-amdhsa--{target}"));
        assert!(parameter_bytes(&image, "other").is_err());
    }
}

/// A kernel that takes a warp for 32 lanes, as CUDA C may.
const LANES_OF_32: &str = r#"
extern "C" __global__ void sum(const float *x, float *sums, float *most) {
    float sum = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffff, sum, by);
    __syncwarp();
    unsigned odd = __ballot_sync(0xffffffff, threadIdx.x % 2);
    if (threadIdx.x % 32 == 0) sums[blockIdx.x] = odd ? sum : INFINITY;
    if (__any_sync(0xffffffff, sum != sum)) most[blockIdx.x] = NAN;
}
"#;

/// The same for warps of any size.
const ALL_LANES: &str = r#"
extern "C" __global__ void sum(const float *x, float *sums, double *most) {
    float sum = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int by = resident::wave_size() / 2; by > 0; by /= 2)
        sum += __shfl_down_sync(resident::all_lanes(), sum, by);
    double other = __shfl_xor_sync(resident::all_lanes(), most[threadIdx.x], 1);
    other += __shfl_up_sync(resident::all_lanes(), other, 1, 16);
    resident::lane_mask odd = __ballot_sync(resident::all_lanes(), threadIdx.x % 2);
    if (__all_sync(odd, 1)) sums[blockIdx.x] = __shfl_sync(resident::all_lanes(), sum, 0);
    __syncwarp(resident::all_lanes());
    most[threadIdx.x] = other;
    int is_same;
    resident::lane_mask equal = __match_any_sync(__activemask(), other);
    equal |= __match_all_sync(odd, threadIdx.x, &is_same);
    int total = __reduce_add_sync(equal, static_cast<int>(threadIdx.x)) + is_same;
    total += __reduce_min_sync(odd, total) + __reduce_max_sync(odd, total);
    unsigned bits = __reduce_and_sync(odd, total + 0u) ^ __reduce_or_sync(odd, total + 0u);
    sums[blockIdx.x + 1] = total + __reduce_xor_sync(odd, bits);
}
"#;

#[test]
fn warps_of_32_lanes_compile_where_there_are_such_and_are_refused_elsewhere() {
    support::own_process!();
    let Some(real) = real() else { return };
    for (target, lanes) in architectures(&real) {
        let made = compile(&real, "all_lanes.cu", ALL_LANES, (target, lanes));
        assert!(made.outcome.is_ok() && made.log.is_empty(), "{target}: {}", made.log);
        let made = compile(&real, "lanes_of_32.cu", LANES_OF_32, (target, lanes));
        if lanes == 32 {
            assert!(made.outcome.is_ok() && made.log.is_empty(), "{target}: {}", made.log);
            continue;
        }
        assert!(made.outcome.is_err(), "{target} has {lanes} lanes");
        for part in ["have 64 lanes", "resident::all_lanes()", "lanes_of_32.cu:4:", "Kernel::hip"] {
            assert!(made.log.contains(part), "\"{part}\" is not in: {}", made.log);
        }
    }
}

#[test]
fn numbers_of_16_bits_compile() {
    support::own_process!();
    let Some(real) = real() else { return };
    let kernel = r#"
        extern "C" __global__ void half_of(const __nv_bfloat16 *x, __nv_bfloat16 *y, float *z) {
            __nv_bfloat16 half = x[threadIdx.x] * __float2bfloat16(0.5f);
            half += __hfma(half, half, -half);
            y[threadIdx.x] = x[threadIdx.x] > half ? __hmax(half, __nv_bfloat16(2)) : half;
            z[threadIdx.x] = __bfloat162float(__shfl_sync(resident::all_lanes(), half, 0));
        }
    "#;
    for target in architectures(&real) {
        let made = compile(&real, "half_of.cu", &format!("{BF16}{kernel}"), target);
        let image = made.outcome.expect(&made.log);
        assert_eq!(parameter_bytes(&image, "half_of"), Ok(Some(vec![8, 8, 8])), "{target:?}");
        assert_eq!(made.log, "");
    }
}

#[test]
fn real_and_stand_in_refuse_the_same_options() {
    support::own_process!();
    let Some(real) = real() else { return };
    let stand_in = hiprtc();
    let source = "extern \"C\" __global__ void f(float *x) { x[0] = 1; }";
    // Not among them: a target that does not exist, at which hiprtc 5.2 ends the process.
    let cases: [&[&str]; 7] = [
        &[],
        &["--offload-arch=gfx90a", "--fmad=false"],
        &["--offload-arch=gfx90a", "-fmad=false"],
        &["--offload-arch=gfx90a", "--use_fast_math"],
        &["--offload-arch=gfx90a", "--offload-arch=gfx1030"],
        &["--offload-arch=gfx90a:sramecc+:xnack-", "-ffast-math", "-g", "-Wall"],
        &["--offload-arch=gfx90a", "-I", "/tmp", "-DX=1", "-D", "Y", "-O2", "-std=c++17"],
    ];
    for options in cases {
        let (one, other) =
            (real.compile(source, options, &[]), stand_in.compile(source, options, &[]));
        // Without a compiler for the host, the stand-in compiles nothing.
        let code = |made: &Compiled| made.outcome.as_ref().err().copied();
        assert_eq!(code(&one), code(&other), "{options:?}: {} or {}", one.log, other.log);
        let first = |log: &str| log.lines().next().map(str::to_owned);
        if one.outcome.is_err() {
            assert_eq!(first(&one.log), first(&other.log), "{options:?}");
        }
    }
}
