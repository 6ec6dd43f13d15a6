//! What all compilers of CUDA C share.
//!
//! - `prelude`: the views that are declared before the source. `signature`: the compiled parameters
//!   compared with the signature.
//! - `code_object`: the kernels and parameters that AMD's compiler describes in its code.
//! - `cache`: compiled code on disk. `once`: values that are made once per key.

pub mod c_declaration;
pub mod cache;
pub mod code_object;
pub mod once;
pub mod prelude;
pub mod signature;

/// Whether a text may include another file, whose changes would not change the key. If the text
/// includes a file, this returns true; it may also return true for other texts.
pub fn includes(text: &str) -> bool {
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    joined.lines().any(|line| {
        line.contains("include")
            && (line.contains('#') || line.contains("%:") || line.contains("??="))
    })
}
