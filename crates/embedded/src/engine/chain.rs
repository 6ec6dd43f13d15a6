//! Chains: steps that run one after the other, as one operation.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::description::{Description, WORK_COST};
use super::device_core::DeviceCore;
use super::execute::{self, Fault, Located, LocatedArguments};
use crate::race_check::MemoryAccess;
use resident_backend::call_site::CallSite;
use resident_backend::{
    ChainCall, ChainStep, Dependencies, FailureKind, FailureRecord, LaunchWork, Position, StreamId,
    Work, failure,
};

/// Queued replays of a chain.
#[derive(Debug)]
pub(crate) struct ChainRun {
    chain: Arc<KeptChain>,
    count: u64,
    pub(crate) depends: Dependencies,
    pub(crate) site: CallSite,
}

/// The steps of queued replays, with the addresses of their arguments. Later replays with the same
/// addresses and words share them.
#[derive(Debug)]
struct KeptChain {
    title: Arc<str>,
    steps: Vec<ChainStep>,
    /// See [`ChainCall::version`].
    version: u64,
}

/// What keeps a step from being complete: its index, and its failure.
struct FailedStep {
    replay: u64,
    index: usize,
    record: FailureRecord,
}

impl ChainRun {
    /// The replays of a call, which shares the steps of earlier ones if they are the same.
    pub(crate) fn of_call(call: &mut ChainCall<'_>) -> Self {
        let ChainCall { instance, steps, version, count, depends, site } = call;
        let (depends, site) = (Dependencies::from_slice(depends), *site);
        let known = instance.kept.as_mut().and_then(|kept| kept.downcast_mut::<Arc<KeptChain>>());
        let chain = match known {
            Some(known) => {
                if known.version != *version {
                    update(known, steps, *version);
                }
                Arc::clone(known)
            }
            None => {
                let (title, steps) = (Arc::clone(&instance.title), steps.to_vec());
                let chain = Arc::new(KeptChain { title, steps, version: *version });
                instance.kept = Some(Box::new(Arc::clone(&chain)));
                chain
            }
        };
        Self { chain, count: *count, depends, site }
    }

    /// The number of positions that it takes.
    pub(crate) fn len(&self) -> u64 {
        self.chain.steps.len() as u64
    }

    pub(super) fn modelled_time(&self) -> Duration {
        let steps = u32::try_from(self.len().saturating_mul(self.count)).unwrap_or(u32::MAX);
        WORK_COST.saturating_mul(steps)
    }

    /// The steps' positions, names, sites and accesses, if the last position is `last`.
    pub(crate) fn steps(
        &self,
        device: usize,
        last: Position,
    ) -> impl Iterator<Item = (Position, String, Option<CallSite>, Vec<MemoryAccess>)> {
        let first = last.0 + 1 - self.len();
        let of_step = move |(position, step): (u64, &ChainStep)| {
            let accesses = MemoryAccess::of_work(device, &step.work);
            (Position(position), step.work.name_in(&self.chain.title), step.work.site(), accesses)
        };
        (first..).zip(&self.chain.steps).map(of_step)
    }

    /// Runs all replays. If a step fails, records the failures of its position and of later ones,
    /// and returns that of the last position. With a fault one of the steps of the first replay
    /// fails.
    pub(super) fn run(
        &self,
        device: &DeviceCore,
        stream: StreamId,
        last: Position,
        fault: Option<u64>,
    ) -> Result<(), FailureRecord> {
        let Err(FailedStep { replay, index, record }) = self.run_steps(device, fault) else {
            return Ok(());
        };
        let first = last.0 + 1 - self.len();
        let inherited = FailureRecord { inherited: true, ..record.clone() };
        let (own, inherited_by_rest) = (Arc::new(record), Arc::new(inherited));
        let is_last_replay = replay + 1 == self.count;
        let failed = first + if is_last_replay { index as u64 } else { 0 };
        let record_of = |position| if position == failed { &own } else { &inherited_by_rest };
        for position in failed..last.0 {
            failure::record(stream, Position(position), Arc::clone(record_of(position)));
        }
        Err(FailureRecord::clone(record_of(last.0)))
    }

