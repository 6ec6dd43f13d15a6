//! Chains on versions of HIP that differ in graphs.

use std::path::PathBuf;

use resident_backend::Address;
use support::hip::face::{Settings, take_notes};
use support::{in_own_process, own_process};

use crate::chains::rig::Step::{CopyAll, Fill, Plus, Scale};
use crate::chains::rig::{self, Gpu, Step, apply, matrices};
use crate::chains::take_graph_calls;

const STEPS: [Step; 4] = [Plus(1, 0, 1), Fill(0, [9; 2]), Scale(2, 0), CopyAll(1, 2)];

/// Replays a chain, and compares the results.
fn replay_often(gpu: &Gpu) {
    let mut values = matrices(4);
    let memory: Vec<Address> = values.iter().map(|values| gpu.matrix(values)).collect();
    let chain = gpu.chain(&STEPS);
    for order in [[0, 1, 2], [1, 3, 2], [1, 3, 2], [2, 0, 3], [0, 1, 2]] {
        let arguments = order.map(|index: usize| memory[index]);
        chain.replay(&*gpu.stream, &arguments).expect("queued");
        apply(&STEPS, &order, &mut values);
    }
    for (memory, values) in memory.iter().zip(&values) {
        assert_eq!(gpu.download(*memory), *values);
    }
    assert_eq!(take_notes(), Vec::<String>::new());
}

/// HIP 7 has another struct for fills.
#[test]
fn hip_7_has_cudas_struct_for_fills() {
    let gpu = in_own_process!(Gpu::with(Settings::new().version(70_051_831)));
    replay_often(&gpu);
    let calls = take_graph_calls();
    assert_eq!((calls["AddMemsetNode"], calls["Launch"]), (1, 5), "{calls:?}");
}

/// HIP 5.2 takes kernels of its own registry only.
#[test]
fn where_graphs_take_no_kernels_of_modules_chains_run_step_by_step() {
    let gpu = in_own_process!(Gpu::with(Settings::new().version(50_221_153)));
    replay_often(&gpu);
    let calls = take_graph_calls();
    assert_eq!((calls["Create"], calls.get("Launch")), (3, None), "{calls:?}");
}

/// A runtime that lacks one function of graphs: nothing else is known of it, so that the chain has
/// no kernels.
#[test]
fn a_runtime_without_graphs_runs_chains_step_by_step() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hip-without-graphs");
    own_process!([("RESIDENT_HIP", file.to_str().expect("a name"))]);
    let image = resident_stand_in_hip::file_without(&["hipGraphExecMemcpyNodeSetParams1D"]);
    std::fs::write(&file, image.unwrap_or_else(|fault| panic!("{fault}"))).expect("it is written");
    let gpu = Gpu::open(0);
    let values = matrices(2);
    let memory: Vec<Address> = values.iter().map(|values| gpu.matrix(values)).collect();
    let chain = gpu.chain_of(&[Fill(0, [9; 2]), CopyAll(0, 1), Fill(0, [1, 2])], &[]);
    for _ in 0..3 {
        chain.replay(&*gpu.stream, &memory).expect("queued");
    }
    assert_eq!(gpu.download(memory[1]), [9; rig::LEN]);
    let expected: rig::Values = std::array::from_fn(|index| [1, 2][index % 2]);
    assert_eq!(gpu.download(memory[0]), expected);
    std::fs::remove_file(file).expect("it is there");
}
