//! Names the shared object as cuBLAS is named.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The first name that cudarc tries. glibc gives a library that is loaded under this name to
    // whoever asks for it later, so that the stand-in wins over a real one.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcublas.so");
    }
}
