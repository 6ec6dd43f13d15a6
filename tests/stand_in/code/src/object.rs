//! Writes code objects like AMD's compiler: an ELF file for machine 224 (AMDGPU) with a note that
//! describes the kernels, in version 4 of the format. In place of machine code there is a section
//! with a library for the host, or nothing.

#![forbid(unsafe_code)]

use rmpv::Value;

/// A kernel, for the description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Described {
    /// The name by which it is loaded.
    pub name: String,
    /// The bytes, the alignment and the kind of each parameter.
    pub parameters: Vec<(usize, usize, Kind)>,
    /// The launch bound.
    pub threads_max: u32,
}

/// What a parameter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A pointer to device memory: `global_buffer`.
    Pointer,
    /// `by_value`.
    Value,
}

/// The section with the library for the host.
pub const LIBRARY: &str = ".resident.library";

/// A code object for a target such as `gfx90a:xnack-`, with a library for the host, or without any
/// code if it is empty.
///
/// # Errors
///
/// If the target is unknown.
pub fn write(target: &str, kernels: &[Described], library: &[u8]) -> Result<Vec<u8>, String> {
    let flags = flags(target).ok_or_else(|| format!("invalid target ID '{target}'"))?;
    let description = description(target, kernels);
    let mut note = Vec::new();
    for number in [7, description.len() as u32, 32] {
        note.extend(number.to_le_bytes());
    }
    note.extend(b"AMDGPU\0\0");
    note.extend(description);
    pad(&mut note, 4);
    Ok(elf(flags, &note, library))
}

/// Processors: the number in the flags, and whether XNACK and SRAMECC are features of the target.
const PROCESSORS: [(&str, u32, bool, bool); 13] = [
    ("gfx900", 0x2c, true, false),
    ("gfx906", 0x2f, true, true),
    ("gfx908", 0x30, true, true),
    ("gfx90a", 0x3f, true, true),
    ("gfx942", 0x4c, true, true),
    ("gfx1010", 0x33, true, false),
    ("gfx1030", 0x36, false, false),
    ("gfx1031", 0x37, false, false),
    ("gfx1032", 0x38, false, false),
    ("gfx1100", 0x41, false, false),
    ("gfx1101", 0x46, false, false),
    ("gfx1102", 0x47, false, false),
    ("gfx1201", 0x4e, false, false),
];

/// `e_flags`, or `None` for an unknown target.
fn flags(target: &str) -> Option<u32> {
    let mut parts = target.split(':');
    let name = parts.next()?;
    let (_, number, has_xnack, has_sramecc) =
        PROCESSORS.into_iter().find(|processor| processor.0 == name)?;
    // Any, off, on.
    let (mut xnack, mut sramecc) = (u32::from(has_xnack), u32::from(has_sramecc));
    for feature in parts {
        match feature {
            "xnack-" | "xnack+" if has_xnack => xnack = 2 + u32::from(feature.ends_with('+')),
            "sramecc-" | "sramecc+" if has_sramecc => {
                sramecc = 2 + u32::from(feature.ends_with('+'));
            }
            _ => return None,
        }
    }
    Some(number | xnack << 8 | sramecc << 10)
}

fn description(target: &str, kernels: &[Described]) -> Vec<u8> {
    let list = kernels.iter().map(kernel).collect();
    let root = map([
        ("amdhsa.kernels", Value::Array(list)),
        ("amdhsa.target", format!("amdgcn-amd-amdhsa--{target}").into()),
        ("amdhsa.version", Value::Array(vec![1.into(), 1.into()])),
    ]);
    let mut text = Vec::new();
    rmpv::encode::write_value(&mut text, &root).expect("a vector takes everything");
    text
}

/// Arguments that the compiler adds to those of the declaration.
const HIDDEN: [&str; 7] = [
    "hidden_global_offset_x",
    "hidden_global_offset_y",
    "hidden_global_offset_z",
    "hidden_hostcall_buffer",
    "hidden_none",
    "hidden_none",
    "hidden_multigrid_sync_arg",
];

