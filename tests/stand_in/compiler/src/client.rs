//! The client: the functions by which tests load a compiler and query it.

use std::path::PathBuf;

use resident_stand_in_client::library::LibraryBesideTests;

/// What loads one compiler, and asks it. Each stand-in has one, in a static, and the functions of
/// [`compiler_client_functions`](crate::compiler_client_functions).
#[derive(Debug)]
pub struct Client {
    compiler: LibraryBesideTests,
    /// The variable from which `resident` takes the path of the compiler.
    variable: &'static str,
}

/// The variable from which `resident` takes the folder of its cache.
const CACHE: &str = "RESIDENT_CACHE";

impl Client {
    /// The client of the compiler in this file.
    #[must_use]
    pub const fn new(file: &'static str, variable: &'static str) -> Self {
        Self { compiler: LibraryBesideTests::new(file), variable }
    }

    /// Loads the compiler, and sets the variables by which `resident` finds it.
    pub fn load(&self) -> Result<(), String> {
        self.compiler.load_and(|file| {
            // SAFETY: all threads of a test process access the environment only through Rust's
            // standard library, which locks it.
            unsafe { std::env::set_var(self.variable, file) };
            if std::env::var_os(CACHE).is_none() {
                // SAFETY: as above.
                unsafe { std::env::set_var(CACHE, "off") };
            }
        })
    }

    /// The path of the compiler.
    pub fn file(&self) -> Result<PathBuf, String> {
        self.compiler.path()
    }

    /// A function of the compiler, as a function pointer of its type.
    #[must_use]
    pub fn function<F: Copy>(&self, name: &str) -> F {
        let compiler = self.compiler.loaded();
        let compiler = compiler.expect("the stand-in compiler is not loaded: call `load` first");
        compiler.function(name).unwrap_or_else(|fault| panic!("{fault}"))
    }
}

/// Defines the functions by which tests load the compiler of a [`Client`], and query it.
/// `$compilations` is the function of the shared object that counts.
#[macro_export]
macro_rules! compiler_client_functions {
    ($client:path, $compilations:literal) => {
        /// Loads the compiler into this process, so that code that looks for the real one
        /// afterwards finds it: by its SONAME, or by the variable in which `resident` takes its
        /// path (`RESIDENT_NVRTC`, `RESIDENT_HIPRTC`), which this overwrites. What it compiles is
        /// not mixed with what a real compiler compiled: `RESIDENT_CACHE` is switched off unless it
        /// is set. Each test of a process may call this, before it opens a device.
        ///
        /// # Errors
        ///
        /// If the compiler cannot be found, with the paths that were tried.
        pub fn load() -> Result<(), String> {
            $client.load()
        }

        /// The path of the compiler.
        ///
        /// # Errors
        ///
        /// If the file is not there.
        pub fn file() -> Result<std::path::PathBuf, String> {
            $client.file()
        }

        /// The number of programs compiled so far, including failed compilations.
        ///
        /// # Panics
        ///
        /// If the compiler is not loaded.
        #[must_use]
        pub fn compilations() -> u64 {
            let count: extern "C" fn() -> u64 = $client.function($compilations);
            count()
        }
    };
}
