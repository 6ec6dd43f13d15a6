//! The tokens of a text.

use std::ops::Deref;

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

    /// Whether it is a number without a fraction. One that begins with a point is two tokens.
    pub(super) fn is_integer(&self) -> bool {
        let is_hexadecimal = self.text.starts_with("0x") || self.text.starts_with("0X");
        let of_float: &[char] =
            if is_hexadecimal { &['p', 'P', '.'] } else { &['e', 'E', '.', 'f'] };
        self.is_number() && !self.text.contains(of_float)
    }
}

/// The tokens of a text.
#[derive(Debug)]
pub(super) struct Tokens<'t> {
    tokens: Vec<Token<'t>>,
}

impl<'t> Deref for Tokens<'t> {
    type Target = [Token<'t>];

    fn deref(&self) -> &Self::Target {
        &self.tokens
    }
}

impl<'t> Tokens<'t> {
    /// Those of a text without comments and literals.
    pub(super) fn of(code: &'t str) -> Self {
        let mut tokens = Vec::new();
        let (mut at, mut next_words) = (0, words(code).peekable());
        while at < code.len() {
            let rest = &code[at..];
            while next_words.peek().is_some_and(|(start, _)| *start < at) {
                next_words.next();
            }
            let first = rest.chars().next().map_or(1, char::len_utf8);
            let len = match next_words.peek() {
                Some((start, word)) if *start == at => number_len(rest).unwrap_or(word.len()),
                _ => {
                    let operator = OPERATORS.iter().find(|one| rest.starts_with(**one));
                    operator.map_or(first, |one| one.len())
                }
            };
            let text = &rest[..len];
            // A backslash goes on in the next line.
            if !text.trim().is_empty() && text != "\\" {
                tokens.push(Token { text, start: at });
            }
            at += len;
        }
        Self { tokens }
    }

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

/// Operators of several characters that matter, longer ones first.
const OPERATORS: [&str; 22] = [
    "...", "<<=", ">>=", "<<<", ">>>", "->*", "<<", ">>", "->", "::", "++", "--", "&&", "||", "==",
    "!=", "<=", ">=", "+=", "-=", "##", "*=",
];

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
