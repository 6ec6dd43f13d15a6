//! Variables that code initialises or destroys, which NVRTC refuses: on the host that code would
//! run when the library is loaded, before a launch could fail or its time be over.
//!
//! Which variables these are is seen in what the compiler made: it computes many initial values,
//! and leaves out constructors that do nothing, which NVRTC accepts.

use addr2line::Context;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::sanitizer::{debug_data, is_own_file};
use crate::symbols::plain_name;

/// How the name of the function begins that initialises the variables of a source.
const FUNCTION: &str = "_GLOBAL__sub_I_";

/// How the names begin of what tells whether a function's static variable is initialised.
const GUARD: &str = "_ZGVZ";

const INSTEAD: &str = "NVRTC refuses that: give it a constant as its value, make its constructor \
                       `constexpr`, or let the host write it (`CudaSource::variable`)";

/// What is wrong with a library that was made of a source with this name, if anything is.
pub(in super::super) fn fault(image: &[u8], source: &str) -> Option<String> {
    let image = object::File::parse(image).ok()?;
    let starts = |symbol: &object::Symbol<'_, '_>, kind, start: &str| {
        symbol.kind() == kind && symbol.name().is_ok_and(|name| name.starts_with(start))
    };
    let is_function = |one: &object::Symbol<'_, '_>| {
        starts(one, SymbolKind::Text, FUNCTION) && !does_nothing(&image, one)
    };
    if let Some(function) = image.symbols().find(is_function) {
        let range = function.address()..function.address() + function.size();
        let line = line_within(&image, range, source).unwrap_or_else(|| source.to_owned());
        return Some(format!(
            "{line}: this variable is initialised or destroyed by code; {INSTEAD}"
        ));
    }
    let guard = image.symbols().find(|one| starts(one, SymbolKind::Data, GUARD))?;
    let name = plain_name(guard.name().ok()?);
    Some(format!(
        "{source}: the `static` variable `{name}` of a function is initialised by code; {INSTEAD}"
    ))
}

/// Whether a function only returns: Clang keeps such ones.
fn does_nothing(image: &object::File<'_>, function: &object::Symbol<'_, '_>) -> bool {
    let section = function.section_index().and_then(|index| image.section_by_index(index).ok());
    let code = section
        .and_then(|section| section.data_range(function.address(), function.size()).ok().flatten());
    matches!(code, Some([0xc3] | [0xf3, 0x0f, 0x1e, 0xfa, 0xc3] | [0xc0, 0x03, 0x5f, 0xd6]))
}

/// The first line of the source, as its name and number, that code in a range was made of.
fn line_within(
    image: &object::File<'_>,
    range: std::ops::Range<u64>,
    source: &str,
) -> Option<String> {
    let context = Context::from_dwarf(debug_data(image).ok()?).ok()?;
    let rows = context.find_location_range(range.start, range.end).ok()?;
    rows.into_iter().find_map(|(address, _, _)| {
        let mut frames = context.find_frames(address).skip_all_loads().ok()?;
        let mut line = None;
        // The last one of the source is that of the variable, behind those of its constructor.
        while let Some(frame) = frames.next().ok()? {
            let location =
                frame.location.and_then(|location| Some((location.file?, location.line?)));
            let Some((file, number)) = location.filter(|(file, _)| !is_own_file(file)) else {
                continue;
            };
            // The compiler puts a folder before the name of a source that is no file.
            let file = if file.ends_with(source) { source } else { file };
            line = Some(format!("{file}:{number}"));
        }
        line
    })
}
