//! The rows of the plan: what is measured, for how long, and what it is to come to.

mod changed_parts;
mod conjugate_gradient;
mod four_bytes;
mod launches;
mod ordinary;
mod page_locked;
mod photos;
mod pipeline;
mod streams;

use crate::report::Report;
use crate::session::Session;
use resident_benches::gpu::fault::Outcome;

/// One row.
pub struct Row {
    pub name: &'static str,
    pub about: &'static str,
    /// Seconds that it may take.
    pub limit_s: u64,
    pub measure: fn(&Session, &mut Report) -> Outcome,
}

pub const ALL: [Row; 9] = [
    Row {
        name: "launches",
        about: "1,000 launches of a kernel that does next to nothing, on one stream: each one's share of the time, beside cudarc with its tracking off.",
        limit_s: 10,
        measure: launches::measure,
    },
    Row {
        name: "streams",
        about: "Rounds over 4 streams: one kernel writes what four read, each on its own stream.",
        limit_s: 10,
        measure: streams::measure,
    },
    Row {
        name: "four_bytes",
        about: "A kernel, and 4 bytes of what it wrote, read by the host; 100 times.",
        limit_s: 6,
        measure: four_bytes::measure,
    },
    Row {
        name: "page_locked",
        about: "Copies of page-locked memory beside the driver's asynchronous copies.",
        limit_s: 34,
        measure: page_locked::measure,
    },
    Row {
        name: "ordinary",
        about: "Copies of ordinary memory beside the driver's synchronous copies of ordinary memory, and its asynchronous ones of page-locked memory.",
        limit_s: 39,
        measure: ordinary::measure,
    },
    Row {
        name: "pipeline",
        about: "One array up, 50 kernels, one array down.",
        limit_s: 38,
        measure: pipeline::measure,
    },
    Row {
        name: "photos",
        about: "The example `photos` on 200 photographs, beside the longest of uploading, computing and downloading alone.",
        limit_s: 15,
        measure: photos::measure,
    },
    Row {
        name: "conjugate_gradient",
        about: "Conjugate gradient on a square's Laplacian to a fixed residual.",
        limit_s: 11,
        measure: conjugate_gradient::measure,
    },
    Row {
        name: "changed_parts",
        about: "A part is changed on the host between launches that read the whole.",
        limit_s: 20,
        measure: changed_parts::measure,
    },
];
