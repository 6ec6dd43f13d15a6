//! Kernels as CUDA programs commonly have them, each beside plain Rust: on the embedded device,
//! then with each access checked. `.ci/run` also executes them as PTX. Without a C++ compiler these
//! tests say so and do nothing.

mod bits;
mod graphs;
mod halves;
mod language;
mod memory;
mod numbers;
mod reductions;
mod scans;
mod sorting;
mod stencils;
mod warps;

use std::fmt::Debug;

use resident::{
    CudaSource, Device, Element, Emulation, Error, Grid, In, InOut, Kernel, SmartArray,
};

support::record_launches!();

/// Runs the kernel `run(const I *in, O *out, int n)` of a source, where `n` is the number of
/// inputs, and compares what `out` has afterwards.
#[macro_export]
macro_rules! check {
    ($source:expr, $grid:expr, $input:expr, $before:expr, $expected:expr $(,)?) => {
        $crate::agrees(support::test_name!(), $source, $grid, &$input, &$before, &$expected)
    };
}

/// See [`check`].
#[track_caller]
fn agrees<I: Element, O: Element + PartialEq + Debug>(
    name: &str,
    source: &str,
    grid: Grid,
    input: &[I],
    before: &[O],
    expected: &[O],
) {
    for is_checked in [false, true] {
        let found = run(name, source, grid, is_checked, input, before);
        let outcome = match found {
            Ok(None) => return,
            Ok(Some(found)) => differs(&found, expected),
            Err(fault) => Err(fault),
        };
        outcome.unwrap_or_else(|fault| panic!("checked {is_checked}: {fault}"));
    }
}

fn differs<O: PartialEq + Debug>(found: &[O], expected: &[O]) -> Result<(), String> {
    let mut pairs = found.iter().zip(expected).enumerate();
    match pairs.find(|(_, (found, expected))| found != expected) {
        None => Ok(()),
        Some((at, (found, expected))) => {
            Err(format!("element {at} is {found:?} instead of {expected:?}"))
        }
    }
}

/// What the kernel makes of `before`. `None`, with a message, if there is no C++ compiler.
fn run<I: Element, O: Element>(
    name: &str,
    source: &str,
    grid: Grid,
    is_checked: bool,
    input: &[I],
    before: &[O],
) -> Result<Option<Vec<O>>, String> {
    let source = CudaSource::c(source).entry("run");
    // SAFETY: the sources of this suite access only elements of their arguments.
    let kernel = unsafe { Kernel::<(In<I>, InOut<O>, i32)>::new(name).cuda(source) };
    let device = Device::emulated(Emulation::new().sanitize(is_checked));
    match kernel.prepare(&device) {
        Err(Error::Compile { log, .. }) if log.contains("there is no C++ compiler") => {
            eprintln!("skipped: {log}");
            return Ok(None);
        }
        outcome => outcome.map_err(|error| error.to_string())?,
    }
    let (x, mut y) = (SmartArray::from(input.to_vec()), SmartArray::from(before.to_vec()));
    let queued = kernel.launch_on(&device.stream(), grid, (&x, &mut y, input.len() as i32));
    queued.and_then(|()| y.to_vec()).map(Some).map_err(|error| error.to_string())
}

/// Numbers that look random.
fn words(count: usize) -> Vec<u32> {
    let mut state = 12345_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state ^ state >> 15
    };
    (0..count).map(|_| next()).collect()
}

/// Whole numbers from -100 to 100.
fn ints(count: usize) -> Vec<i32> {
    words(count).iter().map(|word| (word % 201) as i32 - 100).collect()
}

/// Multiples of 1/8 from -12 to 12: sums of them are exact in each order.
fn floats(count: usize) -> Vec<f32> {
    ints(count).iter().map(|x| *x as f32 / 8.0).collect()
}
