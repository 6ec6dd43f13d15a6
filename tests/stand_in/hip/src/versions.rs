//! Which functions a version of HIP has. A function that it has not is really absent: the client
//! loads a copy of the shared object in which the symbol has another name.

use std::fs;
use std::path::Path;

use resident_host_code::temporary_files::TemporaryFile;
use resident_stand_in_client::library::{Library, beside_tests};
use resident_stand_in_client::settings::Values;

/// The shared object, which cargo builds beside the test.
const FILE: &str = "libresident_stand_in_hip.so";

/// Functions that older versions have not, and the first version with them, by the versions of
/// HIP's symbols (`hipamd/src/hip_hcc.map.in`).
const SINCE: [(&str, i32); 2] =
    [("hipLaunchHostFunc", 50_300_000), ("hipGetDevicePropertiesR0600", 60_000_000)];

/// Opens the shared object with the functions of the version.
pub(crate) fn open(&Values { version, .. }: &Values) -> Result<Library, String> {
    let path = beside_tests(FILE)?;
    let missing = || SINCE.iter().filter(|(_, since)| version < *since).map(|(name, _)| *name);
    if missing().next().is_none() {
        return Library::open(&path);
    }
    without(&path, missing()).map_err(|fault| format!("{}: {fault}", path.display()))
}

fn without(path: &Path, missing: impl Iterator<Item = &'static str>) -> Result<Library, String> {
    let image = image_without(path, missing)?;
    let file = TemporaryFile::new("so")?;
    file.fill(&image)?;
    Library::open(&file.path)
}

/// The shared object without these functions, for a file that `RESIDENT_HIP` names: a runtime that
/// lacks calls, with the settings of [`Settings::new`](crate::Settings::new).
///
/// # Errors
///
/// If the shared object is not beside the test, or has not one of the functions.
pub fn file_without(missing: &[&'static str]) -> Result<Vec<u8>, String> {
    image_without(&beside_tests(FILE)?, missing.iter().copied())
}

fn image_without(
    path: &Path,
    missing: impl Iterator<Item = &'static str>,
) -> Result<Vec<u8>, String> {
    let mut image = fs::read(path).map_err(|fault| fault.to_string())?;
    for name in missing {
        rename(&mut image, name)?;
    }
    Ok(image)
}

/// Replaces the first letter of the symbol wherever its name is a text that ends with a zero. The
/// loader finds the entry by the hash of the old name, and then compares the names.
fn rename(image: &mut [u8], name: &str) -> Result<(), String> {
    let symbol = format!("\0{name}\0");
    let len = symbol.len();
    let places: Vec<usize> =
        (0..=image.len() - len).filter(|at| image[*at..*at + len] == *symbol.as_bytes()).collect();
    places.iter().for_each(|at| image[at + 1] = b'_');
    if places.is_empty() { Err(format!("it has no symbol {name}")) } else { Ok(()) }
}
