//! What AMD's compiler writes into a code object beside the code: the target, and the kernels with
//! their parameters. A code object is an ELF file with a note of the vendor "AMDGPU", whose text is
//! MessagePack ("Code Object Metadata" in LLVM's guide for AMDGPU, from version 3 on).

#![forbid(unsafe_code)]

use std::ops::Range;

use object::elf::{FileHeader64, NoteType};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use rmpv::ValueRef;
use rmpv::decode::read_value_ref;

/// A kernel of a code object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompiledKernel {
    /// The name by which it is loaded.
    pub name: String,
    /// In the order of the declaration, without those that the compiler adds.
    pub parameters: Vec<CompiledParameter>,
    /// The maximum number of threads per block.
    pub threads_max: u32,
    /// Vector registers of a thread; 0 where the compiler does not tell.
    pub registers: u32,
    /// Static shared memory of a block.
    pub shared_bytes: u32,
    /// Memory of a thread's own.
    pub local_bytes: u32,
}

/// Where a parameter lies among the arguments of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompiledParameter {
    pub offset_bytes: usize,
    pub len_bytes: usize,
}

/// The bytes of each parameter of the kernel that is loaded by this name. `None` if the image is no
/// code object, or has no description of its kernels.
///
/// # Errors
///
/// If the image or its description is damaged, or describes no kernel with this name.
pub fn parameter_bytes(image: &[u8], symbol: &str) -> Result<Option<Vec<usize>>, String> {
    let Some(kernels) = kernels(image)? else { return Ok(None) };
    let Some(kernel) = kernels.iter().find(|kernel| kernel.name == symbol) else {
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        return Err(format!(
            "the code object has no kernel {symbol:?}, but [{}]; check the name",
            names.join(", ")
        ));
    };
    Ok(Some(kernel.parameters.iter().map(|parameter| parameter.len_bytes).collect()))
}

/// The target for which an image was compiled, such as `amdgcn-amd-amdhsa--gfx90a:xnack-`, if it
/// tells.
pub fn architecture(image: &[u8]) -> Option<String> {
    let note = note(image).ok()??;
    let root = decode(note).ok()?;
    text_of(&root, "amdhsa.target").ok().map(str::to_owned)
}

/// The kernels of a code object, or `None` as for [`parameter_bytes`]. All code objects of a bundle
/// are made of one source, so the first one tells.
///
/// # Errors
///
/// If the image or its description is damaged.
pub fn kernels(image: &[u8]) -> Result<Option<Vec<CompiledKernel>>, String> {
    let Some(note) = note(first_of_bundle(image)?)? else { return Ok(None) };
    let root = decode(note)?;
    let list = list_of(&root, "amdhsa.kernels")?.unwrap_or_default();
    list.iter().map(kernel).collect::<Result<_, _>>().map(Some)
}

/// The variables of a code object, or of the first of a bundle: their names, and the bytes of those
/// that are constant. None if it cannot be read.
pub fn variables(image: &[u8]) -> Vec<(String, Vec<u8>)> {
    let file = first_of_bundle(image).ok().and_then(|image| object::File::parse(image).ok());
    let Some(file) = file else { return Vec::new() };
    let variable = |symbol: object::Symbol<'_, '_>| {
        let name = symbol.name().ok()?;
        // A kernel has a descriptor of this name.
        let is_variable = symbol.kind() == SymbolKind::Data && !name.ends_with(".kd");
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        let bytes = section.data_range(symbol.address(), symbol.size()).ok().flatten();
        let is_constant = section.kind() == SectionKind::ReadOnlyData;
        let bytes = bytes.filter(|_| is_constant).unwrap_or_default().to_vec();
        is_variable.then(|| (name.to_owned(), bytes))
    };
    file.dynamic_symbols().filter_map(variable).collect()
}

/// How a bundle of code objects begins, as `hipcc --genco` writes it ("Clang Offload Bundler").
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// The first code object for an AMD GPU in a bundle; another image as it is.
fn first_of_bundle(image: &[u8]) -> Result<&[u8], String> {
    let Some(table) = image.strip_prefix(BUNDLE) else { return Ok(image) };
    let first = entries(table).and_then(|entries| entries.into_iter().next());
    let found = first.and_then(|(_, place)| image.get(place));
    found.ok_or_else(|| "the bundle has no whole code object for an AMD GPU".to_owned())
}

