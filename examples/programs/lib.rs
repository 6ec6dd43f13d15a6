//! The parts of these examples that tests and benchmarks use too: kernels, and steps that launch
//! them.

#![allow(clippy::new_without_default, reason = "a program makes its kernels once, by name")]

use resident::{Error, Result};

/// The number that is a program's only argument, or the usual one. `None`, with a message, if the
/// argument is no number.
#[must_use]
pub fn number_argument(program: &str, usual: usize) -> Option<usize> {
    let number = std::env::args().nth(1).map_or(Ok(usual), |word| word.parse::<usize>());
    number.inspect_err(|_| eprintln!("{program}: the argument is a number, such as {usual}")).ok()
}

/// Whether a kernel is ready to be launched, by the outcome of `prepare`. If its CUDA C cannot be
/// compiled, a message says why.
///
/// # Errors
///
/// Other errors of `prepare`.
pub fn is_ready(program: &str, prepared: Result<()>) -> Result<bool> {
    match prepared {
        Err(error @ Error::Compile { .. }) => {
            eprintln!("{program}: {error}");
            Ok(false)
        }
        outcome => outcome.map(|()| true),
    }
}

/// Kernels of `conjugate_gradient`.
pub mod conjugate_gradient {
    pub mod kernels;
}

/// Kernels of `heat`, and the exact heat after any number of steps.
pub mod heat {
    pub mod kernels;
    pub mod waves;
}

/// Kernels of `stream_file`, and its chunks.
pub mod stream_file {
    pub mod kernels;
    pub mod streaming;
}

/// Kernels, steps and pictures of `live`.
pub mod live {
    pub mod kernels;
    pub mod picture;
    pub mod simulation;
}
