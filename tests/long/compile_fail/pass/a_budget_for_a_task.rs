//! A budget for an asynchronous function.
#[resident::budget(to_host = 0)]
fn moves_nothing() {}

pub(crate) fn main() {
    moves_nothing();
}