/// The targets of a bundle's code objects, such as `gfx90a:xnack-`. None if it is no bundle.
pub fn bundled_targets(image: &[u8]) -> Vec<String> {
    let entries = image.strip_prefix(BUNDLE).and_then(entries).unwrap_or_default();
    let target = |name: &str| name.rsplit("--").next().unwrap_or_default().to_owned();
    entries.iter().map(|(name, _)| target(&String::from_utf8_lossy(name))).collect()
}

/// The names of targets, and the places, of a bundle's code objects for AMD GPUs. The table has the
/// number of entries, and for each one its start, its length, the length of its target's name, and
/// the name.
fn entries(table: &[u8]) -> Option<Vec<(&[u8], Range<usize>)>> {
    fn number<'a>(rest: &mut &'a [u8]) -> Option<usize> {
        let (number, others): (&'a [u8; 8], _) = rest.split_first_chunk()?;
        *rest = others;
        u64::from_le_bytes(*number).try_into().ok()
    }
    let (rest, mut found) = (&mut &*table, Vec::new());
    for _ in 0..number(rest)? {
        let start = number(rest)?;
        let len_bytes = number(rest)?;
        let name_bytes = number(rest)?;
        let (name, others) = rest.split_at_checked(name_bytes)?;
        *rest = others;
        // The host's entry is empty.
        if name.windows(6).any(|part| part == b"amdgcn") {
            found.push((name, start..start.checked_add(len_bytes)?));
        }
    }
    Some(found)
}

/// The vendor and the type of the note.
const VENDOR: &[u8] = b"AMDGPU";
const METADATA: NoteType = NoteType(32);

/// The text of the note, or `None` if the image is no ELF file of 64 bits, or has no such note.
fn note(image: &[u8]) -> Result<Option<&[u8]>, String> {
    const ELF_OF_64_BITS: [u8; 6] = *b"\x7fELF\x02\x01";
    if !image.starts_with(&ELF_OF_64_BITS) {
        return Ok(None);
    }
    let damaged = |fault: object::Error| format!("the code object is damaged: {fault}");
    let header = FileHeader64::<LittleEndian>::parse(image).map_err(damaged)?;
    for segment in header.program_headers(LittleEndian, image).map_err(damaged)? {
        let Some(mut notes) = segment.notes(LittleEndian, image).map_err(damaged)? else {
            continue;
        };
        while let Some(note) = notes.next().map_err(damaged)? {
            if note.n_type(LittleEndian) == METADATA && note.name() == VENDOR {
                return Ok(Some(note.desc()));
            }
        }
    }
    Ok(None)
}

fn decode(mut note: &[u8]) -> Result<ValueRef<'_>, String> {
    read_value_ref(&mut note)
        .map_err(|fault| format!("the code object's description cannot be read: {fault}"))
}

fn kernel(entry: &ValueRef<'_>) -> Result<CompiledKernel, String> {
    let name = text_of(entry, ".name")?.to_owned();
    let mut parameters = Vec::new();
    for argument in list_of(entry, ".args")?.unwrap_or_default() {
        // The compiler adds arguments of its own behind those of the declaration.
        if !text_of(argument, ".value_kind")?.starts_with("hidden_") {
            parameters.push(CompiledParameter {
                offset_bytes: number_of(argument, ".offset")?,
                len_bytes: number_of(argument, ".size")?,
            });
        }
    }
    let threads_max = number_of(entry, ".max_flat_workgroup_size")?;
    let threads_max = u32::try_from(threads_max).unwrap_or(u32::MAX);
    let told = |key: &str| {
        number_of(entry, key).ok().and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
    };
    Ok(CompiledKernel {
        name,
        parameters,
        threads_max,
        registers: told(".vgpr_count"),
        shared_bytes: told(".group_segment_fixed_size"),
        local_bytes: told(".private_segment_fixed_size"),
    })
}

