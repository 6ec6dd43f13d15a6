//! What a compiled library says about itself: its variables, and the lines of its code.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use addr2line::gimli;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::finding::SourceLine;
use super::unset_locals::{self, UnsetLocal};
use crate::symbols::{is_of_compiler, plain_name};

/// The header's variable of each thread of the machine, whose address the library tells.
const ANCHOR: &str = "resident_of_thread";

/// The bytes of that variable at its start and at its end that kernels do not read.
const MARGIN_BYTES: usize = 512;

/// The files whose lines are of no interest: the headers around the source.
const OWN_FILES: [&str; 18] = [
    "declarations.hpp",
    "functions_of_c.hpp",
    "cuda_on_host.hpp",
    "integers.hpp",
    "printing.hpp",
    "mathematics.hpp",
    "special_functions.hpp",
    "operators.hpp",
    "packed_integers.hpp",
    "entry.hpp",
    "kernels.hpp",
    "exports.hpp",
    "calls.hpp",
    "fast_path.hpp",
    "half_on_host.hpp",
    "cuda_fp16.h",
    "cuda_bf16.h",
    "cooperative_groups.h",
];

/// A variable, by its place in the library's image or in the memory of a thread of the machine.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: Arc<str>,
    pub(super) range: Range<usize>,
}

/// The places of variables, from the library's symbols. All are relative to the image's start, or
/// to the start of the memory of a thread of the machine.
#[derive(Debug, Default)]
pub(super) struct Image {
    /// Where `resident_of_thread` lies there.
    pub(super) anchor: usize,
    /// `__shared__` variables with a size of their own.
    pub(super) shared: Vec<Variable>,
    /// What the kernel may read of the header's variable of a thread of the machine.
    pub(super) of_header: Range<usize>,
    /// The other variables of a thread of the machine: pointers to dynamic shared memory, and what
    /// guards their initialisation.
    pub(super) pointers: Vec<Range<usize>>,
    /// Parts of the image that contain constants, such as strings.
    pub(super) constants: Vec<Range<usize>>,
    /// `__device__` and `__constant__` variables, which may be written.
    pub(super) globals: Vec<Variable>,
    /// Local variables that are read before they are written.
    pub(super) unset_locals: Vec<UnsetLocal>,
}

impl Image {
    /// Reads an ELF image. `pointers` are the names of arrays of dynamic shared memory, which are
    /// pointers in the compiled code.
    pub(super) fn read(bytes: &[u8], pointers: &[String]) -> Result<Self, object::Error> {
        let file = object::File::parse(bytes)?;
        let mut image = Self { unset_locals: unset_locals::all_of(&file), ..Self::default() };
        let mut writable = Vec::new();
        for section in file.sections() {
            let range = section.address() as usize..(section.address() + section.size()) as usize;
            match section.name()? {
                ".data" | ".bss" => writable.push(range),
                ".rodata" | ".data.rel.ro" => image.constants.push(range),
                _ => {}
            }
        }
        image.add_variables(&file, pointers, &writable)?;
        Ok(image)
    }

