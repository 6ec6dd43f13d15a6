//! Loads a shared object that cargo has built beside the tests.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library as Loaded;

/// The path of a file in the folder of this program or in the one above it, or in the folder `deps`
/// of either, where cargo puts libraries.
///
/// # Errors
///
/// With the folders that were tried.
pub fn beside_tests(file: &str) -> Result<PathBuf, String> {
    let program = std::env::current_exe()
        .map_err(|fault| format!("the path of this program is not known: {fault}"))?;
    let parents = program.ancestors().skip(1).take(2);
    let folders: Vec<PathBuf> =
        parents.flat_map(|folder| [folder.into(), folder.join("deps")]).collect();
    let found = folders.iter().map(|folder| folder.join(file)).find(|path| path.is_file());
    found.ok_or_else(|| format!("{file} is in none of {folders:?}; cargo builds it with the tests"))
}

/// A loaded library. It is never unloaded.
#[derive(Debug)]
pub struct Library(&'static Loaded);

/// A library that cargo builds beside the tests, loaded when it is asked for.
#[derive(Debug)]
pub struct LibraryBesideTests {
    file: &'static str,
    library: OnceLock<Result<Library, String>>,
}

impl Library {
    /// The library in this file. Without a folder it is a SONAME: that of a library already loaded,
    /// or else of one that the loader finds.
    ///
    /// # Errors
    ///
    /// With the loader's message.
    pub fn open(path: &Path) -> Result<Self, String> {
        // SAFETY: the libraries have only the initialisers of Rust's standard library.
        let library = unsafe { Loaded::new(path) };
        let library = library.map_err(|fault| format!("{}: {fault}", path.display()))?;
        Ok(Self(Box::leak(Box::new(library))))
    }

    /// A function of the library, as a function pointer of type `F`, which must be the function's
    /// type.
    ///
    /// # Errors
    ///
    /// If there is no function with that name.
    pub fn function<F: Copy>(&self, name: &str) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a function pointer") };
        // SAFETY: both libraries are built from the same source, which defines this type for the
        // function, and the library is never unloaded.
        let function = unsafe { self.0.get::<F>(name) };
        function.map(|function| *function).map_err(|fault| format!("{name}: {fault}"))
    }
}

impl LibraryBesideTests {
    /// The library in the file with this name.
    #[must_use]
    pub const fn new(file: &'static str) -> Self {
        Self { file, library: OnceLock::new() }
    }

    /// The path of the file: see [`beside_tests`].
    ///
    /// # Errors
    ///
    /// With the folders that were tried.
    pub fn path(&self) -> Result<PathBuf, String> {
        beside_tests(self.file)
    }

    /// Loads the library, at the first call.
    ///
    /// # Errors
    ///
    /// With the folders that were tried, or with the loader's message.
    pub fn load(&self) -> Result<(), String> {
        self.load_and(|_| ())
    }

    /// Like `load`, and tells `then` the path once the library is loaded for the first time.
    ///
    /// # Errors
    ///
    /// As for `load`.
    pub fn load_and(&self, then: impl FnOnce(&Path)) -> Result<(), String> {
        let open = || {
            let path = self.path()?;
            Library::open(&path).inspect(|_| then(&path))
        };
        self.library.get_or_init(open).as_ref().map(drop).map_err(Clone::clone)
    }

    /// The library, if it is loaded.
    #[must_use]
    pub fn loaded(&self) -> Option<&Library> {
        self.library.get()?.as_ref().ok()
    }
}
