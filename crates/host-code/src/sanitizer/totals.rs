//! What the checker has checked in this process, for reports.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::finding::Finding;

/// So many kernels are told apart. Those that come later count as one.
const KERNELS_MAX: usize = 1 << 10;

/// Text lists so many kernels.
const LISTED_MAX: usize = 16;

/// The width of names in text.
const NAME_WIDTH: usize = 48;

/// `None` until a device checks kernels.
static TOTALS: Mutex<Option<CheckedTotals>> = Mutex::new(None);

/// What the checker has checked, by the names of kernels. Its `Display` has whole lines of at most
/// 100 columns.
#[derive(Clone, Debug, Default)]
pub struct CheckedTotals {
    by_kernel: BTreeMap<Arc<str>, KernelTotals>,
}

/// What was checked of one kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelTotals {
    pub launches: u64,
    /// Accesses of memory.
    pub accesses: u64,
    pub errors: u64,
    pub notes: u64,
}

impl CheckedTotals {
    /// The kernels, in the order of their names.
    pub fn kernels(&self) -> impl Iterator<Item = (&str, KernelTotals)> {
        self.by_kernel.iter().map(|(kernel, totals)| (&**kernel, *totals))
    }
}

/// What was checked until now; `None` if no device checks kernels.
#[must_use]
pub fn checked_totals() -> Option<CheckedTotals> {
    TOTALS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// A device checks kernels.
pub(crate) fn begin() {
    TOTALS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Counts a launch.
pub(super) fn add(kernel: &Arc<str>, accesses_of_launch: u64, found: &[Finding]) {
    let mut totals = TOTALS.lock().unwrap_or_else(PoisonError::into_inner);
    let CheckedTotals { by_kernel } = totals.get_or_insert_default();
    let is_full = by_kernel.len() >= KERNELS_MAX && !by_kernel.contains_key(kernel);
    let key = if is_full { Arc::from("(other kernels)") } else { Arc::clone(kernel) };
    let KernelTotals { launches, accesses, errors, notes } = by_kernel.entry(key).or_default();
    let error_count = found.iter().filter(|finding| finding.kind.is_error()).count() as u64;
    *launches += 1;
    *accesses += accesses_of_launch;
    *errors += error_count;
    *notes += found.len() as u64 - error_count;
}

impl fmt::Display for CheckedTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let launches: u64 = self.by_kernel.values().map(|totals| totals.launches).sum();
        let kernels = self.by_kernel.len();
        writeln!(f, "The checker of CUDA C ran over {launches} launches of {kernels} kernels.")?;
        for (kernel, totals) in self.by_kernel.iter().take(LISTED_MAX) {
            let KernelTotals { launches, accesses, errors, notes } = totals;
            let name: String = kernel.chars().take(NAME_WIDTH).collect();
            write!(f, "  {name}: {launches} launches, {accesses} accesses, ")?;
            writeln!(f, "{errors} errors, {notes} notes")?;
        }
        match kernels.saturating_sub(LISTED_MAX) {
            0 => Ok(()),
            others => writeln!(f, "  and {others} other kernels"),
        }
    }
}
