//! The client: the functions by which tests load the compiler and query it.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::library::Library;
use crate::{COMPILATIONS, FILE, VARIABLE};

static COMPILER: OnceLock<Result<Library, String>> = OnceLock::new();

/// The variable from which it takes the folder of its cache.
const CACHE: &str = "RESIDENT_CACHE";

/// Loads the compiler into this process, so that code that looks for the real one afterwards finds
/// it: by its SONAME, or by the variable in which `resident` takes its path (`RESIDENT_NVRTC`,
/// `RESIDENT_HIPRTC`), which this overwrites. What it compiles is not mixed with what a real
/// compiler compiled: `RESIDENT_CACHE` is switched off unless it is set.
/// Each test of a process may call this, before it opens a device.
///
/// # Errors
///
/// If the compiler cannot be found, with the paths that were tried.
pub fn load() -> Result<(), String> {
    COMPILER.get_or_init(load_and_name).as_ref().map(drop).map_err(Clone::clone)
}

fn load_and_name() -> Result<Library, String> {
    let library = Library::open_beside_tests(FILE)?;
    // SAFETY: all threads of a test process access the environment only through Rust's standard
    // library, which locks it.
    unsafe { std::env::set_var(VARIABLE, file()?) };
    if std::env::var_os(CACHE).is_none() {
        // SAFETY: as above.
        unsafe { std::env::set_var(CACHE, "off") };
    }
    Ok(library)
}

/// The path of the compiler: in the folder of this program, or in the folder where cargo puts
/// libraries.
///
/// # Errors
///
/// If the file is not there.
pub fn file() -> Result<PathBuf, String> {
    let program = std::env::current_exe()
        .map_err(|fault| format!("the path of this program is unknown: {fault}"))?;
    let mut folders =
        program.ancestors().skip(1).take(2).flat_map(|folder| [folder.into(), folder.join("deps")]);
    folders
        .find_map(|folder: PathBuf| Some(folder.join(FILE)).filter(|file| file.is_file()))
        .ok_or_else(|| {
            format!(
                "{FILE} is neither beside {} nor in cargo's library folder; cargo builds it with \
            the tests",
                program.display()
            )
        })
}

/// Whether sources compile here: whether there is a C++ compiler. If not, says that the caller's
/// test is skipped.
#[must_use]
pub fn compiles() -> bool {
    match missing_compiler() {
        None => true,
        Some(fault) => {
            println!("skipped: {fault}");
            false
        }
    }
}

#[cfg(target_os = "linux")]
fn missing_compiler() -> Option<String> {
    resident_host_code::compiler::Compiler::find().err()
}

#[cfg(not(target_os = "linux"))]
fn missing_compiler() -> Option<String> {
    Some("the stand-in is available only on Linux".to_owned())
}

/// The number of programs compiled so far, including failed compilations.
///
/// # Panics
///
/// If the compiler is not loaded.
#[must_use]
pub fn compilations() -> u64 {
    let count: extern "C" fn() -> u64 = function_of(COMPILATIONS);
    count()
}

pub(crate) fn function_of<F: Copy>(name: &str) -> F {
    let compiler = COMPILER.get().and_then(|compiler| compiler.as_ref().ok());
    let compiler = compiler.expect("the stand-in compiler is not loaded: call `load` first");
    compiler.function(name).unwrap_or_else(|fault| panic!("{fault}"))
}
