//! Files for the compiler and the loader, in the system's folder for temporary files.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use resident_backend::environment;

/// A file of this process that is removed on drop.
#[derive(Debug)]
pub struct TemporaryFile {
    pub path: PathBuf,
}

impl TemporaryFile {
    /// An empty file with a new name, which no other user can write.
    pub fn new(extension: &str) -> Result<Self, String> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // The loader returns a library that is already loaded from a file of the same name, even if
        // that file has been removed. A process may have several copies of this crate, each with
        // its own numbers, so names tell the copies apart.
        let copy = (&raw const NUMBER).addr();
        loop {
            let process = std::process::id();
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("resident-{process}-{copy:x}-{number}.{extension}");
            let path = std::env::temp_dir().join(name);
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            match options.open(&path) {
                Ok(_file) => return Ok(Self { path }),
                Err(fault) if fault.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(fault) => return Err(unusable(&fault.to_string())),
            }
        }
    }

    pub fn fill(&self, bytes: &[u8]) -> Result<(), String> {
        let file = std::fs::OpenOptions::new().write(true).truncate(true).open(&self.path);
        let filled = file.and_then(|mut file| file.write_all(bytes));
        filled.map_err(|fault| unusable(&fault.to_string()))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A file that cannot be removed stays in the system's folder for temporary files.
        let _left = std::fs::remove_file(&self.path);
    }
}

/// Says which folder cannot be used, why, and what to do.
#[cold]
pub(super) fn unusable(reason: &str) -> String {
    let variable = if cfg!(windows) { "TMP" } else { "TMPDIR" };
    let origin = match environment::of_system(variable) {
        Some(_) => format!("which {variable} names"),
        None => format!("the default, since {variable} is not set"),
    };
    format!(
        "compiled code needs the folder for temporary files, {}, {origin}, and that cannot be \
         used: {reason}. Let {variable} name a folder that exists, has free space, and from which \
         code may be loaded (not mounted with `noexec`)",
        std::env::temp_dir().display()
    )
}

/// A file without a name that has these bytes; `None` if the system has none.
#[cfg(target_os = "linux")]
pub(super) fn in_memory(bytes: &[u8]) -> Option<File> {
    use std::os::fd::FromRawFd;

    // SAFETY: the name is a string of C.
    let descriptor = unsafe { libc::memfd_create(c"resident".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the descriptor is new, so nothing else owns it.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(bytes).ok().map(|()| file)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn in_memory(_bytes: &[u8]) -> Option<File> {
    None
}

/// Under which path such a file can be opened, as long as it is open. No two have one path then.
#[cfg(target_os = "linux")]
pub(super) fn path_of(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;

    Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn path_of(_file: &File) -> Option<PathBuf> {
    None
}
