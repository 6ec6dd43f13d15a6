//! What is put into an engine's queue, and what its failures are called in CUDA.

use std::panic::Location;
use std::sync::Arc;

use super::call;
use super::code::{Code, Outcome};
use super::context::Context;
use super::stream::Stream;
use crate::backend::{
    Arguments, BackendError, BackendErrorKind, Dependencies, FailureKind, FailureRecord,
    KernelBody, Label, LaunchWork, Position, QueueId, Work, failure,
};
use crate::grid::Grid;

/// How a failure's cause begins if it is not an address that the engine found wrong.
const CODE_PREFIX: &str = "CUresult ";

/// What operations are called in hazards and failures.
pub(super) fn label(text: &str) -> Label {
    Label { text: Arc::from(text), site: None }
}

/// A panic's message that is told as this result. Raised without the panic hook: it is no bug.
pub(super) fn fail_with(code: Code) -> ! {
    std::panic::resume_unwind(Box::new(format!("{CODE_PREFIX}{}", code.0)))
}

/// What failed work did to its context: the result that a kernel or a test gave, else an address
/// was wrong.
pub(super) fn code_of_failure(record: &FailureRecord) -> Code {
    let number = record.cause.strip_prefix(CODE_PREFIX).and_then(|number| number.parse().ok());
    number.map_or(Code::ILLEGAL_ADDRESS, Code)
}

/// Why the engine refused a call.
pub(super) fn code_of_error(error: &BackendError) -> Code {
    let code = match error.kind {
        BackendErrorKind::OutOfMemory { .. } => Code::OUT_OF_MEMORY,
        BackendErrorKind::InsideKernel => Code::NOT_PERMITTED,
        BackendErrorKind::Driver { .. }
        | BackendErrorKind::Injected
        | BackendErrorKind::DeviceLost
        | BackendErrorKind::NoTiming => Code::UNKNOWN,
    };
    if code == Code::UNKNOWN {
        call::note(format!("the engine refuses: {error}"));
    }
    code
}

/// What a copy, a fill or a launch depends on: what its stream says, and, where a test asked for
/// its failure, something that has failed already.
pub(super) fn with_late_failure(mut depends: Dependencies) -> Dependencies {
    depends.extend(late_failure());
    depends
}

fn late_failure() -> Option<(QueueId, Position)> {
    let code = call::late_fault()?;
    let (queue, position) = (QueueId::next(), Position(1));
    let cause = format!("{CODE_PREFIX}{}", code.0);
    let record = FailureRecord {
        kind: FailureKind::Contents,
        operation: "a fault that a test asked for".into(),
        site: None,
        cause,
        inherited: false,
    };
    failure::record(queue, position, Arc::new(record));
    Some((queue, position))
}

/// Queues a kernel.
pub(super) fn submit_kernel(
    stream: &Stream,
    context: &Context,
    body: Arc<dyn KernelBody>,
    arguments: Arguments,
) -> Outcome<Position> {
    stream.submit(context, |depends| launch(body, arguments, with_late_failure(depends)))
}

/// Queues a function of the host. One that is told of failures depends on nothing, and what comes
/// behind it depends on what came before it.
pub(super) fn submit_host(
    stream: &Stream,
    context: &Context,
    body: Arc<dyn KernelBody>,
    is_told: bool,
) -> Outcome<Position> {
    if is_told {
        return stream.ordered(context, |queue| {
            queue.submit(launch(body, Arguments::default(), Dependencies::new()))
        });
    }
    stream.submit(context, |depends| launch(body, Arguments::default(), depends))
}

/// The one place that says how a launch is made for the engine.
fn launch(body: Arc<dyn KernelBody>, arguments: Arguments, depends: Dependencies) -> Work {
    // The body knows the grid that it was launched with; the engine does not look at it.
    Work::Launch(LaunchWork {
        code: crate::backend::KernelCode::Host(body),
        grid: Grid::new(1, 1),
        arguments,
        depends,
        site: Location::caller(),
    })
}
