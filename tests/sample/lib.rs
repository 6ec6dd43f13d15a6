//! A sample of the packages `kernels` and `drivers`, which `cargo test` runs beside the package
//! `fast`. `.ci/run` runs all of them.
//!
//! The example below is here for its name, which is among the last lines of `cargo test`.

#[cfg(not(cxx))]
#[doc(hidden)]
pub mod there_is_no_cxx_compiler {
    /// The tests of CUDA C were ignored.
    ///
    /// ```ignore
    /// apt-get install g++
    /// ```
    pub fn tests_of_cuda_c_did_not_run_until_you_install_the_package_g_plus_plus() {}
}
