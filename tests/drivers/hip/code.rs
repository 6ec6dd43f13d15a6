//! Kernels: one source for both vendors, bodies for AMD alone, code of another kind, and options.

use resident::ndarray::Ix1;
use resident::{Device, DeviceArray, Error, GpuSource, Grid, InOut, Kernel, SmartArray, ops};
use resident_stand_in_hip::{self as driver, Access, Parameter, Settings};
use support::hip::face;
use support::{assert_says, in_own_process, own_process, test_name};

use super::open;

const ADD: &str = r#"
extern "C" __global__ void add(unsigned k, resident::View1<unsigned> x) {
    long long i = resident::thread();
    if (x.contains(i)) x(i) += k * ADDEND;
}
"#;

type Add = (u32, InOut<u32, Ix1>);

fn add(source: impl Into<GpuSource>) -> Kernel<Add> {
    // SAFETY: the source writes only elements of its view.
    unsafe { Kernel::<Add>::new("add").cuda(source) }
}

fn log(kernel: &Kernel<Add>, device: &Device) -> String {
    match kernel.prepare(device) {
        Err(Error::Compile { log, .. }) => log,
        other => panic!("{other:?} is not Compile"),
    }
}

#[test]
fn cuda_c_runs_as_it_is_with_its_options_translated() {
    own_process!();
    let gpu = open(Settings::new());
    let source = GpuSource::c(ADD)
        .define("ADDEND", 2)
        .option("--fmad=false")
        .option("-arch=sm_90")
        .option("--std=c++17");
    let (kernel, _here) = (add(source), gpu.enter());
    let mut x = SmartArray::from(vec![1_u32; 1000]);
    kernel.launch(Grid::cover(1000), (3, &mut x)).expect("it runs");
    assert!(x.host().expect("a download").iter().all(|x| *x == 7));
    assert_eq!(resident_stand_in_hiprtc::compilations(), 1);
}

/// The library's `resident::wave_size()` is the architecture's.
#[test]
fn an_option_for_wavefronts_of_another_size_is_refused() {
    let gpu = in_own_process!(open(Settings::new().architecture("gfx1030")));
    for option in ["-mwavefrontsize64", " -mno-wavefrontsize64", "+wavefrontsize64"] {
        let text = log(&add(GpuSource::c(ADD).define("ADDEND", 2).option(option)), &gpu);
        assert_says(&text, &[option.trim(), "resident::wave_size()", "leave it out"]);
    }
}

#[test]
#[ignore = "needs variables: run in processes of its own by the test below"]
fn compiles_one_program() {
    driver::load(Settings::new()).expect("it loads");
    let gpu = Device::hip(0).expect("it opens");
    add(GpuSource::c(ADD).define("ADDEND", 1)).prepare(&gpu).expect("it compiles");
}

