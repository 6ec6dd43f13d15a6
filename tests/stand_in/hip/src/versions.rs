//! Which functions a version of HIP has. A function that it has not is really absent: the client
//! loads a copy of the shared object in which the symbol has another name.

use std::fs;
use std::ops::Range;
use std::path::Path;

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
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
pub(crate) fn open(values: &Values) -> Result<Library, String> {
    let path = beside_tests(FILE)?;
    let is_older = |(_, since): &&(&str, i32)| values.version < *since;
    let attributes = (!values.has_function_attributes).then_some("hipFuncGetAttribute");
    let missing = || SINCE.iter().filter(is_older).map(|(name, _)| *name).chain(attributes);
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
    let names = place_of_names(&image)?;
    for name in missing {
        rename(&mut image[names.clone()], name)?;
    }
    Ok(image)
}

/// Replaces the first letter of the symbol's name. The loader finds the entry by the hash of the
/// old name, and then compares the names. `names` has the names of all symbols, each with a zero
/// behind it.
fn rename(names: &mut [u8], name: &str) -> Result<(), String> {
    let symbol = format!("\0{name}\0");
    let place = names.windows(symbol.len()).position(|bytes| bytes == symbol.as_bytes());
    let place = place.ok_or_else(|| format!("it has no symbol {name}"))?;
    names[place + 1] = b'_';
    Ok(())
}

/// Where the names of symbols are that the loader looks at: a small part of a large file.
fn place_of_names(image: &[u8]) -> Result<Range<usize>, String> {
    let place = || -> object::Result<Option<(u64, u64)>> {
        let header = FileHeader64::<LittleEndian>::parse(image)?;
        let sections = header.sections(LittleEndian, image)?;
        let names = sections.section_by_name(LittleEndian, b".dynstr");
        Ok(names.and_then(|(_, section)| section.file_range(LittleEndian)))
    };
    let (start, len) = place().map_err(|fault| fault.to_string())?.ok_or("it has no symbols")?;
    Ok(start as usize..(start + len) as usize)
}
