//! A program with every kind of call, over four arrays, two devices and three streams, and the code
//! that runs and checks it while calls fail.

use resident::emulation::{Call, CallKind, Outcome as CallOutcome};

use crate::bench::Bench;
use crate::model::{ARRAYS, Model, ROWS, Row};
use crate::steps::{Step, steps};
use support::prelude::*;

/// A call that fails: its device, its number, and whether the call fails or its work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failing {
    pub(crate) device: usize,
    pub(crate) call: u64,
    pub(crate) late: bool,
}

/// The errors that calls returned, except lost contents.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Calls that were refused.
    pub(crate) refused: usize,
    /// Failures of queued work that a call returned.
    pub(crate) told: usize,
}

/// One run.
struct Run<'a> {
    bench: Bench,
    model: Model,
    faults: &'a [Failing],
    /// Whether all contents are checked after each refusal, before the call is repeated.
    looks: bool,
    outcome: Outcome,
}

/// Runs and checks the scenario with the given faults.
pub(crate) fn run(devices: &[Device; 2], faults: &[Failing], looks: bool) -> Outcome {
    let mut outcome = Outcome::default();
    let bench = Bench::new(devices, |device| retry(&mut outcome, || device.new_stream()));
    let mut run = Run { bench, model: Model::new(), faults, looks, outcome };
    for step in steps() {
        run.take(&step);
    }
    run.settle();
    run.verify("at the end");
    run.finish()
}

/// Makes a call until it succeeds.
fn retry<T>(outcome: &mut Outcome, mut call: impl FnMut() -> Result<T>) -> T {
    for _ in 0..6 {
        match call() {
            Ok(value) => return value,
            Err(error) => outcome.note(&error),
        }
    }
    panic!("a call fails for ever")
}

impl Outcome {
    fn note(&mut self, error: &Error) {
        let Error::Backend { cause, .. } = error else {
            panic!("an unexpected kind of error: {error:?}")
        };
        if cause.contains("nothing was queued") {
            self.refused += 1;
        } else {
            self.told += 1;
        }
    }
}

impl Run<'_> {
    /// Runs one step, and repeats it if its failure allows that.
    fn take(&mut self, step: &Step) {
        let before = self.call_counts();
        for attempt in 0.. {
            assert!(attempt < 6, "step \"{}\" fails for ever", step.name);
            self.bench.seen.clear();
            let taken = (step.run)(&mut self.bench);
            self.model.doubt_late_calls(step, self.has_late_call_since(&before));
            match taken {
                Ok(()) => {
                    let expected = self.model.apply(step);
                    assert_eq!(self.bench.seen, expected, "step \"{}\"", step.name);
                    return;
                }
                Err(error @ Error::Lost { .. }) => {
                    assert!(
                        self.model.may_lose(step),
                        "step \"{}\" found contents lost that are not: {error}",
                        step.name
                    );
                    self.assert_names_a_failure(&error);
                    return;
                }
                Err(error) => self.outcome.note(&error),
            }
            if self.looks {
                self.verify(step.name);
            }
        }
    }

    fn call_counts(&self) -> [u64; 2] {
        self.bench.devices.each_ref().map(|device| device.emulation().unwrap().calls().len() as u64)
    }

    /// Whether work that will fail when it runs was queued after `before`. Poison is not counted.
    fn has_late_call_since(&self, before: &[u64; 2]) -> bool {
        self.late_calls()
            .any(|(device, number, kind)| number > before[device] && kind != CallKind::Poison)
    }

    fn late_calls(&self) -> impl Iterator<Item = (usize, u64, CallKind)> {
        let logs = self.bench.devices.each_ref().map(|device| device.emulation().unwrap().calls());
        self.faults.iter().filter(|fault| fault.late).filter_map(move |fault| {
            let call = logs[fault.device].iter().find(|call| call.number == fault.call)?;
            Some((fault.device, call.number, call.kind))
        })
    }

    fn assert_names_a_failure(&self, error: &Error) {
        let Error::Lost { operation, site, cause, .. } = error else {
            unreachable!("it was matched")
        };
        assert!(cause.contains("at call"), "{error}");
        assert!(site.contains("steps.rs") || site.contains("scenario.rs"), "{error}");
        let logs = self.bench.devices.each_ref().map(|device| device.emulation().unwrap().calls());
        let named = self
            .faults
            .iter()
            .filter_map(|fault| logs[fault.device].iter().find(|call| call.number == fault.call));
        let labels: Vec<_> = named.map(|call| call.label.to_string()).collect();
        assert!(
            labels.iter().any(|label| operation.contains(label.as_str())),
            "{error}, not of {labels:?}"
        );
    }

    /// Waits for all work, and collects every failure that `synchronize` returns.
    fn settle(&mut self) {
        for device in self.bench.devices.clone() {
            retry(&mut self.outcome, || device.synchronize());
        }
        self.model.no_more_doubts();
    }

    /// Checks that each row has the model's values, or is lost if the model allows that.
    fn verify(&mut self, when: &str) {
        for row in (0..ARRAYS).flat_map(|array| (0..ROWS).map(move |row| (array, row))) {
            self.verify_row(row, when);
        }
    }

    fn verify_row(&mut self, row: Row, when: &str) {
        for _ in 0..6 {
            match self.bench.arrays[row.0].slice(s![row.1, ..]).host().map(|host| host.to_vec()) {
                Ok(seen) => {
                    return assert_eq!(Some(seen), self.model.row(row), "row {row:?} {when}");
                }
                Err(Error::Uninitialised { .. }) => {
                    return assert_eq!(None, self.model.row(row), "row {row:?} {when}");
                }
                Err(error @ Error::Lost { .. }) => {
                    assert!(self.model.may_be_lost(row), "row {row:?} {when}: {error}");
                    return self.assert_names_a_failure(&error);
                }
                Err(error) => self.outcome.note(&error),
            }
        }
        panic!("row {row:?} {when} can never be read");
    }

    /// Checks that no memory is allocated, that no accesses were unordered, and that each failure
    /// was reported once.
    fn finish(mut self) -> Outcome {
        let Bench { devices, arrays, clone, pending, .. } = self.bench;
        drop((arrays, clone, pending));
        for device in &devices {
            retry(&mut self.outcome, || device.synchronize());
        }
        for device in &devices {
            // `memory` first retries the frees that the device refused earlier. A retry may be
            // refused too, hence several calls.
            let in_use = [(); 3].map(|()| device.memory().in_use);
            assert_eq!(in_use[2], 0, "{device} leaks");
            assert_ordered(device);
        }
        let failed = |fault: &&Failing| {
            let calls = devices[fault.device].emulation().unwrap().calls();
            // A failed fill with poison bytes is not reported, since poison bytes do not count as
            // contents.
            let is_told =
                |call: &Call| call.outcome == CallOutcome::Failed && call.kind != CallKind::Poison;
            fault.late && calls.iter().any(|call| call.number == fault.call && is_told(call))
        };
        let roots = self.faults.iter().filter(failed).count();
        // If there were two failures, the earlier may have caused the later one, and then only one
        // is reported.
        let fewest = roots.min(1);
        assert!(
            (fewest..=roots).contains(&self.outcome.told),
            "{} of {roots} failures reported",
            self.outcome.told
        );
        self.outcome
    }
}
