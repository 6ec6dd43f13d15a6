//! The Rust sources of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of devices, beside their interface.
const DEVICE_CRATES: [&str; 4] =
    ["resident_code::", "resident_embedded::", "resident_gpu::", "resident_host_code::"];

/// The parts of `crates/backend` that are named by themselves.
const INTERFACE_PARTS: [&str; 5] = ["call_site", "grid", "sync", "timeline", "unwinding"];

/// All Rust code of the repository.
pub(crate) const ALL_CODE: [&str; 9] = [
    "src",
    "crates",
    "mpi",
    "macros",
    "report",
    "tests",
    "examples",
    "benches",
    "fuzz/fuzz_targets",
];

/// A source file: its path from the root of the repository, and its text.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("it has two")
}

pub(crate) fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
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

/// These files, and all Rust files below these folders; paths that do not exist are ignored.
pub(crate) fn sources(paths_from_root: &[&str]) -> Vec<Source> {
    let mut paths = Vec::new();
    for path in paths_from_root.iter().map(|path| root().join(path)) {
        if path.is_dir() {
            files_below(&path, &mut paths);
        } else if path.is_file() {
            paths.push(path);
        }
    }
    let source = |path: PathBuf| {
        let below = path.strip_prefix(root()).expect("below the root").to_string_lossy();
        let text = fs::read_to_string(&path).expect("text");
        Source { path: below.replace('\\', "/"), text }
    };
    let sources: Vec<Source> = paths.into_iter().map(source).collect();
    assert!(!sources.is_empty(), "no sources in {paths_from_root:?}");
    sources
}

impl Source {
    /// The part of its crate: `launch` for `src/launch/flat.rs`, `error` for `src/error.rs`.
    pub(crate) fn layer(&self) -> &str {
        let inner = self.path.split_once("src/").map_or(&*self.path, |(_, inner)| inner);
        inner.split('/').next().unwrap_or(inner).trim_end_matches(".rs")
    }

    pub(crate) fn is_test(&self) -> bool {
        self.path.contains("/tests/")
            || self.path.starts_with("tests/")
            || self.path.ends_with("/tests.rs")
    }

    /// The lines with their numbers, without comments. All lines from the file's first
    /// `#[cfg(test)]` module on are left out, because tests come last in a file. Contents of
    /// strings remain.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines: Vec<&str> = self.text.lines().collect();
        let tests = lines.windows(2).position(|pair| {
            pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
        });
        let code = lines.into_iter().take(tests.unwrap_or(usize::MAX));
        (1..).zip(code.map(without_comment))
    }

    pub(crate) fn code_text(&self) -> String {
        self.code().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
    }

    /// The parts that this file names: of its own crate, of the core, and of the backends' crates,
    /// which are all `backend` but for the parts of the interface that have rows of their own.
    /// `documents` is one part.
    pub(crate) fn imports(&self) -> BTreeSet<String> {
        let mut found = self.named_after("crate::");
        found.extend(self.named_after("resident_core::"));
        for name in self.named_after("resident_backend::") {
            let is_own = INTERFACE_PARTS.contains(&name.as_str());
            found.insert(if is_own { name } else { "backend".to_owned() });
        }
        for name in DEVICE_CRATES {
            if !self.named_after(name).is_empty() {
                found.insert("backend".to_owned());
            }
        }
        if !self.named_after("resident_documents::").is_empty() {
            found.insert("documents".to_owned());
        }
        found
    }

    /// The words that follow a crate's name, in paths and in `use`.
    fn named_after(&self, crate_name: &str) -> BTreeSet<String> {
        let text = self.code_text();
        let mut found = BTreeSet::new();
        for (position, _) in text.match_indices(crate_name) {
            let is_macro_or_path = text[..position].ends_with('$')
                || text[..position].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if !is_macro_or_path {
                first_words(&text[position + crate_name.len()..], &mut found);
            }
        }
        found
    }
}

/// Adds the words that follow `crate::`: one, or the first of each item of a list in braces.
pub(crate) fn first_words(text: &str, found: &mut BTreeSet<String>) {
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

pub(crate) fn without_comment(line: &str) -> &str {
    let is_whole = line.trim_start().starts_with("//");
    if is_whole { "" } else { line.split(" // ").next().unwrap_or(line) }
}

#[track_caller]
pub(crate) fn none(found: Vec<String>) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Lines of code that break a rule.
pub(crate) fn lines_where(
    sources: &[Source],
    breaks: impl Fn(&Source, &str) -> bool,
) -> Vec<String> {
    let of = |source: &Source| -> Vec<String> {
        let broken = source.code().filter(|(_, text)| breaks(source, text));
        let line =
            |(number, text): (usize, &str)| format!("{}:{number}: {}", source.path, text.trim());
        broken.map(line).collect()
    };
    sources.iter().flat_map(of).collect()
}
