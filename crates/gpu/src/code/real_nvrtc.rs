//! Tests with a real NVRTC. They run if `RESIDENT_NVRTC` names the library, and fail if that file
//! is missing.

use super::compile::{Compiled, Compiler, Target};
use super::described_code::DescribedCode;
use super::image;
use super::source::Source;
use resident_backend::{ElementLayout, GpuSource, ParameterLayout, Program, environment};
use resident_code::parameter_types;
use resident_core::Access;

const FLOAT: ElementLayout = ElementLayout { len_bytes: 4, align_bytes: 4, rust_name: "f32" };
const BYTE: ElementLayout = ElementLayout { len_bytes: 1, align_bytes: 1, rust_name: "u8" };

/// The compiler that `RESIDENT_NVRTC` names, if it is set.
pub(super) fn compiler() -> Option<Compiler> {
    if environment::text("RESIDENT_NVRTC").is_none() {
        eprintln!("RESIDENT_NVRTC is not set: nothing was compiled");
        return None;
    }
    Some(Compiler::find_nvrtc(13_000).unwrap_or_else(|error| panic!("{error}")))
}

/// NVRTC 11 has fewer options and architectures.
fn is_of_11(compiler: Compiler) -> bool {
    compiler.name().starts_with("NVRTC 11.")
}

fn program(kernel: &str, source: GpuSource, parameters: &[ParameterLayout]) -> Program {
    Program { kernel: kernel.into(), source, parameters: parameters.into() }
}

fn compile(
    compiler: Compiler,
    program: &Program,
    text: &str,
    expression: Option<&str>,
) -> Result<Compiled, String> {
    let expressions: Vec<String> = expression.into_iter().map(str::to_owned).collect();
    let source = Source::new(program, text, None, &expressions).expect("well formed");
    let product = compiler.product();
    compiler.compile(&source.input(source.architecture(product).unwrap_or("sm_90"), product))
}

const VIEWS: &str = r#"
static_assert(__LINE__ == 2, "lines are the user's");
static_assert(sizeof(resident::View1<float>) == 24 && sizeof(resident::View2<float>) == 40, "");
static_assert(sizeof(resident::View3<float>) == 56 && sizeof(resident::View6<float>) == 104, "");
extern "C" __global__ void views(
    float a, unsigned char b, const float *x, resident::View1<const float> x1,
    resident::View2<float> x2, resident::View3<float> x3, resident::View4<float> x4,
    resident::View5<float> x5, resident::View6<float> x6
) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (!x2.contains(i, 0) || i >= x6.size()) return;
    x2(i, 0) = a + b + x[i] + x1(i) + x3(i, 0, 0) + x4(i, 0, 0, 0) + x5(i, 0, 0, 0, 0) + x6.at(i);
}
"#;

fn views() -> Vec<ParameterLayout> {
    let view = |ndim| ParameterLayout::Sized {
        element: FLOAT,
        ndim: Some(ndim),
        access: if ndim == 1 { Access::Read } else { Access::ReadWrite },
    };
    let flat = ParameterLayout::Flat { element: FLOAT, access: Access::Read };
    [ParameterLayout::Scalar(FLOAT), ParameterLayout::Scalar(BYTE), flat]
        .into_iter()
        .chain((1..=6).map(view))
        .collect()
}

#[test]
fn machine_code_with_a_kernel_of_every_kind_of_view_is_compiled() {
    let Some(compiler) = compiler() else { return };
    let compiled = compile(compiler, &program("views", VIEWS.into(), &views()), VIEWS, None)
        .expect("it is right");
    image::check(&compiled.machine_code).expect("a cubin");
    assert_eq!(compiled.kernel_names(), ["views"]);
}

#[test]
fn an_error_names_the_line_and_the_kernel() {
    let Some(compiler) = compiler() else { return };
    for (parameters, what) in [(views(), "with the prelude"), (Vec::new(), "without")] {
        let text = "\n\nextern \"C\" __global__ void blur() { undeclared = 1; }";
        let log = compile(compiler, &program("blur", text.into(), &parameters), text, None)
            .expect_err("it is wrong");
        assert!(
            log.contains("blur.cu(3): error: identifier \"undeclared\" is undefined"),
            "{what}: {log}"
        );
    }
}

#[test]
fn a_name_expression_has_a_name_in_the_code() {
    let Some(compiler) = compiler() else { return };
    let text = "template <typename T> __global__ void scale(T k, T *x) { x[threadIdx.x] *= k; }\n\
                __global__ void plain(int n) {}\n";
    let program = program("scale", text.into(), &[]);
    for expression in ["scale<float>", "scale<double>", "plain"] {
        let compiled = compile(compiler, &program, text, Some(expression)).expect("it is right");
        let [(asked, name)] = &compiled.lowered[..] else { panic!("it was asked for") };
        assert!(asked == expression && compiled.kernel_names().contains(name), "{expression}");
    }
    let log =
        compile(compiler, &program, text, Some("nothing")).expect_err("there is no such function");
    assert!(log.contains("identifier \"nothing\" is undefined"), "{log}");
}

