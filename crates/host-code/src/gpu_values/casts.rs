//! Explicit conversions to integers.

use super::edit::Edit;
use super::tokens::Tokens;
use super::types::{OTHER_WORDS, WORDS, is_integer, path_end, type_end};

const CAST: &str = " ::resident::gpu::cast<";

/// Words before an expression.
const BEFORE_EXPRESSIONS: [&str; 3] = ["return", "case", "else"];

/// Words that begin an operand which is no float, or that is not followed here.
const OTHER_OPERANDS: [&str; 14] = [
    "sizeof",
    "alignof",
    "new",
    "delete",
    "throw",
    "noexcept",
    "true",
    "false",
    "nullptr",
    "const",
    "resident_thread_index",
    "resident_block_index",
    "resident_block_shape",
    "resident_grid_shape",
];

/// The edits that make calls of conversions.
pub(super) fn edits(tokens: &Tokens<'_>, text: &str, types: &[&str]) -> Vec<Edit> {
    let casts = Casts { tokens, text, types };
    let edits = (0..tokens.len()).filter_map(|at| {
        casts.in_parentheses(at).or_else(|| casts.named(at)).or_else(|| casts.as_function(at))
    });
    edits.flatten().collect()
}

struct Casts<'r, 't> {
    tokens: &'r Tokens<'t>,
    text: &'r str,
    types: &'r [&'r str],
}

impl Casts<'_, '_> {
    /// `(int)x`.
    fn in_parentheses(&self, open: usize) -> Option<Vec<Edit>> {
        let close = self.type_in_parentheses(open)?;
        if !self.starts_expression(open) || !self.may_be_float(close + 1) {
            return None;
        }
        let end = self.operand_end(close + 1)?;
        let mut call = self.call(open, open + 1, close);
        call.text.push('(');
        Some(vec![call, Edit::insertion(self.tokens[end].end(), ")")])
    }

    /// `static_cast<int>(x)`, whatever may be a number's type.
    fn named(&self, at: usize) -> Option<Vec<Edit>> {
        if !self.tokens.is(at, "static_cast") || !self.tokens.is(at + 1, "<") {
            return None;
        }
        let known = type_end(self.tokens, at + 2, self.types);
        let is_known = known > at + 2 && self.tokens.is(known, ">");
        let end = if is_known { known } else { self.tokens.template_end(at + 1)? };
        let mut inner = (at + 2..end).map(|at| self.tokens.text(at));
        let is_of_number = inner.clone().any(|word| !OTHER_WORDS.contains(&word));
        let is_pointer = !is_known && inner.any(|word| matches!(word, "*" | "&"));
        if !is_of_number || is_pointer || !self.is_closed(end) || !self.may_be_float(end + 2) {
            return None;
        }
        Some(vec![self.call(at, at + 2, end)])
    }

    /// Whether `>` is before an operand. Two of them may be one token.
    fn is_closed(&self, end: usize) -> bool {
        self.tokens.is(end, ">") && self.tokens.is(end + 1, "(")
    }

    /// The edit that makes `cast<type>` of the tokens from `first` to `last`, where the type ends
    /// before `last`.
    fn call(&self, first: usize, kind: usize, last: usize) -> Edit {
        let text = format!("{CAST}{}>", self.source(kind, last - 1));
        Edit { start: self.tokens[first].start, end: self.tokens[last].end(), text }
    }

    /// `int(x)`.
    fn as_function(&self, at: usize) -> Option<Vec<Edit>> {
        let name = self.tokens.text(at);
        let open = match name {
            "decltype" | "typename" => type_end(self.tokens, at, self.types),
            _ if is_integer(self.types, name) && !self.is_function(name) => at + 1,
            _ => return None,
        };
        if !self.tokens.is(open, "(") || !self.starts_value(at) {
            return None;
        }
        let close = self.tokens.closing(open)?;
        let first = self.tokens.text(open + 1);
        let is_declarator = matches!(first, "*" | "&" | ")" | "&&");
        let is_type = WORDS.contains(&first) || OTHER_WORDS.contains(&first);
        let has_comma = self.has_comma(open, close);
        if is_declarator || is_type || has_comma || !self.may_be_float(open + 1) {
            return None;
        }
        let text = format!("{CAST}{}>", self.source(at, open - 1));
        let (start, end) = (self.tokens[at].start, self.tokens[open - 1].end());
        Some(vec![Edit { start, end, text }])
    }

    /// Whether a function has the name too, in another scope.
    fn is_function(&self, name: &str) -> bool {
        let is_declared = |at: usize| {
            let is_named = self.tokens.is(at, name) && self.tokens.is(at + 1, "(");
            is_named && at > 0 && self.tokens[at - 1].is_word() && !self.follows_no_name(at)
        };
        !WORDS.contains(&name) && (0..self.tokens.len()).any(is_declared)
    }

    fn has_comma(&self, open: usize, close: usize) -> bool {
        let mut depth = 0_i32;
        (open..close).any(|at| {
            depth += i32::from(matches!(self.tokens.text(at), "(" | "[" | "{" | "<"));
            depth -= i32::from(matches!(self.tokens.text(at), ")" | "]" | "}" | ">"));
            depth <= 1 && self.tokens.is(at, ",")
        })
    }

