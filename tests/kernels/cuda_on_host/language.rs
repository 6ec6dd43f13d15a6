//! What CUDA C has beyond C++: atomics, intrinsics, vectors, globals, mathematics.

use resident::ndarray::Ix1;
use resident::{
    CudaSource, Device, Element, Grid, In, InOut, Kernel, Out, Result, Signature, SmartArray,
};

use crate::{checking, device, kernel, one_of};

/// The kernels of the tests that need no source of their own.
const SOURCE: &str = r#"
    extern "C" __global__ void count(unsigned *a, unsigned long long *b, float *c, double *d,
                                     int *e) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        atomicAdd(a, 2);
        atomicAdd(b, 1ull << 33);
        atomicAdd(c, 0.5f);
        atomicAdd(d, 0.25);
        atomicMax(&e[0], i);
        atomicMin(&e[1], -i);
        atomicInc(a + 1, 999);
        atomicXor(a + 2, i);
        if (atomicCAS(&e[2], 0, 1) == 0) atomicExch(&e[3], 7);
    }
    extern "C" __global__ void bits(resident::View1<const unsigned> x, unsigned *y) {
        unsigned a = x(0), b = x(1);
        y[0] = __popc(a);
        y[1] = __clz(a);
        y[2] = __ffs(b);
        y[3] = __brev(a);
        y[4] = __byte_perm(a, b, 0x5140);
        y[5] = __umulhi(a, b);
        y[6] = __funnelshift_l(a, b, 8);
        y[7] = __float_as_uint(1.5f);
        y[8] = __mul24(-3, 5);
        y[9] = __float2int_rn(2.5f) + 10 * __float2int_ru(2.1f) + 100 * __float2int_rz(-2.9f);
        y[10] = __float2uint_rn(-4.0f) + __double2int_rz(1e300);
        y[11] = __sad(3, -4, 10);
        y[12] = (unsigned)(__umul64hi(1ull << 63, 6) + __popcll(~0ull) + __clzll(1));
        y[13] = min(3, 5) + max(2u, 9u) + abs(-4);
    }
    extern "C" __global__ void twice(float a, float b, float *y) {
        y[0] = a * b - 1.0f;
        y[1] = fmaf(a, b, -1.0f);
        y[2] = __fmaf_rn(a, b, -1.0f);
        y[3] = rsqrtf(4.0f) + sqrt(9.0f) + fabs(-1.0f) + pow(2.0f, 3.0f);
        y[4] = exp2f(3) + __expf(0) + log2(8.0f) + hypotf(3, 4) + fminf(1, 2) + floor(2.7f);
        y[5] = sqrt(16.0) + pow(2.0, 3.0) + pow(2.0, 3) + pow(2.0f, 3) + fabs(-2.0);
        y[5] += ceil(7 / 2.0);
    }
    extern "C" __global__ void copy(resident::View2<const int> a, resident::View2<int> b) {
        for (long long i = resident::thread(); i < b.size(); i += gridDim.x * blockDim.x)
            b.at(i) = a.at(i) + 1;
    }
    extern "C" __global__ void add(float a, float4 p, char b, float4 q, float4 *o) {
        *o = make_float4(a + p.x + q.x, p.y + q.y, p.z + q.z, p.w + q.w + b);
    }
    __device__ unsigned launches;
    extern "C" __global__ void index(unsigned *x) { *x = ++launches; }
    struct Pair { float of[2]; };
    extern "C" __global__ void pick(const int *which, const float *a, float *out) {
        size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
        float two[2];
        two[which[i]] = a[i];
        two[1 - which[i]] = 0;
        Pair pair = {{a[i], -a[i]}};
        out[i] = two[0] + 2 * pair.of[which[i]];
    }
"#;

/// Kernels of structs of several lengths in words, each of which is aligned to its length.
fn of_aligned() -> String {
    let of_words = |words: usize| {
        format!(
            r#"
            struct alignas(4 * {words}) Block{words} {{ unsigned x[{words}]; }};
            extern "C" __global__
            void add{words}(char c, Block{words} a, float f, Block{words} b, unsigned *o) {{
                __shared__ unsigned sums[{words}];
                const Block{words} copy = a;
                sums[threadIdx.x] = copy.x[threadIdx.x] + b.x[threadIdx.x];
                __syncthreads();
                o[threadIdx.x] = sums[{words} - 1 - threadIdx.x] + c + unsigned(f);
            }}
            "#
        )
    };
    [4, 8, 16, 32, 64].map(of_words).concat()
}

