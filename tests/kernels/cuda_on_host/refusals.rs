//! What NVRTC refuses, and what is not there, is refused with words that help.

use resident::{CudaSource, Device, Grid, InOut, Result, SmartArray};

use crate::{checking, device, kernel, one_of};

/// Why a kernel of a source is refused.
fn refused(name: &str, source: impl Into<CudaSource>) -> String {
    crate::refused::<(InOut<f32>,)>(&Device::cpu(), name, source)
}

fn body(text: &str) -> String {
    format!("extern \"C\" __global__ void k(float *x) {{\n{text}\n}}\n")
}

#[test]
fn what_nvrtc_refuses_is_refused_here() {
    for (source, words) in [
        (format!("float f() {{ return 1; }}\n{}", body("x[0] = f();")), "k.cu:1: the function `f`"),
        (
            format!("struct S {{\n  S(int a) : a(a) {{}} int a; }};\n{}", body("x[0] = S(1).a;")),
            "k.cu:2: the function `S`",
        ),
        (format!("#define HOST inline\nHOST float f() {{ return 1; }}\n{}", body("")), "k.cu:2: "),
        (
            format!("static float f[2] = {{1}};\n{}", body("x[0] = f[0];")),
            "k.cu:1: the variable `f`",
        ),
        (body("x[0] = std::max(1.0f, x[0]);"), "k.cu:2: `std::max`"),
        (body("x[0] = std::numeric_limits<float>::max();"), "k.cu:2: `std::numeric_limits`"),
        (body("uint n = 1; x[0] = n;"), "`uint`, nor does NVRTC, which has no headers of this"),
        (body("x[0] = rand();"), "k.cu:2: the source does not declare `rand`"),
        (body("char *s = getenv(\"HOME\"); x[0] = s[0];"), "`getenv`, nor does NVRTC"),
        (body("x[0] = strlen(\"1\");"), "`strlen`, nor does NVRTC"),
        (body("fprintf(stdout, \"1\");"), "k.cu:2: the source does not declare `stdout`"),
        (body("memmove(x, x + 1, 4);"), "k.cu:2: the source does not declare `memmove`"),
        (body("x[0] = fmod(1.0f, 2.0);"), "`fmod` of these types is ambiguous"),
        (format!("#include <immintrin.h>\n{}", body("")), "NVRTC has no header immintrin.h"),
        (format!("#include <algorithm>\n{}", body("")), "NVRTC has no header algorithm"),
        (format!("#include <vector>\n{}", body("")), "k.cu:1:"),
        (
            format!("#include <cuda_fp8.h>\n{}", body("")),
            "the embedded device has no cuda_fp8.h, which is among the headers of CUDA",
        ),
        (body("x[0] = x[1] ?: 3;"), "k.cu:2: NVRTC refuses `?:` without a value in the middle"),
        (
            body("__shared__ float s = 3;\nx[0] = s;"),
            "k.cu:2: NVRTC refuses a `__shared__` variable",
        ),
        (body("int s[warpSize];\ns[1] = x[0];"), "k.cu:2:"),
        (body("threadIdx.x = 3;"), "k.cu:2:"),
        (body("const uint3 *p = (const uint3 *)&threadIdx;\nx[0] = p->x;"), "k.cu:2:"),
        (
            body("struct S { float x; } s = {1};\nx[0] = __shfl_sync(~0u, s, 1).x;"),
            "error: shuffles pass numbers, and no records and pointers",
        ),
        (body("x[0] = __isGlobal(x);"), "the embedded device has no `__isGlobal`: if CUDA has it"),
        (body("x[0] = sqrt(16);"), "`sqrt` of these types is ambiguous"),
        (body("x[0] = pow(2, 3);"), "`pow` of these types is ambiguous"),
        (body("x[0] = fabs(-2) + floor(3);"), "`fabs` of these types is ambiguous"),
    ] {
        let log = refused("k", source.as_str());
        assert!(log.contains(words), "{source}: {log}");
    }
    let log = refused("min", body("").replace("k(", "min(").as_str());
    assert!(log.starts_with("min.cu:3: the kernel that ends here has the name of"), "{log}");
    let errors: String = (0..200).map(|number| format!("x[0] = name_{number};\n")).collect();
    let log = refused("k", body(&errors).as_str());
    let has = |number: u32| log.contains(&format!("name_{number};"));
    assert!(has(9) && !has(20) && log.chars().count() <= 4000, "{log}");
}

