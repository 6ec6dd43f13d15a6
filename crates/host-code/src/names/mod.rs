//! A kernel has the names that NVRTC declares, and no others: each name of the headers of this
//! machine is used as a function, a variable and a type of a source, and undeclared. `answers.txt`
//! has what NVRTC refuses of that (`answers.py` asks it), and leaves out the names that it does not
//! know, of which it refuses nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

use resident_backend::{GpuSource, Program};
use resident_code::numbers;
use resident_code::words::words;

use super::compiler::Compiler;
use super::temporary_files::TemporaryFile;
use super::translation::{Checks, Translation};

/// A letter for each use, and a line with it.
const USES: &str = include_str!("uses.txt");

/// Names, and the letters of the uses that NVRTC refuses.
const ANSWERS: &str = include_str!("answers.txt");

/// Functions, and a letter for each call: for the types of arguments in order, or for each pair of
/// types. A dash is a call that NVRTC refuses, the others are types of results.
const CALLS: &str = include_str!("calls.txt");
const ARGUMENTS: [&str; 8] =
    ["int", "unsigned int", "long", "unsigned long long", "float", "double", "bool", "char"];
const RESULTS: [(char, &str); 9] = [
    ('i', "int"),
    ('u', "unsigned int"),
    ('l', "long"),
    ('m', "unsigned long"),
    ('q', "long long"),
    ('t', "unsigned long long"),
    ('f', "float"),
    ('d', "double"),
    ('b', "bool"),
];

const HEADERS: &str = include_str!("headers.txt");
const KEYWORDS: &str = include_str!("keywords.txt");

/// Functions of newer C libraries, which `answers.txt` may lack. CUDA has them too.
const OF_C23: [&str; 6] = ["rsqrt", "rsqrtf", "sinpi", "sinpif", "cospi", "cospif"];

/// The uses as a function. NVRTC lets a source define functions of CUDA's again, which Clang does
/// not, and `printf` is a macro here.
const AS_FUNCTION: &str = "FC";

fn answers() -> BTreeMap<&'static str, &'static str> {
    ANSWERS.lines().filter_map(|line| line.split_once(' ')).collect()
}

