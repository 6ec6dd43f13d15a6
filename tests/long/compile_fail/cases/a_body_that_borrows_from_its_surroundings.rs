//! A body that owns the values that it captures.
//! Wrong: a body runs later, on another thread, so it must own the values that it captures.
//~ factors[1] => borrowed[1]
//~     let scale = =>     let borrowed = &factors;\n    let scale =
use resident::{InOut, Kernel};

pub(crate) fn main() {
    let factors = Vec::from([1.0_f32, 2.0]);
    let scale = Kernel::<(InOut<f32>,)>::new("scale").host(move |_grid, (xs,)| xs[0] *= factors[1]);
    drop(scale);
}
