//! Refused calls, failing work, and graphs that are dropped while they run.

use std::sync::Arc;

use resident_backend::{
    Address, Backend, BackendErrorKind, EventTiming, FailureKind, FailureRecord, Position,
    StreamId, failure,
};
use support::in_own_process;

use super::rig::Step::{Broken, CopyAll, Plus, Scale};
use super::rig::{Gpu, apply, matrices};
use super::{STEPS, assert_clean, counts, take_graph_calls};
use crate::face::{self as driver, Settings};

const INVALID_VALUE: u32 = 1;
const OUT_OF_MEMORY: u32 = 2;
const ILLEGAL_ADDRESS: u32 = 700;
const NOT_SUPPORTED: u32 = 801;

/// The functions of graphs, without the vendor's prefix.
fn functions() -> Vec<String> {
    let copies = if crate::PREFIX == "hip" { "1D" } else { "" };
    let names = [
        "Create",
        "AddKernelNode",
        &format!("AddMemcpyNode{copies}"),
        "AddMemsetNode",
        "InstantiateWithFlags",
        "ExecKernelNodeSetParams",
        &format!("ExecMemcpyNodeSetParams{copies}"),
        "ExecMemsetNodeSetParams",
        "Launch",
        "ExecDestroy",
        "Destroy",
    ];
    names.map(|name| format!("{}Graph{name}", crate::PREFIX)).into()
}

/// What the device keeps for the failures of an instance's steps.
fn failures(gpu: &Gpu, last: Position, steps: u64) -> Vec<Option<Arc<FailureRecord>>> {
    let first = last.0 + 1 - steps;
    (first..=last.0).map(|at| failure::at(gpu.stream.id(), Position(at))).collect()
}

#[test]
fn a_refused_call_takes_another_way() {
    let gpu = in_own_process!(Gpu::with(Settings::new()));
    let mut values = matrices(4);
    let memory: Vec<Address> = values.iter().map(|values| gpu.matrix(values)).collect();
    for function in functions() {
        for code in [INVALID_VALUE, OUT_OF_MEMORY, NOT_SUPPORTED] {
            let chain = gpu.chain(&STEPS);
            driver::fail_nth(&function, 1, code);
            for order in [[0, 1, 2], [0, 1, 2], [3, 2, 1], [0, 1, 2]] {
                let arguments = order.map(|index: usize| memory[index]);
                let before = gpu.stream.tail();
                let last = chain.replay(&*gpu.stream, &arguments).expect("another way");
                let positions = (last.0 - before.0) / STEPS.len() as u64;
                assert!((1..=2).contains(&positions), "one or two for each step: {positions}");
                apply(&STEPS, &order, &mut values);
            }
            for (memory, values) in memory.iter().zip(&values) {
                assert_eq!(gpu.download(*memory), *values, "{function}, {code}");
            }
            drop(chain);
            driver::forget_faults();
        }
    }
    assert_clean();
}

#[test]
fn a_driver_without_graphs_is_asked_once() {
    let gpu = in_own_process!(Gpu::with(Settings::new()));
    let memory: Vec<Address> = matrices(3).iter().map(|values| gpu.matrix(values)).collect();
    let replay = |code: u32| {
        let chain = gpu.chain(&STEPS);
        take_graph_calls();
        for _ in 0..6 {
            let name = format!("{}GraphInstantiateWithFlags", crate::PREFIX);
            driver::fail_nth(&name, 1, code);
            chain.replay(&*gpu.stream, &memory).expect("queued");
        }
        driver::forget_faults();
        take_graph_calls()
    };
    let calls = replay(NOT_SUPPORTED);
    assert_eq!((calls["Create"], calls["Destroy"], calls.get("Launch")), (1, 1, None));
    let calls = replay(OUT_OF_MEMORY);
    assert_eq!((calls["Create"], calls["Destroy"], calls.get("Launch")), (3, 3, None));
    gpu.wait();
    assert_clean();
}

