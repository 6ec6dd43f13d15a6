//! Which parts of the crate each part may import, and which names may occur in only one part.

use crate::sources::{Source, lines_where, none, sources};

/// Modules, and items at a crate's root, that every part may use.
const VOCABULARY: [&str; 6] =
    ["access", "Access", "position", "Position", "call_site", "unwinding"];

/// The other parts that each part of the library, and of the core, may import, as words. What a
/// crate may import at all is in its `Cargo.toml`.
const MAY_IMPORT: [(&str, &str); 18] = [
    ("error", "sync"),
    ("element", ""),
    ("coherence", ""),
    ("layout", "coherence"),
    ("ordering", "coherence"),
    ("live_arrays", "documents"),
    ("guide", ""),
    ("traffic", "documents sync"),
    ("memory_use", "documents sync timeline"),
    ("device", "backend error grid memory_use ordering sync timeline traffic"),
    (
        "storage",
        "backend coherence device element layout live_arrays memory_use ordering sync traffic",
    ),
    ("audit", "device documents error live_arrays memory_use storage sync timeline traffic"),
    (
        "transfer",
        "audit backend coherence device element error layout memory_use ordering storage sync \
         traffic",
    ),
    ("array", "audit backend coherence device element error layout ordering storage sync transfer"),
    ("interop", "array audit backend device element error"),
    (
        "launch",
        "array audit backend coherence device documents element error grid layout ordering storage \
         sync transfer",
    ),
    ("ops", "array backend device documents element error grid interop launch"),
    ("lib", "array audit backend device element error grid interop launch Device Element"),
];

#[test]
fn each_part_imports_what_it_may_and_nothing_else() {
    let allowed = |layer: &str| {
        let row = MAY_IMPORT.iter().find(|(name, _)| *name == layer);
        row.map(|(_, allowed)| allowed.split_whitespace().collect::<Vec<_>>())
    };
    let mut found = Vec::new();
    let ruled = |source: &&Source| {
        !source.is_test() && source.layer() != "lib" && !VOCABULARY.contains(&source.layer())
    };
    for source in sources(&["src", "crates/core"]).iter().filter(ruled) {
        let Some(allowed) = allowed(source.layer()) else {
            found.push(format!("{}: `{}` is in no row of the table", source.path, source.layer()));
            continue;
        };
        let known = |import: &str| VOCABULARY.contains(&import) || allowed.contains(&import);
        let imports = source.imports().into_iter();
        let strangers = imports.filter(|import| import != source.layer() && !known(import));
        found.extend(strangers.map(|stranger| format!("{} imports `{stranger}`", source.path)));
    }
    none(found);
}

#[test]
fn the_table_of_imports_has_no_circle() {
    let imports = |one: &str, other: &str| {
        let names = |(name, imports): &(&str, &str)| {
            *name == one && imports.split_whitespace().any(|import| import == other)
        };
        MAY_IMPORT.iter().any(names)
    };
    for (one, _) in MAY_IMPORT {
        for (other, _) in MAY_IMPORT {
            let both = imports(one, other) && imports(other, one);
            assert!(!both, "{one} and {other} import each other");
        }
    }
}

#[test]
fn lists_of_imports_are_read_word_by_word() {
    let source = |text: &str| Source { path: "src/launch/example.rs".into(), text: text.into() };
    let imports = source(
        "use crate::{audit::{self, Flow}};\nuse resident_backend::{Work, grid::Grid};\n\
         use resident_core::{\n    ordering};\n\
         let x = crate::storage::State; // crate::error\n/// crate::sync",
    );
    let words: Vec<String> = imports.imports().into_iter().collect();
    assert_eq!(words, ["audit", "backend", "grid", "ordering", "storage"]);
    assert_eq!(imports.layer(), "launch");
}

#[test]
fn tracing_is_named_in_two_files() {
    let files = ["src/audit/events.rs", "src/device/wait_span.rs"];
    none(lines_where(&sources(&["src", "crates", "mpi"]), |source, line| {
        line.contains("tracing::") && !files.contains(&&*source.path)
    }));
}

#[test]
fn only_its_backend_and_interop_name_cudarc() {
    let may = |source: &Source| {
        ["crates/gpu/", "src/interop/cudarc/"].iter().any(|folder| source.path.starts_with(folder))
            || source.is_test()
    };
    none(lines_where(&sources(&["src", "crates", "mpi"]), |source, line| {
        line.contains("cudarc::") && !line.contains("self::cudarc::") && !may(source)
    }));
}

#[test]
fn ndarray_is_not_named_below_the_arrays() {
    let without = sources(&["crates", "src/storage", "src/transfer"]);
    none(lines_where(&without, |source, line| !source.is_test() && line.contains("ndarray")));
}

/// A backend executes the copies that it gets and adds none: it may name `Work::Copy`, but must not
/// build a `CopyWork`.
#[test]
fn copies_are_built_only_in_transfer() {
    let elsewhere: Vec<Source> = sources(&["src", "crates", "mpi"])
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
        line.contains("Work::Copy(") && !is_pattern(line) && !source.path.starts_with("crates/")
    }));
}
