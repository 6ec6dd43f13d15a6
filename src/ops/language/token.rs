//! The words, numbers and symbols of a text.

use std::fmt;

use super::number::{self, Number};

/// More bytes than this are no text that a person or a generator writes for one element.
const LEN_MAX: usize = 1 << 15;

/// Where something stands in a text, counted from 1. Columns are characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    line: usize,
    column: usize,
}

/// What is wrong with a text, and where.
#[derive(Debug)]
pub(super) struct Fault {
    place: Place,
    seen: String,
    text: String,
}

impl Fault {
    pub(super) fn new(place: Place, seen: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place, seen: seen.into(), text: text.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place: Place { line, column }, seen, text } = self;
        write!(f, "line {line}, column {column}, at {seen}: {text}")
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind<'t> {
    Word(&'t str),
    Number(Number),
    Symbol(&'static str),
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind<'t>,
    /// As it stands in the text.
    pub(super) seen: &'t str,
    pub(super) place: Place,
}

impl Token<'_> {
    /// A fault at this token.
    pub(super) fn fault(&self, text: impl Into<String>) -> Fault {
        let seen = match self.kind {
            Kind::End => String::from("the end"),
            _ => format!("`{}`", self.seen),
        };
        Fault::new(self.place, seen, text)
    }

    /// Whether text of a message can show the token: it is a name or a number.
    pub(super) fn is_operand(&self) -> bool {
        matches!(self.kind, Kind::Word(_) | Kind::Number(_))
    }

    pub(super) fn is(&self, symbol: &str) -> bool {
        self.kind == Kind::Symbol(symbol_of(symbol).unwrap_or(""))
    }
}

/// All symbols, the longest first.
const SYMBOLS: [&str; 45] = [
    "<<=", ">>=", "**", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "==", "!=",
    "<=", ">=", "&&", "||", "<<", ">>", "->", "::", "+", "-", "*", "/", "%", "&", "|", "^", "~",
    "!", "<", ">", "=", "?", ":", ";", ",", "(", ")", "{", "}", ".",
];

fn symbol_of(text: &str) -> Option<&'static str> {
    SYMBOLS.into_iter().find(|symbol| text.starts_with(symbol))
}

/// Reads a text from its start.
struct Reader<'t> {
    rest: &'t str,
    place: Place,
}

/// The tokens of a text. The last is `End`.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Fault> {
    let mut reader = Reader { rest: text, place: Place { line: 1, column: 1 } };
    if text.len() > LEN_MAX {
        let text = format!("it has {} bytes, and may have {LEN_MAX}: use `Kernel`", text.len());
        return Err(Fault::new(reader.place, "the text", text));
    }
    let mut tokens = Vec::new();
    loop {
        reader.skip_space()?;
        let token = reader.token()?;
        tokens.push(token);
        if token.kind == Kind::End {
            return Ok(tokens);
        }
    }
}

impl<'t> Reader<'t> {
    fn take(&mut self, len: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        for letter in taken.chars() {
            if letter == '\n' {
                self.place = Place { line: self.place.line + 1, column: 1 };
            } else {
                self.place.column += 1;
            }
        }
        taken
    }

    fn take_while(&mut self, is_wanted: impl Fn(char) -> bool) -> &'t str {
        let len = self.rest.find(|letter| !is_wanted(letter)).unwrap_or(self.rest.len());
        self.take(len)
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) -> Result<(), Fault> {
        loop {
            self.take_while(|letter| matches!(letter, ' ' | '\t' | '\r' | '\n'));
            if self.rest.starts_with("//") {
                self.take_while(|letter| letter != '\n');
            } else if self.rest.starts_with("/*") {
                let start = self.place;
                let end = self.rest[2..].find("*/").ok_or_else(|| {
                    Fault::new(start, "`/*`", "the comment does not end; write `*/` behind it")
                })?;
                self.take(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Token<'t>, Fault> {
        let place = self.place;
        let Some(first) = self.rest.chars().next() else {
            return Ok(Token { kind: Kind::End, seen: "", place });
        };
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if self.begins_number() {
            let seen = self.take(number::len(self.rest));
            let number =
                number::of(seen).map_err(|text| Fault::new(place, format!("`{seen}`"), text))?;
            return Ok(Token { kind: Kind::Number(number), seen, place });
        }
        if is_word(first) {
            let seen = self.take_while(is_word);
            return Ok(Token { kind: Kind::Word(seen), seen, place });
        }
        match symbol_of(self.rest) {
            Some(symbol) => {
                let seen = self.take(symbol.len());
                Ok(Token { kind: Kind::Symbol(symbol), seen, place })
            }
            None if first.is_ascii_punctuation() => {
                Err(Fault::new(place, format!("`{first}`"), unknown(first)))
            }
            None => Err(Fault::new(place, format!("`{}`", first.escape_debug()), unknown(first))),
        }
    }

    fn begins_number(&self) -> bool {
        let mut letters = self.rest.chars();
        match letters.next() {
            Some('.') => letters.next().is_some_and(|next| next.is_ascii_digit()),
            first => first.is_some_and(|first| first.is_ascii_digit()),
        }
    }
}

/// What to write in place of a character that no text has.
fn unknown(letter: char) -> &'static str {
    match letter {
        '[' | ']' => {
            "there are no arrays here; the name of an array parameter is the value of its element"
        }
        '#' => "there are no directives here; write the value itself",
        '"' | '\'' => "there are no characters and strings here; write a number",
        '\\' => "lines need no continuation; leave it out",
        _ => "no text has this character; leave it out",
    }
}
