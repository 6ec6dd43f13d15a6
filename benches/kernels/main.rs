//! CUDA C on the embedded device beside the same loops in C++, in the same rounds: `cargo bench
//! --bench kernels`. Both are compiled by one compiler with the same options, and run on as many
//! threads. `-- --quick` runs one round of each, `-- --only=axpy` those whose names contain a
//! word, `-- --only=checked` what the checker costs.

mod checked;
mod launches;
mod loops;
mod pairs;

use std::time::Instant;

use loops::Loops;
use resident_benches::median;

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if is_quick { 1 } else { 41 };
    let loops = std::rc::Rc::new(Loops::compile());
    println!("| kernel | CUDA C, µs | C++, µs | ratio | target | met |\n|---|---|---|---|---|---|");
    let wanted = std::env::args().find_map(|word| word.strip_prefix("--only=").map(str::to_owned));
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|word| name.contains(word));
    for mut pair in pairs::pairs(&loops).into_iter().filter(|pair| is_wanted(pair.name)) {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=rounds {
            let taken = [seconds(|| pair.run_kernel()), seconds(|| pair.run_loop())];
            // The first round compiles, and brings the memory into the state that others find.
            if round > 0 {
                times.iter_mut().zip(taken).for_each(|(times, taken)| times.push(taken));
            }
        }
        pair.assert_same();
        let [by_kernel, by_loop] = times.map(median);
        let ratio = by_kernel / by_loop;
        println!(
            "| {} | {:.0} | {:.0} | {ratio:.2} | ≤ {} | {} |",
            pair.name,
            by_kernel * 1e6,
            by_loop * 1e6,
            pair.target,
            if ratio <= pair.target { "yes" } else { "**no**" },
        );
    }
    if is_wanted("launch") {
        launches::report(rounds);
    }
    let is_checked = |name: &str| is_wanted("checked") || is_wanted(name);
    checked::report(&loops, rounds, is_checked);
}

pub(crate) fn seconds(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}
