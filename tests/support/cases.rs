//! Suites as tables: each row has a name and a case, and one function runs them all. And how many
//! cases of many are run.

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

/// The number of rounds, seeds or random cases: a sample, or all with `RESIDENT_SWEEP_ALL=1`, as
/// `scripts/long-checks` sets it.
pub fn sampled<N>(sample: N, all: N) -> N {
    let is_whole = std::env::var_os("RESIDENT_SWEEP_ALL").is_some_and(|value| value == "1");
    if is_whole { all } else { sample }
}
