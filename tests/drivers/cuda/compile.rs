//! From CUDA C to a loaded kernel, on the stand-in driver and the stand-in compiler, which count
//! their calls: when each program is compiled, and what is cached in the process and on disk. Each
//! test runs in its own process, with its own environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use resident::ndarray::Ix2;
use resident::{CudaSource, Device, Error, Grid, In, InOut, Kernel, Out, SmartArray};
use resident_stand_in::Settings;
use support::assert_says;

/// Two kernels; the second needs the prelude.
const SOURCE: &str = r#"
extern "C" __global__ void scale(float k, float *x) { x[resident::thread()] *= k; }
extern "C" __global__ void transpose(resident::View2<const float> a, resident::View2<float> b) {
    long long row = blockIdx.y, column = threadIdx.x;
    if (b.contains(row, column)) b(row, column) = a(column, row);
}
"#;

/// This variable names the part that a child process runs. It is set only in child processes.
const PART: &str = "RESIDENT_TEST_PART";

type Scale = Kernel<(f32, InOut<f32>)>;
type Transpose = Kernel<(In<f32, Ix2>, Out<f32, Ix2>)>;

/// A folder for one test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("resident-compile-{name}-{}", std::process::id()));
        let _left_by_an_earlier_run = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("writable");
        Self(folder)
    }

    /// The programs in the folder, without what the host's compiler notes of its headers.
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("made");
        let paths = entries.map(|entry| entry.expect("readable").path());
        let is_note = |path: &PathBuf| {
            let bytes = fs::read(path).unwrap_or_default();
            bytes.windows(11).any(|part| part == b"precompiled")
        };
        paths.filter(|path| path.is_file() && !is_note(path)).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _missing = fs::remove_dir_all(&self.0);
    }
}

/// Runs a part in its own process, and returns the number of programs that it compiled.
#[track_caller]
fn compilations_of(part: &str, cache: &Path) -> u64 {
    let text = output_of(part, &[("RESIDENT_CACHE", cache)]);
    let count = text.split("compilations=").nth(1).and_then(|rest| rest.split_whitespace().next());
    count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{part}: {text}"))
}

