//! Documents as pages: a skeleton, a style and a script, and the document in JSON.

use std::io::{self, Read, Write};
use std::path::Path;

use crate::document::Document;
use crate::file::write_by;

const SKELETON: &str = include_str!("report.html");
const STYLE: &str = include_str!("report.css");

/// The parts of the page's script, in order.
const SCRIPTS: [&str; 6] = [
    include_str!("report.js"),
    include_str!("timeline.js"),
    include_str!("selection.js"),
    include_str!("tables.js"),
    include_str!("charts.js"),
    include_str!("memory.js"),
];

impl Document {
    /// Writes a page to a file, as [`Report::write_html`](struct.Report.html#method.write_html).
    ///
    /// # Errors
    ///
    /// The system's, if the file cannot be written; the text names the file.
    pub fn write_html(&self, path: impl AsRef<Path>) -> io::Result<()> {
        write_page(path, self.to_json().as_bytes())
    }
}

/// Writes the page of a document whose JSON is read meanwhile, and not checked.
///
/// # Errors
///
/// The system's, if the file cannot be written; the text names the file.
pub fn write_page(path: impl AsRef<Path>, json: impl Read) -> io::Result<()> {
    write_by(path.as_ref(), |file| write_parts(file, json))
}

fn write_parts(page: &mut impl Write, mut json: impl Read) -> io::Result<()> {
    let skeleton =
        SKELETON.replace("/*__STYLE__*/", STYLE).replace("/*__SCRIPT__*/", &SCRIPTS.concat());
    let (before, after) =
        skeleton.split_once("__RESIDENT_AUDIT_DOCUMENT__").unwrap_or((&skeleton, ""));
    page.write_all(before.as_bytes())?;
    io::copy(&mut json, &mut Escaping { page })?;
    page.write_all(after.as_bytes())
}

/// Writes text in which no part can end the element of the page that it is in, since each `<` is
/// escaped.
struct Escaping<'p, W> {
    page: &'p mut W,
}

impl<W: Write> Write for Escaping<'_, W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        for (index, part) in text.split(|byte| *byte == b'<').enumerate() {
            if index > 0 {
                self.page.write_all(br"\u003c")?;
            }
            self.page.write_all(part)?;
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.page.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::write_parts;

    #[test]
    fn a_page_has_its_parts_once_and_the_document_as_it_is() {
        let mut page = Vec::new();
        write_parts(&mut page, &br#"{"a": "</script>"}"#[..]).expect("memory takes all");
        let page = String::from_utf8(page).expect("UTF-8");
        assert!(!page.contains("/*__"), "all places are filled");
        assert!(page.contains("{\"a\": \"\\u003c/script>\"}"));
        assert_eq!(page.matches("<style>").count(), 1);
    }
}
