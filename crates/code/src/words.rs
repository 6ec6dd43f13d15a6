//! The words of a text in CUDA C: identifiers and numbers, without comments and literals.

/// The words of a text, each with the place where it starts.
pub fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (start, end) = next_word(text, at)?;
        at = end;
        Some((start, &text[start..end]))
    })
}

/// Where one of the words stands first in code: not in a comment, in a string, or in another word.
pub fn find_in_code<'w>(text: &str, wanted: &[&'w str]) -> Option<(usize, &'w str)> {
    words(text).find_map(|(at, word)| {
        let wanted = wanted.iter().find(|wanted| **wanted == word)?;
        Some((at, *wanted))
    })
}

/// The text with blanks for comments, for literals, and for what is not ASCII: as long as before,
/// with the same lines.
pub fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut code, mut at) = (String::with_capacity(text.len()), 0);
    while at < bytes.len() {
        let len = skipped_len(bytes, at);
        let end = at + len.max(1);
        let blank = |byte: &u8| if *byte == b'\n' { '\n' } else { ' ' };
        match len {
            0 if bytes[at].is_ascii() => code.push(char::from(bytes[at])),
            _ => code.extend(bytes[at..end].iter().map(blank)),
        }
        at = end;
    }
    code
}

fn next_word(text: &str, mut at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match skipped_len(bytes, at) {
            0 if is_word_byte(bytes[at]) => return Some((at, at + word_len(&bytes[at..]))),
            len => at += len.max(1),
        }
    }
    None
}

/// The length of the comment or the literal that starts at a place; 0 if none does. `'` within a
/// number separates digits.
fn skipped_len(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    match rest {
        [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => {
            let end = rest[2..].windows(2).position(|two| two == b"*/");
            end.map_or(rest.len(), |end| end + 4)
        }
        [b'\'', ..] if at > 0 && bytes[at - 1].is_ascii_alphanumeric() => 0,
        [b'"' | b'\'', ..] => literal_len(rest),
        _ => 0,
    }
}

/// The length of a word; in numbers, `'` separates digits.
fn word_len(bytes: &[u8]) -> usize {
    let is_number = bytes[0].is_ascii_digit();
    bytes.iter().take_while(|byte| is_word_byte(**byte) || is_number && **byte == b'\'').count()
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The length of a string or a character in quotes, which end with the line at the latest.
fn literal_len(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != bytes[0] && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::{code_only, find_in_code, words};

    #[test]
    fn comments_and_literals_have_no_words() {
        let text = "a1 /* b */ 1'000 \"c \\\" d\" 'e' // f\ng_ = x'y;";
        let found: Vec<&str> = words(text).map(|(_, word)| word).collect();
        assert_eq!(found, ["a1", "1'000", "g_", "x", "y"]);
        assert_eq!(find_in_code("xyz /* y */ y", &["x", "y"]), Some((12, "y")));
        assert_eq!(find_in_code("\"y", &["y"]), None);
    }

    #[test]
    fn code_keeps_its_places_and_lines() {
        for text in ["a /* b\nc */ d", "\"x\ny", "// é\nz", "é = 'q';", "1'0 /*"] {
            let code = code_only(text);
            assert_eq!((code.len(), code.lines().count()), (text.len(), text.lines().count()));
        }
        assert_eq!(code_only("a/*b*/c\"d\"e"), "a     c   e");
    }
}
