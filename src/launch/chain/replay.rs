//! A replay of a chain: acquires the arrays once, queues the steps as one operation, and marks the
//! arrays.

use smallvec::SmallVec;

use super::super::arguments::bound::{BoundArgument, BoundArray};
use super::super::submit::{Acquiring, after_mark, expect_written};
use super::core::Core;
use super::instance::{Instance, array_of};
use super::steps::{PlacedArray, Steps};
use super::uses::ArrayUse;
use crate::audit::{self, ArgumentRecord, Flow, Launched};
use crate::device::{self, Stream, call_error};
use crate::error::{Error, Result};
use crate::storage;
use crate::transfer::LaunchedArrays;
use resident_backend::call_site::CallSite;
use resident_backend::sync::ShortLock;
use resident_backend::thread_pools::note_pool_threads;
use resident_backend::{
    BackendError, ChainCall, ChainInstance, Dependencies, Position, failure, sync,
};

/// For how many pairs of a stream and shapes of arguments a chain keeps what it has made.
const INSTANCES_MAX: usize = 8;

/// The instances of a chain that no replay uses now, by their last use.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "each replay takes one out and puts it back")]
pub(super) struct Instances(ShortLock<Vec<Box<Instance>>>);

/// Replays that are queued together.
#[derive(Clone, Copy)]
pub(super) struct Replay<'a> {
    pub(super) core: &'a Core,
    pub(super) instances: &'a Instances,
    pub(super) stream: &'a Stream,
    /// How often.
    pub(super) count: u64,
    pub(super) bound: &'a [BoundArgument<'a>],
    pub(super) site: CallSite,
}

impl Replay<'_> {
    /// Queues them. No lock is held.
    pub(super) fn queue(&self) -> Result<()> {
        let mut instance = self.take_instance()?;
        let outcome = self.queue_if_any(&mut instance);
        self.instances.keep(instance);
        outcome
    }

    /// Queues the steps of an instance, if there are any.
    pub(super) fn queue_if_any(&self, instance: &mut Instance) -> Result<()> {
        if self.count == 0 || instance.steps.is_empty() {
            return Ok(());
        }
        self.queue_instance(instance)
    }

    /// An instance for these arguments, with their scalars.
    pub(super) fn take_instance(&self) -> Result<Box<Instance>> {
        let Self { core, instances, stream, bound, site, .. } = *self;
        if let Some(mut instance) = instances.take(stream, bound)
            && instance.set_scalars(core, stream.device_ref(), bound)?
        {
            return Ok(instance);
        }
        sync::assert_none_held();
        Instance::new(core, stream, bound, site).map(Box::new)
    }

    fn queue_instance(&self, instance: &mut Instance) -> Result<()> {
        if failure::is_forgetting_due() {
            // Before the arrays are pinned: with a pinned array no records are removed.
            storage::forget_failures();
        }
        if self.stream.device_ref().body_kind().is_on_host() {
            note_pool_threads();
        }
        let Instance { steps, uses, temporaries, kept, .. } = instance;
        let mut bound = SmallVec::<[BoundArgument<'_>; 8]>::new();
        for used in &*uses {
            let array = array_of(&self.bound[used.parameter], &temporaries[used.parameter]);
            if let Some(array) = array {
                bound.push(BoundArgument::Array(used.of(&array)));
            }
        }
        let parts = UsedParts { uses, kept, steps };
        let acquiring = Acquiring { title: &self.core.title, bound: &bound, site: self.site };
        if self.stream.device_ref().properties().knows_left_out {
            expect_written(&bound, &self.core.title, self.stream, self.site)?;
        }
        if !audit::observes_launches() {
            return self.queue_acquired::<false>(acquiring, parts);
        }
        // The copies are reported once the chain is queued: a subscriber that panics must not leave
        // it half done.
        let _span = audit::enter_launch(&self.core.title, self.stream, self.site);
        let held = audit::hold_reports();
        let queued = self.queue_acquired::<true>(acquiring, parts);
        drop(held);
        audit::end_launch();
        queued
    }

    fn queue_acquired<const IS_OBSERVED: bool>(
        &self,
        acquiring: Acquiring<'_>,
        parts: UsedParts<'_>,
    ) -> Result<()> {
        let UsedParts { uses, kept, steps } = parts;
        let (stream, len) = (self.stream, steps.len() as u64);
        let mut acquired = AcquiredArrays::default();
        if let Err(error) = acquired.acquire(acquiring, uses, self.core, stream, steps) {
            acquired = AcquiredArrays::default();
            acquiring.make_room(stream, error)?;
            acquired.acquire(acquiring, uses, self.core, stream, steps)?;
        }
        let (steps, version) = steps.with_arrays();
        let (depends, count, site) = (&*acquired.depends, self.count, self.site);
        let mut call = ChainCall { instance: kept, steps, version, count, depends, site };
        let submitted = if IS_OBSERVED {
            run_timed(stream, &mut call)
        } else {
            stream.raw().run_chain(&mut call)
        };
        let last = submitted.map_err(|error| self.refused(&error))?;
        let position_of = |used: &ArrayUse| Position(last.0 - (len - 1 - used.last as u64));
        let launcher = acquired.mark(acquiring, uses, self.core, stream, position_of);
        if IS_OBSERVED {
            let (title, position) = (acquiring.title, last.0);
            let launched = Launched { title, stream, position, site, launcher };
            let arrays =
                zipped(acquiring, uses).filter(|(used, _)| !self.core.is_temporary(used.parameter));
            let record = |(_, array): (&ArrayUse, &BoundArray<'_>)| {
                ArgumentRecord::new(array.storage, array.access, array.is_whole, array.home)
            };
            audit::record_launch(&launched, arrays.map(record));
        }
        Ok(())
    }

    #[cold]
    fn refused(&self, error: &BackendError) -> Error {
        let operation = format!("queueing {} at {}", self.core.title, self.site);
        call_error(self.stream.device_ref(), "its arguments", &operation, error)
    }
}

