//! The headers of the CUDA toolkit that there are for the host, as files that sources include.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use resident_code::headers::{included_file, is_known, of_c, of_cuda};
use resident_code::includes;

/// The headers that are the host's own: their names and their texts.
const HEADERS: [(&str, &str); 7] = [
    ("cuda_fp16.h", include_str!("cuda_fp16.h")),
    ("cuda_bf16.h", include_str!("cuda_bf16.h")),
    ("cooperative_groups.h", include_str!("cooperative_groups.h")),
    // Parts of it, which CUDA has in files of their own.
    ("cooperative_groups/memcpy_async.h", "#include <cooperative_groups.h>\n"),
    ("cooperative_groups/reduce.h", "#include <cooperative_groups.h>\n"),
    ("cooperative_groups/scan.h", "#include <cooperative_groups.h>\n"),
    ("half_on_host.hpp", include_str!("half_on_host.hpp")),
];

/// The folder below of the headers of C.
const OF_C: &str = "of_c";

/// A folder with the headers, which is removed on drop.
#[derive(Debug)]
pub(super) struct Headers {
    pub(super) folder: PathBuf,
}

impl Headers {
    /// Writes the headers, and others by their names, into a new folder, in which no other user can
    /// write.
    pub(super) fn write(more: &[(String, String)]) -> io::Result<Self> {
        let headers = Self { folder: new_folder()? };
        for (name, text) in HEADERS.into_iter().chain(of_cuda()) {
            headers.add(name, text)?;
        }
        for (name, text) in of_c() {
            headers.add(&format!("{OF_C}/{name}"), text)?;
        }
        more.iter().try_for_each(|(name, text)| headers.add(name, text))?;
        Ok(headers)
    }

    /// The options with which a compiler finds them: those of CUDA before the folders of a toolkit,
    /// and those of C behind the source's own, which may have files of these names.
    pub(super) fn options(&self) -> [OsString; 3] {
        let behind = self.folder.join(OF_C).into_os_string();
        [include_option(&self.folder), OsString::from("-idirafter"), behind]
    }

    fn add(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.folder.join(name);
        path.parent().map(fs::create_dir_all).transpose()?;
        fs::write(path, text)
    }
}

impl Drop for Headers {
    fn drop(&mut self) {
        // A folder that cannot be removed stays among the system's temporary files.
        let _left = fs::remove_dir_all(&self.folder);
    }
}

/// The option that adds a folder, whatever its name, to those of headers.
pub(super) fn include_option(folder: &Path) -> OsString {
    let mut option = OsString::from("-I");
    option.push(folder);
    option
}

/// What of the headers decides over the code.
pub(super) fn key() -> String {
    HEADERS.into_iter().chain(of_cuda()).chain(of_c()).map(|(_, text)| text).collect()
}

fn new_folder() -> io::Result<PathBuf> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("resident-headers-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(&path) {
            Ok(()) => return Ok(path),
            Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {}
            Err(fault) => return Err(fault),
        }
    }
}

/// As [`includes`], but files other than the headers.
pub(super) fn includes_others(text: &str) -> bool {
    let others: Vec<&str> = text.lines().filter(|line| !is_of_header(line)).collect();
    includes(&others.join("\n"))
}

/// Whether the host has a header of this name of its own.
pub(super) fn is_own(name: &str) -> bool {
    HEADERS.iter().any(|(known, _)| *known == name)
}

/// Whether a line is `#include <cuda_fp16.h>` or its like, or includes a header of C.
fn is_of_header(line: &str) -> bool {
    included_file(line).is_some_and(|file| is_known(file) || is_own(file))
}

#[cfg(test)]
mod tests {
    use super::{HEADERS, Headers, includes_others};

    #[test]
    fn only_other_files_are_others() {
        let own = "#include <cuda_fp16.h>\n#include <math.h>\n\
                   # include \"cuda_bf16.h\" // pairs\nint x;";
        assert!(!includes_others(own));
        for other in ["#include <vector>", "#include \"my_cuda_fp16.h\"", "#inc\\\nlude <a.h>"] {
            assert!(includes_others(&format!("{own}\n{other}\n")), "{other}");
        }
    }

    #[test]
    fn code_is_kept_by_the_text_of_each_header() {
        let key = super::key();
        assert!(HEADERS.iter().all(|(_, text)| key.contains(text)));
    }

    #[test]
    fn the_folder_has_all_and_is_removed() {
        let headers = Headers::write(&[("cub/cub.cuh".into(), String::new())])
            .expect("the system's temporary folder");
        let folder = headers.folder.clone();
        assert!(HEADERS.iter().all(|(name, _)| folder.join(name).is_file()));
        assert!(folder.join("cub/cub.cuh").is_file() && folder.join("of_c/stdint.h").is_file());
        drop(headers);
        assert!(!folder.exists());
    }
}
