//! Shifts.

use super::edit::Edit;
use super::tokens::Tokens;

const TAG: &str = "resident_shift";

/// The edits that put the tag behind the arrows of shifts.
pub(super) fn edits(tokens: &Tokens<'_>, code: &str) -> Vec<Edit> {
    let edit = |at: usize| {
        let token = &tokens[at];
        let is_meant = match token.text {
            "<<" => true,
            ">>" => !closes_templates(tokens, at),
            "<<=" | ">>=" => !is_bit_field(tokens.before(at), code),
            _ => return None,
        };
        let is_operator = tokens.is(at.wrapping_sub(1), "operator");
        if !is_meant || is_operator || at == 0 || is_literal(tokens, at + 1) {
            return None;
        }
        let again = if token.text.ends_with('=') { "=" } else { token.text };
        Some(Edit::insertion(token.end(), &format!(" {TAG} {again}")))
    };
    (0..tokens.len()).filter_map(edit).collect()
}

/// Whether the count is a literal by itself.
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