/// The value with this key of a map.
fn value_of<'a, 'b>(map: &'b ValueRef<'a>, key: &str) -> Option<&'b ValueRef<'a>> {
    let ValueRef::Map(pairs) = map else { return None };
    let is_key = |known: &ValueRef<'_>| match known {
        ValueRef::String(text) => text.as_str() == Some(key),
        _ => false,
    };
    pairs.iter().find(|(known, _)| is_key(known)).map(|(_, value)| value)
}

fn text_of<'b>(map: &'b ValueRef<'_>, key: &str) -> Result<&'b str, String> {
    match value_of(map, key) {
        Some(ValueRef::String(text)) => text.as_str().ok_or_else(|| missing(key, "text")),
        _ => Err(missing(key, "text")),
    }
}

fn number_of(map: &ValueRef<'_>, key: &str) -> Result<usize, String> {
    let number = match value_of(map, key) {
        Some(ValueRef::Integer(number)) => number.as_u64(),
        _ => None,
    };
    number.and_then(|number| number.try_into().ok()).ok_or_else(|| missing(key, "number"))
}

/// The list with this key, or `None` if there is none: a kernel without parameters has no list.
fn list_of<'a, 'b>(map: &'b ValueRef<'a>, key: &str) -> Result<Option<&'b [ValueRef<'a>]>, String> {
    match value_of(map, key) {
        None => Ok(None),
        Some(ValueRef::Array(list)) => Ok(Some(list)),
        Some(_) => Err(missing(key, "list")),
    }
}

