//! Reports as pages. That they work in a browser is checked by `tests/browser`.

use resident::{Result, SmartArray, audit};
use support::lab::lab;

use crate::report_of;

fn page(name: &str) -> Result<String> {
    let array = SmartArray::from(vec![1_u8; 8]).named(name);
    let report = report_of(|| array.prefetch(&lab().stream()))?;
    let path = std::env::temp_dir().join(format!(
        "resident-page-{}-{:?}.html",
        std::process::id(),
        std::thread::current().id()
    ));
    report.write_html(&path).expect("a temporary file");
    let page = std::fs::read_to_string(&path).expect("it was written");
    std::fs::remove_file(path).expect("it was written");
    Ok(page)
}

#[test]
fn names_end_no_element_of_the_page() -> Result<()> {
    let page = page("</script><script>alert(1)</script>")?;
    assert!(page.contains(r"\u003c/script>\u003cscript>alert(1)\u003c/script>"), "{page}");
    assert!(!page.contains("<script>alert"));
    Ok(())
}

#[test]
fn a_page_requests_nothing() -> Result<()> {
    let page = page("photo")?;
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
    for request in
        ["src=", "href=\"http", "@import", "url(http", "url(\"", "fetch(", "XMLHttpRequest"]
    {
        assert!(!page.contains(request), "{request}");
    }
    Ok(())
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let ((), report) = audit::capture(|| ());
    for error in [
        report.write_html("/no/such/folder/a.html").unwrap_err(),
        report.write_json("/no/such/folder/a.json").unwrap_err(),
        report.write_perfetto("/no/such/folder/a.pftrace").unwrap_err(),
    ] {
        assert!(error.to_string().starts_with("/no/such/folder/a."), "{error}");
    }
}