    fn add_variables(
        &mut self,
        file: &object::File<'_>,
        pointers: &[String],
        writable: &[Range<usize>],
    ) -> Result<(), object::Error> {
        let is_writable = |at: usize| writable.iter().any(|range| range.contains(&at));
        let guarded_by = |symbol: object::Symbol<'_, '_>| symbol.name().ok().map(str::to_owned);
        let guards: Vec<String> = file.symbols().filter_map(guarded_by).collect();
        let guarded: Vec<&str> =
            guards.iter().filter_map(|name| name.strip_prefix("_ZGVZ")).collect();
        for symbol in file.symbols().filter(|symbol| symbol.size() > 0) {
            let mangled = symbol.name()?;
            let start = symbol.address() as usize;
            let range = start..start + symbol.size() as usize;
            let variable = Variable { name: plain_name(mangled).into(), range };
            match symbol.kind() {
                SymbolKind::Tls if variable.name.as_ref() == ANCHOR => {
                    self.anchor = start;
                    let end = variable.range.end - MARGIN_BYTES;
                    self.of_header = start + MARGIN_BYTES..end;
                }
                SymbolKind::Tls if is_shared(mangled, &variable.name, pointers, &guarded) => {
                    self.shared.push(variable);
                }
                SymbolKind::Tls => self.pointers.push(variable.range),
                SymbolKind::Data
                    if is_writable(start)
                        && !variable.name.starts_with("resident_")
                        && !is_of_compiler(mangled) =>
                {
                    self.globals.push(variable);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a variable of a thread of the machine is a `__shared__` variable of the source. The
/// others are the header's, pointers to dynamic shared memory, and what guards these.
fn is_shared(mangled: &str, name: &str, pointers: &[String], guarded: &[&str]) -> bool {
    let local = mangled.strip_prefix("_ZZ");
    // A record with a constructor has a guard too.
    let is_pointer = pointers.iter().any(|pointer| pointer == name)
        && local.is_none_or(|local| guarded.contains(&local));
    let is_own = name.starts_with("resident_");
    mangled != "__tls_guard" && !mangled.starts_with("_ZG") && !is_own && !is_pointer
}

/// Bytes of a compiled library that are for debuggers.
pub(crate) type Bytes<'a> = gimli::EndianSlice<'a, gimli::RunTimeEndian>;

/// What a compiled library says to debuggers cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable;

impl From<gimli::Error> for Unreadable {
    fn from(_: gimli::Error) -> Self {
        Self
    }
}

impl From<object::Error> for Unreadable {
    fn from(_: object::Error) -> Self {
        Self
    }
}

/// What a compiled library says to debuggers.
pub(crate) fn debug_data<'a>(
    file: &object::File<'a>,
) -> Result<gimli::Dwarf<Bytes<'a>>, Unreadable> {
    let section = |id: gimli::SectionId| -> Result<_, Unreadable> {
        let section = file.section_by_name(id.name());
        let data = section.and_then(|section| section.data().ok()).unwrap_or_default();
        Ok(gimli::EndianSlice::new(data, gimli::RunTimeEndian::Little))
    };
    gimli::Dwarf::load(section)
}

/// The lines of a compiled library.
#[derive(Debug)]
pub(super) struct Lines {
    image: Arc<[u8]>,
    /// The name of the source.
    file: String,
    /// The places that were asked for before, by the offset of their code.
    known: Mutex<HashMap<usize, Arc<[Place]>>>,
}

/// A place in the source. Of functions that are inlined into each other, the innermost is first.
#[derive(PartialEq, Eq, Debug)]
struct Place {
    line: SourceLine,
    column: Option<u32>,
}

impl Lines {
    pub(super) fn new(image: &Arc<[u8]>, file: &str) -> Self {
        Self { image: Arc::clone(image), file: file.to_owned(), known: Mutex::default() }
    }

    /// The line whose code is at an offset of the image.
    pub(super) fn at(&self, offset: usize) -> Option<SourceLine> {
        self.places(offset).first().map(|place| place.line.clone())
    }

    /// Whether the code at two offsets is that of one place, which compilers may make copies of.
    pub(super) fn is_one_place(&self, one: usize, other: usize) -> bool {
        one == other || self.places(one) == self.places(other)
    }

    fn places(&self, offset: usize) -> Arc<[Place]> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = || places_at(&self.image, &self.file, offset).unwrap_or_default().into();
        Arc::clone(known.entry(offset).or_insert_with(found))
    }
}

/// The places in the source, which is called `name`, whose code is at an offset of the image,
/// without those in the headers.
fn places_at(bytes: &[u8], name: &str, offset: usize) -> Option<Vec<Place>> {
    let mut places = Vec::new();
    let file = object::File::parse(bytes).ok()?;
    let context = addr2line::Context::from_dwarf(debug_data(&file).ok()?).ok()?;
    // The address is that behind the call.
    let mut frames = context.find_frames((offset as u64).checked_sub(1)?).skip_all_loads().ok()?;
    while let Some(frame) = frames.next().ok()? {
        let Some(location) = frame.location else { continue };
        if let (Some(file), Some(number)) = (location.file, location.line)
            && !is_own_file(file)
        {
            // The compiler puts a folder before the name of a source that is no file.
            let file = if file.ends_with(name) { name } else { file };
            let line = SourceLine { file: file.into(), number };
            places.push(Place { line, column: location.column });
        }
    }
    Some(places)
}

/// Whether a file is one of the headers around the source.
pub(crate) fn is_own_file(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    OWN_FILES.contains(&name)
}
