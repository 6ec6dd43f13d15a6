//! The supported part of the preprocessor: comments, includes, line directives, macros without
//! parameters.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::path::Path;

/// The deepest nesting of includes.
const DEPTH_MAX: usize = 16;

/// The inputs of a compilation in addition to its source.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// The headers, by the names under which sources include them.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) include_paths: Vec<String>,
    pub(crate) macros: HashMap<String, String>,
}

/// One line of code and its location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) file: String,
    pub(crate) number: usize,
}

/// A source without directives and comments.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    pub(crate) lines: Vec<Line>,
    pub(crate) macros: HashMap<String, String>,
}

/// An error in the format of a compiler log.
pub(crate) fn complaint(file: &str, number: usize, text: &str) -> String {
    format!("{file}({number}): error: {text}\n")
}

/// As `complaint`, of an error after which the compiler reads nothing more.
fn last_complaint(file: &str, number: usize, text: &str) -> String {
    format!("{file}({number}): catastrophic error: {text}\n")
}

/// Preprocesses a source and everything that it includes. The error is the log.
pub(crate) fn run(name: &str, text: &str, inputs: &Inputs) -> Result<Plain, String> {
    let mut plain = Plain { macros: inputs.macros.clone(), ..Plain::default() };
    read(name, text, inputs, 0, &mut plain)?;
    Ok(plain)
}

fn read(
    name: &str,
    text: &str,
    inputs: &Inputs,
    depth: usize,
    plain: &mut Plain,
) -> Result<(), String> {
    let (mut file, mut next) = (name.to_owned(), 1);
    for line in without_comments(text).lines() {
        let number = next;
        next += 1;
        let line = line.trim();
        let Some(directive) = line.strip_prefix('#') else {
            if line == "not C" {
                return Err(complaint(&file, number, "expected a declaration"));
            }
            plain.lines.push(Line { text: line.to_owned(), file: file.clone(), number });
            continue;
        };
        let directive = directive.trim_start();
        let (word, rest) = directive.split_once(char::is_whitespace).unwrap_or((directive, ""));
        match word {
            "error" => {
                let text = format!("#error directive: {}", rest.trim());
                return Err(last_complaint(&file, number, &text));
            }
            "line" => {
                (next, file) = line_directive(rest, &file)
                    .ok_or_else(|| complaint(&file, number, "invalid #line directive"))?;
            }
            "define" => define(rest, &mut plain.macros),
            "include" => include(rest.trim(), &file, number, inputs, depth, plain)?,
            _ => {}
        }
    }
    Ok(())
}

/// Reads the arguments of `#line`, such as `12 "file"`: the number of the next line, and its file.
fn line_directive(rest: &str, file: &str) -> Option<(usize, String)> {
    let rest = rest.trim();
    let (number, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let name = name.trim().trim_matches('"');
    Some((number.parse().ok()?, if name.is_empty() { file.to_owned() } else { name.to_owned() }))
}

/// Reads the arguments of `#define`: `NAME text`. Macros with parameters are ignored.
fn define(rest: &str, macros: &mut HashMap<String, String>) {
    let (name, text) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    if !name.contains('(') {
        macros.insert(name.to_owned(), text.trim().to_owned());
    }
}

/// Includes a file. `"name"` must exist; if `<name>` does not, it is assumed to be a header of the
/// toolkit.
fn include(
    rest: &str,
    file: &str,
    number: usize,
    inputs: &Inputs,
    depth: usize,
    plain: &mut Plain,
) -> Result<(), String> {
    let name = rest.trim_matches(['"', '<', '>']);
    let on_disk = || {
        inputs
            .include_paths
            .iter()
            .find_map(|folder| std::fs::read_to_string(Path::new(folder).join(name)).ok())
    };
    match inputs.headers.get(name).cloned().or_else(on_disk) {
        Some(_) if depth == DEPTH_MAX => {
            Err(complaint(file, number, &format!("include of \"{name}\" is nested too deeply")))
        }
        Some(text) => read(name, &text, inputs, depth + 1, plain),
        None if rest.starts_with('"') => {
            Err(last_complaint(file, number, &format!("cannot open source file \"{name}\"")))
        }
        None => Ok(()),
    }
}

/// Replaces comments with blanks and keeps the lines.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        plain.push_str(&rest[..start]);
        let comment = &rest[start..];
        let length = if comment.starts_with("//") {
            comment.find('\n').unwrap_or(comment.len())
        } else {
            comment[2..].find("*/").map_or(comment.len(), |length| length + 4)
        };
        plain.push(' ');
        plain.extend(comment[..length].chars().filter(|character| *character == '\n'));
        rest = &comment[length..];
    }
    plain.push_str(rest);
    plain
}
