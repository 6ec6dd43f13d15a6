//! Conversions of floats to integers that the text does not show, as in `int i = x;`, constants
//! included: the compiler warns of them, and says where their operands are.

use std::ops::Range;

use super::edit::{Edit, applied};
use resident_code::words::code_only;

/// The warning, and what shows it in a log.
pub(in super::super) const WARNING: &str = "-Wfloat-conversion";
const TAG: &str = "[-Wfloat-conversion]";

/// The warnings of constants, which GCC has of integers too, and what shows them.
const OF_CONSTANTS_OF_GCC: &str = "-Woverflow";
const TAGS_OF_CONSTANTS_OF_CLANG: [&str; 2] =
    ["[-Wliteral-conversion]", "[-Wfloat-overflow-conversion]"];

/// The option with which the first one ends a compiler before it makes code, those of GCC and of
/// Clang for constants, and what shows these in logs.
pub(in super::super) const REFUSED: &str = "-Werror=float-conversion";
pub(in super::super) const REFUSED_BY_GCC: &str = "-Werror=overflow";
pub(in super::super) const REFUSED_BY_CLANG: &str = "-Werror=literal-conversion";
const TAGS_OF_REFUSED: [&str; 5] = [
    "[-Werror=float-conversion]",
    "[-Werror=overflow]",
    "[-Werror,-Wfloat-conversion]",
    "[-Werror,-Wliteral-conversion]",
    "[-Werror,-Wfloat-overflow-conversion]",
];

/// The options with which GCC and Clang list where the operands are, and make no code.
pub(in super::super) const OPTIONS_OF_GCC: [&str; 3] =
    ["-fsyntax-only", "-fno-diagnostics-show-caret", "-fdiagnostics-format=json"];
pub(in super::super) const OPTIONS_OF_CLANG: [&str; 2] =
    ["-fsyntax-only", "-fdiagnostics-print-source-range-info"];

/// What stands around an operand. The value converts itself to what is wanted.
const BEFORE: &str = "::resident::gpu::number(";

/// Whether a log shows that the compiler refused such a conversion.
pub(in super::super) fn is_refused(log: &str) -> bool {
    TAGS_OF_REFUSED.iter().any(|tag| log.contains(tag))
}

/// A log without these warnings, and without the lines that show them.
pub(in super::super) fn without_warnings(log: &str) -> String {
    let mut is_shown = true;
    let shown = |line: &&str| {
        if line.contains(TAG) {
            is_shown = false;
        } else if !line.starts_with(' ') {
            is_shown = true;
        }
        is_shown
    };
    log.lines().filter(shown).map(|line| format!("{line}\n")).collect()
}

/// A place: a line, and a byte of it, both from 1.
type Place = (usize, usize);

/// The operand of a conversion, and where the compiler points at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Operand {
    start: Place,
    /// The first byte of the last token, or behind it.
    last: Place,
    caret: Place,
    is_behind: bool,
}

impl Operand {
    /// Its first line.
    pub(in super::super) fn line(&self) -> usize {
        self.start.0
    }
}

/// The operands in what GCC or Clang lists of a source with so many lines before it.
pub(in super::super) fn operands(listed: &str, file: &str, lines_before: usize) -> Vec<Operand> {
    let of_gcc = listed.split("\"locations\": [").filter_map(|one| of_gcc(one, file));
    let of_clang = listed.lines().filter_map(|line| of_clang(line, file, lines_before));
    of_gcc.chain(of_clang).collect()
}

fn of_gcc(diagnostic: &str, file: &str) -> Option<Operand> {
    let is_of = |option| diagnostic.contains(&format!("\"option\": \"{option}\""));
    let is_float = || ["float", "double"].iter().any(|name| diagnostic.contains(name));
    let is_meant = is_of(WARNING) || is_of(OF_CONSTANTS_OF_GCC) && is_float();
    let location = diagnostic.split("}}").next().filter(|_| is_meant)?;
    let place = |name: &str| {
        let fields = location.split_once(&format!("\"{name}\": {{"))?.1.split('}').next()?;
        let number = |key: &str| {
            let behind = fields.split_once(&format!("\"{key}\": "))?.1;
            behind.split([',', '}']).next()?.trim().parse().ok()
        };
        let is_here = fields.contains(&format!("\"file\": \"{file}\""));
        Some((number("line")?, number("byte-column")?)).filter(|_| is_here)
    };
    let caret = place("caret")?;
    let (start, last) = (place("start").unwrap_or(caret), place("finish").unwrap_or(caret));
    Some(Operand { start, last, caret, is_behind: false })
}