/// Runs a part in its own process with these variables, and returns its output.
#[track_caller]
fn output_of(part: &str, environment: &[(&str, &Path)]) -> String {
    let mut child = Command::new(std::env::current_exe().expect("this test"));
    child
        .args(["--exact", support::test_name!(parts), "--nocapture", "--test-threads=1"])
        .env(PART, part)
        .env_remove("RESIDENT_NVRTC");
    let output = child.envs(environment.iter().copied()).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{part}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// In a child process, runs the part that the environment names. In the parent process it does
/// nothing: the other tests start the child processes.
#[test]
fn parts() {
    let Ok(part) = std::env::var(PART) else { return };
    if let Some(driver_version) = part.strip_prefix("which NVRTC for ") {
        return which_nvrtc(driver_version.parse().expect("a number"));
    }
    resident_stand_in::load(Settings::new()).expect("the stand-in driver loads");
    resident_stand_in_nvrtc::load().expect("the stand-in compiler loads");
    let device = Device::cuda(0).expect("the stand-in driver has a device");
    match part.as_str() {
        "two kernels" => two_kernels(&device),
        "an older compiler" => {
            resident_stand_in_nvrtc::set_version(12, 9);
            scale(SOURCE).prepare(&device).expect("it compiles");
        }
        "a compiler newer than the driver" => {
            resident_stand_in_nvrtc::set_version(14, 0);
            let error = scale(SOURCE)
                .prepare(&device)
                .expect_err("the driver cannot load that")
                .to_string();
            assert_says(&error, &["NVRTC 14.0", "the driver (CUDA 13.", "update the driver"]);
        }
        "eight threads" => eight_threads(&device),
        "expressions" => expressions(&device),
        "variables" => variables(&device),
        "faults" => faults(&device),
        "what comes out" => what_comes_out(&device),
        "refused machine code" => refused_machine_code(&device),
        "refused altogether" => refused_altogether(&device),
        "refused once" => refused_once(&device),
        "a file" => a_file(&device),
        "includes" => includes(&device),
        other => panic!("there is no part {other}"),
    }
    println!("compilations={} ", resident_stand_in_nvrtc::compilations());
}

fn scale(source: impl Into<CudaSource>) -> Scale {
    let kernel = Scale::new("scale").require("one thread for each element", |grid, (_, x)| {
        grid.threads().count() == x.len() as u64
    });
    // SAFETY: each thread accesses its element, and by the requirement there are no more threads.
    unsafe { kernel.cuda(source) }
}

fn works(kernel: &Scale, device: &Device) {
    let mut x = SmartArray::from(vec![1.0_f32, 2.0, 3.0]);
    kernel.launch_on(&device.stream(), Grid::new(1, 3), (2.0, &mut x)).expect("queued");
    assert_eq!(x.host().expect("the download succeeds").to_vec(), [2.0, 4.0, 6.0]);
}

/// The modules that were loaded, or refused, since the calls were last taken.
fn modules_loaded() -> usize {
    resident_stand_in::calls().iter().filter(|call| call.name == "cuModuleLoadDataEx").count()
}

/// Both kernels are in one source, and so in one module.
fn two_kernels(device: &Device) {
    works(&scale(SOURCE), device);
    // SAFETY: the kernel is not launched.
    let transpose = unsafe { Transpose::new("transpose").cuda(SOURCE) };
    transpose.prepare(device).expect("it is compiled already");
    assert_eq!(modules_loaded(), 1);
}

fn eight_threads(device: &Device) {
    let kernels: Vec<Scale> = (0..8).map(|_| scale(SOURCE)).collect();
    std::thread::scope(|scope| {
        for kernel in &kernels {
            scope.spawn(|| kernel.prepare(device).expect("it compiles"));
        }
    });
}

/// A template for two types, and a C++ function by its plain name, which is in the module of the
/// first.
fn expressions(device: &Device) {
    let source = "template <typename T> __global__ void scale(T k, T *x) { x[threadIdx.x] *= k; }
        __global__ void plain(float k, float *x) { x[threadIdx.x] *= k; }\n";
    works(&scale(CudaSource::c(source).entry("scale<float>")), device);
    works(&scale(CudaSource::c(source).entry("plain")), device);
    let wrong = scale(CudaSource::c(source).entry("scale<double>"))
        .prepare(device)
        .expect_err("a scalar of 8 bytes")
        .to_string();
    assert_says(&wrong, &["compiled are 2 of [8, 8] bytes, the signature has 2 of [4, 8]"]);
}

/// The host reads and writes what the kernels of a source share.
fn variables(device: &Device) {
    let source = CudaSource::c(
        "__constant__ float factor[2]; namespace ns { __device__ int calls; }
        extern \"C\" __global__ void scale(float k, float *x) {
            x[threadIdx.x] *= k * factor[1]; if (threadIdx.x == 0) ++ns::calls; }
        template <typename T> __global__ void count(T *x) { *x = ++ns::calls; }",
    );
    let scale = scale(source.clone());
    // SAFETY: there is one element.
    let count =
        unsafe { Kernel::<(InOut<i32>,)>::new("count").cuda(source.clone().entry("count<int>")) };
    let (_here, other) = (device.enter(), device.new_stream().expect("a stream"));
    let factor = source.variable::<f32>("factor");
    let mut x = SmartArray::from(vec![1.0_f32, 2.0]);
    for (value, expected) in [(2.0, [4.0, 8.0]), (0.5, [4.0, 8.0])] {
        factor.write_on(&other, &[0.0, value]).expect("written");
        scale.launch(Grid::new(1, 2), (2.0, &mut x)).expect("queued");
        assert_eq!(x.to_vec().expect("the download succeeds"), expected);
    }
    assert_eq!(factor.read().expect("read"), [0.0, 0.5]);
    let mut n = SmartArray::<i32, _>::zeros(1);
    count.launch(Grid::new(1, 1), (&mut n,)).expect("queued");
    assert_eq!(n.get(0).expect("the download succeeds"), 3);
    assert_eq!(source.variable::<i32>("ns::calls").read().expect("read"), [3]);
    let missing = source.variable::<i32>("missing").read().expect_err("there is none").to_string();
    assert!(missing.contains("no `__device__`") && missing.contains("`missing`"), "{missing}");
    let short = factor.write(&[1.0]).expect_err("too short").to_string();
    assert!(short.contains("8 bytes") && short.contains("4 bytes"), "{short}");
}

