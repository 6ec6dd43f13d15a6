//! What is known of each unit of memory during a launch: who wrote it last, and who read it since.
//! Pure.

use super::access::Touch;
use super::order::{Order, Stamp};

/// One unit of memory: the stamp of its last writer, and of two threads that have read it or
/// accessed it atomically since.
///
/// Two are enough: a barrier orders all threads of a block at once, so that a third one conflicts
/// with the same accesses as these, which are as far apart as possible. Only if `__syncwarp` has
/// ordered some lanes of a warp and not others, a conflict can be missed.
pub(super) type Cell = [u64; 3];

/// A unit that no thread has accessed.
pub(super) const UNTOUCHED: Cell = [0; 3];

/// The earlier access with which an access of the thread `me` conflicts.
#[inline]
pub(super) fn conflict(cell: &Cell, touch: Touch, me: Stamp, order: &Order) -> Option<Stamp> {
    let is_unordered = |earlier: Stamp| {
        earlier != Stamp::NOBODY
            && !earlier.is_of_thread(me)
            && !order.is_before(earlier, me.thread())
    };
    let writer = Stamp(cell[0]);
    if !(touch.is_atomic() && writer.is_atomic()) && is_unordered(writer) {
        return Some(writer);
    }
    let conflicts = |other: Stamp| match touch {
        Touch::Write => true,
        Touch::Read => other.is_atomic(),
        Touch::AtomicRead => false,
        Touch::AtomicWrite | Touch::AtomicUpdate => other.is_reading(),
    };
    [cell[1], cell[2]]
        .map(Stamp)
        .into_iter()
        .find(|other| conflicts(*other) && is_unordered(*other))
}

/// Records an access that conflicts with none.
#[inline]
pub(super) fn record(cell: &mut Cell, touch: Touch, me: Stamp, order: &Order) {
    match touch {
        Touch::Write => *cell = [me.0, 0, 0],
        Touch::Read => add(cell, me.reading(), order),
        // Without a flag: it conflicts with plain writes only.
        Touch::AtomicRead => add(cell, me, order),
        Touch::AtomicWrite | Touch::AtomicUpdate => {
            if cell[0] == 0 {
                cell[0] = me.atomic().0;
            }
            add(cell, me.atomic(), order);
        }
    }
}

/// Makes the plain reads of a thread atomic ones. Returns whether there are any.
pub(super) fn forget_read(cell: &mut Cell, me: Stamp) -> bool {
    let mut reads = false;
    for word in &mut cell[1..] {
        let stamp = Stamp(*word);
        if stamp != Stamp::NOBODY && stamp.is_of_thread(me) && stamp.is_reading() {
            *word = stamp.without_flags().atomic().0;
            reads = true;
        }
    }
    reads
}

fn add(cell: &mut Cell, me: Stamp, order: &Order) {
    if cell[1] == me.0 {
        return;
    }
    let others = [Stamp(cell[1]), Stamp(cell[2])];
    for (index, other) in others.into_iter().enumerate() {
        if let Some(both) = merged(other, me, order) {
            cell[1 + index] = both.0;
            return;
        }
    }
    let [first, second] = others;
    if first.is_of_thread(me) || second.is_of_thread(me) {
        return;
    }
    let apart = first.distance(second);
    // What only reads atomically conflicts with less than the others.
    if let Some(weak) = others.iter().position(|other| me.has_flags() && !other.has_flags()) {
        cell[1 + weak] = me.0;
    } else if me.has_flags() == second.has_flags() && first.distance(me) > apart {
        cell[2] = me.0;
    } else if me.has_flags() == first.has_flags() && second.distance(me) > apart {
        cell[1] = me.0;
    }
}

/// One stamp that conflicts with what either conflicts with, if there is one.
fn merged(earlier: Stamp, me: Stamp, order: &Order) -> Option<Stamp> {
    if earlier == Stamp::NOBODY || order.is_before_all(earlier) {
        Some(me)
    } else if earlier.is_of_thread(me) {
        // Another thread may come after the earlier one only, so the two kinds stay apart.
        (earlier.is_at_time_of(me) || earlier.has_flags_of(me)).then(|| me.with_flags_of(earlier))
    } else {
        order.is_before_in_block(earlier, me.thread()).then_some(me)
    }
}

#[cfg(test)]
mod tests {
    use super::{UNTOUCHED, conflict, record};
    use crate::sanitizer::access::Touch;
    use crate::sanitizer::order::Order;

    /// In a program, this is no thread, but a barrier.
    const BARRIER: u32 = u32::MAX;

    /// The first access of a program that conflicts.
    fn first_conflict(program: &[(u32, Touch)]) -> Option<usize> {
        let mut order = Order::default();
        order.start_block(0);
        let mut cell = UNTOUCHED;
        program.iter().position(|(thread, touch)| {
            if *thread == BARRIER {
                order.pass_barrier();
                return false;
            }
            let me = order.stamp(*thread);
            let found = conflict(&cell, *touch, me, &order);
            record(&mut cell, *touch, me, &order);
            found.is_some()
        })
    }

    /// As above, from the definition: two accesses conflict if different threads make them between
    /// two barriers, one of them writes, and not both are atomic.
    fn expected(program: &[(u32, Touch)]) -> Option<usize> {
        program.iter().enumerate().position(|(index, (thread, touch))| {
            let part = program[..index].iter().rev().take_while(|(other, _)| *other != BARRIER);
            *thread != BARRIER
                && part.into_iter().any(|(other, earlier)| {
                    other != thread
                        && (touch.writes() || earlier.writes())
                        && !(touch.is_atomic() && earlier.is_atomic())
                })
        })
    }

    #[test]
    fn all_short_programs_of_four_threads_conflict_where_the_definition_says() {
        let touches =
            [Touch::Read, Touch::Write, Touch::AtomicRead, Touch::AtomicWrite, Touch::AtomicUpdate];
        let mut steps = vec![(BARRIER, Touch::Read)];
        for thread in [0, 1, 40] {
            steps.extend(touches.map(|touch| (thread, touch)));
        }
        let count = steps.len();
        for number in 0..count.pow(4) {
            let at = |place: u32| steps[number / count.pow(place) % count];
            let program = [at(0), at(1), at(2), at(3)];
            assert_eq!(first_conflict(&program), expected(&program), "{program:?}");
        }
    }
}
