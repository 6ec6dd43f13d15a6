//! What the environment says of embedded devices and of compiled kernels. Each test has a process
//! of its own.

use std::path::PathBuf;

use resident::ndarray::s;
use resident::{CudaSource, Device, Emulation, Grid, InOut, Kernel, Result, SmartArray};
use support::own_process::{self, assert_success};
use support::test_name;

/// How the process of a test is to end, in the variable with this name.
const EXPECTED: &str = "RESIDENT_TEST_EXPECTED";

fn expected() -> String {
    std::env::var(EXPECTED).expect("the parent sets it")
}

/// The second reads behind its part if it gets two elements.
const SOURCE: &str = "
    extern \"C\" __global__ void which(int *x) { x[0] = 2; }
    extern \"C\" __global__ void beyond(int *x) { x[0] = x[2]; }";

/// A kernel whose two bodies differ, and that leaves an element unwritten.
fn kernel() -> Kernel<(InOut<i32>,)> {
    // SAFETY: it writes the first element.
    unsafe { Kernel::new("which").host(|_, (x,): (&mut [i32],)| x[0] = 1).cuda(SOURCE) }
}

/// What the body wrote that runs on a device; and whether the device checks kernels.
fn ran_on(device: &Device) -> Result<String> {
    // SAFETY: the thread reads behind its part, which is a fault, in the same array, which does no
    // harm.
    let beyond = unsafe { Kernel::<(InOut<i32>,)>::new("beyond").cuda(SOURCE) };
    // Its name is always that of the code, which all processes share.
    beyond.prepare(device)?;
    let mut x = SmartArray::<i32, _>::zeros(4);
    kernel().launch_on(&device.stream(), Grid::cover(1), (&mut x,))?;
    let body = if x.to_vec()?[0] == 1 { "host" } else { "cuda" };
    let queued = beyond.launch_on(&device.stream(), Grid::new(1, 1), (&mut x.slice_mut(s![..2]),));
    let is_checked = queued.and_then(|()| device.synchronize()).is_err();
    Ok(format!("{body}{}", if is_checked { ", checked" } else { "" }))
}

#[test]
#[ignore = "needs variables: run in processes of its own by the test below"]
fn runs_what_the_environment_says() {
    for device in [Device::cpu(), Device::emulated(Emulation::new())] {
        let outcome = ran_on(&device).unwrap_or_else(|error| error.to_string());
        assert!(outcome.contains(&expected()), "{outcome}, not {}", expected());
    }
    let text = expected();
    if text.starts_with("RESIDENT_") {
        let refused = Device::cpu().new_stream().expect_err("the device is refused");
        assert!(refused.to_string().contains(&text), "{refused}");
        let array = SmartArray::from(vec![1_u8; 9]);
        assert!(array.gpu_on(&Device::cpu().stream()).is_err());
        assert_eq!(array.host().expect("it is on the host").len(), 9);
    }
}

#[test]
fn variables_are_understood_or_refused() {
    let switches = "expected 1, true, yes or on, or else 0, false, no or off; set it so, or unset";
    let refused = |variable: &str, value: &str, expected: &str| {
        (variable.to_owned(), value.to_owned(), format!("{variable}={value}: {expected}"))
    };
    let is = |variable: &str, value: &str, expected: &str| {
        (variable.to_owned(), value.to_owned(), expected.to_owned())
    };
    for (variable, value, expected) in [
        is("RESIDENT_SANITIZE", "", "host"),
        is("RESIDENT_SANITIZE", "1", "cuda, checked"),
        is("RESIDENT_SANITIZE", "true", "cuda, checked"),
        is("RESIDENT_SANITIZE", "Yes", "cuda, checked"),
        is("RESIDENT_SANITIZE", " ON ", "cuda, checked"),
        is("RESIDENT_SANITIZE", "off", "host"),
        refused("RESIDENT_SANITIZE", "maybe", switches),
        refused("RESIDENT_SANITIZE", "2", switches),
        is("RESIDENT_CPU_KERNELS", "CUDA", "cuda"),
        is("RESIDENT_CPU_KERNELS", "host", "host"),
        refused("RESIDENT_CPU_KERNELS", "gpu", "expected cuda or host; set it so, or unset it"),
        is("RESIDENT_LAUNCH_TIMEOUT", "600", "host"),
        refused("RESIDENT_LAUNCH_TIMEOUT", "abc", "expected a number of seconds above 0, as in 10"),
        refused("RESIDENT_LAUNCH_TIMEOUT", "0", "expected a number of seconds above 0, as in 10"),
        is("RESIDENT_STAGING_THREADS", "0", "host"),
        refused("RESIDENT_STAGING_THREADS", "many", "expected a number from 0 to 1024; set it so"),
    ] {
        let test = test_name!(runs_what_the_environment_says);
        let output = own_process::run(test, &[(&variable, &value), (EXPECTED, &expected)]);
        assert_success(&output, &format!("{variable}={value}"));
    }
}

