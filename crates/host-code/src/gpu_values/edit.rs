//! Replacements of parts of a text.

/// A replacement of a part of the text.
pub(super) struct Edit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: String,
}

impl Edit {
    pub(super) fn insertion(at: usize, text: &str) -> Self {
        Self { start: at, end: at, text: text.to_owned() }
    }
}

pub(super) fn applied(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.start, edit.end));
    let (mut result, mut done) = (String::with_capacity(text.len()), 0);
    for edit in edits {
        result.push_str(&text[done..edit.start]);
        result.push_str(&edit.text);
        done = edit.end;
    }
    result + &text[done..]
}
