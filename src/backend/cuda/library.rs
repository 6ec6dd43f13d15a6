//! Which of NVIDIA's libraries are there. cudarc panics where one is missing, so that everything looks here first.

use std::sync::OnceLock;

use libloading::Library;

/// A library that is looked for when a program runs.
#[derive(Debug)]
pub(super) struct Candidates {
    /// Without prefix and suffix, as the platforms call it.
    names: &'static [&'static str],
    found: OnceLock<Option<Library>>,
}

/// The driver's.
pub(super) static DRIVER: Candidates = Candidates { names: &["cuda", "nvcuda"], found: OnceLock::new() };

/// The compiler's.
pub(super) static NVRTC: Candidates = Candidates { names: &["nvrtc"], found: OnceLock::new() };

impl Candidates {
    /// The library, opened once and kept open.
    pub(super) fn library(&self) -> Option<&Library> {
        self.found.get_or_init(|| self.files().iter().find_map(|file| open(file))).as_ref()
    }

    pub(super) fn is_present(&self) -> bool {
        self.library().is_some()
    }

    /// The names under which it is looked for: those that cudarc tries, in its order.
    pub(super) fn files(&self) -> Vec<String> {
        self.names.iter().flat_map(|name| cudarc::get_lib_name_candidates(name)).collect()
    }

    /// A function that older versions of the library lack.
    ///
    /// # Safety
    ///
    /// `F` is the type of the function of that name.
    pub(super) unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: the caller vouches for the type; the library stays open for the life of the process, so the pointer does not dangle.
        unsafe { self.library()?.get::<F>(name.as_bytes()) }.ok().map(|function| *function)
    }
}

fn open(file: &str) -> Option<Library> {
    // SAFETY: opening runs the library's initialisers; these are NVIDIA's driver and compiler, which any CUDA program opens in this way.
    unsafe { Library::new(file) }.ok()
}
