//! Gives the shared object the SONAME of a CUDA driver.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // This is the first name that cudarc tries. When code asks for this name later, glibc returns
    // the library already loaded under it, so the free driver is used instead of a real one.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so");
    }
}
