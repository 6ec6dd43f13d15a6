//! The rules of the house, read from the sources: who may import whom, what must stand where, and
//! what must not stand anywhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A source file: its path from the root of the repository, and its text.
struct Source {
    path: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it has one")
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()));
    for entry in entries {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// These files, and all Rust files below these folders; paths that do not exist add nothing.
fn sources(paths_from_root: &[&str]) -> Vec<Source> {
    let mut paths = Vec::new();
    paths_from_root.iter().map(|path| root().join(path)).for_each(|path| match path.is_dir() {
        true => files_below(&path, &mut paths),
        false => paths.extend(path.is_file().then_some(path)),
    });
    let source = |path: PathBuf| Source {
        path: path
            .strip_prefix(root())
            .expect("below the root")
            .to_string_lossy()
            .replace('\\', "/"),
        text: fs::read_to_string(&path).expect("text"),
    };
    let sources: Vec<Source> = paths.into_iter().map(source).collect();
    assert!(!sources.is_empty(), "no sources in {paths_from_root:?}");
    sources
}

impl Source {
    /// The part of the crate: `launch` for `src/launch/flat.rs`, `grid` for `src/grid.rs`.
    fn layer(&self) -> &str {
        let inner = self.path.strip_prefix("src/").unwrap_or(&self.path);
        inner.split('/').next().unwrap_or(inner).trim_end_matches(".rs")
    }

    fn is_test(&self) -> bool {
        self.path.contains("/tests/")
            || self.path.starts_with("tests/")
            || self.path.ends_with("/tests.rs")
    }

    /// The lines with their numbers, without comments, strings' contents left, and without what
    /// stands below the first `#[cfg(test)]` of a module in the file, which house style puts last.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let tests = lines.windows(2).position(|pair| {
            pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
        });
        let end = tests.unwrap_or(lines.len());
        lines
            .into_iter()
            .take(end)
            .enumerate()
            .map(|(index, line)| (index + 1, without_comment(line)))
    }

    fn code_text(&self) -> String {
        self.code().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
    }

    /// The parts of the crate that this file names: `crate::part::..` and `use crate::{part::..,
    /// part}`.
    fn imports(&self) -> BTreeSet<String> {
        let text = self.code_text();
        let mut found = BTreeSet::new();
        for (position, _) in text.match_indices("crate::") {
            let is_macro_or_path = text[..position].ends_with('$')
                || text[..position].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if !is_macro_or_path {
                first_words(&text[position + "crate::".len()..], &mut found);
            }
        }
        found
    }
}

/// What follows `crate::`: a word, or a list in braces whose items start with one each.
fn first_words(text: &str, found: &mut BTreeSet<String>) {
    let word = |text: &str| {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    let Some(list) = text.strip_prefix('{') else {
        found.insert(word(text));
        return;
    };
    let (mut depth, mut starts) = (1, true);
    for (position, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            ',' if depth == 1 => starts = true,
            _ if starts && !character.is_whitespace() => {
                found.insert(word(&list[position..]));
                starts = false;
            }
            _ => {}
        }
    }
}

fn without_comment(line: &str) -> &str {
    let is_whole = line.trim_start().starts_with("//");
    if is_whole { "" } else { line.split(" // ").next().unwrap_or(line) }
}

#[track_caller]
fn none(found: Vec<String>) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Words that every part may use.
const VOCABULARY: [&str; 2] = ["access", "call_site"];

/// What each part may name of the crate beside itself.
const MAY_IMPORT: [(&str, &[&str]); 16] = [
    ("error", &["sync"]),
    ("element", &[]),
    ("grid", &[]),
    ("sync", &[]),
    ("coherence", &[]),
    ("layout", &["coherence"]),
    ("ordering", &["coherence", "backend"]),
    ("backend", &["grid", "layout", "sync"]),
    ("audit", &["device", "sync"]),
    ("device", &["audit", "backend", "error", "ordering", "sync"]),
    (
        "storage",
        &["audit", "backend", "coherence", "device", "element", "layout", "ordering", "sync"],
    ),
    (
        "transfer",
        &[
            "audit",
            "backend",
            "coherence",
            "device",
            "element",
            "error",
            "layout",
            "ordering",
            "storage",
            "sync",
        ],
    ),
    (
        "array",
        &[
            "audit",
            "backend",
            "coherence",
            "device",
            "element",
            "error",
            "layout",
            "ordering",
            "storage",
            "sync",
            "transfer",
        ],
    ),
    ("interop", &["array", "audit", "backend", "device", "element", "error"]),
    (
        "launch",
        &[
            "array",
            "audit",
            "backend",
            "coherence",
            "device",
            "element",
            "error",
            "grid",
            "layout",
            "ordering",
            "storage",
            "sync",
            "transfer",
        ],
    ),
    (
        "lib",
        &[
            "array", "audit", "backend", "device", "element", "error", "grid", "interop", "launch",
            "Device", "Element",
        ],
    ),
];