/// `k.cu:6:20:{906:11-906:26}{906:7-906:8}: warning: ..`: no directive changes the lines in braces.
fn of_clang(line: &str, file: &str, lines_before: usize) -> Option<Operand> {
    let is_meant =
        line.contains(TAG) || TAGS_OF_CONSTANTS_OF_CLANG.iter().any(|tag| line.contains(tag));
    let rest = line.strip_prefix(file)?.strip_prefix(':').filter(|_| is_meant)?;
    let (caret, ranges) = rest.split_once(":{")?;
    let (start, end) = ranges.split('}').next()?.split_once('-')?;
    let place = |text: &str, lines_before: usize| {
        let (line, column) = text.split_once(':')?;
        Some((line.parse::<usize>().ok()?.checked_sub(lines_before)?, column.parse().ok()?))
    };
    let (start, last) = (place(start, lines_before)?, place(end, lines_before)?);
    let caret = place(caret, 0)?;
    Some(Operand { start, last, caret, is_behind: true })
}

/// The text whose operands convert themselves, where that is possible; nothing if none does.
pub(in super::super) fn with_operands(text: &str, operands: &[Operand]) -> Option<String> {
    let code = code_only(text);
    let mut edits: Vec<Edit> = Vec::new();
    let mut ends = 0;
    let mut ranges: Vec<_> = operands.iter().filter_map(|one| range(&code, one)).collect();
    ranges.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    for (range, caret) in ranges {
        // Not within another one.
        if range.start >= ends
            && let Some(made) = edits_of(text, &code, range.clone(), caret)
        {
            edits.extend(made);
            ends = range.end;
        }
    }
    (!edits.is_empty()).then(|| applied(text, edits))
}

/// The part of the text, and the place of the caret.
fn range(code: &str, operand: &Operand) -> Option<(Range<usize>, usize)> {
    let offset = |(line, column): Place| {
        let mut starts = std::iter::once(0).chain(code.match_indices('\n').map(|(at, _)| at + 1));
        let at = starts.nth(line.checked_sub(1)?)? + column.checked_sub(1)?;
        code.is_char_boundary(at).then_some(at)
    };
    let (start, last) = (offset(operand.start)?, offset(operand.last)?);
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
    let word = code.get(last..)?.find(|letter| !is_of_word(letter));
    let end = match word {
        _ if operand.is_behind => last,
        // GCC names the last byte of a token.
        Some(len) => last + len.max(1),
        None => code.len(),
    };
    (start < end).then_some((start..end, offset(operand.caret)?))
}

/// The edits of one operand. `x += y` becomes `x = number(x + (y))` if `x` can be read twice.
fn edits_of(text: &str, code: &str, range: Range<usize>, caret: usize) -> Option<Vec<Edit>> {
    let inner = code.get(range.clone())?;
    let is_whole = is_balanced(inner) && !goes_on(&code[range.end..]);
    let mut edits = vec![Edit::insertion(range.end, ")")];
    let operator = code.get(caret..caret + 2).filter(|_| range.contains(&caret));
    if let Some(operator @ ("+=" | "-=" | "*=" | "/=")) = operator {
        let variable = &text[range.start..caret];
        if variable.contains(['(', '=', '?', ','])
            || variable.contains("++")
            || variable.contains("--")
        {
            return None;
        }
        let sum = format!("= {BEFORE}{} {} (", variable.trim(), &operator[..1]);
        edits = vec![Edit { start: caret, end: caret + 2, text: sum }];
        edits.push(Edit::insertion(range.end, "))"));
    } else {
        edits.insert(0, Edit::insertion(range.start, &format!(" {BEFORE}")));
    }
    is_whole.then_some(edits)
}

