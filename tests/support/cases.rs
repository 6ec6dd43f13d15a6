//! Suites as tables: each row has a name and a case, and one function runs them all.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs all cases, and names those that failed.
///
/// # Panics
///
/// After all cases have run, if some have panicked.
pub fn run_cases<C>(cases: &[(&str, C)], run: impl Fn(&C)) {
    let mut failed = Vec::new();
    for (name, case) in cases {
        if catch_unwind(AssertUnwindSafe(|| run(case))).is_err() {
            eprintln!("the case that failed: {name}");
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{} of {} cases failed: {failed:#?}", failed.len(), cases.len());
}