    /// The end of `(int)`, whatever it is. Before a name there can only be a type.
    fn type_in_parentheses(&self, open: usize) -> Option<usize> {
        let end = type_end(self.tokens, open + 1, self.types);
        if !self.tokens.is(open, "(") {
            return None;
        }
        if end > open + 1 && self.tokens.is(end, ")") {
            return Some(end);
        }
        let end = path_end(self.tokens, open + 1)?;
        let is_before_name = self.tokens.get(end + 1).is_some_and(|token| token.is_word());
        let is_other = OTHER_WORDS.contains(&self.tokens.text(open + 1));
        (self.tokens.is(end, ")") && is_before_name && !is_other).then_some(end)
    }

    /// The end of parentheses that can only have the type of a conversion: `(float)`, `(S *)`.
    fn other_type_in_parentheses(&self, open: usize) -> Option<usize> {
        let close = self.tokens.closing(open).filter(|_| self.tokens.is(open, "("))?;
        let inner = open + 1..close;
        let is_of_types = |at| OTHER_WORDS.contains(&self.tokens.text(at));
        let ends_as_pointer = self.tokens.is(close - 1, "*") && close > open + 2;
        let plain = |at: usize| {
            let token = &self.tokens[at];
            token.is_word() || matches!(token.text, "*" | "::")
        };
        let has_type = inner.clone().any(is_of_types) || ends_as_pointer;
        (inner.clone().all(plain) && has_type && !inner.is_empty()).then_some(close)
    }

    /// Whether a conversion may start here, as behind an operator, or another conversion.
    fn starts_expression(&self, at: usize) -> bool {
        let before = self.tokens.before(at);
        if before == ")" {
            return self.follows_conversion(at - 1);
        }
        !matches!(before, "]" | "}") && (before == "~" || self.follows_no_name(at))
    }

    fn follows_conversion(&self, close: usize) -> bool {
        let opens = (0..close).rev().take(8).find(|open| self.tokens.is(*open, "("));
        opens.is_some_and(|open| {
            let is_type = self.type_in_parentheses(open) == Some(close)
                || self.other_type_in_parentheses(open) == Some(close);
            is_type && self.starts_expression(open)
        })
    }

    fn follows_no_name(&self, at: usize) -> bool {
        let before = self.tokens.before(at);
        let is_word = at > 0 && self.tokens[at - 1].is_word();
        !matches!(before, "->" | "." | "::" | "~")
            && (!is_word || BEFORE_EXPRESSIONS.contains(&before))
    }

    /// Whether `int(x)` here is a value, and no declaration.
    fn starts_value(&self, at: usize) -> bool {
        let is_first = matches!(self.tokens.before(at), "" | ";" | "{" | "}" | ")" | ">" | "]");
        !is_first && self.follows_no_name(at)
    }

    /// Whether the operand may be a float: no literal of an integer or a text, and no size.
    fn may_be_float(&self, at: usize) -> bool {
        let Some(token) = self.tokens.get(at) else { return false };
        // Literals are blanks here.
        let gap = &self.text[self.tokens[at - 1].end()..token.start];
        !gap.contains(['\'', '"'])
            && !token.is_integer()
            && token.text != "."
            && !OTHER_OPERANDS.contains(&token.text)
    }

    /// The last token of the operand of a conversion: prefixes, a name or parentheses, postfixes.
    fn operand_end(&self, at: usize) -> Option<usize> {
        let token = self.tokens.get(at)?;
        match token.text {
            "-" | "+" | "~" | "!" | "*" | "&" | "++" | "--" => self.operand_end(at + 1),
            "(" => {
                let conversion =
                    self.type_in_parentheses(at).or_else(|| self.other_type_in_parentheses(at));
                match conversion {
                    Some(close) => self.operand_end(close + 1),
                    None => self.postfix_end(self.tokens.closing(at)?),
                }
            }
            "::" => self.name_end(at + 1),
            word if OTHER_OPERANDS.contains(&word) => None,
            _ if token.is_number() => self.postfix_end(at),
            _ if token.is_word() => self.name_end(at),
            _ => None,
        }
    }

    /// The end of an operand that starts with a name.
    fn name_end(&self, at: usize) -> Option<usize> {
        self.tokens.get(at).filter(|token| token.is_word())?;
        let behind = self.arguments_end(at).map_or(at, |end| end);
        if self.tokens.is(behind + 1, "::") {
            return self.name_end(behind + 2);
        }
        self.postfix_end(behind)
    }

    /// The end of the arguments of a template behind a name, if they are some without a doubt.
    fn arguments_end(&self, name: usize) -> Option<usize> {
        let open = name + 1;
        let end = self.tokens.template_end(open).filter(|_| self.tokens.is(open, "<"))?;
        let is_near = self.tokens[open].start == self.tokens[name].end();
        (is_near && matches!(self.tokens.text(end + 1), "(" | "{" | "::")).then_some(end)
    }

    fn postfix_end(&self, last: usize) -> Option<usize> {
        match self.tokens.text(last + 1) {
            "(" | "[" => self.postfix_end(self.tokens.closing(last + 1)?),
            // A record by its type.
            "{" if self.tokens[last].is_word() || self.tokens.is(last, ">") => {
                self.postfix_end(self.tokens.closing(last + 1)?)
            }
            "." | "->" => self.name_end(last + 2),
            "++" | "--" => self.postfix_end(last + 1),
            "->*" => None,
            _ => Some(last),
        }
    }

    /// The text of these tokens.
    fn source(&self, first: usize, last: usize) -> &str {
        &self.text[self.tokens[first].start..self.tokens[last].end()]
    }
}
