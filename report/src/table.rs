//! Tables for terminals, and totals that they show.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use resident_documents::{Flow, grouped};

/// Tables are at most so many columns wide.
const COLUMNS: u16 = 100;

/// A table in which these columns are numbers.
pub(crate) fn new_table(header: &[&str], numbers: impl IntoIterator<Item = usize>) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(COLUMNS)
        .set_header(header);
    for number in numbers {
        if let Some(column) = table.column_mut(number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A line of totals: bytes, how many copies or messages, and their name.
pub(crate) fn total(flow: Flow, [one, many]: [&str; 2], width: usize, name: &str) -> String {
    let (bytes, noun) = (grouped(flow.bytes), if flow.count == 1 { one } else { many });
    format!("{bytes:>16} bytes in {:>6} {noun:<width$}  {name}\n", grouped(flow.count))
}

pub(crate) const COPIES: [&str; 2] = ["copy", "copies"];
pub(crate) const MESSAGES: [&str; 2] = ["message", "messages"];

/// Reports may be wrong, so no sum overflows.
pub(crate) fn sum(one: Flow, other: Flow) -> Flow {
    let count = one.count.saturating_add(other.count);
    Flow { count, bytes: one.bytes.saturating_add(other.bytes) }
}
