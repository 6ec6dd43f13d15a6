//! The instructions of the programs of `times.rs`, counted by valgrind. See
//! `benches/instructions.rs` for what it needs. Each function runs its program 1,000 times, after
//! 100 runs that are not counted, so divide a count by 1,000. The free driver's instructions are
//! included: about 10 for each call.

#![allow(
    missing_docs,
    unused_qualifications,
    reason = "the macros make public modules and constants without documentation, and name things \
        in full"
)]

use gungraun::{library_benchmark, library_benchmark_group, main};
use resident::audit;
use resident_overhead::ours::Program;
use resident_overhead::{by_hand, ours, tiles};

const TURNS: usize = 1_000;

/// A program in its steady state.
fn warm(mut program: Program) -> Program {
    (0..100).for_each(|_| program());
    program
}

fn run(mut program: Program) -> Program {
    (0..TURNS).for_each(|_| program());
    program
}

#[library_benchmark]
#[bench::no_arrays(warm(ours::launch(0, false)))]
#[bench::one_array(warm(ours::launch(1, false)))]
#[bench::four_arrays(warm(ours::launch(4, false)))]
#[bench::eight_arrays(warm(ours::launch(8, false)))]
#[bench::sixteen_arrays(warm(ours::launch(16, false)))]
#[bench::one_array_of_two_streams(warm(ours::launch(1, true)))]
#[bench::four_arrays_of_two_streams(warm(ours::launch(4, true)))]
#[bench::eight_arrays_of_two_streams(warm(ours::launch(8, true)))]
#[bench::and_get(warm(ours::launch_and_get()))]
#[bench::after_a_write(warm(ours::write_and_launch()))]
#[bench::sixty_four_tiles(warm(tiles::launch(64, 1, false)))]
#[bench::sixty_four_tiles_over_four_streams(warm(tiles::launch(64, 4, false)))]
fn launch(program: Program) -> Program {
    run(program)
}

#[library_benchmark]
#[bench::no_arrays(warm(by_hand::launch(0)))]
#[bench::one_array(warm(by_hand::launch(1)))]
#[bench::four_arrays(warm(by_hand::launch(4)))]
#[bench::eight_arrays(warm(by_hand::launch(8)))]
#[bench::sixteen_arrays(warm(by_hand::launch(16)))]
#[bench::and_get(warm(by_hand::launch_and_get()))]
#[bench::after_a_write(warm(by_hand::write_and_launch()))]
fn launch_by_hand(program: Program) -> Program {
    run(program)
}

#[library_benchmark]
#[bench::of_8(warm(ours::chain()))]
#[bench::of_8_on_the_embedded_device(warm(ours::embedded_chain()))]
fn chain(program: Program) -> Program {
    run(program)
}

#[library_benchmark]
#[bench::of_8(warm(by_hand::chain()))]
fn chain_by_hand(program: Program) -> Program {
    run(program)
}

/// The same program while an attached ledger records what it does.
fn recorded(mut program: Program) -> Program {
    let ledger = audit::Ledger::attach();
    Box::new(move || {
        let _listens = &ledger;
        program();
    })
}

#[library_benchmark]
#[bench::one_array(warm(recorded(ours::launch(1, false))))]
#[bench::four_arrays(warm(recorded(ours::launch(4, false))))]
#[bench::after_a_write(warm(recorded(ours::write_and_launch())))]
fn launch_recorded(program: Program) -> Program {
    run(program)
}

library_benchmark_group!(
    name = overhead;
    benchmarks = launch, launch_recorded, launch_by_hand, chain, chain_by_hand
);

main!(library_benchmark_groups = overhead);
