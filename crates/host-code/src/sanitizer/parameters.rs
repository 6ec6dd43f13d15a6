//! The names that a kernel's source gives its parameters, from what the compiler tells debuggers.

use std::sync::{Arc, OnceLock};

use addr2line::gimli;

use super::image::{Bytes, Unreadable, debug_data};

type Dwarf<'a> = gimli::Dwarf<Bytes<'a>>;
type Unit<'a> = gimli::Unit<Bytes<'a>>;
type Entry<'a> = gimli::DebuggingInformationEntry<Bytes<'a>>;

/// The parameters of a compiled kernel, which are looked for when a finding first names one.
#[derive(Debug)]
pub(crate) struct ParameterNames {
    image: Arc<[u8]>,
    /// A name, or a name expression such as `scale<float>`.
    kernel: String,
    names: OnceLock<Vec<Arc<str>>>,
}

impl ParameterNames {
    pub(super) fn new(image: &Arc<[u8]>, kernel: &str) -> Self {
        Self { image: Arc::clone(image), kernel: kernel.to_owned(), names: OnceLock::new() }
    }

    /// The name of the kernel's function.
    pub(super) fn function(&self) -> &str {
        plain(&self.kernel)
    }

    /// The name of one of `count` parameters. `None` if the compiled code does not say.
    pub(super) fn name(&self, index: usize, count: usize) -> Option<Arc<str>> {
        let search = || search(&self.image, self.function(), count);
        let names = self.names.get_or_init(|| search().ok().flatten().unwrap_or_default());
        names.get(index).cloned()
    }
}

/// The names of the parameters of the first function with this name and number of parameters.
/// Instances of one template have the same names.
fn search(image: &[u8], kernel: &str, count: usize) -> Result<Option<Vec<Arc<str>>>, Unreadable> {
    let file = object::File::parse(image)?;
    let dwarf = debug_data(&file)?;
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let unit = dwarf.unit(header)?;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let is_kernel = |entry| name_of(&dwarf, &unit, entry).map(plain) == Some(kernel);
            if entry.tag() != gimli::DW_TAG_subprogram || !is_kernel(entry) {
                continue;
            }
            let names = parameters_of(&dwarf, &unit, entry)?;
            if names.len() == count {
                return Ok(Some(names));
            }
        }
    }
    Ok(None)
}

fn parameters_of<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<'a>,
    function: &Entry<'a>,
) -> Result<Vec<Arc<str>>, Unreadable> {
    let mut names = Vec::new();
    let mut tree = unit.entries_tree(Some(function.offset()))?;
    let mut children = tree.root()?.children();
    while let Some(child) = children.next()? {
        let entry = child.entry();
        if entry.tag() == gimli::DW_TAG_formal_parameter {
            names.extend(name_of(dwarf, unit, entry).map(Arc::from));
        }
    }
    Ok(names)
}

fn name_of<'a>(dwarf: &Dwarf<'a>, unit: &Unit<'a>, entry: &Entry<'a>) -> Option<&'a str> {
    if let Some(value) = entry.attr_value(gimli::DW_AT_name) {
        return std::str::from_utf8(dwarf.attr_string(unit, value).ok()?.slice()).ok();
    }
    // What is inlined, or a member of a namespace, has its name where it is declared, which is
    // never a second entry without a name that refers to this one.
    let references = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
    let mut values = references.into_iter().filter_map(|reference| entry.attr_value(reference));
    let Some(gimli::AttributeValue::UnitRef(offset)) = values.next() else { return None };
    let declared = unit.entry(offset).ok()?;
    (offset != entry.offset()).then(|| name_of(dwarf, unit, &declared)).flatten()
}

/// The name of a function without namespaces and the arguments of a template. A name that C has is
/// another one in the compiled code (`translation`).
fn plain(name: &str) -> &str {
    let name = name.split('<').next().unwrap_or(name).trim();
    let name = name.rsplit("::").next().unwrap_or(name);
    name.strip_prefix("resident_entry_").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn functions_are_compared_by_their_last_name() {
        for name in ["scale", "scale<float>", "ns::scale<ns::Pair<int>, 3>", "resident_entry_scale"]
        {
            assert_eq!(plain(name), "scale");
        }
    }
}
