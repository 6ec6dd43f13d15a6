//! The processor that runs compiled kernels: for which instructions the compiler may compile.

/// The compiler's option for the instructions of this processor, in one of the levels of the x86-64
/// psABI. `None` for the compiler's default, which every processor of the kind has.
///
/// From `x86-64-v3` on there are stores under a mask. The compiler needs these to vectorise the
/// threads of a block where each compares its index with a length. The disk cache has the options
/// in its keys, so that no other machine runs the code by mistake.
#[cfg(target_arch = "x86_64")]
pub(super) fn option() -> Option<&'static str> {
    use std::arch::is_x86_feature_detected as has;
    let is_v3 = has!("avx2")
        && has!("bmi1")
        && has!("bmi2")
        && has!("f16c")
        && has!("fma")
        && has!("lzcnt")
        && has!("movbe");
    let is_v4 = has!("avx512f")
        && has!("avx512bw")
        && has!("avx512cd")
        && has!("avx512dq")
        && has!("avx512vl");
    match (is_v3, is_v4) {
        (true, true) => Some("-march=x86-64-v4"),
        (true, false) => Some("-march=x86-64-v3"),
        (false, _) => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn option() -> Option<&'static str> {
    None
}
