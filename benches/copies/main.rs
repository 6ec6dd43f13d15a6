//! Copies of large ordinary (pageable) arrays on the embedded device, beside `memcpy` in the same
//! rounds: `cargo bench --bench copies`. `-- --quick` runs one short round of each.
//!
//! The steady rows use memory that was touched before. The fresh rows make an array in each round,
//! so they include the page faults of its first use.

mod faults;
mod programs;

use std::time::Instant;

use faults::page_faults;
use programs::{Program, fresh, steady};
use resident_benches::median;

const MIB: usize = 1 << 20;

/// One program over all its rounds.
#[derive(Default)]
struct Figures {
    seconds: Vec<f64>,
    page_faults: Vec<f64>,
}

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let (sizes, rounds): (&[usize], usize) =
        if is_quick { (&[4 * MIB], 1) } else { (&[64 * MIB, 256 * MIB], 21) };
    println!("| copy | MiB | GiB/s | of memcpy | page faults a round |\n|---|---|---|---|---|");
    for len_bytes in sizes {
        report(*len_bytes, rounds, steady(*len_bytes));
        report(*len_bytes, rounds, fresh(*len_bytes));
    }
}

/// Runs the programs in turn and prints a row for each. The first is the one that the others are
/// compared with.
fn report(len_bytes: usize, rounds: usize, mut programs: Vec<Program>) {
    let mut figures: Vec<Figures> = programs.iter().map(|_| Figures::default()).collect();
    for round in 0..=rounds {
        for (program, figures) in programs.iter_mut().zip(&mut figures) {
            let (seconds, page_faults) = measured(program);
            // The first round brings the memory and the threads into the state that the others
            // find.
            if round > 0 {
                figures.seconds.push(seconds);
                figures.page_faults.push(page_faults);
            }
        }
    }
    let reference_s = median(figures[0].seconds.clone());
    for (program, figures) in programs.iter().zip(figures) {
        let seconds = median(figures.seconds);
        println!(
            "| {} | {} | {:.2} | {:.2} | {:.0} |",
            program.name,
            len_bytes / MIB,
            len_bytes as f64 / seconds / f64::from(1 << 30),
            reference_s / seconds,
            median(figures.page_faults),
        );
    }
}

/// The seconds and the page faults of one run.
fn measured(program: &mut Program) -> (f64, f64) {
    (program.prepare)();
    let (faults, start) = (page_faults(), Instant::now());
    (program.run)();
    let seconds = start.elapsed().as_secs_f64();
    (seconds, (page_faults() - faults) as f64)
}
