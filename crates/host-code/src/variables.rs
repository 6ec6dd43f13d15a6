//! The `__device__`, `__constant__` and `__managed__` variables of a compiled source.

use std::ops::Range;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use resident_code::variable_names::name_in_source;

use super::symbols::{is_of_compiler, plain_name};

/// The variables of a loaded library, by the library's symbols.
#[derive(Debug, Default)]
pub struct Variables(Vec<Variable>);

/// A variable: its symbol, and where its memory is.
#[derive(Debug)]
struct Variable {
    symbol: String,
    addresses: Range<usize>,
}

impl Variables {
    /// The variables of an ELF image that is loaded at an address; none of another image. The
    /// arrays of dynamic shared memory are no variables.
    pub fn read(image: &[u8], start: usize, dynamic_arrays: &[String]) -> Self {
        let Ok(file) = object::File::parse(image) else { return Self::default() };
        let sections = file
            .sections()
            .filter(|section| section.name().is_ok_and(|name| matches!(name, ".data" | ".bss")));
        let writable: Vec<Range<u64>> =
            sections.map(|section| section.address()..section.address() + section.size()).collect();
        let is_variable = |symbol: &object::Symbol<'_, '_>| {
            symbol.kind() == SymbolKind::Data
                && symbol.size() > 0
                && writable.iter().any(|range| range.contains(&symbol.address()))
        };
        let variable = |symbol: object::Symbol<'_, '_>| {
            let name = symbol.name().ok()?;
            let plain = plain_name(name);
            let is_own = is_of_compiler(name)
                || plain.starts_with("resident_")
                || name.starts_with("_ZG")
                || dynamic_arrays.iter().any(|array| array == plain);
            let first = start + symbol.address() as usize;
            let addresses = first..first + symbol.size() as usize;
            (!is_own).then(|| Variable { symbol: name.to_owned(), addresses })
        };
        Self(file.symbols().filter(is_variable).filter_map(variable).collect())
    }

    /// Whether the source has none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The addresses of a variable by its name in the source: `coef`, `ns::coef`.
    pub(super) fn find(&self, name: &str) -> Option<Range<usize>> {
        let name = name.trim_start_matches("::");
        let found = self.0.iter().find(|variable| name_in_source(&variable.symbol) == name)?;
        Some(found.addresses.clone())
    }

    /// The addresses of a variable by its symbol.
    pub fn with_symbol(&self, symbol: &str) -> Option<Range<usize>> {
        let found = self.0.iter().find(|variable| variable.symbol == symbol)?;
        Some(found.addresses.clone())
    }

    /// Their symbols, for messages.
    pub(super) fn symbols(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|variable| variable.symbol.as_str())
    }
}
