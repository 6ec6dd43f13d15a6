//! Chains on streams that run them step by step.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    Address, BackendError, Bytes, ChainCall, ChainStep, Dependencies, FailureKind, FailureRecord,
    FillWork, Label, LabelText, LaunchWork, Maker, Position, RawStream, Work, failure,
};

/// Runs a chain as one operation for each step of each replay, on a stream that cannot do better,
/// and whose [`RawStream::reserve_position`] returns a new position each time.
///
/// Each step depends on the one before, and so inherits its failure. The positions of the steps are
/// others, behind all of them: an array may be marked at that of a step before the last that reads
/// it, and other threads may see the stream complete one step before the next is queued.
pub fn run_step_by_step(
    stream: &dyn RawStream,
    call: &ChainCall<'_>,
) -> Result<Position, BackendError> {
    let mut depends = Dependencies::from_slice(call.depends);
    let mut positions = Positions::new();
    for replay in 0..call.count {
        positions.clear();
        for step in call.steps {
            match run_step(stream, &step.work, &depends) {
                Ok(position) => positions.push(position),
                Err(error) if replay == 0 && positions.is_empty() => return Err(error),
                Err(error) => {
                    return Ok(repeat_outcomes(stream, call, &positions, Some(&error)));
                }
            }
            depends.clear();
            depends.extend(positions.last().map(|position| (stream.id(), *position)));
        }
    }
    match positions.as_slice() {
        [only] => Ok(*only),
        _ => Ok(repeat_outcomes(stream, call, &positions, None)),
    }
}

/// A position for each step.
type Positions = SmallVec<[Position; 16]>;

fn are_consecutive(positions: &[Position]) -> bool {
    positions.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1)
}

/// Queues work like this with other dependencies.
fn run_step(
    stream: &dyn RawStream,
    work: &Work,
    depends: &Dependencies,
) -> Result<Position, BackendError> {
    let depends = depends.clone();
    match work {
        Work::Launch(launch) => {
            stream.launch(&mut LaunchWork { depends, ..launch.clone() }.as_call())
        }
        Work::Copy(copy) => {
            let mut copy = copy.clone();
            copy.depends = depends;
            stream.copy(copy, Maker::Stream).map(|copying| copying.position())
        }
        Work::Fill(fill) => {
            let mut fill = fill.clone();
            fill.depends = depends;
            stream.fill(fill)
        }
    }
}

/// Takes consecutive positions that fail as the steps do, and returns the last. If a step was
/// refused with an error after those before it had been queued, it and the rest fail.
fn repeat_outcomes(
    stream: &dyn RawStream,
    call: &ChainCall<'_>,
    queued: &[Position],
    error: Option<&BackendError>,
) -> Position {
    let repeat = |(index, _): (usize, &ChainStep)| match queued.get(index) {
        Some(position) => repeat_outcome(stream, *position)
            .unwrap_or_else(|refused| fail_at_new_position(stream, call, index, &refused)),
        None => {
            let cause = error.map_or(&"it was not queued" as &dyn fmt::Display, |error| error);
            fail_at_new_position(stream, call, index.min(queued.len()), cause)
        }
    };
    loop {
        let positions: Positions = call.steps.iter().enumerate().map(repeat).collect();
        if let Some(last) = positions.last().filter(|_| are_consecutive(&positions)) {
            return *last;
        }
    }
}

/// Records under a new position that a step failed.
fn fail_at_new_position(
    stream: &dyn RawStream,
    call: &ChainCall<'_>,
    failed: usize,
    cause: &dyn fmt::Display,
) -> Position {
    let step = call.steps.get(failed);
    let position = stream.reserve_position();
    let record = FailureRecord {
        kind: FailureKind::Contents,
        operation: step.map_or_else(String::new, |step| step.work.name_in(&call.instance.title)),
        site: step.and_then(|step| step.work.site()),
        cause: cause.to_string(),
        inherited: false,
        left_out: None,
    };
    failure::record(stream.id(), position, Arc::new(record));
    position
}

/// Queues a fill of nothing, which fails if the work at `position` does.
fn repeat_outcome(stream: &dyn RawStream, position: Position) -> Result<Position, BackendError> {
    stream.fill(Box::new(FillWork {
        address: Address(0),
        parts: SmallVec::new(),
        pattern: Bytes::from_elem(0, 1),
        loss: FailureKind::Contents,
        depends: Dependencies::from_slice(&[(stream.id(), position)]),
        label: Label { text: LabelText::Text(Arc::from("step of a chain")), site: None },
    }))
}
