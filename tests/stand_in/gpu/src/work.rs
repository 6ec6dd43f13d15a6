//! Work for an engine's stream, and the CUDA codes of its failures.

use std::panic::Location;
use std::sync::Arc;

use crate::call;
use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::host;
use crate::interface::rules;
use crate::machine::settings;
use crate::stream::Stream;
use resident_backend::grid::Grid;
use resident_backend::{
    BackendError, BackendErrorKind, Dependencies, FailureKind, FailureRecord, KernelBody, Label,
    LabelText, LaunchWork, PackedArguments, Position, StreamId, Work, failure, rust_body,
};

/// The prefix of a failure's cause if the cause is a CUresult and not an invalid address.
const CODE_PREFIX: &str = "CUresult ";

/// The label of an operation in hazards and failures.
pub fn label(text: &str) -> Label {
    Label { text: LabelText::Text(Arc::from(text)), site: None }
}

/// Panics with a message that is reported as this result. The panic hook does not run, because this
/// is not a bug.
pub fn fail_with(code: Code) -> ! {
    std::panic::resume_unwind(Box::new(format!("{CODE_PREFIX}{}", code.0)))
}

/// The code with which a context is lost because work failed: the code that a kernel or a test
/// requested, else CUDA_ERROR_ILLEGAL_ADDRESS.
pub fn code_of_failure(record: &FailureRecord) -> Code {
    let number = record.cause.strip_prefix(CODE_PREFIX).and_then(|number| number.parse().ok());
    number.map_or(Code::ILLEGAL_ADDRESS, Code)
}

/// The code for a call that the engine rejected.
pub fn code_of_error(error: &BackendError) -> Code {
    let code = match error.kind {
        BackendErrorKind::OutOfMemory { .. } | BackendErrorKind::OutOfHostMemory { .. } => {
            Code::OUT_OF_MEMORY
        }
        BackendErrorKind::InsideKernel => rules().not_permitted,
        BackendErrorKind::Driver { .. }
        | BackendErrorKind::Injected
        | BackendErrorKind::DeviceLost
        | BackendErrorKind::Forked
        | BackendErrorKind::NoTiming
        | BackendErrorKind::Partial { .. } => Code::UNKNOWN,
    };
    if code == Code::UNKNOWN {
        call::note(format!("the engine refuses: {error}"));
    }
    code
}

/// The dependencies of a copy, fill or launch. If a test requested that the work fail, the
/// dependencies include one that has already failed.
pub fn with_late_failure(mut depends: Dependencies) -> Dependencies {
    depends.extend(late_failure());
    depends
}

fn late_failure() -> Option<(StreamId, Position)> {
    let code = call::late_fault()?;
    let (stream, position) = (StreamId::next(), Position(1));
    let cause = format!("{CODE_PREFIX}{}", code.0);
    let record = FailureRecord {
        kind: FailureKind::Contents,
        operation: "a fault that a test requested".into(),
        site: None,
        cause,
        inherited: false,
        left_out: None,
    };
    failure::record(stream, position, Arc::new(record));
    Some((stream, position))
}

/// Queues a kernel.
pub fn submit_kernel(
    stream: &Stream,
    context: &Context,
    body: Arc<dyn KernelBody>,
    arguments: PackedArguments,
) -> Outcome<Position> {
    let body = if settings().keeps_registered { body } else { restoring(body) };
    stream.submit(context, |depends| launch(body, arguments, with_late_failure(depends)))
}

/// A kernel behind which registered memory has the bytes that it had when the kernel was launched.
fn restoring(body: Arc<dyn KernelBody>) -> Arc<dyn KernelBody> {
    let (name, kept) = (Arc::clone(body.name()), host::keep_registered());
    let run = move |grid: Grid, words: &[u64], pointers: &[*mut u8]| {
        // SAFETY: the caller's promise is passed on.
        unsafe { body.run(grid, words, pointers) };
        kept.iter().for_each(host::Kept::restore);
    };
    // SAFETY: all is passed on.
    unsafe { rust_body(name, run) }
}

/// Queues a host function. A host function that receives failures has no dependencies; later work
/// then depends on the work before that function.
pub fn submit_host(
    stream: &Stream,
    context: &Context,
    body: Arc<dyn KernelBody>,
    is_told: bool,
) -> Outcome<Position> {
    if is_told {
        return stream.ordered(context, |raw| {
            raw.submit(launch(body, PackedArguments::default(), Dependencies::new()))
        });
    }
    stream.submit(context, |depends| launch(body, PackedArguments::default(), depends))
}

/// Builds a launch for the engine.
fn launch(body: Arc<dyn KernelBody>, arguments: PackedArguments, depends: Dependencies) -> Work {
    // The body contains its own grid; the engine does not use the grid that is passed here.
    Work::Launch(LaunchWork {
        code: resident_backend::KernelCode::Host(body),
        grid: Grid::new(1, 1),
        arguments,
        depends,
        site: Location::caller(),
    })
}
