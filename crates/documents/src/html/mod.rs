//! Documents as pages: a skeleton, a style and a script, and the document in JSON.

use std::io;
use std::path::Path;

use crate::document::Document;
use crate::file::write_file;

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
        write_file(path.as_ref(), page(&self.to_json()).as_bytes())
    }
}

/// The page of a document in JSON. In the page no text of the document can end the element that it
/// is in, since each `<` is escaped.
fn page(json: &str) -> String {
    SKELETON
        .replace("/*__STYLE__*/", STYLE)
        .replace("/*__SCRIPT__*/", &SCRIPTS.concat())
        .replace("__RESIDENT_AUDIT_DOCUMENT__", &json.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn a_page_has_its_parts_once_and_the_document_as_it_is() {
        let page = page("{\"a\": \"</script>\"}");
        assert!(!page.contains("/*__"), "all places are filled");
        assert!(page.contains("{\"a\": \"\\u003c/script>\"}"));
        assert_eq!(page.matches("<style>").count(), 1);
    }
}
