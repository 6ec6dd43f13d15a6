//! The headers that every source can include, with every compiler: those of CUDA whose contents
//! NVRTC has without a header, and those of C whose numbers and types [`numbers`]
//! has. Without a toolkit NVRTC finds none of them.

use std::ffi::CString;
use std::path::Path;
use std::sync::LazyLock;

use crate::numbers;

/// A header: its name and its text, as compilers take both.
#[derive(Debug)]
pub struct Header {
    pub name: CString,
    pub text: CString,
}

/// Those whose contents compilers have without a header. Their text is a line, since hiprtc refuses
/// an empty one.
const EMPTY: [&str; 31] = [
    "cuda.h",
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "cuda_device_runtime_api.h",
    "device_launch_parameters.h",
    "device_functions.h",
    "device_atomic_functions.h",
    "device_types.h",
    "driver_types.h",
    "builtin_types.h",
    "channel_descriptor.h",
    "common_functions.h",
    "host_defines.h",
    "math_functions.h",
    "sm_20_intrinsics.h",
    "sm_30_intrinsics.h",
    "sm_35_intrinsics.h",
    "vector_functions.h",
    "vector_types.h",
    "assert.h",
    "cassert",
    "stddef.h",
    "cstddef",
    "stdio.h",
    "cstdio",
    "stdlib.h",
    "cstdlib",
    "string.h",
    "cstring",
    "time.h",
    "ctime",
];

/// Those with numbers and types.
const NUMBERS: [&str; 8] =
    ["stdint.h", "cstdint", "limits.h", "climits", "float.h", "cfloat", "math.h", "cmath"];

/// So many of the first are of CUDA.
const OF_CUDA: usize = 19;

const CONSTANTS: (&str, &str) = ("math_constants.h", include_str!("math_constants.h"));

static HEADERS: LazyLock<Vec<Header>> = LazyLock::new(|| {
    let c_string = |text: &str| CString::new(text).unwrap_or_default();
    of_cuda()
        .chain(of_c())
        .map(|(name, text)| Header { name: c_string(name), text: c_string(text) })
        .collect()
});

/// The headers of CUDA, with their texts.
pub fn of_cuda() -> impl Iterator<Item = (&'static str, &'static str)> {
    EMPTY[..OF_CUDA].iter().map(|name| (*name, "\n")).chain([CONSTANTS])
}

/// Those of C, with their texts.
pub fn of_c() -> impl Iterator<Item = (&'static str, &'static str)> {
    static NUMBERS_TEXT: LazyLock<String> = LazyLock::new(numbers::header);
    let of_numbers = NUMBERS.iter().map(|name| (*name, NUMBERS_TEXT.as_str()));
    EMPTY[OF_CUDA..].iter().map(|name| (*name, "\n")).chain(of_numbers)
}

/// The headers for a source that are in none of these folders.
pub fn for_source(text: &str, folders: &[&Path]) -> Vec<&'static Header> {
    let included: Vec<&str> = text.lines().filter_map(included_file).collect();
    let is_elsewhere = |name: &str| folders.iter().any(|folder| folder.join(name).is_file());
    let is_wanted = |header: &&Header| {
        header.name.to_str().is_ok_and(|name| included.contains(&name) && !is_elsewhere(name))
    };
    HEADERS.iter().filter(is_wanted).collect()
}

/// Whether there is such a header for every compiler.
pub fn is_known(name: &str) -> bool {
    EMPTY.contains(&name) || NUMBERS.contains(&name) || name == CONSTANTS.0
}

/// The file that a line includes: `cuda_fp16.h` for `#include <cuda_fp16.h>`.
pub fn included_file(line: &str) -> Option<&str> {
    let directive = line.trim_start().strip_prefix('#')?.trim_start();
    let file = directive.strip_prefix("include")?.trim_start();
    let (close, rest) = match file.as_bytes().first()? {
        b'<' => ('>', &file[1..]),
        b'"' => ('"', &file[1..]),
        _ => return None,
    };
    rest.split_once(close).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::{for_source, included_file, of_cuda};

    #[test]
    fn a_line_names_the_file_that_it_includes() {
        for (line, file) in [
            ("#include <cuda_runtime.h>", Some("cuda_runtime.h")),
            ("  # include \"a/b.h\" // here", Some("a/b.h")),
            ("#include NAME", None),
            ("int include;", None),
        ] {
            assert_eq!(included_file(line), file);
        }
    }

    #[test]
    fn a_header_in_a_folder_of_the_user_is_the_users() {
        let folder = std::env::temp_dir().join(format!("resident-own-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("math_constants.h"), "").expect("a file");
        let text = "#include <math_constants.h>\n#include <cuda_runtime.h>\n#include <vector>";
        let names = |folders: &[&std::path::Path]| -> Vec<_> {
            for_source(text, folders).iter().map(|header| &*header.name).collect()
        };
        assert_eq!(names(&[]), [c"cuda_runtime.h", c"math_constants.h"]);
        assert_eq!(names(&[&folder]), [c"cuda_runtime.h"]);
        std::fs::remove_dir_all(folder).expect("a folder");
        assert!(of_cuda().all(|(name, _)| name.ends_with(".h")) && of_cuda().count() == 20);
    }
}
