//! Chains of rearrangements on arrays of both kinds and on fields of records, beside ndarray's.
#![no_main]

use arbitrary::Arbitrary;
use resident::{Device, Emulation};

#[path = "../operations/views/mod.rs"]
mod operations;

/// A chain on a device that runs its work in the order of a seed.
#[derive(Arbitrary, Debug)]
struct Program {
    seed: u64,
    lens: [u8; 4],
    ndim: u8,
    is_fortran: bool,
    steps: Vec<operations::chain::Step>,
}

libfuzzer_sys::fuzz_target!(|program: Program| {
    let device = Device::emulated(Emulation::new().seed(program.seed).poison(true));
    let lens = program.lens.iter().map(|len| usize::from(len % 7));
    let chain = operations::Chain {
        shape: lens.take(usize::from(program.ndim % 5)).collect(),
        is_fortran: program.is_fortran,
        steps: program.steps.into_iter().take(12).collect(),
    };
    let runs = [
        operations::Chain::run_on_views,
        operations::Chain::run_on_device_views,
        operations::Chain::run_on_exclusive_views,
        operations::Chain::run_on_exclusive_device_views,
        operations::Chain::run_on_fields,
        operations::Chain::run_on_device_fields,
        operations::Chain::run_on_exclusive_fields,
    ];
    let kernels = operations::launched::Kernels::new(None);
    for run in runs {
        run(&chain, &device.stream(), &kernels).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(device.emulation().map_or(0, |log| log.hazards().len()), 0);
});
