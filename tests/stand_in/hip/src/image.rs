//! Images of modules: code objects, with the library of the stand-in for hiprtc in a section.

use std::sync::Arc;

use object::LittleEndian;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

use resident_code::code_object::{CompiledKernel, CompiledParameter, architecture, kernels};
use resident_stand_in_code::library::CodeLibrary;
use resident_stand_in_code::object::LIBRARY;
use resident_stand_in_gpu::arguments::In;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::entry::{Entry, Image, Slot};
use resident_stand_in_gpu::{call, machine};

/// The bytes of the code object at an address. HIP's functions do not tell how many there are: they
/// follow from the ELF header.
pub(crate) fn at(start: In<u8>) -> Outcome<Vec<u8>> {
    const HEADER_BYTES: usize = 64;
    let bytes =
        |count: usize| (0..count).map(|index| start.nth(index)).collect::<Outcome<Vec<_>>>();
    if bytes(4)? != b"\x7fELF" {
        return Err(Code::INVALID_IMAGE);
    }
    let header = bytes(HEADER_BYTES)?;
    let number = |at: usize, len: usize| {
        header[at..at + len].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    // The table of sections is the last part of the file.
    let (sections_at, section_bytes, sections) = (number(40, 8), number(58, 2), number(60, 2));
    let len_bytes = sections_at.saturating_add(section_bytes * sections);
    let is_likely = sections > 0 && (HEADER_BYTES as u64..1 << 32).contains(&len_bytes);
    if is_likely { bytes(len_bytes as usize) } else { Err(Code::INVALID_IMAGE) }
}

/// Reads an image. Rejects one that was compiled for another architecture.
pub(crate) fn read(image: &[u8]) -> Outcome<Image> {
    let target = architecture(image).ok_or(Code::INVALID_IMAGE)?;
    let target = target.rsplit("--").next().unwrap_or_default();
    let device = machine::settings();
    if !runs_on(target, device.architecture_name()) {
        let known = device.architecture_name();
        call::note(format!("the module was compiled for {target}, and the device is {known}"));
        return Err(Code::NO_BINARY_FOR_GPU);
    }
    let described = kernels(image).map_err(|fault| {
        call::note(fault);
        Code::INVALID_IMAGE
    })?;
    let entries = described.unwrap_or_default().into_iter().map(entry).collect();
    Ok(Image { entries, library: library(image)?, version: 0 })
}

/// Whether code for a target runs on a device: the processors are equal, and so is the state of
/// each feature that the target names.
fn runs_on(target: &str, device: &str) -> bool {
    let mut parts = target.split(':');
    let known: Vec<&str> = device.split(':').collect();
    parts.next() == known.first().copied() && parts.all(|feature| known[1..].contains(&feature))
}

fn entry(kernel: CompiledKernel) -> Entry {
    let slot = |parameter: &CompiledParameter| Slot {
        offset_bytes: parameter.offset_bytes,
        len_bytes: parameter.len_bytes,
    };
    Entry {
        parameters: kernel.parameters.iter().map(slot).collect(),
        max_threads: Some(kernel.threads_max),
        name: kernel.name,
    }
}

fn library(image: &[u8]) -> Outcome<Option<Arc<CodeLibrary>>> {
    let file = ElfFile64::<LittleEndian>::parse(image).map_err(|_| Code::INVALID_IMAGE)?;
    let Some(section) = file.section_by_name(LIBRARY) else { return Ok(None) };
    let library = section.data().map_err(|_| Code::INVALID_IMAGE)?;
    if library.is_empty() {
        return Ok(None);
    }
    Image::load(library).map(Some)
}
