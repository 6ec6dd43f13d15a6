//! Files of reports.

use std::path::Path;
use std::{fs, io};

/// Writes a file. The error names it.
pub fn write_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    fs::write(path, contents).map_err(|error| named(path, &error))
}

/// The error, with the name of the file.
pub(crate) fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
