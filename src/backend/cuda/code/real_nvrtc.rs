//! Tests with a real NVRTC: run where `RESIDENT_NVRTC` names the library, and fail if it is not
//! there then.

use super::compile::{Compiled, Compiler, Target};
use super::signature::fitted;
use super::source::Source;
use super::{image, ptx};
use crate::backend::{CudaSource, ElementLayout, ParameterLayout, Program};

const FLOAT: ElementLayout = ElementLayout { len_bytes: 4, align_bytes: 4, rust_name: "f32" };
const BYTE: ElementLayout = ElementLayout { len_bytes: 1, align_bytes: 1, rust_name: "u8" };

/// The compiler that the environment names. None where it names none.
fn compiler() -> Option<Compiler> {
    if std::env::var_os("RESIDENT_NVRTC").is_none() {
        eprintln!("RESIDENT_NVRTC is not set: nothing was compiled");
        return None;
    }
    Some(Compiler::find(13_000).unwrap_or_else(|fault| panic!("{fault}")))
}

fn program(kernel: &str, source: CudaSource, parameters: &[ParameterLayout]) -> Program {
    Program { kernel: kernel.into(), source, parameters: parameters.into() }
}

fn compile(
    compiler: Compiler,
    program: &Program,
    text: &str,
    expression: Option<&str>,
) -> Result<Compiled, String> {
    let source = Source::new(program, text, None, expression).expect("well formed");
    compiler.compile(&source.unit(source.architecture().unwrap_or("sm_90")))
}

const VIEWS: &str = r#"
static_assert(__LINE__ == 2, "lines are the user's");
extern "C" __global__ void views(float a, unsigned char b, const float *x, resident::View1<const float> x1, resident::View2<float> x2,
                                 resident::View3<float> x3, resident::View4<float> x4, resident::View5<float> x5, resident::View6<float> x6) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (!x2.contains(i, 0) || i >= x6.size()) return;
    x2(i, 0) = a + b + x[i] + x1(i) + x3(i, 0, 0) + x4(i, 0, 0, 0) + x5(i, 0, 0, 0, 0) + x6.at(i);
}
"#;

fn views() -> Vec<ParameterLayout> {
    let view =
        |ndim| ParameterLayout::Sized { element: FLOAT, ndim: Some(ndim), is_read_only: ndim == 1 };
    let flat = ParameterLayout::Flat { element: FLOAT, is_read_only: true };
    [ParameterLayout::Scalar(FLOAT), ParameterLayout::Scalar(BYTE), flat]
        .into_iter()
        .chain((1..=6).map(view))
        .collect()
}

#[test]
fn machine_code_and_the_sizes_of_its_parameters_come_out() {
    let Some(compiler) = compiler() else { return };
    let compiled = compile(compiler, &program("views", VIEWS.into(), &views()), VIEWS, None)
        .expect("it is right");
    image::check(&compiled.cubin).expect("a whole cubin");
    assert!(
        image::check(&compiled.cubin[..compiled.cubin.len() - 1]).is_err(),
        "and no byte more than it"
    );
    let declarations = compiled.declarations();
    let entries = ptx::entries(&declarations);
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(
        *fitted("views", &views(), entry.parameters_bytes.as_deref()).expect("they fit"),
        *views()
    );
    let other = fitted("views", &views()[1..], entry.parameters_bytes.as_deref())
        .expect_err("one is missing");
    assert!(
        other.contains("compiled are 9 of [4, 1, 8, 24, 40, 56, 72, 88, 104] bytes"),
        "{other}"
    );
}

#[test]
fn an_error_has_the_users_line_and_the_kernels_name() {
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
    let text = "template <typename T> __global__ void scale(T k, T *x) { x[threadIdx.x] *= k; }\n__global__ void plain(int n) {}\n";
    let program = program("scale", text.into(), &[]);
    for (expression, sizes) in
        [("scale<float>", vec![4, 8]), ("scale<double>", vec![8, 8]), ("plain", vec![4])]
    {
        let compiled = compile(compiler, &program, text, Some(expression)).expect("it is right");
        let declarations = compiled.declarations();
        let name = compiled.lowered_name.expect("it was asked for");
        let entry = ptx::entries(&declarations).into_iter().find(|entry| entry.name == name);
        assert_eq!(entry.and_then(|entry| entry.parameters_bytes), Some(sizes), "{expression}");
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
    let text = "#include \"width.cuh\"\nstatic_assert(WIDTH * HEIGHT == 21, \"\"); static_assert(__cplusplus >= 202002L, \"\");";
    let source = CudaSource::c(text).define("HEIGHT", 3).option("--std=c++20").include(&folder);
    let outcome = compile(compiler, &program("f", source, &[]), text, None);
    std::fs::remove_dir_all(&folder).expect("ours");
    outcome.expect("all of them arrived");
}

#[test]
fn an_architecture_that_nobody_knows_gets_text_for_the_newest_known() {
    let Some(compiler) = compiler() else { return };
    let target = compiler.target((99, 9)).expect("there is an older one");
    assert_eq!(
        target,
        Target::Virtual(
            compiler.supported().expect("it can tell").into_iter().max().expect("some")
        )
    );
    let program = program("views", VIEWS.into(), &views());
    let unit = Source::new(&program, VIEWS, None, None).expect("well formed").unit(&target.name());
    let compiled = compiler.compile(&unit).expect("it is right");
    assert!(compiled.cubin.is_empty(), "there is machine code for real architectures alone");
    assert!(
        String::from_utf8(compiled.ptx)
            .expect("text")
            .contains(&format!(".target {}", target.name().replace("compute", "sm")))
    );
}

#[test]
fn an_architecture_of_the_users_decides_what_comes_out() {
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
        let source =
            options.iter().fold(CudaSource::c(text), |source, option| source.option(*option));
        let compiled =
            compile(compiler, &program("f", source, &[]), text, None).expect("it is right");
        assert_eq!(!compiled.cubin.is_empty(), has_cubin, "{options:?}");
        assert!(
            String::from_utf8(compiled.ptx).expect("text").lines().any(|line| line == target),
            "{options:?}"
        );
    }
}

#[test]
fn options_that_leave_no_code_are_named() {
    let Some(compiler) = compiler() else { return };
    for option in ["-dlto", "--dlink-time-opt", "-optix-ir"] {
        let log = compile(compiler, &program("f", CudaSource::c("").option(option), &[]), "", None)
            .expect_err("nothing for a driver");
        assert!(
            log.contains(&format!("the option `{option}`")) && log.contains("leave it out"),
            "{log}"
        );
    }
}

#[test]
fn bad_options_are_told() {
    let Some(compiler) = compiler() else { return };
    let log = |option: &str| {
        compile(compiler, &program("f", CudaSource::c("").option(option), &[]), "", None)
            .expect_err("no such thing")
    };
    assert!(log("--no-such-option").contains("no-such-option"), "{}", log("--no-such-option"));
    assert!(log("zero\0within").contains("zero byte at 4"));
}
