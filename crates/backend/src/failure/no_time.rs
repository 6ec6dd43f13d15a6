//! Why there is no time between two events.

use super::{BackendError, BackendErrorKind};

/// Why an event has no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoTime {
    NotComplete,
    /// It was recorded without timing.
    NotTaken,
}

impl NoTime {
    /// The times of two events, or the error that says which has none, and why.
    pub fn or_both<T>(
        earlier: Result<T, Self>,
        later: Result<T, Self>,
    ) -> Result<(T, T), BackendError> {
        let (earlier, later) = match (earlier, later) {
            (Ok(earlier), Ok(later)) => return Ok((earlier, later)),
            (earlier, later) => (earlier.err(), later.err()),
        };
        let clause = |event: &str, reason: Option<Self>| match reason? {
            Self::NotComplete => Some(format!("{event} is not complete")),
            Self::NotTaken => Some(format!("{event} was recorded without timing")),
        };
        let clauses = [clause("the earlier event", earlier), clause("the later event", later)];
        let clauses: Vec<String> = clauses.into_iter().flatten().collect();
        let waits = [earlier, later].contains(&Some(Self::NotComplete));
        let advice = if waits { "; wait for it with `synchronize`" } else { "" };
        Err(BackendError::no_timing(format!("{}{advice}", clauses.join(" and "))))
    }
}

impl BackendError {
    /// The error of `elapsed_since` if there is no time.
    pub fn no_timing(detail: impl Into<String>) -> Self {
        Self { kind: BackendErrorKind::NoTiming, call: "elapsed_since", detail: detail.into() }
    }

    /// Their clocks tell different times.
    pub fn different_clocks() -> Self {
        Self::no_timing("the two events are timed by different clocks")
    }
}

#[cfg(test)]
mod tests {
    use super::NoTime::{self, NotComplete, NotTaken};

    #[test]
    fn the_event_without_a_time_is_named() {
        let said = |earlier, later| NoTime::or_both(earlier, later).map_err(|e| e.to_string());
        assert_eq!(said(Ok(1), Ok(2)), Ok((1, 2)));
        let cases = [
            (Err(NotComplete), Ok(2), "the earlier event is not complete; wait for it"),
            (Ok(1), Err(NotComplete), "(the later event is not complete; wait for it"),
            (Err(NotTaken), Ok(2), "(the earlier event was recorded without timing)"),
            (Ok(1), Err(NotTaken), "(the later event was recorded without timing)"),
            (
                Err(NotTaken),
                Err(NotComplete),
                "without timing and the later event is not complete;",
            ),
        ];
        for (earlier, later, expected) in cases {
            let text = said(earlier, later).expect_err("one has no time");
            assert!(text.contains(expected), "{text}");
        }
    }
}
