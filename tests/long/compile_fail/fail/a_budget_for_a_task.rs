//! A budget for an asynchronous function.
#[resident::budget(to_host = 0)]
async fn moves_nothing() {}

fn main() {
    drop(moves_nothing());
}
