//! The static shared memory of each kernel: the `__shared__` variables that its code refers to,
//! also by way of the functions that it calls. The relocations, which the linker keeps, tell both.

use std::collections::HashMap;

use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};

use super::symbols::plain_name;

/// The most that compilers for NVIDIA's GPUs accept.
const BYTES_MAX: u64 = 48 << 10;

/// What the code of a library refers to.
#[derive(Debug, Default)]
pub(super) struct StaticShared {
    /// Functions and data: where they start and end, in this order.
    parts: Vec<(u64, u64)>,
    /// What each part refers to.
    references: HashMap<usize, Vec<Reference>>,
}

#[derive(Clone, Copy, Debug)]
enum Reference {
    /// A `__shared__` variable: its place among those of a thread of the machine, and its length.
    Variable(u64, u64),
    Part(usize),
}

/// Refuses a kernel that compilers for GPUs refuse.
pub(super) fn check(entry: &str, shared_bytes: u64) -> Result<(), String> {
    if shared_bytes <= BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "the kernel `{entry}` has {shared_bytes} bytes of static shared memory, where compilers \
         for GPUs accept at most {BYTES_MAX} (48 KiB); declare `extern __shared__` memory, and \
         give its bytes by `Grid::shared_bytes`"
    ))
}

impl StaticShared {
    /// Reads an ELF image. `None` if it is no such image, or cannot be read.
    pub(super) fn read(image: &[u8], dynamic_arrays: &[String]) -> Option<Self> {
        let file = object::File::parse(image).ok()?;
        let mut shared = Self { parts: parts(&file), references: HashMap::new() };
        for section in file.sections() {
            // Not what the image tells debuggers, which has no address.
            for (at, relocation) in section.relocations().filter(|_| section.address() > 0) {
                let Some(from) = shared.part_at(at) else { continue };
                let RelocationTarget::Symbol(index) = relocation.target() else { continue };
                let symbol = file.symbol_by_index(index).ok()?;
                if let Some(to) = shared.reference(&symbol, relocation.addend(), dynamic_arrays) {
                    shared.references.entry(from).or_default().push(to);
                }
            }
        }
        Some(shared)
    }

    /// How many bytes the function that starts at an offset of the image uses.
    pub(super) fn of(&self, function: u64) -> u64 {
        let mut parts: Vec<usize> = self.part_at(function).into_iter().collect();
        let (mut variables, mut next) = (Vec::new(), 0);
        while let Some(part) = parts.get(next) {
            for reference in self.references.get(part).into_iter().flatten() {
                match *reference {
                    Reference::Variable(at, bytes) if !variables.contains(&(at, bytes)) => {
                        variables.push((at, bytes));
                    }
                    Reference::Part(other) if !parts.contains(&other) => parts.push(other),
                    _ => {}
                }
            }
            next += 1;
        }
        variables.iter().map(|(_, bytes)| bytes).sum()
    }

    fn reference(
        &self,
        symbol: &object::Symbol<'_, '_>,
        addend: i64,
        dynamic_arrays: &[String],
    ) -> Option<Reference> {
        if symbol.kind() == SymbolKind::Tls {
            let (at, bytes) = (symbol.address(), symbol.size());
            return is_shared(symbol, dynamic_arrays).then_some(Reference::Variable(at, bytes));
        }
        // A place in code is named by its section, and on this processor counted from behind the
        // reference.
        let behind = if cfg!(target_arch = "x86_64") { 4 } else { 0 };
        let is_section = symbol.kind() == SymbolKind::Section;
        let offset = if is_section { addend + behind } else { 0 };
        self.part_at(symbol.address().wrapping_add_signed(offset)).map(Reference::Part)
    }

    fn part_at(&self, address: u64) -> Option<usize> {
        let index = self.parts.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        (address < self.parts[index].1).then_some(index)
    }
}

/// Where the functions and the data of an image start and end.
fn parts(file: &object::File<'_>) -> Vec<(u64, u64)> {
    let is_part = |symbol: &object::Symbol<'_, '_>| {
        matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data) && symbol.size() > 0
    };
    let range =
        |symbol: object::Symbol<'_, '_>| (symbol.address(), symbol.address() + symbol.size());
    let mut parts: Vec<_> = file.symbols().filter(is_part).map(range).collect();
    parts.sort_unstable();
    parts.dedup_by_key(|part| part.0);
    parts
}

/// Whether a variable of each thread of the machine is a `__shared__` variable of the source.
fn is_shared(symbol: &object::Symbol<'_, '_>, dynamic_arrays: &[String]) -> bool {
    let mangled = symbol.name().unwrap_or_default();
    let name = plain_name(mangled);
    let is_pointer = symbol.size() == size_of::<usize>() as u64
        && dynamic_arrays.iter().any(|array| array == name);
    !mangled.starts_with("_ZG")
        && mangled != "__tls_guard"
        && !name.starts_with("resident_")
        && !is_pointer
}