#[test]
fn a_later_replay_that_is_refused_loses_what_the_chain_writes() {
    let gpu = in_own_process!(Gpu::with(Settings::new().seed(6)));
    let memory: Vec<Address> = matrices(3).iter().map(|values| gpu.matrix(values)).collect();
    let chain = gpu.chain(&STEPS);
    driver::fail_nth(&format!("{}GraphLaunch", crate::PREFIX), 3, OUT_OF_MEMORY);
    let last = chain.repeat(&*gpu.stream, &memory, 5, &[]).expect("some are queued");
    let failed = failures(&gpu, last, STEPS.len() as u64);
    for (index, record) in failed.iter().enumerate() {
        let record = record.as_ref().expect("all have failed");
        assert_eq!((record.kind, record.inherited), (FailureKind::Contents, index > 0));
        assert_eq!(record.operation, "kernel \"plus\" of chain \"c\"");
        assert!(record.cause.contains("GraphLaunch"), "{}", record.cause);
    }
    take_graph_calls();
    drop(chain);
    assert_eq!(take_graph_calls(), counts([]), "two replays are in flight");
    gpu.wait();
    assert_eq!(take_graph_calls(), counts([("ExecDestroy", 1), ("Destroy", 1)]));
    let chain = gpu.chain(&STEPS);
    chain.replay(&*gpu.stream, &memory).expect("it is queued again");
    gpu.wait();
    assert_clean();
}

#[test]
fn a_chain_behind_failed_work_does_not_run() {
    let gpu = in_own_process!(Gpu::with(Settings::new()));
    let values = matrices(3);
    let memory: Vec<Address> = values.iter().map(|values| gpu.matrix(values)).collect();
    let (elsewhere, position) = (StreamId::next(), Position(1));
    let record = FailureRecord {
        kind: FailureKind::Contents,
        operation: "kernel \"other\"".into(),
        site: None,
        cause: "it fails".into(),
        inherited: false,
        left_out: None,
    };
    failure::record(elsewhere, position, Arc::new(record));
    let chain = gpu.chain(&STEPS);
    take_graph_calls();
    let depends = [(elsewhere, position)];
    let last = chain.repeat(&*gpu.stream, &memory, 2, &depends).expect("positions");
    for record in failures(&gpu, last, STEPS.len() as u64) {
        let record = record.expect("all have failed");
        assert_eq!((&*record.operation, record.inherited), ("kernel \"other\"", true));
    }
    assert_eq!(take_graph_calls().get("Launch"), None);
    for (memory, values) in memory.iter().zip(&values) {
        assert_eq!(gpu.download(*memory), *values);
    }
    assert_clean();
}

/// The chain waits for work of another device, which dies.
#[test]
fn a_chain_inherits_a_late_failure() {
    let gpu = in_own_process!(Gpu::with(Settings::new().devices(2).seed(5)));
    let dying = Gpu::open(1);
    let memory: Vec<Address> = matrices(3).iter().map(|values| gpu.matrix(values)).collect();
    let there = dying.matrix(&matrices(1)[0]);
    let broken = dying.chain(&[Scale(1, 0), Broken(0)]);
    let position = broken.replay(&*dying.stream, &[there]).expect("queued");
    let event = dying.stream.record(EventTiming::Disabled).expect("an event");
    gpu.stream.wait(&*event).expect("queued");
    let chain = gpu.chain(&STEPS);
    let depends = [(dying.stream.id(), position)];
    let last = chain.repeat(&*gpu.stream, &memory, 1, &depends).expect("queued");
    assert!(failures(&gpu, last, STEPS.len() as u64).iter().all(Option::is_none), "not yet");
    let _dead = dying.stream.synchronize_to(position);
    gpu.wait();
    for record in failures(&gpu, last, STEPS.len() as u64) {
        let record = record.expect("all have failed");
        assert!(record.inherited && record.operation.contains("chain \"c\""), "{record:?}");
    }
}

