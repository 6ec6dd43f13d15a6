//! What NVRTC does: the names and parameters in its PTX, its errors and its logs.

use std::ffi::{CStr, CString};

use resident::cudarc::driver::{DevicePtr, DevicePtrMut, LaunchConfig, PushKernelArg};
use resident::cudarc::nvrtc::result::{
    compile_program, create_program, destroy_program, get_program_log, get_ptx,
};
use resident::cudarc::nvrtc::sys::{self, nvrtcResult};
use resident::cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx, compile_ptx_with_opts};

use crate::driver::choice::{context, load_nvrtc};
use crate::kernels::threads;

/// The PTX compiled from a source.
fn compiled(source: &str) -> String {
    load_nvrtc();
    compile_ptx(source).expect("it compiles").to_src()
}

/// The types of the parameters of the PTX's first kernel: `u64`, `align 8 b8[24]`.
fn parameters(ptx: &str) -> Vec<String> {
    let (_, rest) = ptx.split_once(".entry ").expect("a kernel");
    let (list, _) = rest.split_once(')').expect("an end");
    let (_, list) = list.split_once('(').expect("a list");
    list.split(',').map(parameter).collect()
}

/// `.param .u64 .ptr .align 1 f_param_0` is `u64`: later versions say where a pointer points.
fn parameter(declaration: &str) -> String {
    let words: Vec<&str> = declaration.split_whitespace().collect();
    let count = words.last().and_then(|name| name.find('[').map(|start| &name[start..]));
    let kind = match words[1] {
        ".align" => [".align", words[2], words[3]].join(" "),
        kind => kind.to_owned(),
    };
    kind.replace('.', "") + count.unwrap_or_default()
}

/// The log of a failed compilation.
fn log(source: &str, options: Vec<String>) -> String {
    load_nvrtc();
    let options = CompileOptions { options, ..CompileOptions::default() };
    match compile_ptx_with_opts(source, options) {
        Err(CompileError::CompileError { log, .. }) => log.into_string().expect("text"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn parameters_have_the_sizes_that_a_compiler_gives_them() {
    on_either_driver!(Nvrtc);
    let source = "struct View { const float* start; long long shape[2]; long long strides[2]; };
        extern \"C\" __global__ void f(
            const float* __restrict__ x, double y, unsigned char z, long long n, size_t m,
            View v, bool b, short s[], float4 q) { }";
    let expected =
        ["u64", "f64", "u8", "u64", "u64", "align 8 b8[40]", "u8", "u64", "align 16 b8[16]"];
    assert_eq!(parameters(&compiled(source)), expected);
}

#[test]
fn names_are_cpps_unless_they_are_c() {
    on_either_driver!(Nvrtc);
    let two = compiled(
        "__global__ void blur(float* x, const int* y, int n) { }
         extern \"C\" { __global__ void c(void) { } }",
    );
    assert!(two.contains(".entry _Z4blurPfPKii(") && two.contains(".entry c("), "{two}");
}

#[test]
fn kernels_are_compiled_wherever_they_stand() {
    on_either_driver!(Nvrtc);
    let ptx = compiled(
        "// __global__ void commented() { }
        #define KERNEL(name) extern \"C\" __global__ void name##_all(int* x) { *x = 1; }
        KERNEL(fill) KERNEL(clear)
        namespace inner { __global__ void f(char c) { if (c == '{') return; } }
        __global__ void later(int);
        template <typename T> __global__ void unused(T* x) { *x = 0; }
        extern \"C\" {
        __global__ void __launch_bounds__(64, 2) bounded() { }
        }
        #if 0
        __global__ void never(Missing) { }
        #endif
        __global__ void later(int x) { const char* text = \"}\"; (void)text; }",
    );
    let mut names: Vec<&str> = ptx
        .split(".entry ")
        .skip(1)
        .map(|rest| rest.split(['(', '\n', ' ']).next().expect("a name"))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["_Z5lateri", "_ZN5inner1fEc", "bounded", "clear_all", "fill_all"]);
    assert!(ptx.contains(".maxntid 64"), "{ptx}");
}

#[test]
fn structs_aliases_and_macros_of_the_source_are_known() {
    on_either_driver!(Nvrtc);
    let source = "#define REAL double
        struct Pair { char tag; REAL values[3]; };
        typedef unsigned int Count;
        using Word = long long;
        extern \"C\" __global__ void __launch_bounds__(128) f(
            Pair pair, Count count, Word word, REAL* out
        ) { }";
    let ptx = compiled(source);
    assert_eq!(parameters(&ptx), ["align 8 b8[32]", "u32", "u64", "u64"]);
    assert!(ptx.contains(".maxntid 128"), "{ptx}");
}

#[test]
fn errors_name_file_and_line() {
    on_either_driver!(Nvrtc);
    for (source, start, word) in [
        ("\n#error no such GPU\n", "default_program(2): catastrophic error: ", "no such GPU"),
        (
            "#line 40 \"blur.cu\"\n\n/* two\nlines */\nnot C\n",
            "blur.cu(43): error: expected ",
            "compilation of \"default_program\"",
        ),
        ("\n__global__ void f(Widget w) { }", "default_program(2): error: ", "Widget"),
        ("#include \"nowhere.h\"", "default_program(1): catastrophic error: ", "nowhere.h"),
    ] {
        let log = log(source, Vec::new());
        assert!(log.starts_with(start) && log.contains(word), "{log}");
    }
    assert!(
        log("", vec!["--no-such-option".to_owned()])
            .contains("unrecognized option --no-such-option")
    );
    assert!(log("", vec!["--gpu-architecture=sm_10".to_owned()]).contains("invalid value"));
}