    fn run_steps(&self, device: &DeviceCore, fault: Option<u64>) -> Result<(), FailedStep> {
        let failed = |replay, index, record| FailedStep { replay, index, record };
        self.description().check_runnable(None).map_err(|record| failed(0, 0, record))?;
        let faulty = fault.map(|call| (call, (call % self.len()) as usize));
        let mut located = LocatedSteps::new(device, &self.chain.steps);
        for replay in 0..self.count {
            for (index, step) in self.chain.steps.iter().enumerate() {
                let injected = faulty.filter(|(_, at)| replay == 0 && *at == index);
                let outcome = match injected {
                    Some((call, _)) => Err(Fault::injected(call)),
                    None => self.run_step(device, index, &mut located),
                };
                outcome.map_err(|fault| failed(replay, index, self.failure(step, fault)))?;
            }
        }
        Ok(())
    }

    fn run_step(
        &self,
        device: &DeviceCore,
        index: usize,
        located: &mut LocatedSteps,
    ) -> Result<(), Fault> {
        let LaunchWork { code, grid, arguments, .. } = match &self.chain.steps[index].work {
            Work::Launch(launch) => launch,
            Work::Copy(copy) => return execute::copy(device, device, copy),
            Work::Fill(fill) => return execute::fill(device, fill),
        };
        let memory = located.of_step(index)?;
        execute::expect_written(device, code, arguments)?;
        let (words, arrays) = (&arguments.words, &arguments.arrays);
        execute::launch_located(device, code, *grid, words, arrays, memory)
    }

    #[cold]
    fn failure(&self, step: &ChainStep, fault: Fault) -> FailureRecord {
        let Fault { cause, left_out } = fault;
        FailureRecord {
            kind: FailureKind::Contents,
            operation: step.work.name_in(&self.chain.title),
            site: step.work.site(),
            cause,
            inherited: false,
            left_out,
        }
    }

    pub(crate) fn description(&self) -> Description<'_> {
        Description::of_chain(&self.chain.title, self.site, &self.depends)
    }
}

/// The memory of the arguments of all steps that are launches, which all replays use. That memory
/// is freed by work behind these.
struct LocatedSteps {
    arguments: LocatedArguments,
    /// For each located step, the number of arrays of it and those before it.
    ends: SmallVec<[u32; 16]>,
    /// Why the next step is not located.
    fault: Option<String>,
}

impl LocatedSteps {
    fn new(device: &DeviceCore, steps: &[ChainStep]) -> Self {
        let (arguments, ends) = (LocatedArguments::default(), SmallVec::new());
        let mut located = Self { arguments, ends, fault: None };
        let addresses = device.memory.lock_addresses();
        for step in steps {
            if let Work::Launch(LaunchWork { arguments, .. }) = &step.work
                && let Err(fault) =
                    located.arguments.add(&addresses, &arguments.words, &arguments.arrays)
            {
                located.fault = Some(fault);
                break;
            }
            located.ends.push(located.arguments.len() as u32);
        }
        located
    }

    fn of_step(&mut self, index: usize) -> Result<Located<'_>, Fault> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        match self.ends.get(index) {
            Some(end) => Ok(self.arguments.range(start as usize..*end as usize)),
            None => Err(self.fault.take().unwrap_or_default().into()),
        }
    }
}

/// Gives kept steps the addresses and words of a replay: new steps, if queued replays have them.
fn update(known: &mut Arc<KeptChain>, steps: &[ChainStep], version: u64) {
    let Some(chain) = Arc::get_mut(known) else {
        let title = Arc::clone(&known.title);
        *known = Arc::new(KeptChain { title, steps: steps.to_vec(), version });
        return;
    };
    chain.version = version;
    for (known, step) in chain.steps.iter_mut().zip(steps) {
        match (&mut known.work, &step.work) {
            (Work::Launch(known), Work::Launch(launch)) => {
                known.arguments.clone_from(&launch.arguments);
            }
            (known, work) => known.clone_from(work),
        }
    }
}
