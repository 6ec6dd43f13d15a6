//! Explicit conversions to integers.

use super::edit::Edit;
use super::tokens::Region;
use super::types::{OTHER_WORDS, WORDS, integer_end, is_integer};

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
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
];

/// The edits that make calls of conversions.
pub(super) fn edits<'r>(
    region: &'r Region<'_>,
    text: &'r str,
    types: &'r [&'r str],
    is_kept: impl Fn(usize) -> bool + 'r,
) -> Vec<Edit> {
    let casts = Casts { region, text, types };
    let edits = (0..region.len()).filter(|at| !is_kept(*at)).filter_map(|at| {
        casts.in_parentheses(at).or_else(|| casts.named(at)).or_else(|| casts.as_function(at))
    });
    edits.flatten().collect()
}

struct Casts<'r, 't> {
    region: &'r Region<'t>,
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
        let start = self.region[open].start;
        let call = Edit {
            start,
            end: self.region[close].end(),
            text: format!("{CAST}{}>(", self.source(open + 1, close - 1)),
        };
        Some(vec![call, Edit::insertion(self.region[end].end(), ")")])
    }

    /// `static_cast<int>(x)`.
    fn named(&self, at: usize) -> Option<Vec<Edit>> {
        let end = integer_end(self.region, at + 2, self.types);
        let is_cast = self.region.is(at, "static_cast") && self.region.is(at + 1, "<");
        let is_whole = end > at + 2 && self.region.is(end, ">") && self.region.is(end + 1, "(");
        if !is_cast || !is_whole || !self.may_be_float(end + 2) {
            return None;
        }
        let replaced = format!("{CAST}{}>", self.source(at + 2, end - 1));
        Some(vec![Edit {
            start: self.region[at].start,
            end: self.region[end].end(),
            text: replaced,
        }])
    }

    /// `int(x)`.
    fn as_function(&self, at: usize) -> Option<Vec<Edit>> {
        let name = self.region.text(at);
        let is_type = is_integer(self.types, name) && !self.is_function(name);
        if !is_type || !self.region.is(at + 1, "(") || !self.starts_value(at) {
            return None;
        }
        let close = self.region.closing(at + 1)?;
        let first = self.region.text(at + 2);
        let is_declarator = matches!(first, "*" | "&" | ")" | "&&");
        let is_type = WORDS.contains(&first) || OTHER_WORDS.contains(&first);
        let has_comma = self.has_comma(at + 1, close);
        if is_declarator || is_type || has_comma || !self.may_be_float(at + 2) {
            return None;
        }
        let token = &self.region[at];
        Some(vec![Edit {
            start: token.start,
            end: token.end(),
            text: format!("{CAST}{}>", token.text),
        }])
    }

    /// Whether a function has the name too, in another scope.
    fn is_function(&self, name: &str) -> bool {
        let is_declared = |at: usize| {
            let is_named = self.region.is(at, name) && self.region.is(at + 1, "(");
            is_named && at > 0 && self.region[at - 1].is_word() && !self.follows_no_name(at)
        };
        !WORDS.contains(&name) && (0..self.region.len()).any(is_declared)
    }

    fn has_comma(&self, open: usize, close: usize) -> bool {
        let mut depth = 0_i32;
        (open..close).any(|at| {
            depth += i32::from(matches!(self.region.text(at), "(" | "[" | "{" | "<"));
            depth -= i32::from(matches!(self.region.text(at), ")" | "]" | "}" | ">"));
            depth <= 1 && self.region.is(at, ",")
        })
    }

    /// The end of `(int)`, whatever it is.
    fn type_in_parentheses(&self, open: usize) -> Option<usize> {
        let end = integer_end(self.region, open + 1, self.types);
        let is_type = self.region.is(open, "(") && end > open + 1 && self.region.is(end, ")");
        is_type.then_some(end)
    }

    /// The end of parentheses that can only have the type of a conversion: `(float)`, `(S *)`.
    fn other_type_in_parentheses(&self, open: usize) -> Option<usize> {
        let close = self.region.closing(open).filter(|_| self.region.is(open, "("))?;
        let inner = open + 1..close;
        let is_of_types = |at| OTHER_WORDS.contains(&self.region.text(at));
        let ends_as_pointer = self.region.is(close - 1, "*") && close > open + 2;
        let plain = |at: usize| {
            let token = &self.region[at];
            token.is_word() || matches!(token.text, "*" | "::")
        };
        let has_type = inner.clone().any(is_of_types) || ends_as_pointer;
        (inner.clone().all(plain) && has_type && !inner.is_empty()).then_some(close)
    }

    /// Whether a conversion may start here, as behind an operator, or another conversion.
    fn starts_expression(&self, at: usize) -> bool {
        let before = self.region.before(at);
        if before == ")" {
            return self.follows_conversion(at - 1);
        }
        !matches!(before, "]" | "}") && self.follows_no_name(at)
    }

    fn follows_conversion(&self, close: usize) -> bool {
        let opens = (0..close).rev().take(8).find(|open| self.region.is(*open, "("));
        opens.is_some_and(|open| {
            let is_type = self.type_in_parentheses(open) == Some(close)
                || self.other_type_in_parentheses(open) == Some(close);
            is_type && self.starts_expression(open)
        })
    }

    fn follows_no_name(&self, at: usize) -> bool {
        let before = self.region.before(at);
        let is_word = at > 0 && self.region[at - 1].is_word();
        !matches!(before, "->" | "." | "::" | "~")
            && (!is_word || BEFORE_EXPRESSIONS.contains(&before))
    }

    /// Whether `int(x)` here is a value, and no declaration.
    fn starts_value(&self, at: usize) -> bool {
        let is_first = matches!(self.region.before(at), "" | ";" | "{" | "}" | ")" | ">" | "]");
        !is_first && self.follows_no_name(at)
    }

    /// Whether the operand may be a float: no literal, which compilers convert, and no size. In a
    /// macro no parameter either, for which any expression may stand.
    fn may_be_float(&self, at: usize) -> bool {
        let Some(token) = self.region.get(at) else { return false };
        // Literals are blanks here.
        let gap = &self.text[self.region[at - 1].end()..token.start];
        !gap.contains(['\'', '"'])
            && !token.is_number()
            && token.text != "."
            && !OTHER_OPERANDS.contains(&token.text)
    }

    /// The last token of the operand of a conversion: prefixes, a name or parentheses, postfixes.
    fn operand_end(&self, at: usize) -> Option<usize> {
        let token = self.region.get(at)?;
        match token.text {
            "-" | "+" | "~" | "!" | "*" | "&" | "++" | "--" => self.operand_end(at + 1),
            "(" => {
                let conversion =
                    self.type_in_parentheses(at).or_else(|| self.other_type_in_parentheses(at));
                match conversion {
                    Some(close) => self.operand_end(close + 1),
                    None => self.postfix_end(self.region.closing(at)?),
                }
            }
            "::" => self.name_end(at + 1),
            word if OTHER_OPERANDS.contains(&word) => None,
            // An argument of any form.
            word if self.region.parameters.contains(&word) => None,
            _ if token.is_number() => self.postfix_end(at),
            _ if token.is_word() => self.name_end(at),
            _ => None,
        }
    }

    /// The end of an operand that starts with a name.
    fn name_end(&self, at: usize) -> Option<usize> {
        self.region.get(at).filter(|token| token.is_word())?;
        let behind = self.arguments_end(at).map_or(at, |end| end);
        if self.region.is(behind + 1, "::") {
            return self.name_end(behind + 2);
        }
        self.postfix_end(behind)
    }

    /// The end of the arguments of a template behind a name, if they are some without a doubt.
    fn arguments_end(&self, name: usize) -> Option<usize> {
        let open = name + 1;
        let end = self.region.template_end(open).filter(|_| self.region.is(open, "<"))?;
        let is_near = self.region[open].start == self.region[name].end();
        (is_near && matches!(self.region.text(end + 1), "(" | "::")).then_some(end)
    }

    fn postfix_end(&self, last: usize) -> Option<usize> {
        match self.region.text(last + 1) {
            "(" | "[" => self.postfix_end(self.region.closing(last + 1)?),
            "." | "->" => self.name_end(last + 2),
            "++" | "--" => self.postfix_end(last + 1),
            // A record by its type, or a name that macros put together.
            "{" | "##" | "->*" => None,
            _ => Some(last),
        }
    }

    /// The text of these tokens.
    fn source(&self, first: usize, last: usize) -> &str {
        &self.text[self.region[first].start..self.region[last].end()]
    }
}