/// Each call of `printf` in a kernel of many, with the words at its line.
#[test]
fn formats_of_printf_that_are_constants_are_compared_with_the_values() {
    let (missing, wrong) = ("more conversions than values", "a value does not fit its conversion");
    let unknown = "a conversion that CUDA lacks, such as `%n`";
    let many = format!("\"%d\"{}", ", 1".repeat(33));
    let calls = [
        ("\"%s\\n\", 42", wrong),
        ("\"%d %d %d\\n\", 1", missing),
        ("\"%d %f\\n\", 1.5, 7", wrong),
        ("\"%lld\", 1", wrong),
        ("\"%d\", 1ll", wrong),
        ("\"%*d\", 1.0, 1", wrong),
        ("\"%f\", Record{1}", wrong),
        ("\"%s\", x", wrong),
        ("\"%n\", (int *)x", unknown),
        ("\"%m\"", unknown),
        ("\"%'d\", 1", unknown),
        ("\"%2$d %1$d\", 1, 2", unknown),
        ("\"%Lf\", 1.0", unknown),
        ("\"100%\"", unknown),
        (&*many, "`printf` has more than 32 values"),
    ];
    let lines: String = calls.iter().map(|(call, _)| format!("printf({call});\n")).collect();
    let source = format!("struct Record {{ float x; }};\n{}", body(&lines));
    let log = refused("k", source);
    for (number, (call, words)) in (3..).zip(calls) {
        let line = log.lines().find(|line| line.starts_with(&format!("k.cu:{number}:")));
        let line = line.unwrap_or_else(|| panic!("{call}: {log}"));
        assert!(line.contains(words), "{call}: {line}");
    }
    assert!(!log.contains(".hpp"), "{log}");
}