/// One of these kernels, which are one source.
fn one<S: Signature>(entry: &str) -> Kernel<S> {
    one_of(&[SOURCE, &of_aligned()].concat(), entry)
}

#[test]
fn atomics_of_all_widths_lose_nothing_among_blocks() -> Result<()> {
    type Count = (InOut<u32>, InOut<u64>, InOut<f32>, InOut<f64>, InOut<i32>);
    let count = one::<Count>("count");
    let mut a = SmartArray::<u32, _>::zeros(3);
    let (mut b, mut c) = (SmartArray::<u64, _>::zeros(1), SmartArray::<f32, _>::zeros(1));
    let (mut d, mut e) = (SmartArray::<f64, _>::zeros(1), SmartArray::<i32, _>::zeros(4));
    let arguments = (&mut a, &mut b, &mut c, &mut d, &mut e);
    count.launch_on(&device().stream(), Grid::new(500, 64), arguments)?;
    assert_eq!(a.to_vec()?, [64_000, 0, (0..32_000).fold(0, |all, i| all ^ i)]);
    assert_eq!((b.get(0)?, c.get(0)?, d.get(0)?), (32_000 << 33, 16_000.0, 8_000.0));
    assert_eq!(e.to_vec()?, [31_999, -31_999, 1, 7]);
    Ok(())
}

#[test]
fn intrinsics_of_integers_are_those_of_cuda() -> Result<()> {
    let bits = one::<(In<u32, Ix1>, InOut<u32>)>("bits");
    let x = SmartArray::from(vec![0x1234_5678_u32, 0x9abc_def0]);
    let mut y = SmartArray::<u32, _>::zeros(14);
    bits.launch_on(&device().stream(), Grid::new(1, 1), (&x, &mut y))?;
    let (a, b) = (0x1234_5678_u32, 0x9abc_def0_u32);
    let expected = [
        a.count_ones(),
        a.leading_zeros(),
        b.trailing_zeros() + 1,
        a.reverse_bits(),
        0xde56_f078,
        ((u64::from(a) * u64::from(b)) >> 32) as u32,
        (b << 8) | (a >> 24),
        1.5_f32.to_bits(),
        (-15_i32) as u32,
        (2 + 30 - 200_i32) as u32,
        i32::MAX as u32,
        17,
        3 + 64 + 63,
        3 + 9 + 4,
    ];
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}

/// NVRTC contracts only if it is asked to; here too.
#[test]
fn products_and_sums_are_rounded_apart() -> Result<()> {
    let twice = one::<(f32, f32, InOut<f32>)>("twice");
    let (a, b) = (1.0 + f32::EPSILON, 1.0 - f32::EPSILON);
    let mut y = SmartArray::<f32, _>::zeros(6);
    twice.launch_on(&device().stream(), Grid::new(1, 1), (a, b, &mut y))?;
    let fused = a.mul_add(b, -1.0);
    assert_eq!(y.to_vec()?, [a * b - 1.0, fused, fused, 12.5, 20.0, 34.0]);
    assert_ne!(a * b - 1.0, fused);
    Ok(())
}

/// A header that an option includes, which only the folder of another option has.
#[test]
fn a_header_is_included_before_the_source() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("resident-pre-include-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("number.cuh"), "typedef float Number;\n").expect("a file");
    let text = "extern \"C\" __global__ void twice(Number *x) { x[threadIdx.x] *= 2; }";
    for options in [&["--pre-include=number.cuh"][..], &["-include", "number.cuh"]] {
        let source = CudaSource::c(text).include(&folder);
        let source = options.iter().fold(source, |source, option| source.option(*option));
        let twice = kernel::<(InOut<f32>,)>("twice", source);
        let mut x = SmartArray::from(vec![1.0_f32, 2.0]);
        twice.launch_on(&Device::cpu().stream(), Grid::new(1, 2), (&mut x,))?;
        assert_eq!(x.to_vec()?, [2.0, 4.0], "{options:?}");
    }
    std::fs::remove_dir_all(folder).expect("a folder");
    Ok(())
}

