//! The driver-call diff: the driver calls of this library, compared with those of a hand-written
//! cudarc program for the same work.
//!
//! The two programs run on the stand-in driver, which records every call, so the comparison is
//! exact and needs no GPU. The calls that both programs make must be in the same order. Each
//! program lists the calls that the library's version makes in addition, with the reasons. The test
//! fails if there is one call more or less, so the list stays right. `cargo test -p
//! resident-tests-drivers --test driver_calls -- --nocapture` prints the table in BENCHMARKS.md.

#![cfg(all(target_os = "linux", feature = "cuda"))]

mod baselines;
mod by_hand;
mod device_arrays;
mod in_place;
mod programs;
mod scattered;
mod touches;

use std::collections::BTreeMap;

use resident_stand_in as stand_in;

/// One program written twice.
struct Pair {
    name: &'static str,
    /// Runs the program with this library. An earlier run, which is not measured, has created
    /// arrays and streams and loaded kernels.
    ours: Box<dyn FnMut()>,
    twin: Box<dyn FnMut()>,
    /// The driver calls that this library makes more often than the twin.
    extra: Vec<Difference>,
}

/// A driver call, how much more often the library makes it, and why. A negative number means less
/// often; zero means at another place.
struct Difference {
    call: String,
    count: i64,
    why: String,
}

impl Pair {
    fn new(name: &'static str, ours: impl FnMut() + 'static, twin: impl FnMut() + 'static) -> Self {
        Self { name, ours: Box::new(ours), twin: Box::new(twin), extra: Vec::new() }
    }

    /// Lists differences: `cuEventRecord +1: why`, whose reason may go on in the next line.
    fn but(mut self, differences: &str) -> Self {
        for line in differences.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let call = line.strip_prefix("cu");
            if call.is_none_or(|rest| !rest.starts_with(char::is_uppercase)) {
                let last = self.extra.last_mut().expect("a difference that goes on");
                last.why = format!("{} {line}", last.why);
                continue;
            }
            let (head, why) = line.split_once(": ").expect("a reason");
            let (call, count) = head.split_once(' ').expect("a number");
            let count = count.parse().expect("a number");
            self.extra.push(Difference { call: call.into(), count, why: why.into() });
        }
        self
    }
}

type Counts = BTreeMap<String, i64>;

/// The driver calls of one run, in order. Runs before it create all objects that later runs reuse.
fn recorded(program: &mut dyn FnMut(), runs_before: usize) -> Vec<String> {
    (0..runs_before).for_each(|_| program());
    stand_in::take_calls();
    program();
    let calls = stand_in::take_calls();
    calls.iter().for_each(|call| assert!(call.code == 0 || call.name.ends_with("Query"), "{call}"));
    let calls: Vec<String> = calls.into_iter().map(|call| call.name).collect();
    without_modes(calls)
}

/// Leaves out the calls that set a number of the calling thread, its mode beside captures: two for
/// each wait or question of this library, and none else.
fn without_modes(mut calls: Vec<String>) -> Vec<String> {
    let modes = calls.extract_if(.., |name| name == "cuThreadExchangeStreamCaptureMode").count();
    let asks = |name: &&String| name.ends_with("Synchronize") || name.ends_with("Query");
    let asked = calls.iter().filter(asks).count();
    assert!(modes == 0 || modes == 2 * asked, "{modes} changes of mode for {asked} waits");
    calls
}

fn counts(calls: &[String]) -> Counts {
    let mut counts = Counts::new();
    calls.iter().for_each(|call| *counts.entry(call.clone()).or_default() += 1);
    counts
}

/// The calls that are not listed as differences between the two programs.
fn common<'a>(calls: &'a [String], extra: &[Difference]) -> Vec<&'a str> {
    calls
        .iter()
        .map(String::as_str)
        .filter(|call| extra.iter().all(|other| other.call != *call))
        .collect()
}

/// The counts of this library's program minus the counts of the twin; equal counts are left out.
fn difference(ours: &Counts, twin: &Counts) -> Counts {
    let mut difference = ours.clone();
    twin.iter().for_each(|(name, count)| *difference.entry(name.clone()).or_default() -= count);
    difference.retain(|_, count| *count != 0);
    difference
}

fn compare(pair: fn() -> Pair, runs_before: usize) {
    // Work runs only when a thread waits, so in every run the same work is complete at the same
    // point.
    resident_benches::gpu::stand_in::load(stand_in::Settings::new().seed(1))
        .expect("the stand-in driver loads");
    let Pair { name, mut ours, mut twin, extra } = pair();
    let sequences = (recorded(&mut ours, runs_before), recorded(&mut twin, runs_before));
    let (ours, twin) = (counts(&sequences.0), counts(&sequences.1));
    assert_eq!(stand_in::take_hazards(), Vec::<String>::new(), "{name}");
    let total = |counts: &Counts| counts.values().sum::<i64>();
    println!("| {name} | {} | {} | {} |", total(&ours), total(&twin), total(&ours) - total(&twin));
    for Difference { call, count, why } in &extra {
        println!("|   `{call}` | | | {count:+}: {why} |");
    }
    let differing = extra.iter().filter(|difference| difference.count != 0);
    let expected: Counts =
        differing.map(|difference| (difference.call.clone(), difference.count)).collect();
    assert_eq!(
        difference(&ours, &twin),
        expected,
        "{name}: calls of resident minus the twin's, and the listed ones\nresident: {ours:#?}\n\
             twin: {twin:#?}"
    );
    assert_eq!(
        common(&sequences.0, &extra),
        common(&sequences.1, &extra),
        "{name}: the order of the calls that both make"
    );
}

macro_rules! pairs {
    ($module:ident: $($name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            support::own_process!();
            compare($module::$name, 40);
        })+
    };
}

pairs! {
    programs:
    a_chain_with_one_array,
    a_chain_with_four_arrays,
    a_chain_with_eight_arrays,
    a_chain_with_sixteen_arrays,
    a_chain_after_a_prefetch_on_another_stream,
    a_chain_with_arrays_that_two_streams_used,
    one_stream_writes_and_one_reads,
    four_streams_with_a_shared_input,
    four_bytes_after_a_kernel,
    up_and_down_pinned,
    up_and_down_at_once,
    a_face_of_a_cube_changed_between_launches,
    up_and_down_ordinary,
    one_row_changed_between_launches,
    a_pipeline_of_kernels,
}

pairs! {
    device_arrays:
    a_chain_with_four_device_arrays,
    a_device_array_up_and_down,
    columns_between_device_arrays,
    a_large_device_array_up_and_down_pageable,
    a_large_device_array_up_and_down_pinned,
    a_device_array_copied_behind_a_kernel,
    a_device_array_filled_set_and_read,
}

#[cfg(feature = "dlpack")]
pairs! {
    device_arrays:
    a_tensor_taken_over_and_handed_out,
}

pairs! {
    in_place:
    a_managed_array_there_and_back,
    a_mapped_array_in_turns,
}

#[test]
fn a_solver_of_conjugate_gradients() {
    support::own_process!();
    compare_compiled(programs::a_solver_of_conjugate_gradients, 2);
}

#[test]
fn photographs_overlapped() {
    support::own_process!();
    compare_compiled(programs::photographs_overlapped, 40);
}

/// Compares programs whose kernels are CUDA C, if there is a C++ compiler.
fn compare_compiled(pair: fn() -> Pair, runs_before: usize) {
    compare(pair, runs_before);
}
