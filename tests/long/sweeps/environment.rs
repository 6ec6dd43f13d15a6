//! Settings of the sweeps, from environment variables.

use std::fmt::Debug;
use std::str::FromStr;

/// The number in an environment variable.
pub(crate) fn asked<N: FromStr<Err: Debug>>(variable: &str, usual: N) -> N {
    let text = std::env::var(variable).ok();
    text.map_or(usual, |text| text.parse().expect(variable))
}

/// The runs of a sweep that are made: every so many. All of them with `RESIDENT_SWEEP_ALL=1`, as
/// `scripts/long-checks` sets it.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    every: u64,
    first: u64,
}

impl Sample {
    /// One of `every` runs, from the `first` on, which counts from 0. Where runs have several
    /// properties, a prime meets all pairs of them.
    pub(crate) fn new(every: u64, first: u64) -> Self {
        let is_whole = asked("RESIDENT_SWEEP_ALL", 0) == 1;
        if is_whole { Self { every: 1, first: 0 } } else { Self { every, first } }
    }

    /// Whether the run with this number, from 0 on, is made.
    pub(crate) fn has(self, number: u64) -> bool {
        number % self.every == self.first
    }

    /// As [`has`](Self::has), for runs with numbers from 1 on.
    #[cfg(all(target_os = "linux", any(feature = "cuda", feature = "hip")))]
    pub(crate) fn numbers(self) -> impl Iterator<Item = u64> {
        (1..).filter(move |number| self.has(number - 1))
    }
}
