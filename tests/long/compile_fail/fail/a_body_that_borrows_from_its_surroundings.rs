//! A body runs later, on another thread, so it must own the values that it captures.
use resident::{InOut, Kernel};

fn main() {
    let factors = Vec::from([1.0_f32, 2.0]);
    let borrowed = &factors;
    let scale =
        Kernel::<(InOut<f32>,)>::new("scale").host(move |_grid, (xs,)| xs[0] *= borrowed[1]);
    drop(scale);
}