fn faults(device: &Device) {
    let log = |source: CudaSource| match scale(source).prepare(device).expect_err("it is wrong") {
        Error::Compile { kernel, device, log, .. } => {
            assert_eq!((&*kernel, &*device), ("\"scale\"", "cuda:0"));
            log.to_string()
        }
        other => panic!("{other}"),
    };
    assert_says(&log("\n// resident\nnot C\n".into()), &["scale.cu(3)"]);
    let missing = log(CudaSource::c(SOURCE).entry("shear"));
    assert_says(&missing, &["no `__global__` function `shear`", "scale, transpose"]);
    let unnamed = Kernel::<(InOut<f32>,)>::new("two words");
    // SAFETY: the kernel does not load.
    let unnamed = unsafe { unnamed.cuda(SOURCE) }
        .prepare(device)
        .expect_err("no C function is called so")
        .to_string();
    assert_says(&unnamed, &["\"two words\": name the one to run by `GpuSource::entry`"]);
    assert!(
        log(CudaSource::c(SOURCE).define("zero\0within", 1)).contains("zero byte"),
        "bad input is an error, not a panic"
    );
    assert!(log(CudaSource::c("before\0after")).contains("zero byte at 6"));
    works(&scale(SOURCE), device);
}

/// Without a cubin the PTX is loaded; without cubin and PTX, the error names the option that caused
/// this.
fn what_comes_out(device: &Device) {
    let with = |options: &[&str]| {
        options.iter().fold(CudaSource::c(SOURCE), |source, option| source.option(*option))
    };
    for options in [
        &["-arch=compute_80"][..],
        &["-arch", "compute_80"],
        &["--gpu-architecture", "sm_80"],
        &[" --gpu-architecture=compute_90"],
    ] {
        works(&scale(with(options)), device);
    }
    for option in ["-dlto", "--dlink-time-opt", "-optix-ir"] {
        let error =
            scale(with(&["-arch=sm_80", option])).prepare(device).expect_err("nothing to load");
        let Error::Compile { log, .. } = &error else { panic!("{error}") };
        assert_says(
            log,
            &["for sm_80 made neither machine code nor PTX", &format!("the option `{option}`")],
        );
    }
    let newer = scale(with(&["-arch=compute_120"]))
        .prepare(device)
        .expect_err("the device is older")
        .to_string();
    assert_says(
        &newer,
        &["what NVRTC 13.0 made for compute_120 on sm_90 (PTX: CUDA_ERROR_INVALID_PTX"],
    );
}

const NO_BINARY_FOR_GPU: u32 = 209;

/// The driver refuses machine code, as if it were for another architecture. For lazily loaded code
/// it reports such errors when the first function is looked up.
fn refused_machine_code(device: &Device) {
    for (index, call) in
        ["cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncGetAttribute"].into_iter().enumerate()
    {
        resident_stand_in::fail_nth(call, 1, NO_BINARY_FOR_GPU);
        works(&scale(CudaSource::c(SOURCE).define("PART", index)), device);
    }
    assert_eq!(modules_loaded(), 6, "the machine code, then the PTX");
}

/// The driver refuses both images, even after a new compilation. After errors for another reason
/// than the kind of code, the PTX is not tried.
fn refused_altogether(device: &Device) {
    const OUT_OF_MEMORY: u32 = 2;
    const UNSUPPORTED_PTX_VERSION: u32 = 222;
    let kernel = scale(SOURCE);
    for attempt in [0, 2] {
        resident_stand_in::fail_nth("cuModuleLoadDataEx", attempt + 1, NO_BINARY_FOR_GPU);
        resident_stand_in::fail_nth("cuModuleLoadDataEx", attempt + 2, UNSUPPORTED_PTX_VERSION);
    }
    let error = kernel.prepare(device).expect_err("refused twice").to_string();
    let refusals =
        ["machine code: CUDA_ERROR_NO_BINARY_FOR_GPU", "PTX: CUDA_ERROR_UNSUPPORTED_PTX_VERSION"];
    assert_says(&error, &refusals);
    assert_says(&error, &["`RESIDENT_NVRTC` names"]);
    resident_stand_in::forget_faults();
    resident_stand_in::take_calls();
    resident_stand_in::fail_nth("cuModuleLoadDataEx", 1, OUT_OF_MEMORY);
    assert!(!matches!(kernel.prepare(device).expect_err("no memory"), Error::Compile { .. }));
    assert_eq!(modules_loaded(), 1);
    kernel.prepare(device).expect("it loads");
}

