//! The kernels with a switch where another checker looks at them (`scripts/gpu/defects.py`):
//! `RESIDENT_DEFECTS_ON=list` only tells what they are, and `RESIDENT_DEFECTS_ON=cuda:0=name` runs
//! one of them with its defect on that GPU.

use resident::{CudaSource, Device};

use crate::launch;
use crate::text::{Text, source};

const VARIABLE: &str = "RESIDENT_DEFECTS_ON";

pub(crate) fn is_asked_for() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Tells of a kernel with a defect, or runs it if it is the one that is asked for.
pub(crate) fn visit(text: &Text) {
    let (None, Some(kind)) = (&text.parameters, text.kind_of_first()) else { return };
    let place = std::env::var(VARIABLE).expect("it is text");
    match place.split_once('=') {
        None => println!("defect: {} {kind:?}", text.name),
        Some((place, name)) if name == text.name => run(text, place),
        Some(_) => {}
    }
}

/// Runs a kernel with its defect. What comes of it is for the other checker to tell.
fn run(text: &Text, place: &str) {
    let ordinal = place.strip_prefix("cuda:").and_then(|number| number.parse().ok());
    let gpu = ordinal.map(Device::cuda).expect("RESIDENT_DEFECTS_ON names a GPU: cuda:0=name");
    let gpu = gpu.unwrap_or_else(|error| panic!("{error}"));
    let source = CudaSource::c(source([text])).option("-lineinfo");
    println!("{:?}", launch::launch(&gpu, &source, text, "float", 1));
}