#[test]
fn defines_options_and_include_folders_arrive() {
    let Some(compiler) = compiler() else { return };
    let folder = std::env::temp_dir().join(format!("resident-include-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    std::fs::write(folder.join("width.cuh"), "#define WIDTH 7\n").expect("writable");
    let text = "#include \"width.cuh\"\nstatic_assert(WIDTH * HEIGHT == 21, \"\"); \
                static_assert(__cplusplus / 100 == STANDARD, \"\");";
    let (option, standard) =
        if is_of_11(compiler) { ("--std=c++14", 2014) } else { ("--std=c++20", 2020) };
    let source = GpuSource::c(text).define("HEIGHT", 3).define("STANDARD", standard);
    let source = source.option(option).include(&folder);
    let outcome = compile(compiler, &program("f", source, &[]), text, None);
    std::fs::remove_dir_all(&folder).expect("ours");
    outcome.expect("all of them arrived");
}

#[test]
fn numbers_in_macros_are_literals_of_their_type() {
    let Some(compiler) = compiler() else { return };
    let text = "static_assert(sizeof ONE == 4 && ONE / 2 > 0 && sizeof TENTH == 8, \"\");\n\
                static_assert(ALL + 1 == 0 && LOWEST < 0 && sizeof LOWEST == 4 && TRUTH, \"\");\n\
                __device__ const float in_memory = ONE;\n\
                __global__ void f(float *x, double *y) {\n\
                x[0] = INFINITE; y[0] = UNKNOWN; x[1] = 2-NEGATIVE; y[1] = -ZERO; x[2] = HUGE; }";
    let source = GpuSource::c(text)
        .define("ONE", 1_f32)
        .define("TENTH", 0.1)
        .define("ALL", u64::MAX)
        .define("LOWEST", i32::MIN)
        .define("TRUTH", true)
        .define("INFINITE", f32::INFINITY)
        .define("UNKNOWN", f64::NAN)
        .define("NEGATIVE", -3_i64)
        .define("ZERO", -0.0)
        .define("HUGE", 1e30_f32);
    let compiled = compile(compiler, &program("f", source, &[]), text, None).expect("it is right");
    let ptx = String::from_utf8(compiled.ptx).expect("text");
    let has = |bits: &str| ptx.is_empty() || ptx.contains(bits);
    assert!(has("2139095040") || has("0x7F800000") || has("0f7F800000"), "{ptx}");
}

#[test]
fn an_unknown_architecture_gets_ptx_for_the_newest_known() {
    let Some(compiler) = compiler() else { return };
    let target = compiler.target(999).expect("there is an older one");
    assert_eq!(
        target,
        Target::Virtual(
            compiler.supported().expect("it can tell").into_iter().max().expect("some")
        )
    );
    let program = program("views", VIEWS.into(), &views());
    let input = Source::new(&program, VIEWS, None, &[])
        .expect("well formed")
        .input(&target.name(), compiler.product());
    let compiled = compiler.compile(&input).expect("it is right");
    assert!(compiled.machine_code.is_empty(), "only real architectures have machine code");
    assert!(
        String::from_utf8(compiled.ptx)
            .expect("text")
            .contains(&format!(".target {}", target.name().replace("compute", "sm")))
    );
}

#[test]
fn an_architecture_from_the_user_decides_the_output() {
    let Some(compiler) = compiler() else { return };
    let text = "extern \"C\" __global__ void f(float *x) { x[0] = 1; }";
    let cases: [(&[&str], bool, &str); 5] = [
        (&["-arch=compute_90"], false, ".target sm_90"),
        (&["-arch", "compute_80"], false, ".target sm_80"),
        (&["--gpu-architecture", "sm_80"], true, ".target sm_80"),
        (&[" --gpu-architecture=sm_90a "], true, ".target sm_90a"),
        (&[], true, ".target sm_90"),
    ];
    for (options, has_cubin, target) in cases {
        if is_of_11(compiler) && target == ".target sm_90a" {
            continue;
        }
        let source =
            options.iter().fold(GpuSource::c(text), |source, option| source.option(*option));
        let compiled =
            compile(compiler, &program("f", source, &[]), text, None).expect("it is right");
        assert_eq!(!compiled.machine_code.is_empty(), has_cubin, "{options:?}");
        assert!(
            String::from_utf8(compiled.ptx).expect("text").lines().any(|line| line == target),
            "{options:?}"
        );
    }
}

#[test]
fn options_without_loadable_output_are_named() {
    let Some(compiler) = compiler() else { return };
    for option in ["-dlto", "--dlink-time-opt", "-optix-ir"] {
        if is_of_11(compiler) && option == "-optix-ir" {
            continue;
        }
        let log = compile(compiler, &program("f", GpuSource::c("").option(option), &[]), "", None)
            .expect_err("nothing for a driver");
        assert!(
            log.contains(&format!("the option `{option}`")) && log.contains("leave it out"),
            "{log}"
        );
    }
}

#[test]
fn bad_options_are_reported() {
    let Some(compiler) = compiler() else { return };
    let log = |option: &str| {
        compile(compiler, &program("f", GpuSource::c("").option(option), &[]), "", None)
            .expect_err("no such thing")
    };
    assert!(log("--no-such-option").contains("no-such-option"), "{}", log("--no-such-option"));
    assert!(log("zero\0within").contains("zero byte at 4"));
}

#[test]
fn numbers_types_and_the_usual_headers_need_no_toolkit() {
    let Some(compiler) = compiler() else { return };
    let uses = "extern \"C\" __global__ void f(uint64_t *x, float *y) {\n\
        x[0] = UINT64_MAX; y[0] = INFINITY + NAN + FLT_MAX + (float)M_PI; }\n";
    for (before, after) in [
        ("", ""),
        ("#include <cuda_runtime.h>\n#include <math_constants.h>\n", "__device__ float g = 1;\n"),
        ("#include <stdint.h>\n#include <cstdint>\n#include <cmath>\n#include <float.h>\n", ""),
        ("typedef unsigned long long uint64_t; typedef unsigned int uint32_t;\n", ""),
        ("typedef unsigned long uint64_t;\n", ""),
        ("#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif\n", ""),
    ] {
        let text = format!("{before}{uses}{after}");
        let program = program("f", GpuSource::c(text.as_str()), &[]);
        let compiled = compile(compiler, &program, &text, None);
        assert_eq!(compiled.unwrap_or_else(|log| panic!("{text}{log}")).kernel_names(), ["f"]);
    }
    let constant = "#include <math_constants.h>\n\
        extern \"C\" __global__ void f(double *x) { x[0] = CUDART_INF + CUDART_PI_F; }\n";
    compile(compiler, &program("f", GpuSource::c(constant), &[]), constant, None).expect("right");
}

#[test]
fn a_header_that_nvrtc_does_not_find_is_named_with_where_to_get_it() {
    let Some(compiler) = compiler() else { return };
    for (header, folder) in [("cuda_fp16.h", None), ("cooperative_groups.h", Some("/"))] {
        let text = format!("#include <{header}>\nextern \"C\" __global__ void f() {{}}");
        let source = GpuSource::c(text.as_str());
        let source = folder.into_iter().fold(source, |source, folder| source.include(folder));
        let log = compile(compiler, &program("f", source, &[]), &text, None).expect_err("none");
        assert!(log.starts_with(&format!("the header `{header}` is in no folder")), "{log}");
        assert!(log.contains("`CudaSource::include`") && log.contains("toolkit"), "{log}");
    }
}

#[test]
fn code_tells_the_types_of_parameters_and_the_variables() {
    let Some(compiler) = compiler() else { return };
    let text = "__constant__ float coef[3]; namespace ns { __device__ int count; }\n\
        extern \"C\" __global__ void f(const int *x, float y) { ns::count = x[0] + y * coef[0]; }\n\
        template <typename T> __global__ void g(T *x, resident::View2<const T> y) {}\n";
    let compiled = compile(compiler, &program("f", text.into(), &[]), text, Some("g<double>"));
    let described = DescribedCode::of(&compiled.expect("it is right"));
    let mut variables = described.variables.clone();
    variables.sort();
    assert_eq!(variables, ["_ZN2ns5countE", "coef"]);
    let float = |access| ParameterLayout::Flat { element: FLOAT, access };
    let refused = parameter_types::check(
        "f",
        &[float(Access::Read), ParameterLayout::Scalar(FLOAT)],
        described.parameters("f"),
    );
    let text = refused.expect_err("an array of int");
    assert!(text.contains("`const int *`") && text.contains("(const int *, float)"), "{text}");
    let wide = ElementLayout { len_bytes: 8, align_bytes: 8, rust_name: "f64" };
    let flat = ParameterLayout::Flat { element: wide, access: Access::ReadWrite };
    let sized = |element| ParameterLayout::Sized { element, ndim: Some(2), access: Access::Read };
    let types = described.parameters("g<double>");
    assert_eq!(types.len(), 2);
    assert_eq!(parameter_types::check("g<double>", &[flat, sized(wide)], types), Ok(()));
    assert!(parameter_types::check("g<double>", &[flat, sized(FLOAT)], types).is_err());
}
