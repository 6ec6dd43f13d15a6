//! A body that is called for each element of an output.
//! Wrong: without outputs there are no elements to call it for.
//~ {In, Kernel, Out} => {In, Kernel}
//~ (In<f32>, Out<f32>) => (In<f32>, In<f32>)
//~ |i, (x, y)| *y = x[i] => |_, (_, _)| ()
use resident::{In, Kernel, Out};

pub(crate) fn main() {
    let copy = Kernel::<(In<f32>, Out<f32>)>::new("copy").host_each(|i, (x, y)| *y = x[i]);
    drop(copy);
}
