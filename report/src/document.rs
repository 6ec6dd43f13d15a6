//! Reading reports.

use std::fs;
use std::path::Path;

use resident_documents::Document;
use serde_json::Value;

/// The version that this program reads.
const VERSION: u64 = 1;

/// Reads a report. The message of an error names the file.
pub(crate) fn read(path: &Path) -> Result<Document, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reads a report from its text.
pub(crate) fn parse(text: &str) -> Result<Document, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let problem = if error.is_eof() { "the report is cut off" } else { "not JSON" };
        format!("{problem}: {error}")
    })?;
    match value.get("version").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(other) => {
            return Err(format!(
                "a report of version {other}; this program reads version {VERSION}"
            ));
        }
        None => return Err("no audit report: it has no \"version\"".to_owned()),
    }
    serde_json::from_value(value).map_err(|error| format!("no audit report: {error}"))
}

/// The JSON schema of reports.
pub(crate) fn schema() -> String {
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(Document));
    schema.unwrap_or_default() + "\n"
}
