//! Headers that a source includes and NVRTC does not find: each gets a file that says so. The file
//! is looked at only where the source includes it, not between other conditions, and not by other
//! headers of the host.

use std::path::Path;

use resident_code::headers::{included_file, is_known};

/// Headers of features that kernels are left out for, and what they declare.
const OF_FEATURES: [(&str, &str); 6] = [
    ("mma.h", "namespace nvcuda { namespace wmma {} }\n"),
    ("curand", ""),
    ("cub/", "namespace cub {}\n"),
    ("thrust/", "namespace thrust {}\n"),
    ("texture_", ""),
    ("surface_", ""),
];

/// The files for the headers that a source includes and that are neither the library's nor in one
/// of these folders: their names and texts.
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
    let is_usable = |name: &&str| !Path::new(name).has_root() && !name.contains("..");
    missing.into_iter().filter(is_usable).map(|name| (name.to_owned(), content(name))).collect()
}

fn content(name: &str) -> String {
    let feature = OF_FEATURES.iter().find(|(prefix, _)| name.starts_with(prefix));
    if let Some((_, text)) = feature {
        return format!("#pragma once\n{text}");
    }
    format!(
        "#ifdef RESIDENT_IN_SOURCE\n#error NVRTC has no header {name} and no standard library: \
         leave it out, or name a folder that has it by CudaSource::include\n#else\n\
         #include_next <{name}>\n#endif\n"
    )
}

#[cfg(test)]
mod tests {
    use super::files;

    #[test]
    fn headers_that_are_found_nowhere_say_so() {
        let text = "#include <algorithm>\n#include <cuda_runtime.h>\n#include \"own.h\"\n\
                    #include <cub/cub.cuh>\n#include <algorithm>\n#include \"../up.h\"\n";
        let found = files(text, &[], |name| name == "own.h");
        let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["algorithm", "cub/cub.cuh"]);
        assert!(found[0].1.contains("#error NVRTC has no header algorithm"));
        assert!(found[1].1.contains("namespace cub {}"));
    }
}