/// As for NVRTC, which takes it from there for a file. In angle brackets it is in the other folder.
/// What headers convert and shift has a GPU's value too.
#[test]
fn a_header_in_quotes_is_looked_for_beside_its_file_first() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("resident-beside-{}", std::process::id()));
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        path
    };
    file("include/v.h", "#pragma once\n#define OTHER 3\n");
    let values = "__device__ int converted(float x) { int y = x; return (int)x & y; }\n\
                  __device__ unsigned shifted(unsigned x, int n) { return x << n; }\n";
    file("source/v.h", &format!("#define BESIDE 5\n{values}"));
    let text = "#include \"v.h\"\n#include <v.h>\nextern \"C\" __global__ void k(int *x) {\n\
                x[0] = BESIDE + OTHER; x[1] = converted(x[1] * 3e10f); x[2] = shifted(1, x[2]); }";
    let source = CudaSource::file(file("source/k.cu", text)).include(folder.join("include"));
    let k = kernel::<(InOut<i32>,)>("k", source);
    let mut x = SmartArray::from(vec![0, 1, 32]);
    k.launch_on(&Device::cpu().stream(), Grid::new(1, 1), (&mut x,))?;
    assert_eq!(x.to_vec()?, [8, i32::MAX, 0]);
    std::fs::remove_dir_all(folder).expect("a folder");
    Ok(())
}

/// Globals keep their values between the launches of a kernel.
#[test]
fn globals_constants_vectors_and_macros() -> Result<()> {
    let source = CudaSource::c(
        r#"
        struct __align__(16) Ray { float3 from; float time; };
        __constant__ int weights[3] = {1, 10, 100};
        __device__ unsigned launches = 0;
        __device__ __forceinline__ float4 doubled(float4 v) {
            return make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
        }
        __global__ __launch_bounds__(64, 2) void mixed(const float4 *__restrict__ x, float4 *y,
                                                      unsigned *count) {
            static_assert(sizeof(Ray) == 16 && alignof(float4) == 16 && sizeof(dim3) == 12, "");
            #pragma unroll 4
            for (int i = threadIdx.x; i < 3; i += blockDim.x) {
                float4 v = doubled(__ldg(x + i));
                v.w += weights[i] * FACTOR;
                y[i] = v;
            }
            if (threadIdx.x == 0) *count = ++launches;
        }
        "#,
    );
    type Mixed = (In<[f32; 4]>, InOut<[f32; 4]>, InOut<u32>);
    let source = source.define("FACTOR", 3).entry("mixed");
    let mixed = kernel::<Mixed>("several things", source);
    let x = SmartArray::from(vec![[1.0_f32, 2.0, 3.0, 4.0]; 3]);
    let mut y = SmartArray::<[f32; 4], _>::full(3, [0.0; 4]);
    let mut count = SmartArray::<u32, _>::zeros(3);
    let stream = device().stream();
    for _ in 0..2 {
        mixed.launch_on(&stream, Grid::new(1, 2), (&x, &mut y, &mut count))?;
    }
    assert_eq!(y.to_vec()?, [3.0, 30.0, 300.0].map(|more| [2.0, 4.0, 6.0, 8.0 + more]));
    assert_eq!(count.get(0)?, 2);
    Ok(())
}

/// Each macro is as wide as the number in Rust, and has its bits.
#[test]
fn numbers_in_macros_have_their_value_and_type() -> Result<()> {
    let text = r#"
        template <typename T> __device__ T is_of(T value) { return value; }
        __device__ const float in_memory = ONE;
        extern "C" __global__ void k(double *x) {
            static_assert(sizeof ONE == 4 && sizeof TENTH == 8 && sizeof ALL == 8, "");
            static_assert(ALL + 1 == 0 && -1 > UNSIGNED && LOWEST < 0 && sizeof LOWEST == 4, "");
            static_assert(COUNT - 5 < 0 && TRUTH && WIDE * 3000000000 > 0, "");
            int i = 0;
            x[i++] = ONE / 2; x[i++] = HUGE; x[i++] = 1 / ZERO; x[i++] = INFINITE;
            x[i++] = -UNKNOWN != -UNKNOWN; x[i++] = TENTH; x[i++] = TEXT; x[i++] = ALL;
            x[i++] = 2-NEGATIVE; x[i++] = in_memory; x[i++] = LOWEST; x[i++] = is_of(DOUBLE);
        }"#;
    let source = CudaSource::c(text)
        .define("ONE", 1_f32)
        .define("HUGE", 1e30_f32)
        .define("ZERO", -0.0)
        .define("INFINITE", f32::INFINITY)
        .define("UNKNOWN", f64::NAN)
        .define("TENTH", 0.1)
        .define("TEXT", "1 + 1")
        .define("ALL", u64::MAX)
        .define("NEGATIVE", -3)
        .define("LOWEST", i32::MIN)
        .define("DOUBLE", f64::NEG_INFINITY)
        .define("UNSIGNED", 3_u32)
        .define("COUNT", 4_usize)
        .define("WIDE", 3_i64)
        .define("TRUTH", true);
    let mut x = SmartArray::<f64, _>::zeros(12);
    let kernel = kernel::<(InOut<f64>,)>("k", source);
    kernel.launch_on(&device().stream(), Grid::new(1, 1), (&mut x,))?;
    let (huge, lowest) = (f64::from(1e30_f32), f64::from(i32::MIN));
    let infinite = f64::INFINITY;
    let expected = [
        0.5,
        huge,
        -infinite,
        infinite,
        1.0,
        0.1,
        2.0,
        2_f64.powi(64),
        5.0,
        1.0,
        lowest,
        -infinite,
    ];
    assert_eq!(x.to_vec()?, expected);
    Ok(())
}

