//! The JSON schema of reports.

use resident_documents::Document;
use serde_json::Value;

/// The schema. The descriptions of the library are written for `rustdoc`; those of the schema are
/// plain text.
pub(crate) fn text() -> String {
    let mut schema = Value::from(schemars::schema_for!(Document));
    make_plain(&mut schema);
    // A value of JSON can always be written.
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

fn make_plain(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(text) if key == "description" => *text = plain(text),
                    _ => make_plain(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_plain),
        _ => {}
    }
}

/// A text of `rustdoc` without its marks: each paragraph is a line, links and code are their words.
fn plain(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let line = paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        without_links(&line).replace('`', "")
    });
    paragraphs.collect::<Vec<_>>().join("\n")
}

/// Replaces links, which are around code in the library's texts, by what they are around.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut parts = text.split("[`");
    plain += parts.next().unwrap_or_default();
    for part in parts {
        let (words, mut rest) = part.split_once("`]").unwrap_or((part, ""));
        if let Some((_target, after)) = rest.strip_prefix('(').and_then(|it| it.split_once(')')) {
            rest = after;
        }
        plain += words;
        plain += rest;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn marks_are_left_out_and_their_words_stay() {
        let text = "A [`Site`](struct.Site.html) of\n`a.rs`: [`Document::sites`].\n\nMore (of it).";
        assert_eq!(plain(text), "A Site of a.rs: Document::sites.\nMore (of it).");
        assert_eq!(plain("f32[2, 3] and [`open"), "f32[2, 3] and open");
    }
}