/// What queueing needs of an instance.
struct UsedParts<'a> {
    uses: &'a [ArrayUse],
    kept: &'a mut ChainInstance,
    steps: &'a mut Steps,
}

/// The uses with their arrays.
fn zipped<'a>(
    acquiring: Acquiring<'a>,
    uses: &'a [ArrayUse],
) -> impl Iterator<Item = (&'a ArrayUse, &'a BoundArray<'a>)> + use<'a> {
    uses.iter().zip(acquiring.bound_arrays())
}

/// Queues a chain, and times it if that is asked for.
#[cold]
fn run_timed(stream: &Stream, call: &mut ChainCall<'_>) -> Result<Position, BackendError> {
    device::take_some_times();
    let begun = stream.begin_timing();
    let position = stream.raw().run_chain(call)?;
    stream.end_timing(begun, position);
    Ok(position)
}

/// What is acquired for a replay.
#[derive(Default)]
struct AcquiredArrays<'a> {
    arguments: LaunchedArrays<'a>,
    /// No arguments of the call, so they do not count as such.
    temporaries: LaunchedArrays<'a>,
    depends: Dependencies,
}

impl<'a> AcquiredArrays<'a> {
    /// Acquires the arrays, and places them in the steps.
    fn acquire(
        &mut self,
        acquiring: Acquiring<'a>,
        uses: &'a [ArrayUse],
        core: &Core,
        stream: &Stream,
        steps: &mut Steps,
    ) -> Result<()> {
        let epoch = failure::epoch();
        for (used, array) in zipped(acquiring, uses) {
            let launched = if core.is_temporary(used.parameter) {
                &mut self.temporaries
            } else {
                &mut self.arguments
            };
            let address = acquiring.acquire(array, stream, epoch, launched, &mut self.depends)?;
            let offset = used.offset_of_whole(array);
            steps.place(used.parameter, PlacedArray { address, offset });
        }
        Ok(())
    }
}

impl AcquiredArrays<'_> {
    /// Marks each array at the position of the last step that writes it, or reads it. Returns the
    /// copies of a launcher that copies each argument.
    fn mark(
        &mut self,
        acquiring: Acquiring<'_>,
        uses: &[ArrayUse],
        core: &Core,
        stream: &Stream,
        position_of: impl Fn(&ArrayUse) -> Position,
    ) -> Flow {
        let is_temporary = |used: &&ArrayUse| core.is_temporary(used.parameter);
        let temporary = uses.iter().filter(is_temporary).map(&position_of);
        let argument = uses.iter().filter(|used| !is_temporary(used)).map(&position_of);
        let call = || (&**acquiring.title, acquiring.site);
        let within = self.temporaries.mark_each(stream, temporary, call);
        let mut marked = self.arguments.mark_each(stream, argument, call);
        marked.needs_event |= within.needs_event;
        marked.follows_other |= within.follows_other;
        after_mark(stream, marked)
    }
}

impl Instances {
    /// Takes the instance for these arguments, if there is one that no other thread uses.
    fn take(&self, stream: &Stream, bound: &[BoundArgument<'_>]) -> Option<Box<Instance>> {
        let mut instances = self.0.lock();
        let index = instances.iter().rposition(|instance| instance.is_for(stream, bound))?;
        Some(instances.remove(index))
    }

    /// Keeps an instance for later replays. The one that was used longest ago makes room.
    pub(super) fn keep(&self, instance: Box<Instance>) {
        if !instance.may_be_kept {
            return;
        }
        let mut instances = self.0.lock();
        let oldest = (instances.len() == INSTANCES_MAX).then(|| instances.remove(0));
        instances.push(instance);
        drop(instances);
        drop(oldest);
    }
}
