//! The `__device__`, `__constant__` and `__managed__` variables of a compiled source.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::library::Library;
use super::sanitizer::plain_name;
use resident_backend::{BackendError, ModuleVariable};

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

/// A variable of a library, for the backend.
#[derive(Debug)]
pub(super) struct VariableOfLibrary {
    library: Arc<Library>,
    addresses: Range<usize>,
}

impl VariableOfLibrary {
    /// The error names the variables that there are.
    pub(super) fn find(library: Arc<Library>, name: &str) -> Result<Self, String> {
        match library.variables.find(name) {
            Some(addresses) => Ok(Self { library, addresses }),
            None => Err(missing(name, &library.variables.names())),
        }
    }

    fn start(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.addresses.start)
    }

    /// Runs something while no kernel of the library runs.
    fn alone<R>(&self, access: impl FnOnce() -> R) -> R {
        let _alone = self.library.running.write().unwrap_or_else(PoisonError::into_inner);
        access()
    }
}

impl ModuleVariable for VariableOfLibrary {
    fn len_bytes(&self) -> usize {
        self.addresses.len()
    }

    fn write(&self, bytes: &[u8]) -> Result<(), BackendError> {
        let len = bytes.len().min(self.len_bytes());
        // SAFETY: the variable is writable memory of the library, which is loaded; it has at least
        // so many bytes, and only kernels access it, of which none runs.
        self.alone(|| unsafe { self.start().copy_from_nonoverlapping(bytes.as_ptr(), len) });
        Ok(())
    }

    fn read(&self, bytes: &mut [u8]) -> Result<(), BackendError> {
        let len = bytes.len().min(self.len_bytes());
        // SAFETY: as in `write`; all its bytes are initialised, as those of globals are.
        self.alone(|| unsafe { self.start().copy_to_nonoverlapping(bytes.as_mut_ptr(), len) });
        Ok(())
    }
}

#[cold]
fn missing(name: &str, names: &[&str]) -> String {
    let known: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!(
        "the source has no `__device__`, `__constant__` or `__managed__` variable `{name}`; those \
         that it has: {known}"
    )
}

/// Whether a variable is one that compilers add to every library.
pub(super) fn is_of_compiler(symbol: &str) -> bool {
    symbol.starts_with("completed.") || symbol.starts_with("__")
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
