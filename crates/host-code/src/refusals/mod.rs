//! What the embedded device refuses, in words that help: features of CUDA C that it lacks, and what
//! a C++ compiler takes and NVRTC does not.
//!
//! | file | purpose |
//! |---|---|
//! | `extensions` | what compilers for the host have beyond C++ |
//! | `features` | features that are not there |
//! | `left_out`, `callers` | the kernels that use them, and functions with their callers |
//! | `initialisers` | variables that code initialises, in what was compiled |
//! | `missing_headers` | headers of features that are not there |
//! | `preprocessed` | a source as the preprocessor leaves it |
//! | `outline` | the functions of a preprocessed source |
//! | `strictness` | what NVRTC refuses in a preprocessed source |

mod callers;
mod extensions;
pub(super) mod features;
pub(super) mod initialisers;
pub(super) mod left_out;
pub(super) mod missing_headers;
mod outline;
pub(super) mod preprocessed;
pub(super) mod strictness;
