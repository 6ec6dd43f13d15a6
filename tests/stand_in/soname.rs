//! The build script of the stand-ins: gives a shared object the SONAME of the library for which it
//! stands.

fn main() {
    println!("cargo:rerun-if-changed=../soname.rs");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux");
    if is_linux {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{}", soname(env!("CARGO_PKG_NAME")));
    }
}

/// The first name that cudarc and `resident` try. When code asks for this name later, glibc returns
/// the library already loaded under it, so the stand-in is used instead of a real library.
fn soname(package: &str) -> &str {
    match package {
        "resident-stand-in" | "resident-free-driver" => "libcuda.so",
        "resident-stand-in-nvrtc" => "libnvrtc.so",
        "resident-stand-in-cublas" => "libcublas.so",
        "resident-stand-in-nccl" => "libnccl.so",
        "resident-stand-in-hip" => "libamdhip64.so",
        "resident-stand-in-hiprtc" => "libhiprtc.so",
        _ => panic!("{package} stands for no library"),
    }
}
