//! Which threads of a block can go on, and what they get.

use super::fiber::Fiber;
use super::runtime::{Exchanged, LANES};
use super::waiting::{Answer, Wait};

/// Lanes of a warp that meet, at `__syncwarp` or to exchange values.
#[derive(Debug)]
pub(super) struct Meeting {
    pub(super) warp: u32,
    /// The lanes that have come.
    pub(super) came: u32,
    /// Those that they name, of which the others have ended.
    pub(super) mask: u32,
    pub(super) is_barrier: bool,
    /// Where the first of them waits, if the code is checked.
    pub(super) code: usize,
}

/// What threads of a block did in a step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// All have ended.
    Done,
    /// Some have come to something else than before.
    Went,
    /// Some had a turn, and ask for the next one.
    Turned,
}

/// Why a thread has failed.
pub(super) fn failure<'f>(threads: impl IntoIterator<Item = &'f Fiber>) -> Option<String> {
    threads.into_iter().find_map(|thread| match &thread.wait {
        Some(Wait::Failed(text)) => Some(text.clone()),
        _ => None,
    })
}

/// For how many threads the predicate holds, if all threads wait for the block. Threads that have
/// ended do not count, as on a GPU.
pub(super) fn votes(threads: &[Fiber]) -> Option<u32> {
    let mut count = 0;
    for wait in threads.iter().filter_map(|thread| thread.wait.as_ref()) {
        let Wait::Block { predicate, .. } = wait else { return None };
        count += u32::from(*predicate);
    }
    Some(count)
}

/// Runs the lanes of a warp whose partners have all come; if there are none, the lanes that want to
/// know each other. Those wait for lanes with turns, which may come to them. Returns whether there
/// are any. Tells `on_meeting` of lanes that met.
pub(super) fn release(lanes: &mut [Fiber], last: Step, on_meeting: &impl Fn(&Meeting)) -> bool {
    let has_turns = || lanes_with_turns(lanes).next().is_some();
    let waits = last == Step::Went && has_turns();
    release_exchanges(lanes, on_meeting) || !waits && release_active(lanes)
}

fn lanes_with_turns(threads: &[Fiber]) -> impl Iterator<Item = &Fiber> {
    threads.iter().filter(|thread| matches!(thread.wait, Some(Wait::Turn(_))))
}

/// Gives each thread that asked for it a turn. Returns how many these are, and whether one of them
/// has come to something else.
pub(super) fn give_turns(threads: &mut [Fiber]) -> (usize, bool) {
    let count = lanes_with_turns(threads).count();
    let has_turn = |thread: &&mut Fiber| matches!(thread.wait, Some(Wait::Turn(_)));
    let waiting = threads.iter_mut().filter(has_turn);
    resume_until_failure(waiting, |thread| thread.resume(Answer::Count(0)));
    (count, lanes_with_turns(threads).count() < count)
}

/// Resumes threads. After a failure the others do not run.
pub(super) fn resume_until_failure<'f>(
    mut threads: impl Iterator<Item = &'f mut Fiber>,
    resume: impl Fn(&mut Fiber),
) {
    let _failed = threads.find_map(|thread| {
        resume(thread);
        matches!(thread.wait, Some(Wait::Failed(_))).then_some(())
    });
}

fn release_active(lanes: &mut [Fiber]) -> bool {
    let bit = |lane: &Fiber| match lane.wait {
        Some(Wait::Active) => 1 << (lane.thread % LANES as u32),
        _ => 0,
    };
    let mask = lanes.iter().map(bit).fold(0, |all: u32, bit| all | bit);
    let active = lanes.iter_mut().filter(|lane| matches!(lane.wait, Some(Wait::Active)));
    resume_until_failure(active, |lane| lane.resume(Answer::Count(mask)));
    mask != 0
}

fn release_exchanges(lanes: &mut [Fiber], on_meeting: &impl Fn(&Meeting)) -> bool {
    let mut released = 0_u64;
    for index in 0..lanes.len() {
        let Some(Wait::Lanes { mask, is_barrier, code, .. }) = lanes[index].wait else { continue };
        if let Some(values) = exchanged(lanes, mask) {
            let thread = lanes[index].thread;
            let came = values[LANES] as u32;
            if thread % LANES as u32 == came.trailing_zeros() {
                let warp = thread / LANES as u32;
                on_meeting(&Meeting { warp, came, mask, is_barrier, code });
            }
            lanes[index].keep_values(&values);
            released |= 1 << index;
        }
    }
    let partners = lanes.iter_mut().enumerate().filter(|(index, _)| released >> index & 1 == 1);
    resume_until_failure(partners.map(|(_, lane)| lane), Fiber::resume_with_values);
    released != 0
}

/// What the lanes in `mask` passed; `None` if some have not come. Lanes that have ended do not
/// count.
fn exchanged(lanes: &[Fiber], mask: u32) -> Option<Exchanged> {
    let mut values = [0; LANES + 1];
    for lane in lanes {
        let number = lane.thread as usize % LANES;
        match lane.wait {
            _ if mask >> number & 1 == 0 => {}
            None => {}
            Some(Wait::Lanes { mask: same, value, .. }) if same == mask => {
                values[number] = value;
                values[LANES] |= 1 << number;
            }
            Some(_) => return None,
        }
    }
    Some(values)
}

/// A lane that waits for others of its warp and the place where it does, and one of these that
/// waits elsewhere.
pub(super) fn missing_lane(threads: &[Fiber]) -> Option<(u32, usize, u32)> {
    let waiting = threads.iter().find_map(|thread| match thread.wait {
        Some(Wait::Lanes { mask, code, .. }) => Some((thread.thread, mask, code)),
        _ => None,
    });
    let (first, mask, code) = waiting?;
    let lanes = LANES as u32;
    let waits_elsewhere = |thread: &&Fiber| {
        let is_named =
            thread.thread / lanes == first / lanes && mask >> (thread.thread % lanes) & 1 == 1;
        let is_there = matches!(thread.wait, Some(Wait::Lanes { mask: same, .. }) if same == mask);
        is_named && thread.wait.is_some() && !is_there
    };
    let missing = threads.iter().find(waits_elsewhere)?;
    Some((first, code, missing.thread))
}

#[cold]
pub(super) fn stuck(threads: &[Fiber], block: u64) -> String {
    let waiting = threads.iter().filter(|thread| thread.wait.is_some()).count();
    let at_barrier =
        threads.iter().filter(|thread| matches!(thread.wait, Some(Wait::Block { .. }))).count();
    format!(
        "the threads of block {block} wait for each other for ever: {at_barrier} at \
         `__syncthreads` and {} at operations of a warp whose mask names lanes that do not come; \
         let all threads of the block, and all lanes of the mask, reach the same one",
        waiting - at_barrier
    )
}