#[test]
fn a_summary_says_that_the_checker_ran_and_over_what() {
    let test = test_name!(runs_what_the_environment_says);
    let checked = "The checker of CUDA C ran over ";
    for (sanitizes, expected, kernels) in [
        ("yes", "cuda, checked", Some("4 launches of 2 kernels.\n  beyond: 2 launches, ")),
        ("no", "host", None),
    ] {
        let variables =
            [("RESIDENT_SANITIZE", sanitizes), ("RESIDENT_AUDIT", "summary"), (EXPECTED, expected)];
        let output = own_process::run(test, &variables);
        assert_success(&output, sanitizes);
        let text = String::from_utf8_lossy(&output.stderr);
        let said = text.split_once(checked).map(|(_, said)| said);
        assert_eq!(said.is_some(), kernels.is_some(), "{text}");
        assert!(said.zip(kernels).is_none_or(|(said, kernels)| {
            said.starts_with(kernels) && said.contains(" accesses, 2 errors, ")
        }));
    }
}

#[test]
fn a_report_in_json_says_what_the_checker_ran_over() {
    let test = test_name!(runs_what_the_environment_says);
    let path = std::env::temp_dir().join(format!("resident-checked-{}.json", std::process::id()));
    for (sanitizes, expected, checked) in [
        ("yes", "cuda, checked", r#""checked": [{"kernel": "beyond", "launches": 2, "accesses": "#),
        ("no", "host", r#""checked": null"#),
    ] {
        let audit = format!("json:{}", path.display());
        let variables =
            [("RESIDENT_SANITIZE", sanitizes), ("RESIDENT_AUDIT", &*audit), (EXPECTED, expected)];
        let output = own_process::run(test, &variables);
        assert_success(&output, sanitizes);
        let json = std::fs::read_to_string(&path).expect("it was written");
        assert!(json.contains(checked), "{json}");
        assert_eq!(json.contains(r#", "errors": 2, "notes": "#), sanitizes == "yes");
        std::fs::remove_file(&path).expect("it is there");
    }
}

#[test]
#[ignore = "needs variables: run in processes of its own by the tests below"]
fn compiles_and_runs() {
    // SAFETY: it writes the first element.
    let two = unsafe {
        Kernel::<(InOut<i32>,)>::new("two")
            .cuda("extern \"C\" __global__ void two(int *x) { x[0] = 2; }")
    };
    let mut x = SmartArray::<i32, _>::zeros(4);
    let outcome = two
        .launch_on(&Device::cpu().stream(), Grid::cover(1), (&mut x,))
        .and_then(|()| x.to_vec())
        .map_or_else(|error| error.to_string(), |x| x[0].to_string());
    for part in expected().split('|') {
        assert!(outcome.contains(part), "{outcome}");
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("resident-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A folder for temporary files that cannot be used is named, with the reason; and a kernel in the
/// cache needs none.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_for_temporary_files_that_cannot_be_used_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let test = test_name!(compiles_and_runs);
    let cache = folder("cache-without-folder");
    std::fs::set_permissions(&cache, PermissionsExt::from_mode(0o700)).expect("it is own");
    let cache = cache.to_str().expect("UTF-8");
    let file = format!("{cache}/file");
    std::fs::write(&file, "").expect("a file");
    for (temporary, reason) in [("/no/such/folder", "No such file"), (&*file, "Not a directory")] {
        let words = format!(
            "the folder for temporary files, {temporary}, which TMPDIR names, and that cannot be \
             used: {reason}|Let TMPDIR name a folder that exists, has free space"
        );
        let variables = [("RESIDENT_CACHE", "off"), ("TMPDIR", temporary), (EXPECTED, &words)];
        assert_success(&own_process::run(test, &variables), temporary);
    }
    for temporary in ["/tmp", "/no/such/folder", &file] {
        let variables = [("RESIDENT_CACHE", cache), ("TMPDIR", temporary), (EXPECTED, "2")];
        assert_success(&own_process::run(test, &variables), temporary);
    }
    std::fs::remove_dir_all(cache).expect("it is there");
}

/// A kernel in the cache needs no compiler, if none was named that is missing.
#[cfg(target_os = "linux")]
#[test]
fn a_kernel_in_the_cache_needs_no_compiler() {
    use std::os::unix::fs::PermissionsExt;

    let folders = ["filled", "empty"].map(|name| folder(&format!("cache-{name}")));
    let [filled, empty] = folders.each_ref().map(|folder| {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).expect("it is own");
        folder.to_str().expect("UTF-8")
    });
    let path = std::env::var("PATH").unwrap_or_default();
    for (cache, path, named, expected) in [
        (filled, &*path, "", "2"),
        (filled, "/no/such/folder", "", "2"),
        (empty, "/no/such/folder", "", "there is no C++ compiler"),
        (filled, &*path, "/no/such/compiler", "/no/such/compiler that RESIDENT_CXX names"),
    ] {
        let variables = [
            ("RESIDENT_CACHE", cache),
            ("PATH", path),
            ("RESIDENT_CXX", named),
            (EXPECTED, expected),
        ];
        let output = own_process::run(test_name!(compiles_and_runs), &variables);
        assert_success(&output, expected);
    }
    for folder in folders {
        std::fs::remove_dir_all(folder).expect("it is there");
    }
}

/// A compiler that writes nothing, or does not end, is named with the variable that is to change.
#[cfg(unix)]
#[test]
fn compilers_that_make_nothing_are_named() {
    use std::os::unix::fs::PermissionsExt;

    let folder = folder("compilers");
    let limit = "RESIDENT_COMPILE_TIMEOUT";
    for (name, does, seconds, words) in [
        (
            "idle",
            "true",
            "600",
            "/idle (idle 1.0), which RESIDENT_CXX names, ended without an error",
        ),
        ("slow", "sleep 600", "0.3", "/slow ran longer than 300ms, the limit in RESIDENT_COMPILE_"),
        ("idle", "true", "soon", "RESIDENT_COMPILE_TIMEOUT=soon: expected a number of seconds"),
    ] {
        let compiler = folder.join(name);
        let text = format!("#!/bin/sh\n[ \"$1\" = --version ] && echo {name} 1.0 || {does}\n");
        std::fs::write(&compiler, text).expect("a file");
        std::fs::set_permissions(&compiler, PermissionsExt::from_mode(0o700)).expect("it is own");
        let compiler = compiler.to_str().expect("UTF-8");
        let variables = [
            ("RESIDENT_CACHE", "off"),
            ("RESIDENT_CXX", compiler),
            (limit, seconds),
            (EXPECTED, words),
        ];
        assert_success(&own_process::run(test_name!(compiles_and_runs), &variables), name);
    }
    std::fs::remove_dir_all(folder).expect("it is there");
}

/// The names of folders are bytes, not text.
#[cfg(target_os = "linux")]
#[test]
fn headers_are_found_in_a_folder_whose_name_is_not_utf_8() -> Result<()> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let parent = folder("include");
    let own = parent.join(OsStr::from_bytes(b"caf\xe9"));
    // What the name would be if it were text.
    let other = parent.join("caf\u{fffd}");
    for (folder, value) in [(&own, 3), (&other, 4)] {
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(folder.join("value.h"), format!("#define VALUE {value}")).expect("a file");
    }
    let source = "#include \"value.h\"\nextern \"C\" __global__ void set(int *x) { x[0] = VALUE; }";
    let source = CudaSource::c(source).include(&own);
    let set = crate::kernel::<(InOut<i32>,)>("set", source);
    let mut x = SmartArray::<i32, _>::zeros(1);
    set.launch_on(&Device::cpu().stream(), Grid::cover(1), (&mut x,))?;
    assert_eq!(x.to_vec()?, [3]);
    std::fs::remove_dir_all(parent).expect("it is there");
    Ok(())
}
