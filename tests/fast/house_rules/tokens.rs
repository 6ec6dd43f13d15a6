//! Rust source as tokens, without comments, literals and test-only code.

/// Words, and signs of one character, except `::`, which is one token.
pub(crate) fn tokens_of(text: &str) -> Vec<String> {
    without_tests(&all_tokens(text))
}

/// The tokens including those of test-only code.
pub(crate) fn all_tokens(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < characters.len() {
        let rest = &characters[at..];
        let len = skipped(rest);
        if len > 0 {
            at += len;
            continue;
        }
        let len = if rest.starts_with(&[':', ':']) { 2 } else { word_len(rest).max(1) };
        tokens.push(rest[..len].iter().collect());
        at += len;
    }
    tokens
}

fn word_len(text: &[char]) -> usize {
    text.iter().take_while(|c| c.is_alphanumeric() || **c == '_').count()
}

/// The length of the white space, comment or literal at the start of the text.
fn skipped(text: &[char]) -> usize {
    match text {
        [c, ..] if c.is_whitespace() => 1,
        ['/', '/', ..] => text.iter().take_while(|c| **c != '\n').count(),
        ['/', '*', ..] => block_comment_len(text),
        ['"', ..] => 1 + string_len(&text[1..]),
        ['b' | 'c', '"', ..] => 2 + string_len(&text[2..]),
        ['r', '"' | '#', ..] => raw_string_len(&text[1..]).map_or(0, |len| len + 1),
        ['b' | 'c', 'r', '"' | '#', ..] => raw_string_len(&text[2..]).map_or(0, |len| len + 2),
        ['b', '\'', ..] => 1 + character_len(&text[1..]),
        ['\'', ..] => character_len(text),
        _ => 0,
    }
}

fn block_comment_len(text: &[char]) -> usize {
    let end = text[2..].windows(2).position(|pair| pair == ['*', '/']);
    end.map_or(text.len(), |end| end + 4)
}

/// The length of a string literal after its opening quote, closing quote included.
fn string_len(text: &[char]) -> usize {
    let mut at = 0;
    while at < text.len() && text[at] != '"' {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn raw_string_len(text: &[char]) -> Option<usize> {
    let hashes = text.iter().take_while(|c| **c == '#').count();
    if text.get(hashes) != Some(&'"') {
        return None;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let body = &text[hashes + 1..];
    let len = body.windows(end.len()).position(|window| window == end).unwrap_or(body.len());
    Some(hashes + 1 + len + end.len())
}

/// The length of a character literal, or of the quote of a lifetime.
fn character_len(text: &[char]) -> usize {
    match text {
        ['\'', '\\', _, ..] => 2 + text[2..].iter().skip(1).take_while(|c| **c != '\'').count() + 2,
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    }
}

/// Removes the items under `#[cfg(test)]` or `#[cfg(all(test, ..))]`.
fn without_tests(tokens: &[String]) -> Vec<String> {
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if is_test_attribute(&tokens[at..]) {
            at += attribute_len(&tokens[at..]);
            at += item_len(&tokens[at..]);
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

fn is_test_attribute(tokens: &[String]) -> bool {
    let starts =
        |with: &[&str]| tokens.iter().zip(with).filter(|(a, b)| a == *b).count() == with.len();
    starts(&["#", "[", "cfg", "(", "test", ")"])
        || starts(&["#", "[", "cfg", "(", "all", "(", "test", ","])
}

fn attribute_len(tokens: &[String]) -> usize {
    1 + group_len(&tokens[1..])
}

/// The length of a group in brackets of any kind.
pub(crate) fn group_len(tokens: &[String]) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// The length of the item, field or statement at the start of the tokens, with its attributes.
pub(crate) fn item_len(tokens: &[String]) -> usize {
    const ITEMS: [&str; 12] = [
        "fn",
        "struct",
        "enum",
        "union",
        "trait",
        "impl",
        "mod",
        "use",
        "const",
        "static",
        "type",
        "macro_rules",
    ];
    let (mut at, mut is_item) = (0, false);
    while at < tokens.len() {
        match tokens[at].as_str() {
            "#" => at += attribute_len(&tokens[at..]),
            ";" => return at + 1,
            "," if !is_item => return at + 1,
            "}" => return at,
            "{" => {
                at += group_len(&tokens[at..]);
                let goes_on = tokens.get(at).is_some_and(|next| next == "else" || next == ";");
                if !goes_on {
                    return at;
                }
            }
            "(" | "[" => at += group_len(&tokens[at..]),
            word => {
                is_item |= ITEMS.contains(&word);
                at += 1;
            }
        }
    }
    at
}

#[test]
fn comments_literals_and_tests_are_left_out() {
    let text = r##"
        use a::B; // use c::D
        #[cfg(test)]
        mod tests { use e::F; }
        fn f<'a>(x: &'a str) -> char { g("h::I", 'j', '\'', r#"k"::L"#); /* m */ n::O }
        struct P { #[cfg(test)] q: r::S, t: u::V }
    "##;
    let words = tokens_of(text).join(" ");
    assert_eq!(
        words,
        "use a :: B ; fn f < a > ( x : & a str ) - > char { g ( , , , ) ; n :: O } \
         struct P { t : u :: V }"
    );
}