#[test]
fn name_expressions_instantiate_templates() {
    on_either_driver!(Nvrtc);
    load_nvrtc();
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
    assert_ne!(cubin_len(program), 0, "of a real architecture");
    // SAFETY: the program is live, and not used again.
    unsafe { destroy_program(program) }.expect("it was there");
}

#[test]
fn a_virtual_architecture_has_no_cubin_and_a_failure_has_nothing() {
    on_either_driver!(Nvrtc);
    load_nvrtc();
    let program = create_program(c"not C", Some(c"bad.cu")).expect("a program");
    let mut len = 0;
    // SAFETY: the program and the pointer's target are live.
    unsafe {
        assert!(compile_program(program, &["--gpu-architecture=compute_90"]).is_err());
        assert_eq!(sys::nvrtcGetPTXSize(program, &raw mut len), nvrtcResult::NVRTC_SUCCESS);
        assert_eq!((len, cubin_len(program)), (1, 0), "a zero, and nothing");
        assert!(text(get_program_log(program).expect("a log")).starts_with("bad.cu(1): error"));
        destroy_program(program).expect("it was there");
    }
    let program = create_program(c"", None).expect("a program");
    // SAFETY: as above.
    unsafe { compile_program(program, &["--gpu-architecture=compute_90"]) }.expect("it compiles");
    assert_eq!(cubin_len(program), 0);
    // SAFETY: the program is live, and not used again.
    unsafe { destroy_program(program) }.expect("it was there");
}

#[test]
fn what_it_makes_runs_in_the_driver() {
    let context = on_either_driver!(Gpu, Nvrtc; context(0));
    load_nvrtc();
    let source = "__global__ void turn(int* memory, int added) {
            memory[threadIdx.x] = memory[threadIdx.x] * 10 + added;
        }";
    let module = context.load_module(compile_ptx(source).expect("it compiles")).expect("a module");
    let turn = module.load_function("_Z4turnPii").expect("a function");
    let stream = context.new_stream().expect("a stream");
    let mut memory = stream.clone_htod(&[1_i32, 2, 3]).expect("a copy");
    let mut launch = stream.launch_builder(&turn);
    launch.arg(&mut memory).arg(&7_i32);
    // SAFETY: each thread accesses its element of the memory.
    unsafe { launch.launch(threads(3)) }.expect("a launch");
    assert_eq!(stream.clone_dtoh(&memory).expect("a copy"), [17, 27, 37]);
}

/// Threads that wait for each other, shared memory of both kinds, a variable of the module, and
/// pointers in a struct.
#[test]
fn blocks_share_memory_and_launches_share_variables() {
    let context = on_either_driver!(Gpu, Nvrtc; context(0));
    load_nvrtc();
    let source = "
        struct Ends { const int* from; int* to; };
        __device__ int launches;
        extern \"C\" __global__ void add_up(Ends ends, int count) {
            __shared__ int offset;
            extern __shared__ int sums[];
            if (threadIdx.x == 0) offset = blockIdx.x * blockDim.x;
            __syncthreads();
            int i = offset + threadIdx.x;
            sums[threadIdx.x] = i < count ? ends.from[i] : 0;
            for (int half = blockDim.x / 2; half > 0; half /= 2) {
                __syncthreads();
                if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
            }
            if (threadIdx.x == 0) atomicAdd(ends.to, sums[0]);
            if (i == 0) ends.to[1] = ++launches;
        }";
    let module = context.load_module(compile_ptx(source).expect("it compiles")).expect("a module");
    let add_up = module.load_function("add_up").expect("a function");
    let stream = context.new_stream().expect("a stream");
    let numbers: Vec<i32> = (0..1000).collect();
    let from = stream.clone_htod(&numbers).expect("a copy");
    let mut to = stream.alloc_zeros::<i32>(2).expect("memory");
    let ends = {
        let (from, _read) = from.device_ptr(&stream);
        let (to, _written) = to.device_ptr_mut(&stream);
        [from, to]
    };
    let config =
        LaunchConfig { grid_dim: (8, 1, 1), block_dim: (128, 1, 1), shared_mem_bytes: 512 };
    for _ in 0..3 {
        let mut launch = stream.launch_builder(&add_up);
        launch.arg(&ends).arg(&1000_i32);
        // SAFETY: the kernel reads below the count and writes two numbers. The slices live until
        // the copy below has run.
        unsafe { launch.launch(config) }.expect("a launch");
    }
    assert_eq!(stream.clone_dtoh(&to).expect("a copy"), [3 * 499_500, 3]);
    drop(from);
}

fn text(bytes: Vec<std::ffi::c_char>) -> String {
    let bytes: Vec<u8> =
        bytes.into_iter().map(|byte| byte as u8).take_while(|byte| *byte != 0).collect();
    CString::new(bytes).expect("no end inside").into_string().expect("text")
}

fn cubin_len(program: sys::nvrtcProgram) -> usize {
    let mut len = 0;
    // SAFETY: the program and the pointer's target are live.
    let outcome = unsafe { sys::nvrtcGetCUBINSize(program, &raw mut len) };
    assert_eq!(outcome, nvrtcResult::NVRTC_SUCCESS);
    len
}