#[cold]
fn missing(key: &str, kind: &str) -> String {
    format!("the code object's description has no {kind} {key:?}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        CompiledKernel, CompiledParameter, architecture, bundled_targets, kernels, parameter_bytes,
    };

    /// What hiprtc 5.2 wrote for gfx90a:xnack- of
    /// `template <typename T> __global__ void __launch_bounds__(128) tk(T *, V, double, char, long
    /// long)`, with a struct of 24 bytes, and of a kernel `none` without parameters.
    const NOTE: &[u8] = include_bytes!("code_object_note.bin");
    const SYMBOL: &str = "_Z2tkIfEvPT_1Vdcx";

    /// A code object with this description, and nothing else.
    fn image(note: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 120];
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"\x7fELF\x02\x01\x01\x40\x02");
        // A shared object of machine 224, with one program header of 56 bytes at byte 64.
        put(16, &[3, 0, 224, 0, 1]);
        put(32, &[64]);
        put(52, &[64, 0, 56, 0, 1, 0, 64]);
        let len_bytes = (20 + note.len().next_multiple_of(4)) as u64;
        put(64, &[4, 0, 0, 0, 4]);
        put(72, &120_u64.to_le_bytes());
        put(96, &len_bytes.to_le_bytes());
        put(104, &len_bytes.to_le_bytes());
        put(112, &[4]);
        image.extend(7_u32.to_le_bytes());
        image.extend((note.len() as u32).to_le_bytes());
        image.extend(32_u32.to_le_bytes());
        image.extend(b"AMDGPU\0\0");
        image.extend(note);
        image.resize(image.len().next_multiple_of(4), 0);
        image
    }

    /// Whatever the bytes are, the functions return.
    fn read(image: &[u8]) -> bool {
        let _text = architecture(image);
        let _sizes = parameter_bytes(image, SYMBOL);
        matches!(kernels(image), Ok(Some(_)))
    }

    #[test]
    fn the_description_of_a_real_compiler_is_read() {
        let image = image(NOTE);
        assert_eq!(architecture(&image).as_deref(), Some("amdgcn-amd-amdhsa--gfx90a:xnack-"));
        assert_eq!(parameter_bytes(&image, SYMBOL), Ok(Some(vec![8, 24, 8, 1, 8])));
        assert_eq!(parameter_bytes(&image, "none"), Ok(Some(Vec::new())));
        let known = kernels(&image).expect("it is whole").expect("it has a description");
        let at = |offset_bytes, len_bytes| CompiledParameter { offset_bytes, len_bytes };
        let expected = CompiledKernel {
            name: SYMBOL.to_owned(),
            parameters: vec![at(0, 8), at(8, 24), at(32, 8), at(40, 1), at(48, 8)],
            threads_max: 128,
            ..known[0].clone()
        };
        assert_eq!(known[0], expected);
        assert!(known[0].registers > 0, "{known:?}");
        assert_eq!((known[1].name.as_str(), known[1].threads_max), ("none", 1024));
    }

    #[test]
    fn what_is_missing_is_named() {
        let fault = parameter_bytes(&image(NOTE), "blur").expect_err("there is none");
        assert!(fault.contains("no kernel \"blur\", but [_Z2tkIfEvPT_1Vdcx, none]"), "{fault}");
        let key = b".value_kind";
        let place = NOTE.windows(key.len()).position(|bytes| bytes == key).expect("one");
        let mut note = NOTE.to_vec();
        note[place + 1] = b'V';
        let fault = parameter_bytes(&image(&note), SYMBOL).expect_err("it is renamed");
        assert!(fault.contains("no text \".value_kind\""), "{fault}");
    }

    #[test]
    fn other_images_have_no_description() {
        for image in [&b""[..], b"//\n.version 8.7", b"\x7fELF\x01\x01"] {
            assert_eq!(parameter_bytes(image, SYMBOL), Ok(None));
            assert_eq!(architecture(image), None);
        }
        let mut other = image(NOTE);
        other[120 + 8] = 1;
        assert_eq!(parameter_bytes(&other, SYMBOL), Ok(None), "a note of another type");
    }

    /// A bundle of an empty entry for the host and of code objects with these descriptions.
    fn bundle(notes: &[&[u8]]) -> Vec<u8> {
        let images = notes.iter().map(|note| image(note));
        let names = std::iter::once("host-x86_64-unknown-linux--")
            .chain(std::iter::repeat("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-"));
        let entries: Vec<(&str, Vec<u8>)> =
            names.zip(std::iter::once(Vec::new()).chain(images)).collect();
        let mut start = 4096_u64;
        let (mut bundle, mut images) = (super::BUNDLE.to_vec(), Vec::<u8>::new());
        bundle.extend((entries.len() as u64).to_le_bytes());
        for (name, image) in &entries {
            for number in [start, image.len() as u64, name.len() as u64] {
                bundle.extend(number.to_le_bytes());
            }
            bundle.extend(name.as_bytes());
            images.extend(image);
            start += image.len() as u64;
        }
        bundle.resize(4096, 0);
        bundle.extend(images);
        bundle
    }

    #[test]
    fn the_first_code_object_of_a_bundle_tells() {
        let whole = bundle(&[NOTE, NOTE]);
        assert_eq!(parameter_bytes(&whole, SYMBOL), Ok(Some(vec![8, 24, 8, 1, 8])));
        assert_eq!(architecture(&whole), None, "it has several");
        assert_eq!(bundled_targets(&whole), ["gfx90a:xnack-", "gfx90a:xnack-"]);
        assert_eq!(bundled_targets(&image(NOTE)), [""; 0]);
        for damaged in [super::BUNDLE, &whole[..100], &whole[..5000], &bundle(&[])] {
            let fault = parameter_bytes(damaged, SYMBOL).expect_err("it has none");
            assert!(fault.contains("no whole code object for an AMD GPU"), "{fault}");
        }
    }

    #[test]
    fn no_prefix_is_taken_for_the_whole() {
        let whole = image(NOTE);
        for len in 0..NOTE.len() {
            assert!(!read(&image(&NOTE[..len])), "{len} bytes of the description");
        }
        let padding = whole.len() - (140 + NOTE.len());
        for len in 6..whole.len() - padding {
            assert!(!read(&whole[..len]), "{len} bytes of the image");
        }
        assert!(read(&whole));
    }

    proptest! {
        #[test]
        fn mutations_do_no_harm(
            changes in prop::collection::vec((0_usize..1600, any::<u8>()), 1..8),
        ) {
            let mut image = image(NOTE);
            for (place, byte) in changes {
                let place = place % image.len();
                image[place] = byte;
            }
            read(&image);
        }

        #[test]
        fn random_descriptions_do_no_harm(note in prop::collection::vec(any::<u8>(), 0..200)) {
            read(&image(&note));
        }
    }
}
