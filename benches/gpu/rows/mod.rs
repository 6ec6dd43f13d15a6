//! The rows of the benchmark: what is measured, and the time limit.

mod baselines;
mod changed_parts;
mod conjugate_gradient;
mod four_bytes;
pub mod launches;
mod pageable;
mod photos;
pub mod pinned;
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
    /// Whether there is a program by hand for AMD GPUs too.
    pub has_hip: bool,
    pub measure: fn(&Session, &mut Report) -> Outcome,
}

pub const ALL: [Row; 10] = [
    Row {
        name: "launches",
        about: "1,000 launches of a kernel with almost no work, on one stream: time per launch, \
            compared with programs by hand (cudarc with tracking off, or HIP).",
        limit_s: 10,
        has_hip: true,
        measure: launches::measure,
    },
    Row {
        name: "streams",
        about: "Rounds over 4 streams: one kernel writes, then four read, each on its own stream.",
        limit_s: 10,
        has_hip: false,
        measure: streams::measure,
    },
    Row {
        name: "four_bytes",
        about: "A kernel, then a host read of 4 bytes that it wrote; 100 times.",
        limit_s: 6,
        has_hip: true,
        measure: four_bytes::measure,
    },
    Row {
        name: "pinned",
        about: "Copies of pinned memory, compared with the driver's asynchronous copies.",
        limit_s: 34,
        has_hip: true,
        measure: pinned::measure,
    },
    Row {
        name: "pageable",
        about: "Copies of pageable memory, compared with the driver's synchronous copies of \
            pageable memory and its asynchronous copies of pinned memory.",
        limit_s: 39,
        has_hip: true,
        measure: pageable::measure,
    },
    Row {
        name: "pipeline",
        about: "One upload, 50 kernels, one download.",
        limit_s: 38,
        has_hip: false,
        measure: pipeline::measure,
    },
    Row {
        name: "photos",
        about: "The example `photos` on 200 photographs, compared with the longest of upload, \
            computation and download alone.",
        limit_s: 15,
        has_hip: false,
        measure: photos::measure,
    },
    Row {
        name: "conjugate_gradient",
        about: "Conjugate gradient on a square's Laplacian to a fixed residual.",
        limit_s: 11,
        has_hip: false,
        measure: conjugate_gradient::measure,
    },
    Row {
        name: "changed_parts",
        about: "A part is changed on the host between launches that read the whole array.",
        limit_s: 20,
        has_hip: false,
        measure: changed_parts::measure,
    },
    Row {
        name: "baselines",
        about: "Host code that looks at rows and columns between launches, compared with exact \
            copies by hand, and with copies of whole arrays by hand.",
        limit_s: 8,
        has_hip: false,
        measure: baselines::measure,
    },
];
