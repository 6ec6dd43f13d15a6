//! The error for an instance of a template that a kernel names after the module of its source was
//! loaded: code of its own could not share the source's variables.

use std::borrow::Borrow;
use std::path::Path;

use crate::kernels::definitions;

/// The instance, the source, its variables, and what to do. `path` is the file of the source.
#[cold]
pub fn came_late(
    entry: &str,
    text: &str,
    path: Option<&Path>,
    variables: &[impl Borrow<str>],
) -> String {
    let source = match path {
        Some(path) => format!("the file {}", path.display()),
        None => {
            let names: Vec<String> =
                definitions(text).iter().map(|one| format!("`{}`", one.name)).collect();
            format!("the source of {}", names.join(", "))
        }
    };
    format!(
        "`{entry}` is not in the module of {source}, which was compiled and loaded on this device \
         before a kernel named `{entry}`; loaded apart it would not share the variables of the \
         source ({}): make its kernel too, of a clone of the same `CudaSource`, before the first \
         of them is prepared or launched",
        variables.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::came_late;
    use std::path::Path;

    #[test]
    fn the_instance_the_source_and_the_next_step_are_named() {
        let text = "__global__ void f() {} template <typename T> __global__ void g() {}";
        let variables = ["calls", "coef"];
        for (path, source) in [
            (None, "the module of the source of `f`, `g`, which was compiled and loaded"),
            (Some(Path::new("all.cu")), "the module of the file all.cu, which was compiled"),
        ] {
            let said = came_late("g<int>", text, path, &variables);
            assert!(said.starts_with("`g<int>` is not in the module of") && said.contains(source));
            assert!(said.contains("(calls, coef)") && said.contains("clone of the same"), "{said}");
        }
    }
}
