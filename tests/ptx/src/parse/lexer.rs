//! From text to words and signs, with their lines.

use crate::Outcome;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token<'a> {
    /// A name, a number, or an opcode with its modifiers.
    Word(&'a str),
    Sign(char),
    /// A text between quotation marks.
    Text,
}

/// A token and the number of its line.
pub(crate) type Placed<'a> = (Token<'a>, usize);

pub(crate) fn tokens(text: &str) -> Outcome<Vec<Placed<'_>>> {
    let (mut tokens, mut rest, mut line) = (Vec::new(), text, 1);
    while let Some(first) = rest.chars().next() {
        let len = match first {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => end_of(rest, "*/", line)?,
            '"' => {
                tokens.push((Token::Text, line));
                1 + end_of(&rest[1..], "\"", line)?
            }
            _ if first.is_whitespace() => first.len_utf8(),
            _ if is_of_word(first) => {
                let len = word_len(rest);
                tokens.push((Token::Word(&rest[..len]), line));
                len
            }
            _ => {
                tokens.push((Token::Sign(first), line));
                first.len_utf8()
            }
        };
        line += rest[..len].matches('\n').count();
        rest = &rest[len..];
    }
    Ok(tokens)
}

fn end_of(text: &str, end: &str, line: usize) -> Outcome<usize> {
    let at = text.find(end).ok_or_else(|| format!("line {line}: {end} is missing"))?;
    Ok(at + end.len())
}

fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$' | '%' | '.')
}

/// A word can have two colons, as in `.shared::cta`, but not one.
fn word_len(text: &str) -> usize {
    let mut len = 0;
    loop {
        let rest = &text[len..];
        len += rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len());
        if !text[len..].starts_with("::") {
            return len;
        }
        len += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::Token::{Sign, Text, Word};
    use super::tokens;

    #[test]
    fn words_signs_and_lines() {
        let text =
            "$L_1: // a label\n@!%p1 ld.param::func.u32 %r1, [a+-4]; /* x\n */ .file \"a\"\n";
        let expected = [
            (Word("$L_1"), 1),
            (Sign(':'), 1),
            (Sign('@'), 2),
            (Sign('!'), 2),
            (Word("%p1"), 2),
            (Word("ld.param::func.u32"), 2),
            (Word("%r1"), 2),
            (Sign(','), 2),
            (Sign('['), 2),
            (Word("a"), 2),
            (Sign('+'), 2),
            (Sign('-'), 2),
            (Word("4"), 2),
            (Sign(']'), 2),
            (Sign(';'), 2),
            (Word(".file"), 3),
            (Text, 3),
        ];
        assert_eq!(tokens(text), Ok(expected.to_vec()));
        assert_eq!(tokens("a\n/* b"), Err("line 2: */ is missing".to_owned()));
    }
}
