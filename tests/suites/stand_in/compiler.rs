//! The stand-in for NVRTC, and its output on the stand-in driver.

use std::ffi::{CStr, CString};

use resident::cudarc::driver::{LaunchConfig, PushKernelArg};
use resident::cudarc::nvrtc::result::{
    compile_program, create_program, destroy_program, get_program_log, get_ptx,
};
use resident::cudarc::nvrtc::sys::{self, nvrtcResult};
use resident::cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx, compile_ptx_with_opts};
use resident_stand_in::{Access, Parameter};

use crate::shared::context;

/// The entries of the PTX compiled from a source.
fn entries(source: &str) -> String {
    resident_stand_in_nvrtc::load().expect("the stand-in loads");
    let ptx = compile_ptx(source).expect("it compiles").to_src();
    ptx.split_once(".address_size 64")
        .map(|(_, entries)| entries.trim().replace('\t', ""))
        .expect("PTX")
}

/// The log of a failed compilation.
fn log(source: &str, options: Vec<String>) -> String {
    resident_stand_in_nvrtc::load().expect("the stand-in loads");
    let options = CompileOptions { options, ..CompileOptions::default() };
    match compile_ptx_with_opts(source, options) {
        Err(CompileError::CompileError { log, .. }) => log.into_string().expect("text"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn parameters_have_the_sizes_that_a_compiler_gives_them() {
    let source = "extern \"C\" __global__ void f(
        const float* __restrict__ x, double y, unsigned char z, long long n, size_t m,
        resident::View2<const float> v, bool b, short s[], float4 q) { }";
    let expected = "\
.visible .entry f(
.param .u64 f_param_0,
.param .f64 f_param_1,
.param .u8 f_param_2,
.param .u64 f_param_3,
.param .u64 f_param_4,
.param .align 8 .b8 f_param_5[40],
.param .u8 f_param_6,
.param .u64 f_param_7,
.param .align 16 .b8 f_param_8[16]
)
{
ret;
}";
    assert_eq!(entries(source), expected);
}

#[test]
fn names_are_cpps_unless_they_are_c() {
    let two = entries(
        "__global__ void blur(float* x, const int* y, int n) { }
         extern \"C\" { __global__ void c(void) { } }",
    );
    assert!(two.contains(".entry _Z4blurPfPKii(") && two.contains(".entry c("), "{two}");
    let views = entries(
        "__global__ void f(resident::View3<const float> v, Words<unsigned, long long>* w) { }",
    );
    assert!(views.contains(".entry _Z1fN8resident5View3IKfEEP5WordsIjxE("), "{views}");
}

#[test]
fn structs_aliases_and_macros_of_the_source_are_known() {
    let source = "#define REAL double
        struct Pair { char tag; REAL values[3]; };
        typedef unsigned int Count;
        using Word = long long;
        extern \"C\" __global__ void __launch_bounds__(128) f(
            Pair pair, Count count, Word word, REAL* out
        ) { }";
    let text = entries(source);
    for part in [
        ".align 8 .b8 f_param_0[32]",
        ".u32 f_param_1",
        ".u64 f_param_2",
        ".u64 f_param_3",
        ".maxntid 128, 1, 1",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn errors_name_file_and_line() {
    let error = log("int x;\n#error no such device\n", Vec::new());
    assert_eq!(error, "default_program(2): error: #error directive: no such device\n");
    let moved = log("#line 40 \"blur.cu\"\nint x;\n/* two\nlines */\nnot C\n", Vec::new());
    assert!(moved.starts_with("blur.cu(43): error: "), "{moved}");
    let unknown = log("\n__global__ void f(Widget w) { }", Vec::new());
    assert_eq!(unknown, "default_program(2): error: identifier \"Widget\" is undefined\n");
    assert!(
        log("#include \"nowhere.h\"", Vec::new())
            .contains("could not open source file \"nowhere.h\"")
    );
    assert!(
        log("", vec!["--no-such-option".to_owned()])
            .contains("unrecognized option --no-such-option")
    );
    assert!(log("", vec!["--gpu-architecture=sm_10".to_owned()]).contains("invalid value"));
}

#[test]
fn compilations_are_counted() {
    resident_stand_in_nvrtc::load().expect("the stand-in loads");
    let before = resident_stand_in_nvrtc::compilations();
    compile_ptx("").expect("nothing is a program");
    assert!(resident_stand_in_nvrtc::compilations() > before);
}

#[test]
fn name_expressions_instantiate_templates() {
    resident_stand_in_nvrtc::load().expect("the stand-in loads");
    let program =
        create_program(c"template <typename T> __global__ void scale(T* x, T k) { }", None)
            .expect("a program");
    let expression = c"scale<double>";
    // SAFETY: the program is live, and so are the texts.
    let outcome = unsafe { sys::nvrtcAddNameExpression(program, expression.as_ptr()) };
    assert_eq!(outcome, nvrtcResult::NVRTC_SUCCESS);
    // SAFETY: as above.
    unsafe { compile_program(program, &["--gpu-architecture=sm_90"]) }.expect("it compiles");
    let mut lowered = std::ptr::null();
    // SAFETY: as above.
    let outcome =
        unsafe { sys::nvrtcGetLoweredName(program, expression.as_ptr(), &raw mut lowered) };
    assert_eq!(outcome, nvrtcResult::NVRTC_SUCCESS);
    // SAFETY: the pointer was set to a text that lives as long as the program.
    let lowered = unsafe { CStr::from_ptr(lowered) }.to_str().expect("text").to_owned();
    // SAFETY: the program is live.
    let ptx = text(unsafe { get_ptx(program) }.expect("PTX"));
    assert!(
        ptx.contains(&format!(".entry {lowered}(")) && ptx.contains(".f64"),
        "{lowered} in {ptx}"
    );
    assert_eq!(cubin(program), ptx, "its cubin is the same text");
    // SAFETY: the program is live, and not used again.
    unsafe { destroy_program(program) }.expect("it was there");
}

#[test]
fn a_virtual_architecture_has_no_cubin_and_a_failure_has_nothing() {
    resident_stand_in_nvrtc::load().expect("the stand-in loads");
    let program = create_program(c"not C", Some(c"bad.cu")).expect("a program");
    let mut len = 1;
    // SAFETY: the program and the pointer's target are live.
    unsafe {
        assert!(compile_program(program, &["--gpu-architecture=compute_90"]).is_err());
        assert_eq!(
            sys::nvrtcGetPTXSize(program, &raw mut len),
            nvrtcResult::NVRTC_ERROR_INVALID_PROGRAM
        );
        assert!(text(get_program_log(program).expect("a log")).starts_with("bad.cu(1): error"));
        destroy_program(program).expect("it was there");
    }
    let program = create_program(c"", None).expect("a program");
    // SAFETY: as above.
    unsafe {
        compile_program(program, &["--gpu-architecture=compute_90"]).expect("it compiles");
        assert_eq!(sys::nvrtcGetCUBINSize(program, &raw mut len), nvrtcResult::NVRTC_SUCCESS);
        destroy_program(program).expect("it was there");
    }
    assert_eq!(len, 0);
}

#[test]
fn what_it_makes_runs_in_the_stand_in_driver() {
    let context = context(0);
    resident_stand_in_nvrtc::load().expect("the stand-in loads");
    let view = Parameter::View { dimensions: 2, element_bytes: 4, access: Access::ReadWrite };
    resident_stand_in::register("turn", &[view, Parameter::Scalar { len_bytes: 4 }], |launch| {
        let (view, added) = (launch.view(0), launch.scalar::<i32>(1));
        (0..view.len()).for_each(|index| view.set(index, view.get::<i32>(index) * 10 + added));
        Ok(())
    });
    let ptx = compile_ptx("__global__ void turn(resident::View2<int> v, int added) { }")
        .expect("it compiles");
    let module = context.load_module(ptx).expect("a module");
    let turn = module.load_function("_Z4turnN8resident5View2IiEEi").expect("a function");
    let stream = context.new_stream().expect("a stream");
    let memory = stream.clone_htod(&[1_i32, 2, 3, 4, 5, 6]).expect("a copy");
    let start = { resident::cudarc::driver::DevicePtr::device_ptr(&memory, &stream).0 };
    // The middle column of two rows, from below: a step of three words, backwards.
    let view: [u64; 5] = [start + 4 * 4, 2, 1, (-3_i64) as u64, 1];
    let mut launch = stream.launch_builder(&turn);
    launch.arg(&view).arg(&7_i32);
    // SAFETY: the view lies in the memory, which is live.
    unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }.expect("a launch");
    assert_eq!(stream.clone_dtoh(&memory).expect("a copy"), [1, 27, 3, 4, 57, 6]);
}

fn text(bytes: Vec<std::ffi::c_char>) -> String {
    let bytes: Vec<u8> =
        bytes.into_iter().map(|byte| byte as u8).take_while(|byte| *byte != 0).collect();
    CString::new(bytes).expect("no end inside").into_string().expect("text")
}

fn cubin(program: sys::nvrtcProgram) -> String {
    let mut len = 0;
    // SAFETY: the program and the pointer's target are live.
    let outcome = unsafe { sys::nvrtcGetCUBINSize(program, &raw mut len) };
    assert_eq!(outcome, nvrtcResult::NVRTC_SUCCESS);
    let mut bytes = vec![0; len];
    // SAFETY: the buffer has the size that the last call returned.
    let outcome = unsafe { sys::nvrtcGetCUBIN(program, bytes.as_mut_ptr()) };
    assert_eq!(outcome, nvrtcResult::NVRTC_SUCCESS);
    text(bytes)
}