fn is_balanced(code: &str) -> bool {
    let mut depth = 0_i32;
    let never_below = code.chars().all(|letter| {
        depth += i32::from(matches!(letter, '(' | '[' | '{'));
        depth -= i32::from(matches!(letter, ')' | ']' | '}'));
        depth >= 0
    });
    never_below && depth == 0
}

/// Whether an expression goes on behind its last token: then the compiler did not name its end.
fn goes_on(behind: &str) -> bool {
    let behind = behind.trim_start();
    behind.starts_with(['(', '[', '.', '{']) || behind.starts_with("->") || behind.starts_with("::")
}

#[cfg(test)]
mod tests {
    use super::{BEFORE, TAGS_OF_REFUSED, is_refused, operands, with_operands, without_warnings};

    const TEXT: &str = "int a = f;\nint b = f * 2.0f + g(f);\ns.v *= 0.5f;\ni = p[3];\n";

    fn of(listed: &str) -> String {
        let changed = with_operands(TEXT, &operands(listed, "k.cu", 900));
        changed.unwrap_or_default().replace(BEFORE, "@(")
    }

    #[test]
    fn operands_are_where_compilers_say() {
        let place = |name: &str, line: u32, column: u32| {
            format!(
                "\"{name}\": {{\"byte-column\": {column}, \"line\": {line}, \"file\": \"k.cu\", \
                 \"column\": 9}}"
            )
        };
        let diagnostic = |places: &[String]| {
            format!(
                "{{\"kind\": \"warning\", \"locations\": [{{{}}}], \"option\": \
                 \"-Wfloat-conversion\", \"children\": []}}, ",
                places.join(", ")
            )
        };
        let of_gcc = [
            diagnostic(&[place("caret", 1, 9)]),
            diagnostic(&[place("finish", 2, 23), place("caret", 2, 18), place("start", 2, 9)]),
            diagnostic(&[place("finish", 3, 8), place("caret", 3, 5), place("start", 3, 1)]),
            diagnostic(&[place("caret", 4, 8), place("start", 4, 5)]),
        ];
        let of_constant = |kind| {
            let text = diagnostic(&[place("caret", 1, 9)]).replace("float-conversion", "overflow");
            text.replace("[]}", &format!("[], \"message\": \"conversion from {kind}\"}}"))
        };
        assert_eq!(of(&of_constant("\u{2018}float\u{2019}")), of(&of_gcc[0]));
        assert_eq!(of(&of_constant("\u{2018}int\u{2019}")), "");
        let of_clang = "k.cu:1:9:{901:9-901:10}{901:5-901:6}: warning: x [-Wfloat-conversion]\n\
            k.cu:2:18:{902:9-902:24}{902:5-902:6}: warning: x [-Wfloat-conversion]\n\
            k.cu:3:5:{903:1-903:12}{903:5-903:7}: warning: x [-Wfloat-conversion]\n\
            k.cu:4:5:{904:5-904:9}{904:3-904:4}: warning: x [-Wfloat-conversion]\n";
        let expected = "int a =  @(f);\nint b =  @(f * 2.0f + g(f));\ns.v = @(s.v * ( 0.5f));\n\
            i =  @(p[3]);\n";
        assert_eq!(of(&of_gcc.concat()), expected);
        assert_eq!(of(of_clang), expected);
        assert_eq!(of(&of_clang.replace("[-Wfloat", "[-Wliteral")), expected);
        assert_eq!(of(&of_gcc.concat().replace("k.cu", "other.h")), "");
        // A call whose end is not named.
        assert_eq!(of(&diagnostic(&[place("caret", 2, 20)])), "");
    }

    #[test]
    fn logs_do_not_show_the_warnings() {
        let warning =
            "k.cu:1:9: warning: conversion [-Wfloat-conversion]\n    int a = f;\n       ^\n";
        let error = "k.cu:2:1: error: no\n    x\n    ^\n";
        for tag in TAGS_OF_REFUSED {
            assert!(is_refused(&warning.replace("[-Wfloat-conversion]", tag)), "{tag}");
        }
        assert!(!is_refused(warning) && !is_refused(error));
        assert_eq!(without_warnings(&[warning, error, warning].concat()), error);
    }
}
