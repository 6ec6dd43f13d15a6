//! What records cost the host: the programs of `times.rs` without a listener, in a capture, and
//! with an attached ledger, above a driver that does nothing: `cargo bench --bench audit`. Medians
//! of the differences of 101 batches, in turn. A capture is of one batch, so the growth of its
//! memory is included.

use resident::audit;
use resident_overhead::ours::{self, Program};
use resident_overhead::{median, time_ns};

/// A program, and the records that one run of it makes.
struct Row {
    name: &'static str,
    program: Program,
    records: &'static str,
    target_ns: f64,
}

fn print(row: &mut Row, turns: u32, batches: usize) {
    time_ns(&mut row.program, turns);
    let rounds: Vec<[f64; 3]> = (0..batches)
        .map(|_| {
            let unobserved = time_ns(&mut row.program, turns);
            let (captured, _report) = audit::capture(|| time_ns(&mut row.program, turns));
            let ledger = audit::Ledger::attach();
            let attached = time_ns(&mut row.program, turns);
            drop(ledger);
            [unobserved, captured, attached]
        })
        .collect();
    let of = |figure: fn(&[f64; 3]) -> f64| median(rounds.iter().map(figure).collect());
    let (unobserved, record) = (of(|round| round[0]), of(|round| round[1] - round[0]));
    let attached = of(|round| round[2] - round[0]);
    let verdict = if record <= row.target_ns { "yes" } else { "**no**" };
    println!(
        "| {} | {} | {unobserved:.0} | +{record:.0} | +{attached:.0} | ≤ +{} | {verdict} |",
        row.name, row.records, row.target_ns
    );
}

fn main() {
    // `cargo test --benches` passes `--test`: then every program runs, but nothing is measured.
    let is_test = std::env::args().any(|argument| argument == "--test");
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let (turns, batches) = if is_test { (2, 1) } else { (2_000, 101) };
    println!("| program | records | no listener, ns | capture | ledger | target | met |");
    println!("|---|---|---|---|---|---|---|");
    let row = |name, program, records, target_ns| Row { name, program, records, target_ns };
    let both = ours::write_and_launch();
    let rows = [
        row("launch with 1 array", ours::launch(1, false), "a launch", 40.0),
        row("launch with 4 arrays", ours::launch(4, false), "a launch", 40.0),
        row("16 KiB written on the host and launched", both, "a launch and a copy", 140.0),
    ];
    for mut row in rows {
        if filter.as_ref().is_none_or(|filter| row.name.contains(filter.as_str())) {
            print(&mut row, turns, batches);
        }
    }
}
