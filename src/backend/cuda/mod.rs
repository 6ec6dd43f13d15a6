//! NVIDIA GPUs, through cudarc. Nothing outside this folder names cudarc, the interop module aside.
//!
//! cudarc gives contexts, streams, modules, NVRTC and the driver's functions; memory, order and lifetimes are this library's, since cudarc's own
//! tracking keeps one reader of many and costs calls for each argument.
//!
//! | file | what it is |
//! |---|---|
//! | `library`, `call`, `context` | the driver's libraries, its results, one GPU's primary context |

mod call;
mod context;
mod library;
