//! Compiles every CUDA source of the repository by a real NVRTC for the supported architectures:
//! this needs no GPU and no driver.
//!
//! If `RESIDENT_NVRTC` names the library, it must exist; otherwise the test searches for an
//! installed one, and prints a message if there is none.

use std::ffi::{CString, c_char};
use std::ptr::{null, null_mut};

use resident::cudarc::nvrtc::sys;
use support::device_sources;

/// The declarations that are put before sources with sized parameters (views).
const PRELUDE: &str = include_str!("../../../crates/code/src/prelude.cuh");

/// Compute capabilities of supported GPUs.
const ARCHITECTURES: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100"];

/// A kernel that uses all declarations of the prelude.
const ALL_VIEWS: &str = r#"
extern "C" __global__ void all_views(resident::View0<float> x0, resident::View1<const float> x1,
                                     resident::View2<float> x2,
                                     resident::View3<double> x3, resident::View4<unsigned char> x4,
                                     resident::View5<const long long> x5,
                                     resident::View6<short> x6) {
    long long i = resident::thread();
    if (i >= x6.size() || !x0.contains() || !x1.contains(i) || !x2.contains(i, 0)
        || !x3.contains(i, 0, 0) || !x4.contains(i, 0, 0, 0)) return;
    static_assert(resident::wave_size() == 32, "lanes");
    x2(i, 0) = x0() + x1(i) + x2.at(i) + x1.shape[0] + x2.strides[1];
    x3(i, 0, 0) = x4(i, 0, 0, 0) + x5(0, 0, 0, 0, i) + x6(0, 0, 0, 0, 0, i);
    *x0.data = static_cast<float>(x0.size());
}
"#;

/// Whether a compiler can be found. Opening it by its path first makes its name resolvable later.
fn is_there() -> bool {
    if let Some(path) = std::env::var_os("RESIDENT_NVRTC") {
        // SAFETY: the variable names NVIDIA's compiler, whose initialisers run in all its users.
        let library = unsafe { libloading::Library::new(&path) };
        std::mem::forget(
            library.unwrap_or_else(|fault| panic!("RESIDENT_NVRTC={}: {fault}", path.display())),
        );
        // SAFETY: this opens and closes a library that is already open.
        let is_found = unsafe { sys::is_culib_present() };
        assert!(is_found, "it is open, and not found by its name: {}", path.display());
    }
    // SAFETY: this opens NVIDIA's compiler, if one is installed, as above.
    unsafe { sys::is_culib_present() }
}

/// The number of bytes of machine code, or the compiler's log if there are errors or warnings.
fn compile(name: &str, text: &str, architecture: &str) -> Result<usize, String> {
    let text = CString::new(format!("{PRELUDE}\n#line 1 \"{name}\"\n{text}"))
        .expect("a source of the repository");
    let name = CString::new(name).expect("a file name of the repository");
    let option =
        CString::new(format!("--gpu-architecture={architecture}")).expect("an option of this test");
    let options: [*const c_char; 1] = [option.as_ptr()];
    let mut program = null_mut();
    // SAFETY: the texts end with a zero and live until the calls return; the library is loaded
    // (`is_there`).
    let made = unsafe {
        sys::nvrtcCreateProgram(&raw mut program, text.as_ptr(), name.as_ptr(), 0, null(), null())
    };
    made.result().map_err(|fault| fault.to_string())?;
    // SAFETY: the program was made, and there is one option.
    let compiled = unsafe { sys::nvrtcCompileProgram(program, 1, options.as_ptr()) };
    let mut code_bytes = 0;
    // SAFETY: the program was made. If it did not compile, there is no code, and the number stays
    // 0.
    let sized = unsafe { sys::nvrtcGetCUBINSize(program, &raw mut code_bytes) };
    // SAFETY: the program was made.
    let log =
        unsafe { resident::cudarc::nvrtc::result::get_program_log(program) }.unwrap_or_default();
    // SAFETY: the program was made, and is not used again.
    unsafe { resident::cudarc::nvrtc::result::destroy_program(program) }
        .map_err(|fault| fault.to_string())?;
    let log: String = log
        .into_iter()
        .map(|letter| char::from(letter.cast_unsigned()))
        .filter(|letter| *letter != '\0')
        .collect();
    match compiled.result().and(sized.result()) {
        Ok(()) if log.contains("warning") => Err(log),
        Ok(()) => Ok(code_bytes),
        Err(fault) => Err(format!("{fault}:\n{log}")),
    }
}

#[test]
fn every_cuda_source_compiles_for_every_architecture() {
    if !is_there() {
        eprintln!("no NVRTC was found, and RESIDENT_NVRTC names none: no CUDA source was compiled");
        return;
    }
    let mut sources = device_sources::all();
    sources.push(("all_views.cu".to_owned(), ALL_VIEWS.to_owned()));
    let mut faults = Vec::new();
    for (name, text) in &sources {
        for architecture in ARCHITECTURES {
            match compile(name, text, architecture) {
                Ok(0) => faults.push(format!("{name} for {architecture}: no machine code")),
                Ok(code_bytes) => println!("{name} for {architecture}: {code_bytes} bytes"),
                Err(log) => faults.push(format!("{name} for {architecture}: {log}")),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_is_wrong_does_not_compile() {
    if !is_there() {
        eprintln!("no NVRTC was found, and RESIDENT_NVRTC names none: no CUDA source was compiled");
        return;
    }
    let cases = [
        ("int x = ;", "case.cu(1)"),
        ("\n\nundeclared y;", "case.cu(3)"),
        (
            "__global__ void f(resident::View2<const float> x) { x(0, 0) = 1; }",
            "must be a modifiable lvalue",
        ),
        (
            "__global__ void f(resident::View2<float> x) { x(0) = 1; }",
            "as many indices as the view has dimensions",
        ),
        (
            "__global__ void f(resident::View2<float> x) { int unused; }",
            "declared but never referenced",
        ),
    ];
    for (text, words) in cases {
        let log = compile("case.cu", text, "sm_90").expect_err(text);
        assert!(log.contains(words), "{text}: {log}");
    }
}