#[test]
fn each_part_imports_what_it_may_and_nothing_else() {
    let allowed = |layer: &str| {
        MAY_IMPORT.iter().find(|(name, _)| *name == layer).map(|(_, allowed)| *allowed)
    };
    let mut found = Vec::new();
    for source in
        sources(&["src"]).iter().filter(|source| !source.is_test() && source.layer() != "lib")
    {
        if VOCABULARY.contains(&source.layer()) {
            continue;
        }
        let Some(allowed) = allowed(source.layer()) else {
            found.push(format!("{}: `{}` is in no row of the table", source.path, source.layer()));
            continue;
        };
        let strangers = source
            .imports()
            .into_iter()
            .filter(|import| !VOCABULARY.contains(&import.as_str()))
            .filter(|import| *import != source.layer() && !allowed.contains(&import.as_str()));
        found.extend(strangers.map(|stranger| format!("{} imports `{stranger}`", source.path)));
    }
    none(found);
}

#[test]
fn the_table_of_imports_has_no_circle() {
    for (name, imports) in MAY_IMPORT.iter().filter(|(name, _)| *name != "audit") {
        for import in imports.iter().filter(|import| **import != "audit") {
            let back =
                MAY_IMPORT.iter().any(|(other, theirs)| other == import && theirs.contains(name));
            assert!(!back, "{name} and {import} import each other");
        }
    }
}

#[test]
fn lists_of_imports_are_read_word_by_word() {
    let source = |text: &str| Source { path: "src/launch/example.rs".into(), text: text.into() };
    let imports = source(
        "use crate::{audit::{self, Flow}, grid::Grid,\n    ordering};\nlet x = crate::storage::State; // crate::error\n/// crate::sync",
    );
    let words: Vec<String> = imports.imports().into_iter().collect();
    assert_eq!(words, ["audit", "grid", "ordering", "storage"]);
    assert_eq!(imports.layer(), "launch");
}

/// Lines of code for which a rule does not hold.
fn lines_where(sources: &[Source], breaks: impl Fn(&Source, &str) -> bool) -> Vec<String> {
    let line = |source: &Source, number: usize, text: &str| {
        format!("{}:{number}: {}", source.path, text.trim())
    };
    let of = |source: &Source| -> Vec<String> {
        source
            .code()
            .filter(|(_, text)| breaks(source, text))
            .map(|(number, text)| line(source, number, text))
            .collect()
    };
    sources.iter().flat_map(of).collect()
}

#[test]
fn only_the_validity_of_audit_names_devices() {
    let audit: Vec<Source> = sources(&["src/audit"])
        .into_iter()
        .filter(|source| source.path != "src/audit/validity.rs")
        .collect();
    none(lines_where(&audit, |_, line| line.contains("crate::device")));
}

#[test]
fn tracing_is_named_in_one_file() {
    none(lines_where(&sources(&["src"]), |source, line| {
        line.contains("tracing::") && source.path != "src/audit/emit.rs"
    }));
}

#[test]
fn cudarc_is_named_by_its_backend_and_beside_it_alone() {
    let may = |source: &Source| {
        source.path.starts_with("src/backend/cuda/")
            || source.layer() == "interop"
            || source.is_test()
    };
    none(lines_where(&sources(&["src"]), |source, line| line.contains("cudarc::") && !may(source)));
}

#[test]
fn ndarray_is_not_named_below_the_arrays() {
    let without = sources(&[
        "src/coherence",
        "src/ordering.rs",
        "src/backend",
        "src/storage",
        "src/transfer",
    ]);
    none(lines_where(&without, |source, line| !source.is_test() && line.contains("ndarray")));
}

/// A backend hands on the copy that it was given, and makes none: it may name `Work::Copy`, and
/// build no `CopyWork`.
#[test]
fn copies_are_built_in_transfer_alone() {
    let elsewhere: Vec<Source> = sources(&["src"])
        .into_iter()
        .filter(|source| !source.path.starts_with("src/transfer/") && !source.is_test())
        .collect();
    none(lines_where(&elsewhere, |_, line| {
        line.contains("CopyWork {")
            && !line.contains("struct CopyWork")
            && !line.contains("impl CopyWork")
            && !line.contains("let CopyWork")
    }));
    let is_pattern = |line: &str| {
        ["=>", "if let", "let Work::Copy", "matches!"].iter().any(|word| line.contains(word))
    };
    none(lines_where(&elsewhere, |source, line| {
        line.contains("Work::Copy(") && !is_pattern(line) && source.layer() != "backend"
    }));
}