/// Calls, with values to 17 digits, of mpmath. Those of names that end with `f`, or have such a
/// number, are floats.
const OF_CUDA: [(&str, f64); 45] = [
    ("erfinv(0.3)", 0.2724627147267543),
    ("erfinv(-0.999999)", -3.458910737275499),
    ("erfinv(-1.0)", f64::NEG_INFINITY),
    ("erfcinv(1e-100)", 15.065574702592645),
    ("erfcinv(1.6)", -0.595116081449995),
    ("normcdf(-37.0)", 5.725571222524577e-300),
    ("normcdf(0.3)", 0.6179114221889527),
    ("normcdfinv(1e-10)", -6.361340902404057),
    ("normcdfinv(0.9)", 1.2815515655446006),
    ("erfcx(10.0)", 0.05614099274382259),
    ("erfcx(-5.0)", 144009798674.66104),
    ("erfcx(100.0)", 0.005641613782989433),
    ("cyl_bessel_i0(5.0)", 27.239871823604446),
    ("cyl_bessel_i0(700.0)", 1.5295933476718737e+302),
    ("cyl_bessel_i1(-7.0)", -156.03909286995545),
    ("cyl_bessel_i1(100.0)", 1.0683693903381625e+42),
    ("j0(2.5)", -0.048383776468198),
    ("j1(2.5)", 0.49709410246427405),
    ("jn(3, 2.5)", 0.21660039103911352),
    ("y0(2.5)", 0.4980703596152319),
    ("y1(2.5)", 0.1459181379667858),
    ("yn(3, 2.5)", -0.756055496753671),
    ("norm4d(1, 2, 4, 10)", 11.0),
    ("rnorm3d(2.0, 3.0, 6.0)", 0.14285714285714285),
    ("rnorm4d(1, 2, 4, 10)", 0.09090909090909091),
    ("erfinvf(0.3f)", 0.27246272563934326),
    ("erfcinv(0.3f)", 0.7328690886497498),
    ("normcdff(-5.0f)", 2.8665158424701076e-07),
    ("normcdfinv(0.3f)", -0.5244004726409912),
    ("erfcxf(2.0f)", 0.25539568066596985),
    ("cyl_bessel_i0f(2.0f)", 2.279585361480713),
    ("cyl_bessel_i1f(2.0f)", 1.5906368494033813),
    ("j0f(2.5f)", -0.04838377609848976),
    ("ynf(3, 2.5f)", -0.756055474281311),
    ("normf(2, pair)", 5.0),
    ("rnormf(2, pair)", 0.2_f32 as f64),
    ("__fns(0x58u, 3, 2)", 4.0),
    ("__fns(0x58u, 6, -3)", 3.0),
    ("__fns(0x58u, 3, 4)", 4294967295.0),
    ("__fns(0x58u, 6, 0)", 6.0),
    ("__fns(0x58u, 5, 0)", 4294967295.0),
    ("__funnelshift_lc(1, 2, 40)", 1.0),
    ("__funnelshift_rc(1, 3, 1)", 2147483648.0),
    ("umin(1, 2) + llmax(-3, 4)", 5.0),
    // Of the source's own.
    ("erfinv(2)", -2.0),
];

