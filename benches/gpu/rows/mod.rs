//! The rows of the benchmark: what is measured, and the time limit.

mod changed_parts;
mod conjugate_gradient;
mod four_bytes;
mod launches;
mod pageable;
mod photos;
mod pinned;
mod pipeline;
mod streams;

use crate::report::Report;
use crate::session::Session;
use resident_benches::gpu::fault::Outcome;

/// One row.
pub struct Row {
    pub name: &'static str,
    pub about: &'static str,
    /// The time limit in seconds.
    pub limit_s: u64,
    pub measure: fn(&Session, &mut Report) -> Outcome,
}

pub const ALL: [Row; 9] = [
    Row {
        name: "launches",
        about: "1,000 launches of a kernel with almost no work, on one stream: time per launch, \
            compared with cudarc with tracking off.",
        limit_s: 10,
        measure: launches::measure,
    },
    Row {
        name: "streams",
        about: "Rounds over 4 streams: one kernel writes, then four read, each on its own stream.",
        limit_s: 10,
        measure: streams::measure,
    },
    Row {
        name: "four_bytes",
        about: "A kernel, then a host read of 4 bytes that it wrote; 100 times.",
        limit_s: 6,
        measure: four_bytes::measure,
    },
    Row {
        name: "pinned",
        about: "Copies of pinned memory, compared with the driver's asynchronous copies.",
        limit_s: 34,
        measure: pinned::measure,
    },
    Row {
        name: "pageable",
        about: "Copies of pageable memory, compared with the driver's synchronous copies of \
            pageable memory and its asynchronous copies of pinned memory.",
        limit_s: 39,
        measure: pageable::measure,
    },
    Row {
        name: "pipeline",
        about: "One upload, 50 kernels, one download.",
        limit_s: 38,
        measure: pipeline::measure,
    },
    Row {
        name: "photos",
        about: "The example `photos` on 200 photographs, compared with the longest of upload, \
            computation and download alone.",
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
        about: "A part is changed on the host between launches that read the whole array.",
        limit_s: 20,
        measure: changed_parts::measure,
    },
];
