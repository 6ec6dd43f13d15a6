//! A record of a type that is known.
//! Wrong: a record with a generic parameter.
//~ struct Pair([f32; 2]); => struct Pair<T>([T; 2]);
//~ size_of::<Pair>() => size_of::<Pair<f32>>()
use resident::Element;

#[repr(C)]
#[derive(Clone, Copy, Element)]
struct Pair([f32; 2]);

pub(crate) fn main() {
    assert_eq!(size_of::<Pair>(), Pair([1.0; 2]).0.len() * 4);
}
