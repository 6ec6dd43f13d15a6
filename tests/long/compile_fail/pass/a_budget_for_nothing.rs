//! A budget with a limit that there is not.
#[resident::budget(to_host = 0, exactly)]
fn moves_nothing() {}

pub(crate) fn main() {
    moves_nothing();
}