fn kernel(kernel: &Described) -> Value {
    let mut end = 0_usize;
    let mut list = Vec::new();
    let hidden = HIDDEN.iter().map(|kind| (8, 8, *kind));
    let own = kernel.parameters.iter().map(|(len_bytes, align_bytes, kind)| match kind {
        Kind::Pointer => (*len_bytes, *align_bytes, "global_buffer"),
        Kind::Value => (*len_bytes, *align_bytes, "by_value"),
    });
    for (len_bytes, align_bytes, kind) in own.chain(hidden) {
        let offset = end.next_multiple_of(align_bytes.max(1));
        end = offset + len_bytes;
        let mut argument = Vec::new();
        if kind == "global_buffer" {
            argument.push((".address_space", "global".into()));
        }
        argument.extend([
            (".offset", (offset as u64).into()),
            (".size", (len_bytes as u64).into()),
            (".value_kind", kind.into()),
        ]);
        list.push(map(argument));
    }
    map([
        (".args", Value::Array(list)),
        (".group_segment_fixed_size", 0.into()),
        (".kernarg_segment_align", 8.into()),
        (".kernarg_segment_size", (end as u64).into()),
        (".language", "OpenCL C".into()),
        (".language_version", Value::Array(vec![2.into(), 0.into()])),
        (".max_flat_workgroup_size", kernel.threads_max.into()),
        (".name", kernel.name.as_str().into()),
        (".private_segment_fixed_size", 0.into()),
        (".sgpr_count", 16.into()),
        (".symbol", format!("{}.kd", kernel.name).into()),
        (".vgpr_count", 16.into()),
        (".wavefront_size", 64.into()),
    ])
}

fn map(pairs: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Map(pairs.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

/// Bytes of an ELF file's header, of a program header and of a section's header.
const HEADER: u64 = 64;
const SEGMENT: u64 = 56;
const SECTION: u64 = 64;

/// An ELF file with a note, as a segment and as a section, and with the library's section.
fn elf(flags: u32, note: &[u8], library: &[u8]) -> Vec<u8> {
    let names = format!("\0.note\0{LIBRARY}\0.shstrtab\0");
    let note_at = HEADER + SEGMENT;
    let library_at = (note_at + note.len() as u64).next_multiple_of(16);
    let names_at = library_at + library.len() as u64;
    let sections_at = (names_at + names.len() as u64).next_multiple_of(8);
    let mut file = header(flags, sections_at);
    file.extend(segment(note_at, note.len() as u64));
    file.extend(note);
    pad(&mut file, 16);
    file.extend(library);
    file.extend(names.as_bytes());
    pad(&mut file, 8);
    let name_of = |name: &str| names.find(name).unwrap_or(0) as u32;
    let sections = [
        (0, 0, 0, 0),
        (name_of(".note"), 7, note_at, note.len() as u64),
        (name_of(LIBRARY), 1, library_at, library.len() as u64),
        (name_of(".shstrtab"), 3, names_at, names.len() as u64),
    ];
    sections.into_iter().for_each(|parts| file.extend(section(parts)));
    file
}

/// Two's complement, little endian; AMD HSA, version 2; a shared object for machine 224.
fn header(flags: u32, sections_at: u64) -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01\x40\x02\0\0\0\0\0\0\0".to_vec();
    [3_u16, 224].iter().for_each(|number| header.extend(number.to_le_bytes()));
    header.extend(1_u32.to_le_bytes());
    [0, HEADER, sections_at].iter().for_each(|number| header.extend(number.to_le_bytes()));
    header.extend(flags.to_le_bytes());
    let sizes = [HEADER as u16, SEGMENT as u16, 1, SECTION as u16, 4, 3];
    sizes.iter().for_each(|number| header.extend(number.to_le_bytes()));
    header
}

/// A note's segment: readable, at multiples of 4 bytes.
fn segment(at: u64, len_bytes: u64) -> Vec<u8> {
    let mut segment = Vec::new();
    [4_u32, 4].iter().for_each(|number| segment.extend(number.to_le_bytes()));
    let places = [at, at, at, len_bytes, len_bytes, 4];
    places.iter().for_each(|number| segment.extend(number.to_le_bytes()));
    segment
}

fn section((name, kind, at, len_bytes): (u32, u32, u64, u64)) -> Vec<u8> {
    let mut section = Vec::new();
    [name, kind].iter().for_each(|number| section.extend(number.to_le_bytes()));
    [0, 0, at, len_bytes].iter().for_each(|number| section.extend(number.to_le_bytes()));
    section.extend([0; 8]);
    [1_u64, 0].iter().for_each(|number| section.extend(number.to_le_bytes()));
    section
}

fn pad(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}
