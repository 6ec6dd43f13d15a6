//! Shifts.

use super::edit::Edit;
use super::tokens::Tokens;

const TAG: &str = "resident_shift";

/// The edits that put the tag behind the arrows of shifts.
pub(super) fn edits(tokens: &Tokens<'_>, code: &str) -> Vec<Edit> {
    let edit = |at: usize| {
        let token = &tokens[at];
        let is_meant = match token.text {
            "<<" | "<<=" | ">>=" => true,
            ">>" => !closes_templates(tokens, at),
            _ => return None,
        };
        let is_operator = tokens.is(at.wrapping_sub(1), "operator");
        if !is_meant || is_operator || at == 0 || is_literal(tokens, at + 1) {
            return None;
        }
        let is_assignment = token.text.ends_with('=');
        if is_assignment && is_bit_field(tokens.before(at), code) {
            return edit_of_bit_field(tokens, at, code);
        }
        let again = if is_assignment { "=" } else { token.text };
        Some(Edit::insertion(token.end(), &format!(" {TAG} {again}")))
    };
    (0..tokens.len()).filter_map(edit).collect()
}

/// No reference can be one to a field that has a number of bits: `x.f <<= n` becomes
/// `x.f = left_of(x.f) = n`.
fn edit_of_bit_field(tokens: &Tokens<'_>, at: usize, code: &str) -> Option<Edit> {
    let first = field_start(tokens, at.checked_sub(1)?)?;
    let field = &code[tokens[first].start..tokens[at - 1].end()];
    let function = if tokens.is(at, "<<=") { "left_of" } else { "right_of" };
    let text = format!("= ::resident::gpu::{function}({field}) =");
    Some(Edit { start: tokens[at].start, end: tokens[at].end(), text })
}

/// The first token of a field, if it can be read twice: names, `.`, `->`, and indices.
fn field_start(tokens: &Tokens<'_>, last: usize) -> Option<usize> {
    let mut at = last;
    loop {
        while tokens.is(at, "]") {
            let open = (0..at).rev().find(|open| tokens.closing(*open) == Some(at))?;
            let changes = |inner: &str| matches!(inner, "(" | "++" | "--") || inner.ends_with('=');
            if (open..at).any(|inner| changes(tokens.text(inner))) {
                return None;
            }
            at = open.checked_sub(1)?;
        }
        tokens.get(at).filter(|token| token.is_word())?;
        match tokens.before(at) {
            "." | "->" | "::" => at = at.checked_sub(2)?,
            _ => return Some(at),
        }
    }
}

/// Whether the count is a literal by itself. NVRTC leaves open what one beyond the width gives.
fn is_literal(tokens: &Tokens<'_>, at: usize) -> bool {
    let is_number = tokens.get(at).is_some_and(|token| token.is_number());
    is_number && !matches!(tokens.text(at + 1), "+" | "-" | "*" | "/" | "%")
}

/// Whether `>>` closes two lists of arguments of templates: before it two `<` stand open that
/// follow names, with nothing between that such lists do not have.
fn closes_templates(tokens: &Tokens<'_>, at: usize) -> bool {
    let (mut depth, mut open) = (0_usize, 2_usize);
    for before in (0..at).rev() {
        let token = &tokens[before];
        match token.text {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" if depth == 0 => return false,
            "(" | "[" | "{" => depth -= 1,
            _ if depth > 0 => {}
            ">" => open += 1,
            ">>" => open += 2,
            "<" => open -= 1,
            ";" | "&&" | "||" | "?" | "=" | "==" | "!=" | "return" => return false,
            _ => {}
        }
        if open == 0 {
            return true;
        }
    }
    false
}

/// Whether the text declares a field of this name that has a number of bits.
fn is_bit_field(name: &str, code: &str) -> bool {
    let is_declaration = |at: usize| {
        let before = code[..at].chars().next_back();
        let behind = code[at + name.len()..].trim_start().strip_prefix(':');
        !before.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            && behind.is_some_and(|behind| !behind.starts_with(':'))
    };
    code.match_indices(name).any(|(at, _)| is_declaration(at))
}
