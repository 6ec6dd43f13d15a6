//! The kernels of a source: puts `RESIDENT_KERNEL` behind the body of each, where its name is known
//! to the compiler.

#![forbid(unsafe_code)]

use resident_code::kernels::definitions;

/// The source, with the kernels that are no templates listed, on the same lines.
pub(crate) fn with_list(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for kernel in definitions(text).into_iter().filter(|kernel| !kernel.is_template) {
        let (name, bounds) = (kernel.name, kernel.launch_bounds);
        result.push_str(&text[done..kernel.body.end]);
        result.push_str(&format!(" RESIDENT_KERNEL({name}, {bounds})"));
        done = kernel.body.end;
    }
    result + &text[done..]
}
