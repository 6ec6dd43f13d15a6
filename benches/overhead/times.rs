//! What the host pays for a launch and for small copies, above a driver that does nothing
//! (`tests/stand_in/free_driver`), beside the same program written by hand with cudarc.
//!
//! `cargo bench --bench overhead` prints for each program the medians of both, in nanoseconds, the
//! median of their differences, and the allocations of one run. Medians are over 201 batches, which
//! alternate between the two. `cargo bench --bench overhead_instructions` counts instructions.

use resident_allocations as allocations;
use resident_overhead::ours::Program;
use resident_overhead::{by_hand, median, ours, tiles, time_ns};

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// A figure that a program is to keep, in nanoseconds.
#[derive(Clone, Copy)]
enum Target {
    /// This much more than the program by hand.
    Above(f64),
    /// This much in all.
    Total(f64),
    None,
}

struct Row {
    name: String,
    ours: Program,
    by_hand: Program,
    target: Target,
}

fn rows() -> Vec<Row> {
    let launches = [(0, Target::None), (1, Target::Above(60.0)), (4, Target::Above(110.0))];
    let launches = launches.into_iter().chain([(8, Target::Above(180.0)), (16, Target::None)]);
    let launch = |(count, target, has_other_stream): (usize, Target, bool)| Row {
        name: match has_other_stream {
            false => format!("launch with {count} arrays"),
            true => format!("launch with {count} arrays that two streams used"),
        },
        ours: ours::launch(count, has_other_stream),
        by_hand: by_hand::launch(count),
        target,
    };
    let own = launches.clone().map(|(count, target)| (count, target, false));
    let shared = launches.skip(1).map(|(count, target)| (count, target, true));
    let mut rows: Vec<Row> = own.chain(shared).map(launch).collect();
    rows.push(Row {
        name: "launch and `get(0)`".to_owned(),
        ours: ours::launch_and_get(),
        by_hand: by_hand::launch_and_get(),
        target: Target::Above(600.0),
    });
    rows.push(Row {
        name: "16 KiB written on the host and launched".to_owned(),
        ours: ours::write_and_launch(),
        by_hand: by_hand::write_and_launch(),
        target: Target::Total(1_500.0),
    });
    rows.push(Row {
        name: "chain of 8 launches with an array".to_owned(),
        ours: ours::chain(),
        by_hand: by_hand::chain(),
        target: Target::Above(80.0),
    });
    rows
}

/// Launches over tiles. The program by hand is a launch with two arrays, and makes no stream wait.
fn tile_rows() -> impl Iterator<Item = Row> {
    let shapes = [4, 64, 256, 4_096, 16_384].into_iter().flat_map(|count| {
        [(1, 1_500.0), (4, 3_000.0)]
            .into_iter()
            .flat_map(move |streams| [false, true].map(|is_random| (count, streams, is_random)))
    });
    shapes.map(|(count, (streams, target), is_random)| Row {
        name: format!(
            "{count} tiles, {streams} stream{}, {}",
            if streams == 1 { "" } else { "s" },
            if is_random { "random order" } else { "in order" }
        ),
        ours: tiles::launch(count, streams, is_random),
        by_hand: by_hand::launch(2),
        target: Target::Total(target),
    })
}

/// How often a batch runs a program, and the number of batches of each contender.
#[derive(Clone, Copy)]
struct Plan {
    turns: u32,
    batches: usize,
}

/// The allocations of one run in the steady state, in which tables have reached their size.
fn allocations_of(program: &mut Program, turns: u32) -> f64 {
    (0..1_000).for_each(|_| program());
    let before = allocations::of_this_thread();
    (0..turns).for_each(|_| program());
    (allocations::of_this_thread() - before) as f64 / f64::from(turns)
}

fn print(row: &mut Row, plan: Plan) {
    let allocations = allocations_of(&mut row.ours, plan.turns);
    time_ns(&mut row.by_hand, plan.turns);
    let pairs: Vec<(f64, f64)> = (0..plan.batches)
        .map(|_| (time_ns(&mut row.ours, plan.turns), time_ns(&mut row.by_hand, plan.turns)))
        .collect();
    let ours = median(pairs.iter().map(|(ours, _)| *ours).collect());
    let by_hand = median(pairs.iter().map(|(_, by_hand)| *by_hand).collect());
    let above = median(pairs.iter().map(|(ours, by_hand)| ours - by_hand).collect());
    let (target, is_met) = match row.target {
        Target::Above(most) => (format!("<= +{most}"), above <= most),
        Target::Total(most) => (format!("<= {most} in all"), ours <= most),
        Target::None => (String::new(), true),
    };
    let verdict = if is_met { "" } else { "  missed" };
    println!(
        "{:<46} {ours:>8.0} {by_hand:>8.0} {above:>+8.0} {allocations:>6.2}  {target}{verdict}",
        row.name
    );
}

fn main() {
    // `cargo test --benches` passes `--test`: then every program runs, but nothing is measured.
    let is_test = std::env::args().any(|argument| argument == "--test");
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let plan = match is_test {
        true => Plan { turns: 2, batches: 1 },
        false => Plan { turns: 200, batches: 201 },
    };
    println!(
        "{:<46} {:>8} {:>8} {:>8} {:>6}",
        "medians in ns; allocations", "resident", "cudarc", "above", "alloc."
    );
    for mut row in rows().into_iter().chain(tile_rows()) {
        if filter.as_ref().is_none_or(|filter| row.name.contains(filter.as_str())) {
            print(&mut row, plan);
        }
    }
}
