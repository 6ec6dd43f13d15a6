//! The loops of a source that may wait for what another thread writes, as
//! `while (*(volatile int *)flag == 0);` does. Pure.
//!
//! Reads of memory that is volatile call nothing. So in a source with `volatile` each round of a
//! loop tells that its thread may be waiting (`turns`), unless the loop counts: then it ends. In
//! others the loops do whose condition exchanges, since an exchange tells nothing if its value is
//! no constant.

use std::ops::Range;

use resident_code::words::{code_only, find_in_code, words};

/// A condition that tells so before it is evaluated.
const BEFORE_CONDITION: &str = "::resident::host::in_round() && (";
const BEHIND_CONDITION: &str = ")";

/// A step of `for` that tells so.
const STEP: &str = "::resident::host::in_round()";

/// The text whose loops tell that they may wait, on the same lines.
pub(super) fn with_turns(text: String) -> String {
    let has_volatile = find_in_code(&text, &["volatile"]).is_some();
    let code = code_only(&text);
    let mut insertions: Vec<(usize, String)> = Vec::new();
    for (at, word) in words(&text) {
        let Some(head) = head(&code, at + word.len()) else { continue };
        match word {
            _ if !has_volatile && !code[head.clone()].contains("atomicExch") => {}
            "while" => insertions.extend(for_while(&code, head).into_iter().flatten()),
            "for" => insertions.extend(for_for(&code, head)),
            _ => {}
        }
    }
    insertions.sort_by_key(|(at, _)| *at);
    let (mut result, mut done) = (String::with_capacity(text.len()), 0);
    for (at, inserted) in insertions {
        result.push_str(&text[done..at]);
        result.push_str(&inserted);
        done = at;
    }
    result + &text[done..]
}

/// What is between the parentheses that start behind a place.
fn head(code: &str, at: usize) -> Option<Range<usize>> {
    let rest = &code[at..];
    let open = at + rest.len() - rest.trim_start().len();
    if !code[open..].starts_with('(') {
        return None;
    }
    let len = top_level(&code[open + 1..]).find(|(_, letter)| *letter == ')')?.0;
    Some(open + 1..open + 1 + len)
}

/// The characters of a text that are in no parentheses of the text, and those that close none.
fn top_level(code: &str) -> impl Iterator<Item = (usize, char)> {
    let mut depth = 0;
    code.char_indices().filter(move |(_, letter)| {
        let closes = matches!(letter, ')' | ']' | '}');
        let is_top = depth == 0;
        depth += i32::from(matches!(letter, '(' | '[' | '{')) - i32::from(closes && !is_top);
        is_top
    })
}

fn for_while(code: &str, head: Range<usize>) -> Option<[(usize, String); 2]> {
    let condition = code[head.clone()].trim();
    let never = matches!(condition, "" | "0" | "false");
    (!never && !declares(condition)).then(|| {
        [(head.start, BEFORE_CONDITION.to_owned()), (head.end, BEHIND_CONDITION.to_owned())]
    })
}

/// Whether a condition declares a variable, as `int old = next(x)` does.
fn declares(condition: &str) -> bool {
    let Some((before, behind)) = condition.split_once('=') else { return false };
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_:<>*& ".contains(letter);
    !behind.starts_with('=')
        && before.chars().all(is_name)
        && words(before).count() > 1
        && !before.ends_with(['<', '>'])
}

fn for_for(code: &str, head: Range<usize>) -> Option<(usize, String)> {
    let inner = &code[head.clone()];
    let mut ends = top_level(inner).filter(|(_, letter)| *letter == ';').map(|(at, _)| at);
    let (first, second) = (ends.next()?, ends.next()?);
    let (condition, step) = (&inner[first + 1..second], &inner[second + 1..]);
    let comma = if step.trim().is_empty() { "" } else { ", " };
    (!counts(condition, step)).then(|| (head.start + second + 1, format!("{STEP}{comma}")))
}

/// Whether a loop compares a variable that its step changes, and nothing else.
fn counts(condition: &str, step: &str) -> bool {
    let compares = condition.contains(['<', '>']) || condition.contains("!=");
    let is_simple =
        !condition.contains(['*', '[', '(', '&', '|', '?']) && !condition.contains("->");
    let changed = words(step).next().map(|(_, word)| word);
    compares && is_simple && words(condition).any(|(_, word)| Some(word) == changed)
}

#[cfg(test)]
mod tests {
    use super::{BEFORE_CONDITION, STEP, with_turns};

    fn of_body(body: &str) -> String {
        let whole = with_turns(format!("volatile int f; {body}"));
        whole.trim_start_matches("volatile int f; ").to_owned()
    }

    #[test]
    fn loops_tell_in_each_round() {
        for (body, expected) in [
            ("while (f == 0);", format!("while ({BEFORE_CONDITION}f == 0));")),
            ("do x(); while\n(g(f)) ;", format!("do x(); while\n({BEFORE_CONDITION}g(f))) ;")),
            ("for (;;) {}", format!("for (;;{STEP}) {{}}")),
            (
                "for (int i = 0; f[i] < n; ++i) {}",
                format!("for (int i = 0; f[i] < n;{STEP},  ++i) {{}}"),
            ),
            (
                "for (int i = 0; i < n && !f; ++i) {}",
                format!("for (int i = 0; i < n && !f;{STEP},  ++i) {{}}"),
            ),
        ] {
            assert_eq!(of_body(body), expected);
        }
    }

    #[test]
    fn loops_that_end_by_themselves_stay() {
        for body in [
            "for (int i = 0; i < n; ++i) {}",
            "for (int i = n - 1; i >= 0; i -= 2) {}",
            "for (auto x : {1, 2}) {}",
            "do x(); while (0);",
            "while (int x = g()) {}",
            "// while (f == 0);",
            "int whiles(int x); for_each(f);",
        ] {
            assert_eq!(of_body(body), body);
        }
        let nothing_volatile = "while (f == 0);";
        assert_eq!(with_turns(nothing_volatile.to_owned()), nothing_volatile);
        let exchanges = with_turns("while (atomicExch(&lock, id));".to_owned());
        assert_eq!(exchanges, format!("while ({BEFORE_CONDITION}atomicExch(&lock, id)));"));
    }
}
