//! Loads a shared object that cargo has built beside the tests.

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::Library;
#[cfg(target_os = "linux")]
pub(crate) use linux::Library;

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{CStr, CString, c_char, c_int, c_void};
    use std::path::{Path, PathBuf};
    use std::ptr::NonNull;

    const RTLD_NOW: c_int = 2;

    // These functions are in glibc or in libdl, which std links.
    unsafe extern "C" {
        fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
        fn dlerror() -> *const c_char;
    }

    /// A loaded library. It is never unloaded.
    #[derive(Debug)]
    pub(crate) struct Library(NonNull<c_void>);

    // SAFETY: the handle identifies a library that is never unloaded, and any thread may call the
    // functions that take it.
    unsafe impl Send for Library {}
    // SAFETY: as above.
    unsafe impl Sync for Library {}

    impl Library {
        /// Loads `file` from the folder of this program, or from the folder `deps` in or beside it,
        /// where cargo puts libraries.
        ///
        /// # Errors
        ///
        /// With the folders that were tried, or with the loader's message.
        pub(crate) fn open_beside_tests(file: &str) -> Result<Self, String> {
            Self::open(&Self::beside_tests(file)?)
        }

        /// The path that `open_beside_tests` opens.
        ///
        /// # Errors
        ///
        /// With the folders that were tried.
        pub(crate) fn beside_tests(file: &str) -> Result<PathBuf, String> {
            let program = std::env::current_exe()
                .map_err(|fault| format!("the path of this program is not known: {fault}"))?;
            let folders: Vec<PathBuf> = program
                .ancestors()
                .skip(1)
                .take(2)
                .flat_map(|folder| [folder.into(), folder.join("deps")])
                .collect();
            let found = folders.iter().map(|folder| folder.join(file)).find(|path| path.is_file());
            found.ok_or_else(|| {
                format!("{file} is in none of {folders:?}; cargo builds it with the tests")
            })
        }

        /// The library with this SONAME: the one already loaded, or else the one that the loader
        /// finds.
        ///
        /// # Errors
        ///
        /// With the loader's message.
        #[allow(dead_code, reason = "the other stand-in libraries call it")]
        pub(crate) fn open_named(name: &str) -> Result<Self, String> {
            Self::open(Path::new(name))
        }

        /// The library in this file.
        ///
        /// # Errors
        ///
        /// With the loader's message.
        pub(crate) fn open(path: &Path) -> Result<Self, String> {
            let name = CString::new(path.as_os_str().as_encoded_bytes())
                .map_err(|fault| fault.to_string())?;
            // SAFETY: the name is a C string; the library has only the initialisers of Rust's
            // standard library.
            let library = unsafe { dlopen(name.as_ptr(), RTLD_NOW) };
            NonNull::new(library)
                .map(Self)
                .ok_or_else(|| format!("{}: {}", path.display(), last_error()))
        }

        /// A function of the library, as a function pointer of type `F`, which must be the
        /// function's type.
        ///
        /// # Errors
        ///
        /// If there is no function with that name.
        pub(crate) fn function<F: Copy>(&self, name: &str) -> Result<F, String> {
            const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a function pointer") };
            let symbol = CString::new(name).map_err(|fault| fault.to_string())?;
            // SAFETY: the library is never unloaded (`Library`), and the name is a C string.
            let address = unsafe { dlsym(self.0.as_ptr(), symbol.as_ptr()) };
            if address.is_null() {
                return Err(format!("the stand-in has no function {name}"));
            }
            // SAFETY: the sizes are equal (asserted), and both libraries are built from the same
            // source, which defines this type for the function.
            Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
        }
    }

    fn last_error() -> String {
        // SAFETY: `dlerror` has no preconditions.
        let text = unsafe { dlerror() };
        if text.is_null() {
            return "the loader gives no reason".to_owned();
        }
        // SAFETY: a non-null result is a C string that is live until the thread's next call to the
        // loader.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    /// A library that cannot exist, because no stand-in is built for this platform.
    #[derive(Debug)]
    pub(crate) enum Library {}

    impl Library {
        /// Returns an error.
        ///
        /// # Errors
        ///
        /// Always.
        pub(crate) fn open_beside_tests(file: &str) -> Result<Self, String> {
            Err(format!("{file} is available only on Linux"))
        }

        /// Returns an error.
        ///
        /// # Errors
        ///
        /// Always.
        #[allow(dead_code, reason = "as on Linux")]
        pub(crate) fn open_named(name: &str) -> Result<Self, String> {
            Self::open_beside_tests(name)
        }

        /// Cannot be called.
        ///
        /// # Errors
        ///
        /// None.
        pub(crate) fn function<F: Copy>(&self, _name: &str) -> Result<F, String> {
            match *self {}
        }
    }
}