/// What the compiler's preprocessor makes of all headers.
fn preprocessed(options: &[&str]) -> String {
    let includes: Vec<String> = HEADERS
        .split_whitespace()
        .map(|name| format!("#if __has_include(<{name}>)\n#include <{name}>\n#endif\n"))
        .collect();
    let compiler = Compiler::find().expect("a compiler");
    let mut command = Command::new(compiler.program());
    command.args(["-std=c++17", "-E", "-x", "c++", "-"]).args(options);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(includes.concat().as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The names of the headers of this machine that are not reserved, and those with an answer. The
/// library gives numbers such as `INT_MAX` to NVRTC as to the host.
fn names() -> BTreeSet<String> {
    let texts = [preprocessed(&["-P"]), preprocessed(&["-dM"]).replace("#define", "")];
    let all: BTreeSet<&str> =
        texts.iter().flat_map(|text| words(text).map(|(_, word)| word)).collect();
    let keywords: BTreeSet<&str> = KEYWORDS.split_whitespace().chain(OF_C23).collect();
    let is_meant = |name: &&str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && !keywords.contains(name)
            && numbers::for_host(name, |_| false).is_empty()
    };
    all.into_iter().chain(answers().into_keys()).filter(is_meant).map(str::to_owned).collect()
}

/// The names of which the compiler refuses a use.
fn refused(names: &BTreeSet<String>, line: &str, checks: Checks) -> BTreeSet<String> {
    let lines = names.iter().enumerate();
    let lines =
        lines.map(|(number, name)| line.replace("NAME", name).replace('$', &number.to_string()));
    let names: Vec<&String> = names.iter().collect();
    let wrong = wrong_lines(&lines.collect::<Vec<_>>().join("\n"), checks);
    wrong.into_iter().filter_map(|number| names.get(number)).map(|name| (*name).clone()).collect()
}

/// The lines of a source that the compiler refuses, from 0 on.
fn wrong_lines(text: &str, checks: Checks) -> BTreeSet<usize> {
    let source = GpuSource::c(text);
    let program = Program { kernel: "k".into(), source, parameters: Box::default() };
    let translation =
        Translation::new(&program, text, None, checks, None).expect("it has no limit");
    let file = TemporaryFile::new("cpp").expect("a file");
    let whole = [translation.headers(), &translation.text(&[])].concat();
    file.fill(whole.as_bytes()).expect("writable");
    let compiler = Compiler::find().expect("a compiler");
    let mut command = compiler.command();
    command.args(translation.options()).args(["-fsyntax-only", "-w"]);
    let all = if compiler.is_clang() { "-ferror-limit=0" } else { "-fmax-errors=0" };
    let output = compiler.output(command.arg(all).arg(&file.path)).expect("it runs");
    let log = String::from_utf8_lossy(&output.stderr);
    let number = |line: &str| {
        let (number, rest) = line.strip_prefix("k.cu:")?.split_once(':')?;
        // What macros become is an error where they are defined.
        let is_error = [" error: ", " in expansion of macro", " expanded from macro"];
        let is_error = is_error.iter().any(|words| rest.contains(words));
        number.parse::<usize>().ok()?.checked_sub(1).filter(|_| is_error)
    };
    log.lines().filter_map(number).collect()
}

#[test]
fn a_source_has_the_names_that_nvrtc_declares() {
    let Some(compiler) = Compiler::of_this_machine() else { return };
    let (names, answers) = (names(), answers());
    assert!(names.len() > 2000, "{}", names.len());
    for (checks, letters) in [(Checks::Off, "FCVTU"), (Checks::On, "CU")] {
        let uses = USES.lines().filter_map(|line| line.split_once(' '));
        for (letter, line) in uses.filter(|(letter, _)| letters.contains(letter)) {
            let is_as_function = AS_FUNCTION.contains(letter);
            let is_excepted = |name: &str| {
                is_as_function
                    && (name == "printf" || compiler.is_clang() && answers.contains_key(name))
            };
            let asked: BTreeSet<String> =
                names.iter().filter(|name| !is_excepted(name)).cloned().collect();
            let by_nvrtc = asked.iter().filter(|name| {
                answers.get(&***name).is_some_and(|letters| letters.contains(letter))
            });
            let expected: BTreeSet<String> = by_nvrtc.cloned().collect();
            let found = refused(&asked, line, checks);
            let differing: Vec<&String> = found.symmetric_difference(&expected).collect();
            assert!(differing.is_empty(), "{letter}: {differing:?}");
        }
    }
}

/// The calls of a line of `calls.txt`, and what each returns; `None` if NVRTC refuses it.
fn calls(line: &'static str) -> impl Iterator<Item = (String, Option<&'static str>)> {
    let (function, letters) = line.split_once(' ').expect("a function and letters");
    letters.chars().enumerate().map(move |(at, letter)| {
        let [first, second] = [at / ARGUMENTS.len(), at % ARGUMENTS.len()].map(|at| ARGUMENTS[at]);
        let is_of_two = letters.len() > ARGUMENTS.len();
        let first = if is_of_two { format!("({first})1, ") } else { String::new() };
        let result = RESULTS.iter().find(|(known, _)| *known == letter).map(|(_, kind)| *kind);
        (format!("{function}({first}({second})1)"), result)
    })
}

#[test]
fn functions_of_mathematics_have_the_types_of_nvrtc() {
    if Compiler::of_this_machine().is_none() {
        return;
    }
    let calls: Vec<_> = CALLS.lines().flat_map(calls).collect();
    assert!(calls.len() > 1500, "{}", calls.len());
    let line = |(at, (call, result)): (usize, &(String, Option<&str>))| match result {
        Some(kind) => format!("same<decltype({call}), {kind}>::yes n_{at};"),
        None => format!("decltype({call}) *n_{at};"),
    };
    let lines: Vec<String> = calls.iter().enumerate().map(line).collect();
    let same = "template <typename T, typename U> struct same; \
                template <typename T> struct same<T, T> { typedef int yes; }; ";
    let wrong = wrong_lines(&[same, &lines.join("\n")].concat(), Checks::Off);
    let is_as_expected = |at: &usize| wrong.contains(at) == calls[*at].1.is_none();
    let differing: Vec<_> = (0..calls.len()).filter(|at| !is_as_expected(at)).collect();
    let differing: Vec<_> = differing.into_iter().map(|at| &calls[at]).collect();
    assert!(differing.is_empty(), "{differing:?}");
}
