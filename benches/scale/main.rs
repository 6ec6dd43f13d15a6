//! How the cost of an operation depends on what else there is: live arrays, streams that share an
//! array, boxes, arguments, threads, tiles, streams and failures that are gone.
//!
//! `cargo bench --bench scale` prints one line per operation: microseconds per operation for each
//! size. A filter (`cargo bench --bench scale -- tiles`) selects lines by name, `--size=64` one
//! size.

#![allow(
    unreachable_pub,
    unused_qualifications,
    reason = "a program: `pub` says what a module is for"
)]

mod arrays;
mod boxes;
#[path = "../peers/gate.rs"]
mod gate;
mod lifetimes;
mod streams;
mod tiles;

use std::time::Instant;

use resident_benches::median;

/// Measures an operation at a size: nanoseconds for one.
type Operation = fn(size: usize) -> f64;

/// A line: an operation, and the sizes at which it is measured.
pub struct Line {
    name: &'static str,
    sizes: &'static [usize],
    operation: Operation,
}

fn main() {
    // `cargo test --benches` passes `--test`: then every operation runs at its smallest size.
    let is_test = std::env::args().any(|argument| argument == "--test");
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let only: Option<usize> =
        std::env::args().find_map(|argument| argument.strip_prefix("--size=")?.parse().ok());
    let all = [tiles::LINES, boxes::LINES, arrays::LINES, streams::LINES, lifetimes::LINES];
    for lines in all {
        for line in lines {
            if filter.as_ref().is_none_or(|filter| line.name.contains(filter.as_str())) {
                let sizes = line.sizes.iter().filter(|size| only.is_none_or(|only| only == **size));
                print(line, sizes.take(if is_test { 1 } else { usize::MAX }));
            }
        }
    }
}

fn print<'a>(line: &Line, sizes: impl Iterator<Item = &'a usize>) {
    println!("{}", line.name);
    for size in sizes {
        let nanoseconds = (line.operation)(*size);
        println!("{size:>12} {:>12.3} µs", nanoseconds / 1_000.0);
    }
}

/// The median over `batches` of the time that one of `turns` calls takes.
pub fn median_ns(batches: usize, turns: usize, mut operation: impl FnMut(usize)) -> f64 {
    let time = |batch: usize| {
        let start = Instant::now();
        (0..turns).for_each(|turn| operation(batch * turns + turn));
        start.elapsed().as_nanos() as f64 / turns as f64
    };
    median((0..batches).map(time).collect())
}
