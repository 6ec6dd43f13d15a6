//! The nodes of a chain's steps, and what they do in the next replay.

use std::ptr::null_mut;
use std::sync::Arc;

use smallvec::SmallVec;

use super::executable::Executable;
use crate::code::{GpuKernel, PARAMETERS_MAX};
use crate::context::Context;
use crate::copy::lines::{self, Lines};
use crate::driver::StreamHandle;
use crate::driver::graphs::NodeWork;
use crate::launch;
use resident_backend::{
    BackendError, BackendErrorKind, ChainCall, ChainStep, KernelCode, LaunchWork, PackedArray, Work,
};

/// An instantiated graph of a chain's steps.
#[derive(Debug)]
pub(crate) struct ChainNodes {
    executable: Arc<Executable>,
    steps: Vec<StepNodes>,
    /// See [`ChainCall::version`].
    version: u64,
}

/// The nodes of a step, and what they do in the next launch of the graph.
#[derive(Debug)]
struct StepNodes {
    /// The index of its first node.
    first: usize,
    work: KnownWork,
}

#[derive(Debug)]
enum KnownWork {
    Launch(KnownLaunch),
    Lines(Lines),
}

/// The arguments of a launch, as the step has them.
#[derive(Debug)]
struct KnownLaunch {
    words: SmallVec<[u64; 16]>,
    /// Where its arrays start.
    starts: SmallVec<[u64; 4]>,
}

/// The nodes that others follow, by their indices.
type Ends = SmallVec<[usize; 4]>;

impl ChainNodes {
    /// Makes the graph of the steps of a call; `None` if a graph cannot hold one of them.
    ///
    /// # Safety
    ///
    /// The context is current. The arguments of launches match their kernels.
    pub(crate) unsafe fn new(
        context: &Arc<Context>,
        &ChainCall { steps, version, .. }: &ChainCall<'_>,
    ) -> Result<Option<Self>, BackendError> {
        let mut executable = Executable::new(context)?;
        let mut ends: Vec<Ends> = Vec::with_capacity(steps.len());
        let mut known = Vec::with_capacity(steps.len());
        for step in steps {
            let first = executable.len();
            let after = step.after.iter().flat_map(|index| &ends[*index as usize]);
            let mut last: Ends = after.copied().collect();
            // SAFETY: the caller's promise is passed on.
            let added = unsafe { add_step(&mut executable, &mut last, &step.work) }?;
            let Some(work) = added else { return Ok(None) };
            ends.push(last);
            known.push(StepNodes { first, work });
        }
        executable.instantiate()?;
        Ok(Some(Self { executable: Arc::new(executable), steps: known, version }))
    }

    /// Changes the nodes whose arguments differ from those of the last replay. Returns `false` if
    /// it takes another graph, because the driver refuses a change, for example.
    ///
    /// # Safety
    ///
    /// As [`new`](Self::new). No other thread uses the graph.
    #[inline]
    pub(crate) unsafe fn change(
        &mut self,
        context: &Arc<Context>,
        call: &ChainCall<'_>,
    ) -> Result<bool, BackendError> {
        if !self.executable.is_of(context) || self.steps.len() != call.steps.len() {
            return Ok(false);
        }
        if self.version == call.version {
            return Ok(true);
        }
        // SAFETY: the caller's promise is passed on.
        let is_changed = unsafe { self.change_steps(call.steps) }?;
        if is_changed {
            self.version = call.version;
        }
        Ok(is_changed)
    }

