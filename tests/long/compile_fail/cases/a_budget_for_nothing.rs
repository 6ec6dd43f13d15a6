//! A budget with limits that there are.
//! Wrong: a limit that there is not.
//~ to_host = 0, exactly => to_hosts = 0
#[resident::budget(to_host = 0, exactly)]
fn moves_nothing() {}

pub(crate) fn main() {
    moves_nothing();
}
