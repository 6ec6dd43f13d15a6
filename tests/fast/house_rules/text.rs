//! The lengths of functions and files, and words that must not occur.

use std::collections::BTreeSet;

use crate::sources::{ALL_CODE, Source, none, sources, without_comment};
use crate::tokens::all_tokens;

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 60;
/// The length, in lines, that 95 % of the library's functions must not exceed.
const FUNCTION_LINES_P95_MAX: usize = 25;

/// A function: its file, line number, first line and length.
struct Function {
    path: String,
    number: usize,
    line: String,
    lines: usize,
}

fn functions(source: &Source) -> Vec<Function> {
    let lines: Vec<&str> = source.text.lines().collect();
    let starts = lines.iter().enumerate().filter(|(_, line)| is_function(line));
    let function = |(start, line): (usize, &&str)| Function {
        path: source.path.clone(),
        number: start + 1,
        line: line.trim().to_owned(),
        lines: function_len(&lines[start..]),
    };
    starts.map(function).collect()
}

/// The number of lines from the one with `fn` to the closing brace at its indentation.
fn function_len(lines: &[&str]) -> usize {
    let first = lines[0];
    if first.ends_with(['}', ';']) {
        return 1;
    }
    let indent = &first[..first.len() - first.trim_start().len()];
    let ends = |line: &&str| {
        let rest = line.strip_prefix(indent).unwrap_or_default();
        rest.starts_with('}') || rest.starts_with(')') && rest.ends_with(';')
    };
    lines.iter().position(ends).map_or(1, |end| end + 1)
}

#[test]
fn functions_and_files_are_short() {
    let mut found = Vec::new();
    for source in sources(&["src", "crates", "mpi", "tests", "examples", "benches"]) {
        let len = source.text.lines().count();
        if len > FILE_LINES_MAX {
            found.push(format!("{} has {len} lines", source.path));
        }
        let long = functions(&source).into_iter().filter(|one| one.lines > FUNCTION_LINES_MAX);
        let text = |Function { path, number, lines, line }| {
            format!("{path}:{number}: {lines} lines: {line}")
        };
        found.extend(long.map(text));
    }
    none(found);
}

#[test]
fn nineteen_of_twenty_functions_are_of_ordinary_length() {
    let library = sources(&["src", "crates", "mpi"]);
    let mut lengths: Vec<usize> = library
        .iter()
        .filter(|source| !source.is_test())
        .flat_map(functions)
        .map(|function| function.lines)
        .collect();
    lengths.sort_unstable();
    let p95 = lengths[lengths.len() * 95 / 100];
    println!("{} functions, median {}, p95 {p95}", lengths.len(), lengths[lengths.len() / 2]);
    assert!(p95 <= FUNCTION_LINES_P95_MAX, "p95 is {p95} lines");
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
    for source in sources(&ALL_CODE) {
        for (number, line) in source.text.lines().enumerate() {
            // Tests that another test runs in a separate process are marked in this way, and those
            // that `.ci/run` runs where there is a C++ compiler; they are not left out.
            let is_run_by_others = ["run in processes of its own", "needs a C++ compiler"]
                .map(|why| line.contains(why));
            if marks.iter().any(|mark| line.contains(mark)) && !is_run_by_others.contains(&true) {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    none(found);
}

#[test]
fn no_file_is_named_after_nothing() {
    let empty = ["utils", "util", "helpers", "helper", "base", "misc"];
    let says_nothing =
        |path: &String| path.trim_end_matches(".rs").split('/').any(|part| empty.contains(&part));
    let all = sources(&["src", "crates", "mpi", "tests", "examples", "benches"]).into_iter();
    none(all.map(|source| source.path).filter(says_nothing).collect());
}

/// Words of an earlier vocabulary, which were replaced by the standard terms of CUDA, ndarray or
/// operating systems.
const RETIRED_WORDS: &str = "Crew Flight Landing Descent look_around Nearness Lent hold_up let_at \
    mark_the_way Orphan Visits Upkeep Turnstile let_go Haul Passage Manner strangers last_words \
    take_in_hand";

/// Words that are ordinary English are searched for only in code, and words with an underscore
/// everywhere.
#[test]
fn retired_words_do_not_come_back() {
    let all: Vec<&str> = RETIRED_WORDS.split_whitespace().collect();
    let mut found = Vec::new();
    for source in sources(&["src", "crates", "mpi"]) {
        let code = all_tokens(&source.text);
        let text = source.text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let names = text.filter(|word| word.contains('_')).map(str::to_owned);
        let words: BTreeSet<String> = code.into_iter().chain(names).collect();
        let retired = words.iter().filter(|word| all.contains(&word.as_str()));
        found.extend(retired.map(|word| format!("{}: {word}", source.path)));
    }
    none(found);
}