#[test]
fn functions_of_cuda_that_no_c_library_has() -> Result<()> {
    let numbered = OF_CUDA.iter().enumerate();
    let lines: String = numbered.map(|(at, (call, _))| format!("x[{at}] = {call};\n")).collect();
    let source = format!(
        "__device__ double erfinv(int x) {{ return -x; }}\n\
         __device__ unsigned int umax(unsigned int x, unsigned int y) {{ return x + y; }}\n\
         extern \"C\" __global__ void special(double *x) {{\n\
         const float pair[2] = {{3, 4}}; __prof_trigger(1);\n{lines}}}\n"
    );
    let kernel = kernel::<(InOut<f64>,)>("special", source);
    let mut x = SmartArray::<f64, _>::zeros(OF_CUDA.len());
    kernel.launch_on(&device().stream(), Grid::new(1, 1), (&mut x,))?;
    for ((call, expected), seen) in OF_CUDA.into_iter().zip(x.to_vec()?) {
        let is_float = call.contains("f(") || call.contains("f)");
        let part = if is_float { f64::from(f32::EPSILON) } else { 8.0 * f64::EPSILON };
        let is_near = (seen - expected).abs() <= expected.abs() * part;
        assert!(seen == expected || is_near, "{call}: {seen}, not {expected}");
    }
    Ok(())
}

#[test]
fn views_of_every_layout_are_read_and_written_in_place() -> Result<()> {
    use resident::ndarray::{Array2, Ix2, s};
    type Copy = (In<i32, Ix2>, Out<i32, Ix2>);
    let copy = one::<Copy>("copy");
    let numbers = Array2::from_shape_fn((9, 14), |(i, j)| (100 * i + j) as i32);
    let a = SmartArray::from(numbers.clone());
    let mut b = SmartArray::<i32, _>::zeros((20, 20));
    let (from, part) = (a.slice(s![..;-2, 3..11]), b.slice_mut(s![4..12, ..;4]));
    let mut to = part.reversed_axes();
    copy.launch_on(&device().stream(), Grid::new(3, 5), (&from, &mut to))?;
    let mut expected = Array2::<i32>::zeros((20, 20));
    let source = numbers.slice(s![..;-2, 3..11]).mapv(|x| x + 1);
    expected.slice_mut(s![4..12, ..;4]).reversed_axes().assign(&source);
    assert_eq!(*b.host()?, expected);
    Ok(())
}

/// Scalars of the alignment of vector types, behind others.
#[test]
fn parameters_are_aligned_as_their_types_are() -> Result<()> {
    #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    #[repr(C, align(16))]
    struct Four([f32; 4]);

    type Add = (f32, Four, i8, Four, Out<[f32; 4]>);
    let add = one::<Add>("add");
    let mut o = SmartArray::<[f32; 4], _>::uninit(1);
    let (p, q) = (Four([1.0, 2.0, 3.0, 4.0]), Four([10.0, 20.0, 30.0, 40.0]));
    add.launch_on(&device().stream(), Grid::new(1, 1), (0.5, p, 2, q, &mut o))?;
    assert_eq!(o.get(0)?, [11.5, 22.0, 33.0, 46.0]);
    Ok(())
}

/// Adds two structs of this many words, which are passed by value behind other parameters. The
/// threads wait for each other, and so run on stacks of their own.
fn sums_of_aligned<B: Element + bytemuck::Pod>(words: usize) -> Result<()> {
    type Add<B> = (i8, B, f32, B, Out<u32>);
    let add = one::<Add<B>>(&format!("add{words}"));
    let in_rust =
        Kernel::<Add<B>>::new("add").host(|_, (c, a, f, b, o): (_, B, f32, B, &mut [u32])| {
            assert_eq!((&raw const a).addr() % align_of::<B>(), 0);
            let [a, b]: [&[u32]; 2] =
                [&a, &b].map(|block| bytemuck::cast_slice(bytemuck::bytes_of(block)));
            let sums = a.iter().zip(b).rev().map(|(a, b)| a + b + c as u32 + f as u32);
            o.iter_mut().zip(sums).for_each(|(o, sum)| *o = sum);
        });
    let block = |first: u32| {
        let values: Vec<u32> = (first..).step_by(3).take(words).collect();
        bytemuck::pod_read_unaligned::<B>(bytemuck::cast_slice(&values))
    };
    let expected: Vec<u32> = (0..words as u32).rev().map(|i| 1007 + 6 * i).collect();
    let checked = checking();
    for (kernel, device) in [(&add, &device()), (&add, &checked), (&in_rust, &Device::cpu())] {
        let mut o = SmartArray::<u32, _>::uninit(words);
        let grid = Grid::new(1, words as u32);
        kernel.launch_on(&device.stream(), grid, (2, block(0), 5.0, block(1000), &mut o))?;
        assert_eq!(o.to_vec()?, expected, "{words} words on {device}");
    }
    assert_eq!(checked.emulation().expect("it is emulated").findings(), []);
    Ok(())
}

