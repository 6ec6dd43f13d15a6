//! The tokens of a text, in regions: the body of each macro, and the rest.

use std::ops::{Deref, Range};

use resident_code::words::words;

/// A token of code, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'t> {
    pub(super) text: &'t str,
    pub(super) start: usize,
}

impl Token<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub(super) fn is_word(&self) -> bool {
        self.text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
    }

    pub(super) fn is_number(&self) -> bool {
        self.text.trim_start_matches('.').starts_with(|letter: char| letter.is_ascii_digit())
    }
}

/// Tokens that follow each other in the program.
#[derive(Default, Debug)]
pub(super) struct Region<'t> {
    tokens: Vec<Token<'t>>,
    /// The parameters, if it is the body of a macro.
    pub(super) parameters: Vec<&'t str>,
    /// Its name.
    pub(super) macro_name: Option<&'t str>,
}

impl<'t> Deref for Region<'t> {
    type Target = [Token<'t>];

    fn deref(&self) -> &Self::Target {
        &self.tokens
    }
}

impl<'t> Region<'t> {
    /// The text of a token; nothing beyond the ends.
    pub(super) fn text(&self, at: usize) -> &'t str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    pub(super) fn is(&self, at: usize, text: &str) -> bool {
        self.text(at) == text
    }

    /// The token before, or nothing.
    pub(super) fn before(&self, at: usize) -> &'t str {
        at.checked_sub(1).map_or("", |before| self.text(before))
    }

    /// The bracket that closes the one at a place.
    pub(super) fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return (at > open).then_some(at);
            }
        }
        None
    }

    /// The end of the arguments of a template that start at a place, if they look like some: names,
    /// numbers and types.
    pub(super) fn template_end(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match token.text {
                "<" => depth += 1,
                ">" => depth = depth.checked_sub(1)?,
                ">>" => depth = depth.checked_sub(2)?,
                "::" | "," | "*" | "&" | "..." => {}
                _ if token.is_word() || token.is_number() => {}
                _ => return None,
            }
            if depth == 0 {
                return (at > open).then_some(at);
            }
        }
        None
    }
}

/// The regions of a text without comments and literals. Directives but `#define` are in none.
pub(super) fn regions(code: &str) -> Vec<Region<'_>> {
    let mut program = Region::default();
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let end = logical_line_end(code, at);
        let line = &code[at..end];
        match line.trim_start().strip_prefix('#') {
            None => tokens(code, at..end, &mut program.tokens),
            Some(directive) => {
                let directive = directive.trim_start();
                let start = end - directive.len();
                found.extend(definition(code, start..end));
            }
        }
        at = end;
    }
    found.push(program);
    found
}

/// Behind the line and those that it goes on in.
fn logical_line_end(code: &str, start: usize) -> usize {
    let mut end = start;
    for line in code[start..].split_inclusive('\n') {
        end += line.len();
        if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
            break;
        }
    }
    end
}

/// The body of a macro.
fn definition(code: &str, range: Range<usize>) -> Option<Region<'_>> {
    let mut all = Vec::new();
    tokens(code, range, &mut all);
    let name = all.get(1).filter(|_| all[0].text == "define")?;
    let has_parameters = all.get(2).is_some_and(|one| one.text == "(" && one.start == name.end());
    let mut start = 2;
    let mut parameters = Vec::new();
    if has_parameters {
        let close = all.iter().position(|token| token.text == ")")?;
        parameters.extend(all[3..close].iter().filter(|one| one.is_word()).map(|one| one.text));
        start = close + 1;
    }
    let macro_name = Some(name.text);
    Some(Region { tokens: all.split_off(start), parameters, macro_name })
}

/// Operators of several characters that matter, longer ones first.
const OPERATORS: [&str; 22] = [
    "...", "<<=", ">>=", "<<<", ">>>", "->*", "<<", ">>", "->", "::", "++", "--", "&&", "||", "==",
    "!=", "<=", ">=", "+=", "-=", "##", "*=",
];

fn tokens<'t>(code: &'t str, range: Range<usize>, found: &mut Vec<Token<'t>>) {
    let part = &code[range.clone()];
    let (mut at, mut next_words) = (0, words(part).peekable());
    while at < part.len() {
        let rest = &part[at..];
        while next_words.peek().is_some_and(|(start, _)| *start < at) {
            next_words.next();
        }
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let len = match next_words.peek() {
            Some((start, word)) if *start == at => number_len(rest).unwrap_or(word.len()),
            _ => {
                OPERATORS.iter().find(|one| rest.starts_with(**one)).map_or(first, |one| one.len())
            }
        };
        let text = &rest[..len];
        // A backslash goes on in the next line.
        if !text.trim().is_empty() && text != "\\" {
            found.push(Token { text, start: range.start + at });
        }
        at += len;
    }
}

/// The length of a number at the start, with its point and the sign of its exponent.
fn number_len(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    bytes.first().filter(|byte| byte.is_ascii_digit())?;
    let is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let exponent: &[u8] = if is_hexadecimal { b"pP" } else { b"eE" };
    let len = (1..bytes.len()).find(|at| match bytes[*at] {
        b'+' | b'-' => !exponent.contains(&bytes[at - 1]),
        byte => !(byte.is_ascii_alphanumeric() || b"_.'".contains(&byte)),
    });
    Some(len.unwrap_or(bytes.len()))
}
