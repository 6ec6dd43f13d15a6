//! The cost of coherence when no copy is needed, compared with coaster's `SharedTensor` in the same
//! run.
//!
//! `cargo bench --bench peers` prints one line per operation: its name, the medians of both in
//! nanoseconds, and their ratio. Medians are over 101 batches, which alternate between the
//! libraries. Quote the ratios rather than the times, because machines differ and are shared.

#![allow(
    unreachable_pub,
    unused_qualifications,
    reason = "a program: `pub` says what a module is for"
)]

mod coaster_device;
mod footprint;
mod gate;
mod measure;
mod operations;
mod views;

use measure::Row;

#[global_allocator]
static ALLOCATOR: footprint::Counting = footprint::Counting;

fn main() {
    // `cargo test --benches` passes `--test`: then every operation runs, but nothing is measured.
    let is_test = std::env::args().any(|argument| argument == "--test");
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    measure::set_quick(is_test);
    println!(
        "{:<58} {:>12} {:>12} {:>7}",
        "operation, medians in ns", "resident", "coaster", "ratio"
    );
    let views = [views::COHERENT, views::TABLE, views::EXPLICIT, views::NDARRAY];
    for (name, operation) in operations::ALL.iter().chain(views.into_iter().flatten()) {
        if filter.as_ref().is_none_or(|filter| name.contains(filter.as_str())) {
            print_row(name, &operation());
        }
    }
    footprint::print();
}

fn print_row(name: &str, row: &Row) {
    match row.peer {
        Some(peer) => {
            println!("{name:<58} {:>12.1} {:>12.1} {:>7.2}", row.own, peer, row.own / peer);
        }
        None => println!("{name:<58} {:>12.1} {:>12} {:>7}", row.own, "-", "-"),
    }
}