#[test]
fn structs_of_any_alignment_are_parameters() -> Result<()> {
    macro_rules! aligned {
        ($($bytes:literal)+) => {
            $({
                #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
                #[repr(C, align($bytes))]
                struct Block([u32; $bytes / 4]);

                sums_of_aligned::<Block>($bytes / 4)?;
            })+
        };
    }
    aligned!(16 32 64 128 256);
    Ok(())
}

#[test]
fn each_device_has_globals_of_its_own() -> Result<()> {
    // `index` is a function of C libraries too.
    let index = one::<(InOut<u32>,)>("index");
    let (one, other) = (device(), device());
    let mut x = SmartArray::<u32, _>::zeros(1);
    for (device, expected) in [(&one, 1), (&one, 2), (&other, 1), (&one, 3)] {
        index.launch_on(&device.stream(), Grid::new(1, 1), (&mut x,))?;
        assert_eq!(x.get(0)?, expected);
    }
    Ok(())
}

#[test]
fn mathematics_is_exact_where_cudas_is() -> Result<()> {
    let source = r#"
        #ifndef __CUDACC_RTC__  // NVRTC has what they declare, and no such headers.
        #include <math.h>
        #include <assert.h>
        #include <time.h>
        #endif
        extern "C" __global__ void maths(double *y) {
            assert(blockDim.x == 1);
            y[0] = sinpi(1.0) + cospi(0.5) + sinpi(1e15) + sinpif(-2.0f) + cospi(1.5);
            y[1] = sinpi(2.5) + cospi(1e6 + 1) + sinpi(-0.5);
            y[2] = min(3ll, 5ull) + max(2l, 9ul) + (clock() == clock64() ? 0 : 0);
            float whole;
            y[3] = modff(2.5f, &whole) + whole;
            y[4] = __byte_perm(0x80, 0, 0x8888) == 0x80808080;
        }
    "#;
    let maths = kernel::<(Out<f64>,)>("maths", source);
    let mut y = SmartArray::<f64, _>::uninit(5);
    maths.launch_on(&device().stream(), Grid::new(1, 1), (&mut y,))?;
    assert_eq!(y.to_vec()?, [0.0, -1.0, 12.0, 2.5, 1.0]);
    Ok(())
}

/// The compiler may run several threads of a block at once, where each has local arrays of its own.
#[test]
fn local_arrays_belong_to_one_thread() -> Result<()> {
    let pick = one::<(In<i32>, In<f32>, Out<f32>)>("pick");
    let which: Vec<i32> = (0..1024).map(|i| i32::from(i * 7 % 3 == 0)).collect();
    let a: Vec<f32> = (1..=1024).map(|i| i as f32).collect();
    let expected = |(which, a): (&i32, &f32)| if *which == 0 { 3.0 * a } else { -2.0 * a };
    let expected: Vec<f32> = which.iter().zip(&a).map(expected).collect();
    let (which, a) = (SmartArray::from(which), SmartArray::from(a));
    let mut out = SmartArray::<f32, _>::uninit(1024);
    pick.launch_on(&device().stream(), Grid::new(4, 256), (&which, &a, &mut out))?;
    assert_eq!(out.to_vec()?, expected);
    Ok(())
}

/// The ways in which CUDA C declares and defines a kernel.
#[test]
fn kernels_are_declared_as_cuda_allows() -> Result<()> {
    let source = r#"
        template <typename T> __global__ void all(T *x) { x[threadIdx.x] += 1; }
        template __global__ void all<float>(float *);
        inline __global__ void all_inline(float *x) { x[threadIdx.x] += 1; }
        static inline __global__ void all_static(float *x) { x[threadIdx.x] += 1; }
        __global__ __forceinline__ void all_forced(float *x) { x[threadIdx.x] += 1; }
        extern "C" __global__ void all_declared(float *x);
        extern "C" __global__ void __launch_bounds__(64) all_declared(float *x) {
            x[threadIdx.x] += 1;
        }
    "#;
    let (source, mut x) = (CudaSource::c(source), SmartArray::<f32, _>::zeros(32));
    let entries = ["all<float>", "all_inline", "all_static", "all_forced", "all_declared"];
    for entry in entries {
        let all = kernel::<(InOut<f32>,)>("all", source.clone().entry(entry));
        all.launch_on(&device().stream(), Grid::new(1, 32), (&mut x,))?;
    }
    assert_eq!(x.to_vec()?, [entries.len() as f32; 32]);
    Ok(())
}
