//! A histogram of a picture's grey values, with atomics in shared and in global memory, in CUDA C.
//! The picture is uploaded once, and 1,024 bytes come back.
//!
//! Usage: `histogram [PIXELS]`, 1,000,000 by default.

use std::process::ExitCode;

use resident::ndarray::Array1;
use resident::prelude::*;
use resident_example_programs::{is_ready, number_argument};

/// The grey values: `BINS` of the source.
const BINS: usize = 256;

fn histogram() -> Kernel<(u64, In<u8>, InOut<u32>)> {
    let kernel = Kernel::<(u64, In<u8>, InOut<u32>)>::new("histogram")
        .require("the length is that of the pixels", |_grid, (len, pixels, _)| {
            len == pixels.len() as u64
        })
        .require("a count for each value", |_grid, (_, _, counts)| counts.len() == BINS);
    // SAFETY: it reads `len` pixels, whose values are below 256, and as many counts are there.
    unsafe { kernel.cuda(include_str!("histogram.cu")) }
}

/// Waves of grey.
fn picture(pixels: usize) -> Array1<u8> {
    Array1::from_shape_fn(pixels, |i| (128.0 + 100.0 * (i as f64 * 0.001).sin()) as u8)
}

fn main() -> Result<ExitCode> {
    let Some(len) = number_argument("histogram", 1_000_000) else { return Ok(ExitCode::from(2)) };
    let (device, histogram) = (Device::current()?, histogram());
    if !is_ready("histogram", histogram.prepare(&device))? {
        return Ok(ExitCode::FAILURE);
    }
    let pixels = picture(len);
    let mut expected = [0; BINS];
    pixels.iter().for_each(|pixel| expected[usize::from(*pixel)] += 1);
    let pixels = SmartArray::from(pixels).named("picture");
    let mut counts = SmartArray::<u32, _>::zeros(BINS).named("counts");
    let (outcome, report) = audit::capture(|| -> Result<Vec<u32>> {
        histogram.launch(Grid::new(64, 256), (len as u64, &pixels, &mut counts))?;
        counts.to_vec()
    });
    let counts = outcome?;
    assert_eq!(counts, expected, "counted one by one");
    let most = counts.iter().max().copied().unwrap_or(1).max(1);
    for (first, group) in counts.chunks(16).enumerate() {
        let bar = group.iter().map(|count| u64::from(*count)).sum::<u64>() * 4 / u64::from(most);
        println!("{:3} {}", 16 * first, "#".repeat(bar as usize));
    }
    println!("{report}");
    Ok(ExitCode::SUCCESS)
}