#[test]
fn a_context_that_dies_names_the_first_step() {
    let gpu = in_own_process!(Gpu::with(Settings::new()));
    let memory: Vec<Address> = matrices(3).iter().map(|values| gpu.matrix(values)).collect();
    let chain = gpu.chain(&[Plus(1, 0, 1), CopyAll(1, 2), Broken(1)]);
    driver::fail_late(2, ILLEGAL_ADDRESS);
    let last = chain.replay(&*gpu.stream, &memory).expect("queued");
    let _dead = gpu.stream.synchronize_to(last);
    for (index, record) in failures(&gpu, last, 3).into_iter().enumerate() {
        let record = record.expect("all have failed");
        assert_eq!((record.kind, record.inherited), (FailureKind::Device, index > 0));
        assert_eq!(record.operation, "kernel \"plus\" of chain \"c\"");
    }
    let refused = chain.replay(&*gpu.stream, &memory).expect_err("the context is lost");
    assert_eq!(refused.kind, BackendErrorKind::DeviceLost);
    take_graph_calls();
    drop(chain);
    assert_eq!(take_graph_calls(), counts([]), "the driver frees what a lost context has");
}

/// A call that ends the context, before and after something was queued.
#[test]
fn a_call_that_finds_the_context_dead_fails() {
    let gpu = in_own_process!(Gpu::with(Settings::new().devices(2)));
    let launch = format!("{}GraphLaunch", crate::PREFIX);
    let memory: Vec<Address> = matrices(3).iter().map(|values| gpu.matrix(values)).collect();
    let chain = gpu.chain(&STEPS);
    driver::fail_nth(&launch, 1, ILLEGAL_ADDRESS);
    let refused = chain.replay(&*gpu.stream, &memory).expect_err("the context is lost");
    assert_eq!(refused.kind, BackendErrorKind::DeviceLost);
    let second = Gpu::open(1);
    let memory: Vec<Address> = matrices(3).iter().map(|values| second.matrix(values)).collect();
    let chain = second.chain(&STEPS);
    driver::fail_nth(&launch, 3, ILLEGAL_ADDRESS);
    let last = chain.repeat(&*second.stream, &memory, 4, &[]).expect("some are queued");
    assert!(failures(&second, last, STEPS.len() as u64).iter().all(Option::is_some));
    chain.replay(&*second.stream, &memory).expect_err("the context is lost");
}

#[test]
fn a_graph_that_runs_is_destroyed_when_it_is_over() {
    let gpu = in_own_process!(Gpu::with(Settings::new().seed(9)));
    let memory: Vec<Address> = matrices(3).iter().map(|values| gpu.matrix(values)).collect();
    let other = gpu.device.new_stream(None).expect("a stream");
    let chain = gpu.chain(&STEPS);
    chain.replay(&*gpu.stream, &memory).expect("queued");
    let event = gpu.stream.record(EventTiming::Disabled).expect("an event");
    other.wait(&*event).expect("queued");
    chain.replay(&*other, &memory).expect("queued");
    take_graph_calls();
    drop(chain);
    gpu.wait();
    assert_eq!(take_graph_calls(), counts([]), "the second stream has not run it");
    other.synchronize_to(other.tail()).expect("nothing fails");
    assert_eq!(take_graph_calls(), counts([("ExecDestroy", 1), ("Destroy", 1)]));
    assert_clean();
}

#[test]
fn a_chain_may_outlive_its_stream() {
    let gpu = in_own_process!(Gpu::with(Settings::new()));
    let memory: Vec<Address> = matrices(3).iter().map(|values| gpu.matrix(values)).collect();
    let chain = gpu.chain(&STEPS);
    for _ in 0..3 {
        let stream = gpu.device.new_stream(None).expect("a stream");
        chain.replay(&*stream, &memory).expect("queued");
        stream.synchronize_to(stream.tail()).expect("nothing fails");
    }
    drop(chain);
    let calls = take_graph_calls();
    assert_eq!((calls["InstantiateWithFlags"], calls["ExecDestroy"]), (1, 1), "{calls:?}");
    assert_clean();
}
