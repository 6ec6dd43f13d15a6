//! Reports: made, printed, written as documents, and when the process ends or at intervals.

pub(super) mod at_exit;
pub(super) mod formats;
pub(super) mod outputs;
pub(crate) mod process;
pub(super) mod regularly;
pub(super) mod report;
pub(super) mod table;
pub(super) mod to_document;