#[test]
fn what_nvrtc_takes_is_taken() -> Result<()> {
    let source = "
        #define HD __host__ __device__ __forceinline__
        #ifndef __CUDACC_RTC__
        #include <algorithm>
        #include <vector>
        int main() { std::vector<int> v; return std::max(0, 1); }
        #endif
        HD float one() { return 1; }
        struct S { HD S(float a) : a(a) {} __device__ float get() const { return a; } float a; };
        namespace ns { template <typename T> __device__ T twice(T x) { return 2 * x; } }
        __device__ int pow(int base, int exponent) {
            return exponent ? base * pow(base, exponent - 1) : 1; }
        enum Kind { A = 3 };
        #pragma pack(push, 1)
        struct Packed { char a; float b; };
        #pragma pack(pop)
        _Pragma(\"pack(1)\") struct Also { char a; double b; }; _Pragma(\"pack()\")
        #pragma nv_diag_suppress (177)
        static_assert(sizeof(Packed) == 5 && sizeof(Also) == 9 && alignof(double) == 8, \"\");
        const float table[2] = {1, 2};
        __device__ float written; __constant__ S *none = nullptr; struct { int a; } typedef Plain;
        extern \"C\" __global__ void k(float *x) {
            auto add = [](float a, float b) { return a + b; };
            x[0] = add(one(), S(2).get()) + ns::twice(4.0f) + pow(2, 3) + A + table[1];
            printf(\"%d %5.1f %s %p %c\\n\", 1, x[0], \"a\", x, 'a');
            printf(\"%lld %lu %zu %%\\n\", 3ll, 4ul, sizeof x);
            const char *format = x[0] > 0 ? \"%d\\n\" : \"%u\\n\";
            printf(format, A), printf(\"%hhd %hu %i %x\\n\", 'c', (short)1, A, true);
            auto show = [=](int i) { printf(\"%d %*f\\n\", i, 3, x[0]); };
            show(threadIdx.x);
            x[0] += sqrt(16.0f) + fmax(2, 3.0) + abs(-1) + min(1, 2) + std::move(x[0]) * 0;
        }";
    let kernel = kernel::<(InOut<f32>,)>("k", source);
    for device in [device(), checking()] {
        let mut x = SmartArray::<f32, _>::zeros(1);
        kernel.launch_on(&device.stream(), Grid::new(1, 1), (&mut x,))?;
        assert_eq!(x.get(0)?, 3.0 + 8.0 + 8.0 + 3.0 + 2.0 + 4.0 + 3.0 + 1.0 + 1.0);
    }
    Ok(())
}

#[test]
fn what_is_not_there_is_named_and_other_kernels_of_the_file_run() -> Result<()> {
    let source = CudaSource::c(
        "#include <mma.h>
        #include <cub/cub.cuh>
        #include <curand_kernel.h>
        using namespace nvcuda;
        extern \"C\" __global__ void textured(cudaTextureObject_t t, float *x) {
            x[0] = tex2D<float>(t, 0, 0); }
        extern \"C\" __global__ void stored(float *x) { surf2Dwrite(x[0], 0, 0, 0); }
        extern \"C\" __global__ void lane(float *x) {
            int lane;
            asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(lane)); x[0] = lane; }
        extern \"C\" __global__ void nested(float *x) { lane<<<1, 1>>>(x); }
        extern \"C\" __global__ void tensor(float *x) { wmma::fill_fragment(x, 0); }
        extern \"C\" __global__ void block(float *x) { cub::BlockReduce<float, 32>().Sum(1); }
        extern \"C\" __global__ void noise(float *x) { curandState s; curand_init(1, 0, 0, &s); }
        extern \"C\" __global__ void old(float *x) { x[0] = __shfl(x[0], 1); }
        extern \"C\" __global__ void good(float *x) { x[0] = 5; }",
    );
    let good = kernel::<(InOut<f32>,)>("good", source.clone());
    let mut x = SmartArray::<f32, _>::zeros(1);
    good.launch_on(&Device::cpu().stream(), Grid::new(1, 1), (&mut x,))?;
    assert_eq!(x.get(0)?, 5.0);
    for (name, line, words) in [
        ("textured", 5, "`cudaTextureObject_t`: the embedded device has no textures"),
        ("stored", 7, "`surf2Dwrite`: the embedded device has no surfaces"),
        ("lane", 10, "`asm`: the embedded device has no inline PTX"),
        ("nested", 11, "`<<<`: the embedded device has no launches inside kernels"),
        ("tensor", 12, "`wmma`: the embedded device has no matrix units"),
        ("block", 13, "`cub`: the embedded device has no cub and no thrust"),
        ("noise", 14, "`curandState`: the embedded device has no cuRAND"),
        ("old", 15, "`__shfl`: the embedded device has no functions of warps without a mask"),
    ] {
        let log = refused(name, source.clone());
        let is_named = log.contains(words) && log.contains(&format!(".cu:{line}: "));
        assert!(is_named && log.contains("by `.host(..)`"), "{name}: {log}");
        assert_eq!(log.lines().count(), 1, "{log}");
    }
    Ok(())
}

/// Device functions with what is not there, their callers, and kernels that call neither.
const FUNCTIONS: &str = "
    #define NEGATIVE(x) ns::negative<1>(x)
    struct Five { float lane; };
    struct Image { cudaTextureObject_t texture; int width; };
    namespace ns {
    template <int n> __device__ float negative(float x) {
        asm(\"neg.f32 %0, %0;\" : \"+f\"(x));
        return x;
    }
    }
    static __device__ __forceinline__ unsigned int lane() {
        unsigned int lane;
        asm volatile(\"mov.u32 %0, %%laneid;\" : \"=r\"(lane));
        return lane; }
    __device__ float texel(cudaTextureObject_t t) { return tex2D<float>(t, 0, 0); }
    __device__ float pixel(Image image) { return tex2D<float>(image.texture, 0, 0); }
    __device__ float of_pixels(Image image) { return 2 * pixel(image); }
    struct Lanes { __device__ float operator()(float x) const { return x + lane(); } };
    extern \"C\" __global__ void negated(float *x) { x[0] = ns::negative<2>(x[0]); }
    extern \"C\" __global__ void by_macro(float *x) { x[0] = NEGATIVE(x[0]); }
    extern \"C\" __global__ void lanes(float *x) {
        x[0] = lane(); }
    extern \"C\" __global__ void texels(float *x) { x[0] = texel(0); }
    extern \"C\" __global__ void pixels(float *x) { x[0] = of_pixels(Image()); }
    template <unsigned int (*f)()> __global__ void apply(float *x) { x[0] = f(); }
    extern \"C\" __global__ void member(float *x) { x[0] = Lanes()(x[0]); }
    extern \"C\" __global__ void good(float *x) {
        Five five = {5}; x[0] = five.lane; }
";

#[test]
fn functions_with_what_is_not_there_refuse_the_kernels_that_may_call_them() -> Result<()> {
    let source = CudaSource::c(FUNCTIONS);
    let good = one_of::<(InOut<f32>,)>(FUNCTIONS, "good");
    for device in [device(), checking()] {
        let mut x = SmartArray::<f32, _>::zeros(1);
        good.launch_on(&device.stream(), Grid::new(1, 1), (&mut x,))?;
        assert_eq!(x.get(0)?, 5.0);
    }
    for (name, line, words) in [
        ("negated", 7, "`asm` in `negative`, which the kernel may call: the embedded device"),
        ("by_macro", 7, "`asm` in `negative`"),
        ("lanes", 13, "`asm` in `lane`, which the kernel may call: the embedded device has no"),
        ("texels", 15, "`cudaTextureObject_t` in `texel`"),
        ("pixels", 16, "`tex2D` in `pixel`"),
        ("apply<lane>", 13, "`asm` in `lane`"),
    ] {
        let log = refused(name, source.clone().entry(name));
        let is_named = log.contains(words) && log.contains(&format!(".cu:{line}: "));
        assert!(is_named && log.contains("by `.host(..)`"), "{name}: {log}");
        assert_eq!(log.lines().count(), 1, "{log}");
    }
    Ok(())
}

/// No name tells that the kernel calls it.
#[test]
fn a_function_with_what_is_not_there_fails_the_launch_that_comes_there() -> Result<()> {
    let member = one_of::<(InOut<f32>,)>(FUNCTIONS, "member");
    for device in [device(), checking()] {
        let mut x = SmartArray::<f32, _>::zeros(1);
        member.launch_on(&device.stream(), Grid::new(1, 1), (&mut x,))?;
        let error = device.synchronize().expect_err("it comes there").to_string();
        assert!(error.contains("kernel.cu:13: `asm` in `lane`"), "{error}");
    }
    Ok(())
}

#[test]
fn what_is_not_there_in_other_functions_is_named_and_refuses_the_source() {
    for (function, words) in [
        (
            "struct S { __device__ float f(float x) {\n  return __shfl_down(x, 1); } };",
            "k.cu:2: `__shfl_down`: the embedded device has no functions of warps without a mask",
        ),
        (
            "struct S {};\n__device__ float operator+(S a, S b) { return __shfl_up(1, 1); }",
            "k.cu:2: `__shfl_up`: the embedded device has no functions of warps without a mask",
        ),
        (
            "__device__ float f(curandState *s) { return 1; }\n\
             struct S { __device__ float g() { return f(nullptr); } };",
            "k.cu:1: `curandState` in `f`, which the kernel may call: the embedded device has no",
        ),
    ] {
        let log = refused("k", format!("{function}\n{}", body("x[0] = 1;")));
        assert!(log.starts_with(words), "{log}");
    }
}
