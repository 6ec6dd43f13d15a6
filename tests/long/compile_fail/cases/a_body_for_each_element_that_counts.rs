//! A body that is called for each element, and counts its calls by an atomic number.
//! Wrong: several threads call it at once, so it must not change what it captures.
//~ use std::sync::atomic::{AtomicUsize, Ordering};\n =>
//~ let count = AtomicUsize::new(0); => let mut count = 0;
//~ count.fetch_add(1, Ordering::Relaxed); => count += 1;
use resident::{Kernel, Out};
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) fn main() {
    let count = AtomicUsize::new(0);
    let fill = Kernel::<(Out<f32>,)>::new("fill").host_each(move |i, (x,)| {
        count.fetch_add(1, Ordering::Relaxed);
        *x = i as f32;
    });
    drop(fill);
}
