//! Errors behind which a thread, or the launch, must not go on.

use super::super::finding::{Finding, FindingKind, LOCAL_VARIABLE, OtherThread, Stop};
use super::super::order::LANES;
use super::{LaunchCheck, MemoryAccess, Running};

/// Once a thread was stopped, a launch goes on for so many accesses: others may wait for it.
const ACCESSES_AFTER_STOP_MAX: u64 = 1 << 20;
/// At most so many threads of a launch are stopped.
const THREADS_STOPPED_MAX: u32 = 1 << 12;

impl LaunchCheck<'_> {
    /// Keeps an error behind which the thread must not go on.
    #[cold]
    pub(in super::super) fn stop(&mut self, me: Running, finding: Finding) -> Stop {
        self.fast_path.close();
        self.enter(me.block);
        self.collect(|all| all.add(finding));
        self.accesses_max = self.accesses_max.min(self.accesses + ACCESSES_AFTER_STOP_MAX);
        self.stopped.insert(me.thread);
        self.stops += 1;
        let is_over = self.stops == THREADS_STOPPED_MAX || self.collected.is_full();
        is_over.then(|| self.end()).flatten().unwrap_or(Stop::Thread)
    }

    /// The launch ends with its first error.
    #[cold]
    pub(super) fn end(&self) -> Option<Stop> {
        self.collected.first().map(|first| Stop::Launch(Box::new(first.clone())))
    }

    /// Whether errors may be those of a thread that was stopped before: what it would have written
    /// is missing.
    pub(in super::super) fn has_stopped_threads(&self) -> bool {
        self.stops > 0
    }

    /// An access whose address is not aligned as its type.
    #[cold]
    pub(in super::super) fn misaligned(&mut self, me: Running, access: MemoryAccess) -> Stop {
        self.compare_racing_write(None);
        let is_own = (me.stack.0..me.stack.1).contains(&access.address);
        let outside = || self.outside_of_areas(me, access);
        let is_somewhere = is_own || self.area_of(access.address).is_some();
        let finding = (!is_somewhere).then(outside).flatten();
        let misaligned = || self.finding(FindingKind::Misaligned, me, access, None);
        let finding = *finding.unwrap_or_else(misaligned);
        self.stop(me, finding)
    }

    /// An access that the compiler knows to be beyond the end of a variable. If that is none of the
    /// thread's own, and no other one is there, the access is judged when it is announced.
    #[cold]
    pub(in super::super) fn beyond(&mut self, me: Running, access: MemoryAccess) -> Option<Stop> {
        let is_own = (me.stack.0..me.stack.1).contains(&access.address);
        if !is_own && self.area_of(access.address).is_none() {
            return None;
        }
        self.compare_racing_write(None);
        let mut finding = *self.finding(FindingKind::OutOfBounds, me, access, None);
        if is_own {
            self.name_array(&mut finding, None);
            finding.variable = Some(LOCAL_VARIABLE.into());
            finding.element = None;
        }
        Some(self.stop(me, finding))
    }

    /// A thread is about to wait for the lanes in a mask, which must name its own.
    pub(in super::super) fn pass_mask(
        &mut self,
        me: Running,
        mask: u32,
        code: usize,
    ) -> Option<Stop> {
        let is_named = mask >> (me.thread % LANES) & 1 == 1;
        (!is_named).then(|| {
            let finding = *self.of_no_memory(FindingKind::InvalidMask, me, code);
            self.stop(me, finding)
        })
    }

    /// A thread reads what a lane of its warp passed that did not come.
    #[cold]
    pub(in super::super) fn read_absent_lane(&mut self, me: Running, lane: u32, code: usize) {
        self.enter(me.block);
        if self.stops > 0 {
            self.accesses_max = 0;
            return;
        }
        let mut finding = *self.of_no_memory(FindingKind::InvalidMask, me, code);
        let (block, thread) = self.indices(me.block, me.thread / LANES * LANES + lane);
        finding.other = Some(OtherThread { block, thread });
        self.fast_path.close();
        self.collect(|all| all.add(finding));
    }

    /// A thread is about to do what no GPU does in one way, such as a division by zero.
    #[cold]
    pub(in super::super) fn wrong_at(
        &mut self,
        kind: FindingKind,
        reason: Option<&str>,
        me: Running,
        code: usize,
    ) -> Stop {
        let mut finding = *self.of_no_memory(kind, me, code);
        finding.variable = reason.map(Into::into);
        self.stop(me, finding)
    }

    /// An index of a view is out of its bounds. `first` is the address of element 0, 0, ...
    #[cold]
    pub(in super::super) fn outside(
        &mut self,
        me: Running,
        first: usize,
        index: &[i64],
        access: MemoryAccess,
    ) -> Stop {
        let mut finding = self.finding(FindingKind::OutOfBounds, me, access, None);
        let array = self.arrays.iter().position(|array| array.starts_at(first));
        finding.variable = None;
        self.name_array(&mut finding, array);
        finding.element = Some(index.to_vec());
        self.stop(me, *finding)
    }
}
