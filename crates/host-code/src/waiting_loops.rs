//! The loops of a source that may wait for what another thread writes, as
//! `while (*(volatile int *)flag == 0);` does. Pure.
//!
//! Reads of memory that is volatile call nothing. So in a source with `volatile` each round of a
//! loop tells that its thread may be waiting (`turns`), unless the loop counts: then it ends. In
//! others the loops do whose condition exchanges, since an exchange tells nothing if its value is
//! no constant. Loops of `goto` tell at their labels, in sources with `volatile` or exchanges.

use std::ops::Range;

use resident_code::words::{code_only, find_in_code, words};

/// A condition that tells so before it is evaluated.
const BEFORE_CONDITION: &str = "::resident::host::in_round() && (";
const BEHIND_CONDITION: &str = ")";

/// A step of `for` that tells so.
const STEP: &str = "::resident::host::in_round()";

/// A statement behind a label that tells so.
const BEHIND_LABEL: &str = " ::resident::host::in_round();";

/// The text whose loops tell that they may wait, on the same lines.
pub(super) fn with_turns(text: String) -> String {
    let has_volatile = find_in_code(&text, &["volatile"]).is_some();
    let code = code_only(&text);
    let mut insertions: Vec<(usize, String)> = Vec::new();
    if has_volatile || code.contains("atomicExch") {
        insertions.extend(labels(&code).into_iter().map(|at| (at, BEHIND_LABEL.to_owned())));
    }
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

/// The places behind the colons of the labels that `goto` names, where each is the first of a
/// statement that stands by itself: behind `if (x)` there would be two.
fn labels(code: &str) -> Vec<usize> {
    let mut before = "";
    let mut targets: Vec<&str> = Vec::new();
    for (_, word) in words(code) {
        if before == "goto" {
            targets.push(word);
        }
        before = word;
    }
    let behind_colon = |(at, word): (usize, &str)| {
        let rest = &code[at + word.len()..];
        let colon = rest.len() - rest.trim_start().len();
        let is_label = rest[colon..].starts_with(':') && !rest[colon..].starts_with("::");
        let is_first = code[..at].trim_end().ends_with([';', '{', '}']);
        (is_label && is_first && targets.contains(&word)).then_some(at + word.len() + colon + 1)
    };
    words(code).filter_map(behind_colon).collect()
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
    use super::{BEFORE_CONDITION, BEHIND_LABEL, STEP, with_turns};

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
    fn loops_of_goto_tell_at_their_labels() {
        let told = of_body("void k() { again : if (f == 0) goto again; }");
        assert_eq!(told, format!("void k() {{ again :{BEHIND_LABEL} if (f == 0) goto again; }}"));
        for body in [
            "void k() { if (f) again: g(); goto again; }",
            "void k() { unused: f = x ? unused : ns::unused; }",
            "void k() { f = x ? again : 1; goto again; }",
        ] {
            assert_eq!(of_body(body), body);
        }
        let exchanges = "void k() {\nagain: if (atomicExch(&lock, id)) goto again; }".to_owned();
        assert!(with_turns(exchanges).contains(&format!("\nagain:{BEHIND_LABEL} if")));
        let plain = "void k() { again: if (next()) goto again; }".to_owned();
        assert_eq!(with_turns(plain.clone()), plain);
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
