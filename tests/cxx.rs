//! The build script of packages some of whose tests compile CUDA C: these are ignored, with the
//! reason, where there is no C++ compiler.

fn main() {
    println!("cargo:rustc-check-cfg=cfg(cxx)");
    println!("cargo:rerun-if-env-changed=RESIDENT_CXX");
    println!("cargo:rerun-if-changed=../cxx.rs");
    let named = std::env::var("RESIDENT_CXX").ok().filter(|name| !name.is_empty());
    let names = named
        .map_or_else(|| ["c++", "clang++", "g++"].map(str::to_owned).to_vec(), |name| vec![name]);
    let runs = |name: &String| {
        let output = std::process::Command::new(name).arg("--version").output();
        output.is_ok_and(|output| output.status.success())
    };
    if names.iter().any(runs) {
        println!("cargo:rustc-cfg=cxx");
    } else {
        // Until one is installed.
        println!("cargo:rerun-if-env-changed=PATH");
        println!("cargo:rerun-if-changed=/usr/bin");
    }
}
