//! Documents: the width of their lines, and the existence of the paths that they name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sources::{none, root};

const COLUMNS_MAX: usize = 100;

/// Files that git tracks or would track, with these endings; none outside a checkout.
pub(crate) fn files(patterns: &[&str]) -> Vec<PathBuf> {
    let listing = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .args(patterns)
        .current_dir(root())
        .output();
    let listing = listing.map(|output| output.stdout).unwrap_or_default();
    let paths = String::from_utf8(listing).expect("paths are text");
    paths.lines().map(|path| root().join(path)).filter(|path| path.is_file()).collect()
}

/// Whether the line is a row of a table in Markdown, which cannot be broken.
fn is_table_row(line: &str) -> bool {
    let line = line.trim_start();
    ["//! |", "/// |", "| "].iter().any(|start| line.starts_with(start))
}

#[test]
fn no_line_is_wider_than_100_columns() {
    let mut found = Vec::new();
    for path in files(&["*.rs", "*.md"]) {
        let text = fs::read_to_string(&path).expect("text");
        for (index, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX && !is_table_row(line) {
                found.push(format!("{}:{}: {columns} columns", path.display(), index + 1));
            }
        }
    }
    none(found);
}

/// The value of the first line that begins so, in quotation marks or not.
fn value<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(start)).map(|value| value.trim_matches('"'))
}

#[test]
fn there_is_one_version() {
    let read = |path: &Path| fs::read_to_string(path).expect("it is there");
    let manifest = read(&root().join("Cargo.toml"));
    let version = value(&manifest, "version = ").expect("the version of the workspace");
    let citation = read(&root().join("CITATION.cff"));
    assert_eq!(value(&citation, "version: "), Some(version));
    let required = format!("version = \"{version}\"");
    let mut found = Vec::new();
    for path in files(&["*Cargo.toml"]) {
        let text = read(&path);
        // Those of another workspace have the tools of this one, which no one publishes.
        let is_apart = text.contains("[workspace]\n") && text != manifest;
        let others = text.lines().filter(|line| {
            let is_own = line.contains("path = ") && line.contains("version = ");
            let is_package = !is_apart && text != manifest && line.starts_with("version = ");
            is_package || is_own && !line.contains(&required)
        });
        found.extend(others.map(|line| format!("{}: {line}", path.display())));
    }
    none(found);
}

/// Whether a word in backticks is a path.
fn is_path(word: &str) -> bool {
    let has_path_letters = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let has_end = [".rs", ".md", ".cu", ".cuh", ".toml", "/"].iter().any(|end| word.ends_with(end));
    let is_below_folder = word.split_once('/').is_some_and(|(first, _)| {
        root().join(first).is_dir() || root().join("src").join(first).is_dir()
    });
    has_path_letters && (has_end || is_below_folder)
}

/// Whether the path exists below the root or a folder of the sources. A file may be named without
/// its folders.
fn exists(word: &str, files: &[PathBuf]) -> bool {
    let is_there = |folder: &Path| folder.join(word).exists();
    let end = Path::new(word.trim_end_matches('/'));
    is_there(root())
        || is_there(&root().join("src"))
        || files.iter().any(|file| {
            file.ends_with(end) || file.parent().is_some_and(|folder| folder.ends_with(end))
        })
}

#[test]
fn paths_in_the_design_exist() {
    let text = fs::read_to_string(root().join("DESIGN.md")).expect("it is there");
    let files = files(&[]);
    let words = text.split('`').skip(1).step_by(2);
    let missing = words.filter(|word| is_path(word) && !exists(word, &files));
    none(missing.map(str::to_owned).collect());
}

/// The targets of the links of a Markdown text that are files: neither addresses, nor
/// items, nor the arguments of a launch in Python.
fn linked_files(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    let targets = prose.flat_map(|part| part.split("](").skip(1));
    let targets = targets.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let files = targets.map(|target| target.split('#').next().unwrap_or_default());
    files.filter(|file| !file.is_empty() && !file.contains([':', ' ']))
}

#[test]
fn links_between_documents_lead_to_files() {
    let documents = files(&["*.md"]);
    let mut checked = 0;
    let mut missing = Vec::new();
    for document in &documents {
        let text = fs::read_to_string(document).expect("text");
        let folder = document.parent().expect("a file is in a folder");
        for file in linked_files(&text) {
            checked += 1;
            if !folder.join(file).exists() {
                missing.push(format!("{}: {file}", document.display()));
            }
        }
    }
    assert!(documents.is_empty() || checked > 30, "{checked} links");
    none(missing);
}

/// The items of the lists in a document, each with its further lines.
pub(crate) fn items(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let mut is_in_item = false;
    for line in text.lines() {
        let starts = line.starts_with("- ");
        is_in_item = starts || is_in_item && line.starts_with("  ");
        match items.last_mut() {
            Some(item) if is_in_item && !starts => item.push_str(line),
            _ if starts => items.push(line.to_owned()),
            _ => {}
        }
    }
    items
}

#[test]
fn each_name_of_numba_cupy_and_cudarc_has_a_link() {
    let folder = root().join("docs/guide/from_numba_cupy_and_cudarc");
    let lists = ["numba.md", "cupy.md", "cudarc.md"];
    let texts = lists.map(|list| fs::read_to_string(folder.join(list)).expect("it is there"));
    let all: Vec<String> = texts.iter().flat_map(|text| items(text)).collect();
    assert!(all.len() > 250, "{} items", all.len());
    let has_link = |item: &String| item.contains("[`") || item.contains("](");
    none(all.into_iter().filter(|item| !has_link(item)).collect());
}
