#![forbid(unsafe_code)]
//! The documents of the audit: reports as plain data, and what they are written as. It knows
//! nothing of arrays and devices.
//!
//! Programs use the crate `resident`. This one has no stable interface.

#![deny(missing_docs)]

mod document;
mod file;
pub mod findings;
mod html;
mod json;
mod perfetto;
#[cfg(test)]
mod tests;
mod text;
mod totals;

pub use document::{
    Document, DocumentAccess, DocumentArgument, DocumentArray, DocumentBarrier, DocumentChecked,
    DocumentFinding, DocumentMemory, DocumentMemoryHolder, DocumentMemoryMoment,
    DocumentMemoryPoint, DocumentMemoryUse, DocumentMessage, DocumentProcess, DocumentRecord,
    DocumentSite, DocumentStream,
};
pub use file::write_file;
pub use html::write_page;
pub use perfetto::{ProcessTrace, write_perfetto_of_processes};
pub use text::{NOT_COMPARED, compared, quoted, saving, shortened, shown, visible, visible_lines};
pub use totals::{Flow, Waits, grouped};
