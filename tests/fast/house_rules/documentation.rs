//! The documentation of the library: that the guide is complete, and that code fits the page.

use std::collections::BTreeSet;
use std::fs;

use crate::documents::files;
use crate::sources::{Source, none, root, sources};

/// Code that is wider is clipped in a browser, just where comments stand.
const CODE_COLUMNS_MAX: usize = 92;

/// The lines of code blocks that readers see, with their numbers. `lines` are those of a document.
fn lines_of_code<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
) -> impl Iterator<Item = (usize, &'a str)> {
    let mut block = None;
    lines.filter(move |(_, line)| {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            return block.is_some_and(|language| language != "text") && !line.starts_with('#');
        };
        block = if block.is_some() { None } else { Some(language) };
        false
    })
}

/// The document that the comments of a source are.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    Some(text.strip_prefix(' ').unwrap_or(text))
}

/// The lines of code that are too wide, as `path:line: columns`.
fn too_wide<'a>(path: &str, document: impl Iterator<Item = (usize, &'a str)>) -> Vec<String> {
    let widths = lines_of_code(document).map(|(index, line)| (index, line.chars().count()));
    let wide = widths.filter(|(_, columns)| *columns > CODE_COLUMNS_MAX);
    wide.map(|(index, columns)| format!("{path}:{}: {columns} columns", index + 1)).collect()
}

/// The functions that `resident::ops` exports, without their twins that take a stream.
fn operations() -> Vec<String> {
    let text = fs::read_to_string(root().join("src/ops/mod.rs")).expect("it is there");
    let exports = text.split("pub use ").skip(1).filter_map(|rest| rest.split_once(';'));
    let names = exports.flat_map(|(list, _)| list.split(['{', '}', ',']));
    let names = names.filter_map(|path| path.trim().rsplit("::").next());
    let functions = names.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()));
    functions.filter(|name| !name.ends_with("_on")).map(str::to_owned).collect()
}

#[test]
fn the_guide_has_each_operation() {
    let page = root().join("docs/guide/operations.md");
    let page = fs::read_to_string(page).expect("it is there");
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let named = page.split("ops::").skip(1).map(|rest| rest.split(|c| !is_of_name(c)).next());
    let named: BTreeSet<&str> = named.flatten().collect();
    let operations = operations();
    assert!(operations.len() > 50, "{operations:?}");
    none(operations.into_iter().filter(|name| !named.contains(name.as_str())).collect());
}

#[test]
fn code_in_the_documentation_fits_the_page() {
    let mut found = Vec::new();
    for Source { path, text } in sources(&["src", "crates", "mpi"]) {
        let lines = text.lines().enumerate();
        found.extend(too_wide(&path, lines.filter_map(|(at, line)| Some((at, comment(line)?)))));
    }
    for path in files(&["docs/guide"]) {
        let text = fs::read_to_string(&path).expect("text");
        found.extend(too_wide(&path.display().to_string(), text.lines().enumerate()));
    }
    none(found);
}
