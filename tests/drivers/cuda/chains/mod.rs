//! Chains on the stand-ins for both drivers: the graphs that they become, their results, and what
//! happens where a driver has no graphs, or refuses a call. `crate::face` is one of the two.

mod failures;
mod programs;
pub(crate) mod rig;

use std::collections::BTreeMap;
use std::thread;

use resident_backend::{Address, Backend, PinnedOptions};
use support::random::Random;
use support::{in_own_process, own_process};

use self::rig::Step::{CopyAll, CopyRows, Fill, Mix, Plus, Scale};
use self::rig::{Chain, Gpu, LEN_BYTES, Step, apply, matrices};
use crate::face::{self as driver, Settings};

/// Without graphs of the driver.
const WITHOUT_GRAPHS: [(&str, &str); 1] = [("RESIDENT_GRAPHS", "0")];

/// Each kind of step, over three matrices.
pub(crate) const STEPS: [Step; 6] =
    [Plus(1, 0, 1), CopyAll(1, 2), Scale(5, 1), Fill(0, [7; 2]), Mix(2, 1), Mix(1, 0)];

/// How often each function of graphs was called, without the vendor's prefix.
pub(crate) fn take_graph_calls() -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in driver::take_calls() {
        let name = call.name.trim_start_matches("cu").trim_start_matches("hip");
        if let Some(name) = name.strip_prefix("Graph") {
            let name = name.strip_suffix("1D").unwrap_or(name);
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

fn counts<const N: usize>(expected: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expected.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

pub(crate) fn assert_clean() {
    assert_eq!(driver::take_hazards(), Vec::<String>::new());
    assert_eq!(driver::take_notes(), Vec::<String>::new());
}

#[test]
fn a_chain_is_one_graph_of_which_nodes_change_with_their_arguments() {
    let gpu = in_own_process!(Gpu::with(Settings::new()));
    let mut values = matrices(4);
    let memory: Vec<Address> = values.iter().map(|values| gpu.matrix(values)).collect();
    let chain = gpu.chain(&STEPS);
    take_graph_calls();
    let replay = |order: [usize; 3], values: &mut [rig::Values]| {
        let before = gpu.stream.tail();
        let last = chain.replay(&*gpu.stream, &order.map(|index| memory[index])).expect("queued");
        assert_eq!(last.0, before.0 + STEPS.len() as u64, "a position for each step");
        apply(&STEPS, &order, values);
    };
    replay([0, 1, 2], &mut values);
    let made = [
        ("Create", 1),
        ("AddKernelNode", 4),
        ("AddMemcpyNode", 1),
        ("AddMemsetNode", 1),
        ("InstantiateWithFlags", 1),
        ("Launch", 1),
    ];
    assert_eq!(take_graph_calls(), counts(made));
    replay([0, 1, 2], &mut values);
    assert_eq!(take_graph_calls(), counts([("Launch", 1)]), "nothing changed");
    replay([0, 1, 3], &mut values);
    let changed = [("ExecKernelNodeSetParams", 1), ("ExecMemcpyNodeSetParams", 1), ("Launch", 1)];
    assert_eq!(take_graph_calls(), counts(changed), "of one array of two steps");
    replay([2, 1, 3], &mut values);
    let changed = [("ExecKernelNodeSetParams", 2), ("ExecMemsetNodeSetParams", 1), ("Launch", 1)];
    assert_eq!(take_graph_calls(), counts(changed), "of one array of three steps");
    let arguments = [2, 1, 3].map(|index: usize| memory[index]);
    chain.repeat(&*gpu.stream, &arguments, 200, &[]).expect("queued");
    (0..200).for_each(|_| apply(&STEPS, &[2, 1, 3], &mut values));
    assert_eq!(take_graph_calls(), counts([("Launch", 200)]));
    for (memory, values) in memory.iter().zip(&values) {
        assert_eq!(gpu.download(*memory), *values);
    }
    drop(chain);
    assert_eq!(take_graph_calls(), counts([("ExecDestroy", 1), ("Destroy", 1)]));
    assert_clean();
}

#[test]
fn words_of_a_replay_change_their_node() {
    let gpu = in_own_process!(Gpu::with(Settings::new()));
    let memory = gpu.matrix(&matrices(1)[0]);
    let mut chain = gpu.chain(&[Scale(1, 0), Scale(2, 0), Fill(0, [1, 1]), Scale(3, 0)]);
    chain.replay(&*gpu.stream, &[memory]).expect("queued");
    take_graph_calls();
    (chain.steps[1], chain.steps[3]) = (Scale(9, 0), Scale(4, 0));
    chain.replay(&*gpu.stream, &[memory]).expect("queued");
    assert_eq!(take_graph_calls(), counts([("ExecKernelNodeSetParams", 2), ("Launch", 1)]));
    assert_eq!(gpu.download(memory), [7; rig::LEN]);
    // The bytes of a fill may be an argument too. As many words of eight bytes take other nodes.
    chain.steps[2] = Fill(0, [2, 2]);
    chain.replay(&*gpu.stream, &[memory]).expect("queued");
    assert_eq!(take_graph_calls(), counts([("ExecMemsetNodeSetParams", 1), ("Launch", 1)]));
    assert_eq!(gpu.download(memory), [10; rig::LEN]);
    chain.steps[2] = Fill(0, [2, 3]);
    chain.replay(&*gpu.stream, &[memory]).expect("queued");
    let calls = take_graph_calls();
    assert_eq!((calls["InstantiateWithFlags"], calls["AddMemsetNode"]), (1, 2), "{calls:?}");
    let expected: rig::Values = std::array::from_fn(|index| [10, 13][index % 2]);
    assert_eq!(gpu.download(memory), expected);
    assert_clean();
}

/// Chains that are drawn, over arrays that are drawn, on two streams in turn.
fn compute_as_their_steps(seeds: u64) {
    let gpu = Gpu::with(Settings::new().seed(3));
    let streams = [0, 1].map(|_| gpu.device.new_stream(None).expect("a stream"));
    for seed in 0..seeds {
        let mut random = Random::new(seed);
        let mut values = matrices(5);
        let memory: Vec<Address> = values.iter().map(|values| gpu.matrix(values)).collect();
        let steps: Vec<Step> = (0..1 + random.below(9)).map(|_| draw_step(&mut random)).collect();
        let chain = gpu.chain(&steps);
        for replay in 0..4 {
            let order = draw_order(&mut random);
            let arguments = order.map(|index| memory[index]);
            let count = 1 + random.below(3) as u64;
            let stream = &streams[random.below(2)];
            chain.repeat(&**stream, &arguments, count, &[]).expect("queued");
            (0..count).for_each(|_| apply(&steps, &order, &mut values));
            let event = stream.record(resident_backend::EventTiming::Disabled).expect("an event");
            streams.iter().for_each(|other| other.wait(&*event).expect("queued"));
            gpu.stream.wait(&*event).expect("queued");
            for (memory, values) in memory.iter().zip(&values) {
                assert_eq!(gpu.download(*memory), *values, "seed {seed}, {replay}: {steps:?}");
            }
        }
        for memory in memory {
            gpu.stream.free(memory).expect("queued");
        }
        assert_clean();
    }
}

fn draw_step(random: &mut Random) -> Step {
    let (one, k) = (random.below(3), random.below(9) as u32);
    let two = (one + 1 + random.below(2)) % 3;
    match random.below(8) {
        0 | 1 => Plus(k, one, two),
        2 => Mix(one, two),
        3 => Scale(k, one),
        4 => CopyAll(one, two),
        5 => CopyRows(1 + random.below(3), one, two),
        6 => Fill(one, [k, k]),
        _ => Fill(one, [k, k + 1]),
    }
}

/// Three of five arrays.
fn draw_order(random: &mut Random) -> [usize; 3] {
    let first = random.below(5);
    let step = 1 + random.below(2);
    [first, (first + step) % 5, (first + 2 * step) % 5]
}

#[test]
fn chains_compute_as_their_steps() {
    in_own_process!(compute_as_their_steps(24));
    let calls = take_graph_calls();
    assert!(calls["Launch"] > 100 && calls["ExecKernelNodeSetParams"] > 40, "{calls:?}");
    assert_eq!(calls["InstantiateWithFlags"], calls["ExecDestroy"], "{calls:?}");
}

#[test]
fn without_graphs_chains_compute_as_their_steps() {
    own_process!(WITHOUT_GRAPHS);
    compute_as_their_steps(12);
    assert_eq!(take_graph_calls(), counts([]));
}

/// Another thread may see the stream complete between two steps, so the positions of steps come
/// after all work.
#[test]
fn without_graphs_positions_of_steps_are_behind_their_work() {
    own_process!(WITHOUT_GRAPHS);
    let gpu = Gpu::with(Settings::new());
    let memory: Vec<Address> = matrices(3).iter().map(|values| gpu.matrix(values)).collect();
    for (steps, work) in [(&STEPS[..], STEPS.len() as u64), (&STEPS[..1], 0)] {
        let (before, chain) = (gpu.stream.tail().0, gpu.chain(steps));
        let last = chain.replay(&*gpu.stream, &memory).expect("queued").0;
        assert_eq!((last, gpu.stream.tail().0), (before + work + steps.len() as u64, last));
    }
    gpu.wait();
    assert_clean();
}

#[test]
fn an_edge_that_is_missing_is_found() {
    let gpu = in_own_process!(Gpu::with(Settings::new().seed(2)));
    let memory: Vec<Address> = matrices(3).iter().map(|values| gpu.matrix(values)).collect();
    let chain = gpu.chain(&[Plus(1, 0, 1), CopyAll(1, 2)]);
    let steps = chain.steps(&memory, |_, _| false);
    chain.call(&*gpu.stream, &steps, 1, &[]).expect("queued");
    gpu.wait();
    let hazards = driver::take_hazards();
    assert!(hazards.iter().any(|hazard| hazard.contains("plus")), "{hazards:?}");
}

/// Steps that no graph can hold.
#[test]
fn other_steps_run_one_by_one() {
    let gpu = in_own_process!(Gpu::with(Settings::new()));
    let steps = [Plus(1, 0, 1), CopyRows(rig::SIDE, 1, 2), Mix(2, 0), CopyRows(1, 0, 1)];
    // Eight rows are as many as become nodes; of two such copies the device makes one.
    let mut values = matrices(3);
    let memory: Vec<Address> = values.iter().map(|values| gpu.matrix(values)).collect();
    let chain = gpu.chain(&steps);
    chain.repeat(&*gpu.stream, &memory, 3, &[]).expect("queued");
    (0..3).for_each(|_| apply(&steps, &[0, 1, 2], &mut values));
    for (memory, values) in memory.iter().zip(&values) {
        assert_eq!(gpu.download(*memory), *values);
    }
    assert_eq!(take_graph_calls()["AddMemcpyNode"], rig::SIDE + 1);
    let mut long = chain.steps(&memory, |_, _| true);
    if let resident_backend::Work::Copy(copy) = &mut long[1].work {
        copy.parts[0].run_bytes = 4;
        copy.parts[0].axes = [(2 * rig::SIDE as u64, 16, 16)].into_iter().collect();
    }
    let other = gpu.chain(&steps);
    for _ in 0..2 {
        let before = gpu.stream.tail();
        let last = other.call(&*gpu.stream, &long, 1, &[]).expect("queued");
        assert_eq!(last.0, before.0 + 8, "each position is behind all steps");
        gpu.wait();
    }
    let calls = take_graph_calls();
    assert_eq!((calls.get("Create"), calls.get("Launch")), (Some(&1), None), "{calls:?}");
    assert_clean();
}

#[test]
fn an_array_in_memory_of_another_kind_takes_another_graph() {
    let gpu = in_own_process!(Gpu::with(Settings::new()));
    let mut values = matrices(3);
    let mut memory: Vec<Address> = values.iter().map(|values| gpu.matrix(values)).collect();
    let chain = gpu.chain(&STEPS);
    chain.replay(&*gpu.stream, &memory).expect("queued");
    apply(&STEPS, &[0, 1, 2], &mut values);
    let options = PinnedOptions::default();
    let mapped = gpu.device.allocate_mapped(LEN_BYTES as usize, options).expect("memory");
    memory[2] = mapped.0;
    take_graph_calls();
    chain.replay(&*gpu.stream, &memory).expect("queued");
    apply(&STEPS, &[0, 1, 2], &mut values);
    let calls = take_graph_calls();
    assert_eq!((calls["InstantiateWithFlags"], calls["Launch"]), (1, 1), "{calls:?}");
    for (memory, values) in memory.iter().zip(&values) {
        assert_eq!(gpu.download(*memory), *values);
    }
    let calls = take_graph_calls();
    assert_eq!((calls["ExecDestroy"], calls["Destroy"]), (1, 1), "the first, once it is over");
    gpu.stream.free(mapped.0).expect("queued");
    gpu.wait();
    assert_clean();
}

#[test]
fn threads_replay_one_instance_on_their_streams() {
    let gpu = in_own_process!(Gpu::with(Settings::new()));
    let chain = gpu.chain(&STEPS);
    let replay_often = |gpu: &Gpu, chain: &Chain| {
        let stream = gpu.device.new_stream(None).expect("a stream");
        let own = Gpu { device: gpu.device.clone(), stream };
        let mut values = matrices(3);
        let memory: Vec<Address> = values.iter().map(|values| own.matrix(values)).collect();
        for _ in 0..40 {
            chain.replay(&*own.stream, &memory).expect("queued");
            apply(&STEPS, &[0, 1, 2], &mut values);
        }
        for (memory, values) in memory.iter().zip(&values) {
            assert_eq!(own.download(*memory), *values);
        }
    };
    thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| replay_often(&gpu, &chain))));
    });
    drop(chain);
    let calls = take_graph_calls();
    assert_eq!((calls["InstantiateWithFlags"], calls["ExecDestroy"]), (1, 1), "{calls:?}");
    assert_eq!(calls["Launch"], 160);
    assert_clean();
}
