//! The `__device__`, `__constant__` and `__managed__` variables of a compiled source.

use std::ops::Range;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

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
        let symbols = symbols_of(name);
        let found = self.0.iter().find(|variable| symbols.contains(&variable.symbol))?;
        Some(found.addresses.clone())
    }

    /// The addresses of a variable by its symbol.
    pub fn with_symbol(&self, symbol: &str) -> Option<Range<usize>> {
        let found = self.0.iter().find(|variable| variable.symbol == symbol)?;
        Some(found.addresses.clone())
    }

    /// Their names, for messages.
    pub(super) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|variable| plain_name(&variable.symbol)).collect()
    }
}

/// The symbols that a variable with this name may have.
fn symbols_of(name: &str) -> [String; 3] {
    let parts: Vec<&str> = name.trim_start_matches("::").split("::").collect();
    let pieces: String = parts.iter().map(|part| format!("{}{part}", part.len())).collect();
    match parts[..] {
        [only] => [only.to_owned(), format!("_ZL{pieces}"), format!("_Z{pieces}")],
        _ => {
            let (outer, last) = pieces.split_at(pieces.len() - last_len(&parts));
            [format!("_ZN{pieces}E"), format!("_ZN{outer}L{last}E"), String::new()]
        }
    }
}

/// The length of the last part with its length before it.
fn last_len(parts: &[&str]) -> usize {
    let last = parts.last().map_or(0, |last| last.len());
    last.to_string().len() + last
}

#[cfg(test)]
mod tests {
    use super::symbols_of;

    #[test]
    fn variables_have_the_symbols_of_cpp() {
        assert_eq!(symbols_of("coef")[..2], ["coef", "_ZL4coef"]);
        assert_eq!(symbols_of("ns::coef")[..2], ["_ZN2ns4coefE", "_ZN2nsL4coefE"]);
    }
}
