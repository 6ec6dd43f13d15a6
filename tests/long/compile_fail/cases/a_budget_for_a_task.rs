//! A budget for a function that is not asynchronous.
//! Wrong: a budget for an asynchronous function.
//~ fn moves => async fn moves
//~     moves_nothing() =>     drop(moves_nothing())
#[resident::budget(to_host = 0)]
fn moves_nothing() {}

pub(crate) fn main() {
    moves_nothing();
}