#[test]
fn the_deciding_parts_forbid_unsafe_code() {
    for path in ["src/coherence/mod.rs", "src/ordering.rs"] {
        let text = fs::read_to_string(root().join(path)).expect("it is there");
        let first = text.lines().find(|line| !line.starts_with("//") && !line.is_empty());
        assert_eq!(first, Some("#![forbid(unsafe_code)]"), "{path}");
    }
}

#[test]
fn a_safety_comment_stands_directly_above_every_unsafe_block_and_impl() {
    let mut found = Vec::new();
    for source in
        sources(&["src", "tests", "examples", "benches", "fuzz/fuzz_targets", "fuzz/operations"])
    {
        let lines: Vec<&str> = source.text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let code = without_comment(line);
            let opens = code.contains(concat!("unsafe ", "{"))
                || code.trim_start().starts_with(concat!("unsafe ", "impl"));
            if opens && !has_safety_comment(&lines[..index]) && !code.contains("concat!") {
                found.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    none(found);
}

/// Directly above: a comment that begins with SAFETY, perhaps with the beginning of the same
/// statement or attributes in between.
fn has_safety_comment(above: &[&str]) -> bool {
    let mut lines = above.iter().rev().map(|line| line.trim()).peekable();
    // The statement may have begun above: its lines end neither a statement nor a block.
    while lines.peek().is_some_and(|line| {
        !line.starts_with("//") && !line.is_empty() && !line.ends_with([';', '{', '}', ','])
    }) {
        lines.next();
    }
    let comment: Vec<&str> = lines.take_while(|line| line.starts_with("//")).collect();
    comment.iter().any(|line| line.starts_with("// SAFETY:"))
}

#[test]
fn no_function_is_above_seventy_lines_and_no_file_above_eight_hundred() {
    let mut found = Vec::new();
    for source in sources(&["src", "tests", "examples", "benches"]) {
        let lines: Vec<&str> = source.text.lines().collect();
        if lines.len() > 800 {
            found.push(format!("{} has {} lines", source.path, lines.len()));
        }
        for (start, line) in lines.iter().enumerate().filter(|(_, line)| is_function(line)) {
            let indent = &line[..line.len() - line.trim_start().len()];
            let ends =
                |other: &&str| other.strip_prefix(indent).is_some_and(|rest| rest.starts_with('}'));
            let is_one_line = line.ends_with(['}', ';']);
            let length = if is_one_line {
                1
            } else {
                lines[start..].iter().position(ends).map_or(1, |end| end + 1)
            };
            if length > 70 {
                found.push(format!(
                    "{}:{}: {length} lines: {}",
                    source.path,
                    start + 1,
                    line.trim()
                ));
            }
        }
    }
    none(found);
}

fn is_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let prefix =
        ["pub", "const", "async", "unsafe", "extern", "pub(crate)", "pub(super)", "pub(in"];
    words.find(|word| !prefix.contains(word)).is_some_and(|word| word == "fn")
        && !without_comment(line).is_empty()
}

#[test]
fn nothing_is_left_undone() {
    let marks = [
        concat!("todo", "!"),
        concat!("unimplemented", "!"),
        concat!("dbg", "!("),
        concat!("#[", "ignore"),
        concat!("FIX", "ME"),
    ];
    let mut found = Vec::new();
    for source in
        sources(&["src", "tests", "examples", "benches", "fuzz/fuzz_targets", "fuzz/operations"])
    {
        for (number, line) in source.text.lines().enumerate() {
            // Tests that others run, each in a process of its own, are not left out.
            let is_run_by_others = line.contains("run in processes of its own");
            if marks.iter().any(|mark| line.contains(mark)) && !is_run_by_others {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    none(found);
}

#[test]
fn no_file_is_named_after_nothing() {
    let empty = ["utils", "util", "helpers", "helper", "base", "misc"];
    let found =
        sources(&["src", "tests", "examples", "benches"]).into_iter().map(|source| source.path);
    none(
        found
            .filter(|path| {
                path.trim_end_matches(".rs").split('/').any(|part| empty.contains(&part))
            })
            .collect(),
    );
}