/// The driver refuses the code that an earlier run cached, and accepts the newly compiled code.
fn refused_once(device: &Device) {
    resident_stand_in::fail_nth("cuModuleLoadDataEx", 1, NO_BINARY_FOR_GPU);
    resident_stand_in::fail_nth("cuModuleLoadDataEx", 2, NO_BINARY_FOR_GPU);
    works(&scale(SOURCE), device);
}

/// Compiles with the NVRTC that the library finds, and prints the open NVRTC files.
fn which_nvrtc(driver_version: i32) {
    resident_stand_in::load(Settings::new().driver_version(driver_version))
        .expect("the stand-in driver loads");
    let device = Device::cuda(0).expect("the stand-in driver has a device");
    if let Err(fault) = scale(SOURCE).prepare(&device) {
        println!("{fault}");
    }
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it");
    let mut files: Vec<&str> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .filter(|file| file.contains("nvrtc"))
        .collect();
    files.dedup();
    println!("open: {files:?}");
}

/// A file is read when it is compiled, so a file with changed contents is compiled as another
/// program.
fn a_file(device: &Device) {
    let scratch = Scratch::new("file");
    let path = scratch.0.join("scale.cu");
    fs::write(&path, SOURCE).expect("writable");
    works(&scale(CudaSource::file(&path)), device);
    works(&scale(CudaSource::file(&path)), device);
    fs::write(&path, format!("{SOURCE}\n// changed")).expect("writable");
    works(&scale(CudaSource::file(&path)), device);
    fs::write(&path, "not C\n").expect("writable");
    let error =
        scale(CudaSource::file(&path)).prepare(device).expect_err("it is wrong").to_string();
    assert!(error.contains(&format!("{}(1)", path.display())), "{error}");
}

/// Includes are searched for in the folder of the file.
fn includes(device: &Device) {
    let scratch = Scratch::new("includes");
    fs::write(scratch.0.join("types.cuh"), "typedef float Number;\n").expect("writable");
    let path = scratch.0.join("scale.cu");
    fs::write(
        &path,
        "#include \"types.cuh\"\nextern \"C\" __global__ void scale(Number k, Number *x) {
            x[threadIdx.x] *= k;
        }\n",
    )
    .expect("writable");
    works(&scale(CudaSource::file(&path)), device);
    let text = fs::read_to_string(&path).expect("written");
    works(&scale(CudaSource::c(text).include(&scratch.0)), device);
}

/// Runs parts one after the other, each of which compiles so many programs.
#[track_caller]
fn run(cache: &Path, parts: &[(&str, u64)]) {
    for (index, (part, expected)) in parts.iter().enumerate() {
        assert_eq!(compilations_of(part, cache), *expected, "{part}, run {index}");
    }
}

#[test]
fn a_source_is_compiled_once_and_the_next_run_finds_it_on_disk() {
    let cache = Scratch::new("disk");
    run(&cache.0, &[("two kernels", 1)]);
    assert_eq!(cache.files().len(), 1);
    // Code of another compiler is a separate cache entry.
    run(&cache.0, &[("two kernels", 0), ("an older compiler", 1)]);
    run(Path::new("off"), &[("two kernels", 1)]);
}

#[test]
fn what_is_damaged_on_disk_is_compiled_again_and_replaced() {
    let cache = Scratch::new("damaged");
    run(&cache.0, &[("two kernels", 1)]);
    let file = cache.files().remove(0);
    let whole = fs::read(&file).expect("readable");
    for damaged in [&whole[..whole.len() / 2], b"something else", b""] {
        fs::write(&file, damaged).expect("writable");
        run(&cache.0, &[("two kernels", 1)]);
        assert_eq!(fs::read(&file).expect("readable"), whole, "the file was replaced");
    }
    run(&cache.0, &[("two kernels", 0)]);
}

#[test]
fn a_cache_that_cannot_be_written_is_no_error() {
    let scratch = Scratch::new("unwritable");
    let file = scratch.0.join("a file");
    fs::write(&file, "in the folder's place").expect("writable");
    run(&file, &[("two kernels", 1)]);
    run(&file.join("below"), &[("two kernels", 1)]);
}

