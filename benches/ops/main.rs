//! `resident::ops` on the embedded device, beside plain ndarray, or a loop, for the same work in
//! the same run: `cargo bench --bench ops`. `-- --quick` runs two short rounds of each.
//!
//! Operands are on the device already, and each run waits for its result. Figures are the least of
//! rounds that alternate between the two, since other programs of the machine only add to them.
//! `-- sum` measures the operations whose names contain the word.

mod lines;
mod rows;

use std::time::Instant;

use rows::Row;

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    println!(
        "| operation | elements | ndarray, us | ours, us | ndarray / ours |\n|---|---|---|---|---|"
    );
    let sizes: &[usize] = if is_quick { &[64] } else { &[32, 256, 1024, 2048] };
    let words: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let is_wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
    for side in sizes {
        let len = side * side;
        let rows = rows::rows(*side).into_iter().filter(|row| is_wanted(row.name));
        rows.chain(lines::rows(len, &is_wanted)).for_each(|row| report(row, len, is_quick));
    }
}

fn report(mut row: Row, len: usize, is_quick: bool) {
    let rounds = if is_quick { 2 } else { 41 };
    // A round takes about a millisecond at least, so that the clock's resolution does not matter.
    let once_us = { measured_us(&mut row.plain, 1).max(measured_us(&mut row.ours, 1)) };
    let times = if is_quick { 1 } else { (1000.0 / once_us).ceil() as usize };
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        plain.push(measured_us(&mut row.plain, times));
        ours.push(measured_us(&mut row.ours, times));
    }
    let (plain, ours) = (least(plain), least(ours));
    println!("| {} | {len} | {plain:.1} | {ours:.1} | {:.2} |", row.name, plain / ours);
}

/// Microseconds for one run.
fn measured_us(run: &mut dyn FnMut(), times: usize) -> f64 {
    let start = Instant::now();
    (0..times).for_each(|_| run());
    start.elapsed().as_secs_f64() * 1e6 / times as f64
}

fn least(figures: Vec<f64>) -> f64 {
    figures.into_iter().min_by(f64::total_cmp).unwrap_or(f64::NAN)
}
