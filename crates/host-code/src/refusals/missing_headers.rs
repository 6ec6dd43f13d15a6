//! Headers of features that are not there: a source may include them, since kernels that use the
//! feature are left out.

use std::path::Path;

use resident_code::headers::{included_file, is_known};

/// How their names begin, and what they declare.
const OF_FEATURES: [(&str, &str); 6] = [
    ("mma.h", "namespace nvcuda { namespace wmma {} }\n"),
    ("curand", ""),
    ("cub/", "namespace cub {}\n"),
    ("thrust/", "namespace thrust {}\n"),
    ("texture_", ""),
    ("surface_", ""),
];

/// The files for the headers of this kind that a source includes and that are neither the library's
/// nor in one of these folders: their names and texts.
pub(in super::super) fn files(
    text: &str,
    folders: &[&Path],
    is_own: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let is_found = |name: &str| folders.iter().any(|folder| folder.join(name).is_file());
    let names = text.lines().filter_map(included_file);
    let mut missing: Vec<&str> =
        names.filter(|name| !is_known(name) && !is_own(name) && !is_found(name)).collect();
    missing.sort_unstable();
    missing.dedup();
    missing.into_iter().filter_map(|name| Some((name.to_owned(), content(name)?))).collect()
}

fn content(name: &str) -> Option<String> {
    let (_, text) = OF_FEATURES.iter().find(|(prefix, _)| name.starts_with(prefix))?;
    let is_usable = !name.contains("..");
    is_usable.then(|| format!("#pragma once\n{text}"))
}

#[cfg(test)]
mod tests {
    use super::files;

    #[test]
    fn headers_of_features_are_there() {
        let text = "#include <algorithm>\n#include <cuda_runtime.h>\n#include \"own.h\"\n\
                    #include <cub/cub.cuh>\n#include <cub/cub.cuh>\n#include \"cub/../up.h\"\n";
        let found = files(text, &[], |name| name == "own.h");
        let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["cub/cub.cuh"]);
        assert!(found[0].1.contains("namespace cub {}"));
    }
}