#[test]
fn options_decide_what_comes_out_and_what_is_kept() {
    let cache = Scratch::new("options");
    run(&cache.0, &[("what comes out", 8)]);
    assert_eq!(cache.files().len(), 5, "failed compilations are not cached");
    // Three that failed, and cached code that does not load.
    run(&cache.0, &[("what comes out", 4)]);
}

#[test]
fn machine_code_that_the_driver_refuses_is_replaced_by_its_ptx() {
    let cache = Scratch::new("refused");
    // Then the cached PTX is loaded.
    run(&cache.0, &[("refused machine code", 3), ("refused machine code", 0)]);
}

#[test]
fn what_is_kept_and_does_not_load_is_compiled_anew_once() {
    let cache = Scratch::new("anew");
    run(&cache.0, &[("two kernels", 1), ("refused once", 1)]);
    run(&cache.0, &[("refused altogether", 1), ("two kernels", 0)]);
}

#[test]
fn the_compiler_is_the_one_named_else_that_of_the_drivers_version() {
    let folder = Scratch::new("versions");
    let copy = |name: &str| {
        fs::copy(resident_stand_in_nvrtc::file().expect("built"), folder.0.join(name))
            .expect("writable")
    };
    for name in [
        "libnvrtc.so",
        "libnvrtc.so.11.2",
        "libnvrtc.so.12",
        "libnvrtc.so.13",
        "libnvrtc.so.14",
        "my-nvrtc.so",
    ] {
        copy(name);
    }
    let opened = |driver_version: u32, named: Option<&Path>| {
        let named = named.map(|file| ("RESIDENT_NVRTC", file));
        let environment = [("LD_LIBRARY_PATH", &*folder.0), ("RESIDENT_CACHE", Path::new("off"))]
            .into_iter()
            .chain(named);
        output_of(&format!("which NVRTC for {driver_version}"), &environment.collect::<Vec<_>>())
    };
    let only = |name: &str| format!("open: [{:?}]", folder.0.join(name));
    for (driver_version, name) in
        [(13_050, "libnvrtc.so.13"), (12_040, "libnvrtc.so.12"), (11_080, "libnvrtc.so.11.2")]
    {
        let text = opened(driver_version, None);
        assert!(text.contains(&only(name)), "{name}: {text}");
    }
    let text = opened(13_050, Some(&folder.0.join("my-nvrtc.so")));
    assert!(text.contains(&only("my-nvrtc.so")), "{text}");
    let text = opened(13_050, Some(&folder.0.join("no-nvrtc.so")));
    assert_says(&text, &["RESIDENT_NVRTC names", "no-nvrtc.so", "unset it"]);
    assert!(text.contains("open: []"), "no other library replaces it: {text}");
    fs::remove_file(folder.0.join("libnvrtc.so.13")).expect("ours");
    let text = opened(13_050, None);
    assert!(text.contains(&only("libnvrtc.so.12")), "older code runs on any later driver: {text}");
}

/// Tests of a part without a cache: which part, and how many programs it compiles, if that counts.
macro_rules! without_cache {
    ($($test:ident: $part:literal, $count:expr;)*) => {$(
        #[test]
        fn $test() {
            let compiled = compilations_of($part, Path::new("off"));
            assert_eq!(compiled, $count.unwrap_or(compiled));
        }
    )*};
}

without_cache! {
    a_compiler_newer_than_the_driver_is_reported_with_both_versions:
        "a compiler newer than the driver", None;
    threads_that_need_one_program_at_once_compile_it_once: "eight threads", Some(1);
    // The module with `plain`, and one for an instance that nobody asked for before.
    templates_and_cpp_functions_are_found_by_their_expressions: "expressions", Some(2);
    kernels_of_one_source_share_variables_which_the_host_reads_and_writes: "variables", Some(1);
    errors_of_a_source_are_reported_and_cost_nothing_else: "faults", None;
    // Two contents that compile, one that does not.
    a_file_is_compiled_for_each_content: "a file", Some(3);
}

#[test]
fn what_includes_others_is_never_kept_on_disk() {
    let cache = Scratch::new("included");
    // The file, and the same text with the same folder, are one program.
    run(&cache.0, &[("includes", 1)]);
    assert_eq!(cache.files(), Vec::<PathBuf>::new());
    // A header may have changed.
    run(&cache.0, &[("includes", 1)]);
}