    /// # Safety
    ///
    /// As [`change`](Self::change).
    unsafe fn change_steps(&mut self, steps: &[ChainStep]) -> Result<bool, BackendError> {
        for (known, step) in self.steps.iter_mut().zip(steps) {
            // SAFETY: the caller's promise is passed on.
            match unsafe { known.change(&self.executable, &step.work) } {
                Ok(true) => {}
                Err(error) if error.kind == BackendErrorKind::DeviceLost => return Err(error),
                Ok(false) | Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Queues the graph.
    ///
    /// # Safety
    ///
    /// As [`Executable::launch`], for the memory of the last change.
    #[inline]
    pub(crate) unsafe fn launch(&self, stream: StreamHandle) -> Result<(), BackendError> {
        // SAFETY: the graph is instantiated; the caller promises the rest.
        unsafe { self.executable.launch(stream) }
    }

    /// The driver's objects, to be dropped when no launch of them is in flight.
    pub(crate) fn executable(&self) -> &Arc<Executable> {
        &self.executable
    }
}

/// Adds the nodes of a step that follows the nodes `last`, which become those that follow it;
/// `None` if a graph cannot hold it.
///
/// # Safety
///
/// As [`ChainNodes::new`].
unsafe fn add_step(
    executable: &mut Executable,
    last: &mut Ends,
    work: &Work,
) -> Result<Option<KnownWork>, BackendError> {
    let mut add = |node: NodeWork<'_>| {
        // SAFETY: the caller's promise is passed on.
        unsafe { executable.add(last, node) }?;
        *last = Ends::from_elem(executable.len() - 1, 1);
        Ok(())
    };
    if let Work::Launch(launch) = work {
        let Some(kernel) = kernel_of(launch) else { return Ok(None) };
        with_node(kernel, launch, add)?;
        return Ok(Some(KnownWork::Launch(KnownLaunch::of(launch))));
    }
    let Some(lines) = lines_of(work) else { return Ok(None) };
    lines.iter().try_for_each(|line| add(NodeWork::Line(*line)))?;
    Ok(Some(KnownWork::Lines(lines)))
}

fn kernel_of(launch: &LaunchWork) -> Option<&GpuKernel> {
    match &launch.code {
        KernelCode::Loaded(loaded) => loaded.downcast_ref::<GpuKernel>(),
        KernelCode::Host(_) => None,
    }
}

fn lines_of(work: &Work) -> Option<Lines> {
    match work {
        Work::Copy(copy) => lines::of_copy(copy),
        Work::Fill(fill) => lines::of_fill(fill),
        Work::Launch(_) => None,
    }
}

/// Calls `pass_on` with the node of a launch.
fn with_node(
    kernel: &GpuKernel,
    launch: &LaunchWork,
    pass_on: impl FnOnce(NodeWork<'_>) -> Result<(), BackendError>,
) -> Result<(), BackendError> {
    let mut words: SmallVec<[u64; 24]> = SmallVec::from_slice(&launch.arguments.words);
    let mut parameters = [null_mut(); PARAMETERS_MAX];
    launch::convert(kernel, &mut words, &launch.arguments.arrays, &mut parameters)?;
    let (function, parameters) = (kernel.function(), parameters.as_mut_ptr());
    pass_on(NodeWork::Launch { function, grid: &launch.grid, parameters })
}

impl StepNodes {
    /// # Safety
    ///
    /// As [`ChainNodes::change`].
    #[inline]
    unsafe fn change(
        &mut self,
        executable: &Executable,
        work: &Work,
    ) -> Result<bool, BackendError> {
        match (&mut self.work, work) {
            (KnownWork::Launch(known), Work::Launch(launch)) if known.is(launch) => Ok(true),
            (KnownWork::Launch(known), Work::Launch(launch)) => {
                let Some(kernel) = kernel_of(launch) else { return Ok(false) };
                with_node(kernel, launch, |node| {
                    // SAFETY: the caller's promise is passed on.
                    unsafe { executable.change(self.first, node) }
                })?;
                *known = KnownLaunch::of(launch);
                Ok(true)
            }
            (KnownWork::Lines(known), work) => {
                // SAFETY: as above.
                unsafe { change_lines(executable, self.first, known, work) }
            }
            (KnownWork::Launch(_), _) => Ok(false),
        }
    }
}

/// # Safety
///
/// As [`ChainNodes::change`].
unsafe fn change_lines(
    executable: &Executable,
    first: usize,
    known: &mut Lines,
    work: &Work,
) -> Result<bool, BackendError> {
    let Some(lines) = lines_of(work).filter(|lines| lines.len() == known.len()) else {
        return Ok(false);
    };
    for (index, (known, line)) in known.iter_mut().zip(lines).enumerate() {
        if !known.is_like(&line) {
            return Ok(false);
        }
        if *known != line {
            // SAFETY: the caller's promise is passed on.
            unsafe { executable.change(first + index, NodeWork::Line(line)) }?;
            *known = line;
        }
    }
    Ok(true)
}

impl KnownLaunch {
    fn of(launch: &LaunchWork) -> Self {
        let words = SmallVec::from_slice(&launch.arguments.words);
        Self { words, starts: launch.arguments.arrays.iter().map(start_of).collect() }
    }

    #[inline]
    fn is(&self, launch: &LaunchWork) -> bool {
        let arrays = &launch.arguments.arrays;
        self.words[..] == launch.arguments.words[..]
            && self.starts.len() == arrays.len()
            && self.starts.iter().zip(arrays).all(|(start, array)| *start == start_of(array))
    }
}

/// The address of an array's element with index 0, 0, ...
#[inline]
fn start_of(array: &PackedArray) -> u64 {
    array.address.0.wrapping_add(array.origin_bytes)
}