/// hiprtc calls itself 9.0 in every release, so its file tells which one compiled.
#[test]
fn each_compilers_code_is_its_own() {
    let Ok(compiler) = resident_stand_in_hiprtc::file() else { return };
    let folder = std::env::temp_dir().join(format!("resident-hiprtc-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("cache")).expect("writable");
    let (copy, cache) = (folder.join("copy.so"), folder.join("cache"));
    std::fs::copy(&compiler, &copy).expect("writable");
    let cached = [&compiler, &copy, &copy].map(|file| {
        let text = |path: &std::path::Path| path.display().to_string();
        let variables = [("RESIDENT_HIPRTC", &*text(file)), ("RESIDENT_CACHE", &text(&cache))];
        let test = test_name!(compiles_one_program);
        own_process::assert_success(&own_process::run(test, &variables), test);
        std::fs::read_dir(&cache).expect("a folder").count()
    });
    std::fs::remove_dir_all(folder).expect("it is there");
    assert_eq!(cached, [1, 2, 2]);
}

/// The runtime refuses 2^32 threads and more along an axis. Elsewhere a grid may have them.
#[test]
fn a_grid_of_too_many_threads_along_an_axis_is_named() {
    let gpu = in_own_process!(open(Settings::new()));
    let view = Parameter::View { dimensions: 1, element_bytes: 4, access: Access::ReadWrite };
    let value = Parameter::Scalar { len_bytes: 4 };
    driver::register("add", &[value, view], |_| Ok(()));
    // SAFETY: a host function replaces it, which accesses nothing.
    let kernel = unsafe { Kernel::<Add>::new("add").hip(face::code("add", &[value, view])) };
    let (_here, mut x) = (gpu.enter(), SmartArray::from(vec![1_u32; 10]));
    for grid in [Grid::new(1 << 24, 256), Grid::cover(1 << 32)] {
        let refused = kernel.launch(grid, (1, &mut x));
        let Err(error @ Error::Grid { .. }) = &refused else { panic!("{refused:?}") };
        let parts = ["4294967296 threads along x", "4294967295 is the most", "along y"];
        assert_says(&error.to_string(), &parts);
    }
    for grid in [Grid::new((1 << 23, 2), 256), Grid::cover((1 << 32) - 256)] {
        kernel.launch(grid, (1, &mut x)).expect("it is within the limits");
    }
    gpu.synchronize().expect("it works");
    assert_eq!(x.host().expect("a download").sum(), 10);
}

/// The body for AMD GPUs is compared, not the one in CUDA C, which adds another number.
#[test]
fn the_body_for_amd_is_compared_where_there_is_one() {
    own_process!();
    let gpu = open(Settings::new());
    let sources = [1, 2].map(|addend| GpuSource::c(ADD).define("ADDEND", addend));
    let [right, wrong] = &sources;
    let host = || Kernel::<Add>::new("add").host(|_, (k, mut x)| x += k);
    let mut x = SmartArray::from(vec![1_u32; 10]);
    let of_both = |hip: &GpuSource, cuda: &GpuSource| {
        // SAFETY: the source writes only elements of its view.
        let kernel = unsafe { host().hip(hip.clone()) };
        // SAFETY: as above.
        unsafe { kernel.cuda(cuda.clone()) }
    };
    let (kernel, other) = (of_both(right, wrong), of_both(wrong, right));
    assert_eq!(kernel.compare(&gpu, 10, (3, &mut x), 0.0).expect("both run"), None);
    assert!(other.compare(&gpu, 10, (3, &mut x), 0.0).expect("both run").is_some());
    let refused = host().compare(&gpu, 10, (3, &mut x), 0.0).expect_err("one body").to_string();
    assert_says(&refused, &["none for hip:0", "`.cuda(..)` or `.hip(..)`"]);
}

/// 4 GiB of the host's memory are the device's, so this runs only if it is asked for.
#[test]
fn operations_take_more_elements_than_threads_along_an_axis() {
    if std::env::var_os("RESIDENT_LARGE").is_none() {
        println!("not done: RESIDENT_LARGE=1 asks for it");
        return;
    }
    own_process!();
    let gpu = open(Settings::new().memory(5 << 30).poison(false));
    let (_here, len) = (gpu.enter(), (1 << 32) + 1000);
    let sevens = SmartArray::from(vec![7_u8]);
    let mut copied = DeviceArray::<u8, _>::uninit(len).expect("memory");
    ops::copy(&sevens, &mut copied).expect("it is queued");
    for place in [0, (1 << 32) - 256, 1 << 32, len - 1] {
        assert_eq!(copied.get(place).expect("a download"), 7, "{place}");
    }
}

#[test]
fn the_compilers_log_is_shown() {
    own_process!();
    let gpu = open(Settings::new());
    let text = log(&add(ADD), &gpu);
    assert_says(&text, &["hiprtc", "for gfx90a", "add.cu", "ADDEND"]);
    let text = log(&add(GpuSource::c(ADD).define("ADDEND", 1).option("--no-such")), &gpu);
    assert_says(&text, &["--no-such"]);
}

#[test]
fn a_signature_is_compared_with_the_code_object() {
    own_process!();
    let gpu = open(Settings::new());
    let kernel = Kernel::<(u64, InOut<u32>)>::new("add");
    // SAFETY: it is never launched.
    let kernel = unsafe { kernel.cuda(GpuSource::c(ADD).define("ADDEND", 1)) };
    let Err(Error::Compile { log, .. }) = kernel.prepare(&gpu) else { panic!("they differ") };
    assert_says(&log, &["compiled are 2 of [4, 24] bytes", "the signature has 2 of [8, 8]"]);
}

#[test]
fn a_body_for_amd_runs_in_place_of_the_other() {
    own_process!();
    let gpu = open(Settings::new());
    let of = |addend| GpuSource::c(ADD).define("ADDEND", addend);
    // SAFETY: as in `add`.
    let kernel = unsafe { add(of(1)).hip(of(10)) };
    let mut x = SmartArray::from(vec![0_u32; 10]);
    for (device, expected) in [(&gpu, 10), (&Device::cpu(), 11)] {
        kernel.launch_on(&device.stream(), Grid::cover(10), (1, &mut x)).expect("it runs");
        assert_eq!(x.get(9).expect("a download"), expected, "{device}");
    }
}

#[test]
fn code_of_nvidias_is_refused() {
    let gpu = in_own_process!(open(Settings::new()));
    let ptx = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry add() { ret; }";
    for source in [GpuSource::ptx(ptx), GpuSource::cubin(*b"\x7FELF\x02\x01")] {
        let text = log(&add(source), &gpu);
        assert_says(&text, &["PTX and cubins are for NVIDIA GPUs only", "`Kernel::hip`"]);
    }
}

#[test]
fn code_objects_that_are_none_or_for_another_architecture() {
    let gpu = in_own_process!(open(Settings::new()));
    for image in [&b"not an ELF file"[..], b"\x7FELF\x02\x01", b""] {
        let text = log(&add(GpuSource::hsaco(image)), &gpu);
        assert!(text.contains("code object") || text.contains("headers"), "{text}");
    }
    let text = log(&add(GpuSource::hsaco(*b"CCOB\x02\0\x01\0")), &gpu);
    assert_says(&text, &["compressed bundle", "--no-offload-compress"]);
    driver::fail_nth("hipModuleLoadDataEx", 1, 209);
    let text = log(&add(GpuSource::c(ADD).define("ADDEND", 1)), &gpu);
    assert_says(&text, &["cannot load what hiprtc", "gfx90a", "RESIDENT_HIPRTC"]);
}

#[test]
fn a_code_object_for_another_architecture_is_named() {
    let gpu = in_own_process!(open(Settings::new().architecture("gfx90a:sramecc+:xnack-")));
    let view = (24, 8, driver::Kind::Value);
    let described = driver::Described {
        name: "add".to_owned(),
        parameters: vec![(4, 4, driver::Kind::Value), view],
        threads_max: 1024,
    };
    let image = |target| driver::code_object(target, std::slice::from_ref(&described), &[]);
    let other = image("gfx1030").expect("a target");
    let text = log(&add(GpuSource::hsaco(other)), &gpu);
    let what = "this code object (for amdgcn-amd-amdhsa--gfx1030) on gfx90a";
    assert_says(&text, &[what, "make it for this architecture"]);
    let others = bundle(["gfx1030", "gfx1100"].map(|it| (it, image(it).expect("a target"))));
    let text = log(&add(GpuSource::hsaco(others)), &gpu);
    assert_says(&text, &["this bundle of code objects (for gfx1030, gfx1100) on gfx90a"]);
    let own = image("gfx90a").expect("a target");
    add(GpuSource::hsaco(own)).prepare(&gpu).expect("it is for this GPU");
}

/// Code objects as `hipcc --genco` bundles them.
fn bundle(images: [(&str, Vec<u8>); 2]) -> Vec<u8> {
    let mut start = 4096_u64;
    let (mut bundle, mut code) = (b"__CLANG_OFFLOAD_BUNDLE__".to_vec(), Vec::new());
    bundle.extend((images.len() as u64).to_le_bytes());
    for (target, image) in images {
        let name = format!("hipv4-amdgcn-amd-amdhsa--{target}");
        for number in [start, image.len() as u64, name.len() as u64] {
            bundle.extend(number.to_le_bytes());
        }
        bundle.extend(name.as_bytes());
        start += image.len() as u64;
        code.extend(image);
    }
    bundle.resize(4096, 0);
    bundle.extend(code);
    bundle
}

#[cfg(feature = "cuda")]
#[test]
fn a_compiler_of_the_other_vendor() {
    let program = std::env::current_exe().expect("a path");
    let nvrtc = program.with_file_name("libresident_stand_in_nvrtc.so").display().to_string();
    own_process!([("RESIDENT_HIPRTC", &*nvrtc)]);
    driver::load(Settings::new()).expect("it loads");
    let gpu = Device::hip(0).expect("it opens");
    let text = log(&add(ADD), &gpu);
    assert_says(&text, &["RESIDENT_HIPRTC names", "hiprtcVersion", "or unset it"]);
}

#[test]
fn a_compiler_that_is_none() {
    own_process!([("RESIDENT_HIPRTC", "libc.so.6")]);
    driver::load(Settings::new()).expect("it loads");
    let gpu = Device::hip(0).expect("it opens");
    let text = log(&add(ADD), &gpu);
    assert_says(&text, &["RESIDENT_HIPRTC names libc.so.6", "hiprtcVersion", "or unset it"]);
}
