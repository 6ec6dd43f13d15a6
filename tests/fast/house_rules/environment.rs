//! The table of environment variables: that it and the page "Configuration" name the same, that no
//! other place reads the environment, and that tests and scripts have no other variables.

use std::collections::BTreeSet;
use std::fs;

use resident::internal::environment::{VARIABLES, is_known};

use crate::sources::{ALL_CODE, none, root, sources};

/// The page of the guide with the variables of the library.
const PAGE: &str = "docs/guide/configuration.md";

/// The file that reads the environment.
const READER: &str = "crates/backend/src/environment/mod.rs";

fn text_of(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|fault| panic!("{path}: {fault}"))
}

/// What follows the prefix of the variables wherever it stands: whole names.
fn names(text: &str, before: char) -> BTreeSet<String> {
    let prefix = format!("{before}RESIDENT_");
    let rest = text.match_indices(&prefix).map(|(at, _)| &text[at + before.len_utf8()..]);
    let is_of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    rest.map(|rest| rest.chars().take_while(|c| is_of_name(*c)).collect()).collect()
}

#[test]
fn the_page_lists_each_environment_variable() {
    let page = text_of(PAGE);
    let rows: String = page.lines().filter(|line| line.starts_with("| `")).collect();
    let of_table = VARIABLES.iter().filter(|one| one.documented == PAGE);
    let of_table: BTreeSet<String> = of_table.map(|one| one.name.to_owned()).collect();
    assert!(of_table.len() > 15, "{of_table:?}");
    // A row may name other variables, so each has one that begins with it.
    let has_row = |name: &String| page.contains(&format!("\n| `{name}` |"));
    none(of_table.iter().filter(|name| !has_row(name)).cloned().collect());
    assert_eq!(names(&rows, '`').difference(&of_table).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn the_front_page_leaves_variables_to_their_page() {
    let front = text_of("src/lib.rs");
    assert!(front.contains("(guide::configuration)"), "it links to {PAGE}");
    assert_eq!(names(&front, '`'), BTreeSet::new());
}

#[test]
fn other_variables_are_documented_where_the_table_says() {
    let is_missing = |path: &str, name: &str| !text_of(path).contains(name);
    let missing = VARIABLES.iter().filter(|one| is_missing(one.documented, one.name));
    none(missing.map(|one| format!("{} is not in {}", one.name, one.documented)).collect());
    let names: BTreeSet<&str> = VARIABLES.iter().map(|one| one.name).collect();
    assert_eq!(names.len(), VARIABLES.len(), "each has one line");
}

#[test]
fn one_file_reads_the_environment() {
    let crates = ["backend", "code", "core", "documents", "embedded", "gpu", "host-code"];
    let folders = crates.map(|folder| format!("crates/{folder}/src"));
    let mut paths: Vec<&str> = folders.iter().map(String::as_str).collect();
    paths.extend(["src", "mpi/src", "report/src"]);
    let all = sources(&paths);
    let reads = |text: &str| text.contains("env::var") || text.contains("getenv");
    assert!(all.iter().any(|source| source.path == READER && reads(&source.text)));
    let others = all.iter().filter(|source| source.path != READER && reads(&source.text));
    none(others.map(|source| source.path.clone()).collect());
}

/// Macros of C have names with the prefix too, so only those between quotation marks count here.
#[test]
fn the_table_has_the_variables_of_all_programs() {
    let sources = sources(&ALL_CODE);
    // The tests of the table have names that are none.
    let others = sources.iter().filter(|source| !source.path.ends_with("environment/table.rs"));
    let in_code: BTreeSet<String> = others.flat_map(|source| quoted(&source.text)).collect();
    assert!(in_code.contains("RESIDENT_LARGE"), "{in_code:?}");
    let in_scripts = [".ci/run", "scripts/long-checks", "scripts/steps.sh", "scripts/gpu/part"]
        .iter()
        .flat_map(|path| [' ', '{'].map(|before| names(&text_of(path), before)))
        .flatten();
    let all: BTreeSet<String> = in_code.into_iter().chain(in_scripts).collect();
    let is_unknown = |name: &String| name != "RESIDENT_" && !is_known(name);
    none(all.into_iter().filter(is_unknown).collect());
}

/// The names that are whole strings.
fn quoted(text: &str) -> Vec<String> {
    let is_name = |text: &&str| {
        text.starts_with("RESIDENT_")
            && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    text.split('"').filter(is_name).map(str::to_owned).collect()
}
