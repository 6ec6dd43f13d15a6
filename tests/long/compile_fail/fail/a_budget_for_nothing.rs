//! A budget with a limit that there is not.
#[resident::budget(to_hosts = 0)]
fn moves_nothing() {}

fn main() {
    moves_nothing();
}
