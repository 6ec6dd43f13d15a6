//! The tasks that wait for positions of one stream.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Position, TaskWaker};

/// Tasks to be woken or dropped. The caller does that with no lock held, since wakers are user
/// code.
pub type Tasks = SmallVec<[Arc<TaskWaker>; 2]>;

/// Abandoned tasks are searched for when a list has this many entries, and then twice as many as
/// it had left.
const SEARCH_MIN: usize = 64;

/// The tasks that wait for positions of one stream, in the order of the positions.
///
/// Positions are mostly registered in order, so adding a task and taking those that are due are
/// changes at the ends of the list. A future that was polled and then dropped leaves an entry that
/// nothing else refers to. Such entries are removed when the list has doubled, so that a program
/// that polls new futures for the same work, as `select!` in a loop does, needs bounded memory.
#[derive(Debug, Default)]
pub struct WaitingTasks {
    list: VecDeque<(Position, Arc<TaskWaker>)>,
    search_at: usize,
}

impl WaitingTasks {
    /// Adds a task. Returns whether it did not wait for this position yet.
    pub fn add(&mut self, position: Position, task: &Arc<TaskWaker>) -> bool {
        let key = |position: &Position, task: &Arc<TaskWaker>| (*position, Arc::as_ptr(task));
        let new = key(&position, task);
        let place = self.list.partition_point(|(position, task)| key(position, task) < new);
        let is_new = self.list.get(place).is_none_or(|(position, task)| key(position, task) != new);
        if is_new {
            self.list.insert(place, (position, Arc::clone(task)));
        }
        is_new
    }

    /// Removes and returns the tasks that wait for `completed` or an earlier position.
    pub fn take_due(&mut self, completed: Position) -> Tasks {
        let due = self.list.partition_point(|(position, _)| *position <= completed);
        self.list.drain(..due).map(|(_, task)| task).collect()
    }

    /// If the list has grown, removes and returns the tasks to which nothing else refers.
    pub fn take_abandoned(&mut self) -> Tasks {
        if self.list.len() < self.search_at.max(SEARCH_MIN) {
            return Tasks::new();
        }
        let (kept, abandoned): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.list).into_iter().partition(|(_, task)| is_in_use(task));
        self.search_at = 2 * kept.len();
        self.list = kept;
        abandoned.into_iter().map(|(_, task)| task).collect()
    }

    /// The earliest position that a task waits for.
    pub fn first(&self) -> Option<Position> {
        self.list.front().map(|(position, _)| *position)
    }

    /// Moves the tasks of `other` into this list.
    pub fn merge(&mut self, other: &Self) {
        for (position, task) in &other.list {
            self.add(*position, task);
        }
    }

    /// The number of entries.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.list.len()
    }
}

fn is_in_use(task: &Arc<TaskWaker>) -> bool {
    Arc::strong_count(task) > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(list: &WaitingTasks) -> Vec<u64> {
        list.list.iter().map(|(position, _)| position.0).collect()
    }

    #[test]
    fn tasks_are_due_in_the_order_of_their_positions() {
        let (mut list, tasks) = (WaitingTasks::default(), [(); 3].map(|()| Arc::default()));
        for position in [5, 3, 9] {
            for task in &tasks {
                assert!(list.add(Position(position), task));
                assert!(!list.add(Position(position), task), "it waits for it already");
            }
        }
        assert_eq!(positions(&list), [3, 3, 3, 5, 5, 5, 9, 9, 9]);
        assert_eq!(list.first(), Some(Position(3)));
        assert_eq!(list.take_due(Position(2)).len(), 0);
        assert_eq!((list.take_due(Position(8)).len(), positions(&list)), (6, vec![9, 9, 9]));
    }

    #[test]
    fn abandoned_tasks_are_removed_when_the_list_has_doubled() {
        let (mut list, kept) = (WaitingTasks::default(), Arc::default());
        list.add(Position(7), &kept);
        for round in 0..1_000 {
            list.add(Position(7), &Arc::default());
            let abandoned = list.take_abandoned();
            assert!(list.len() < SEARCH_MIN, "round {round}");
            assert!(abandoned.iter().all(|task| !Arc::ptr_eq(task, &kept)));
        }
        let due = list.take_due(Position(7));
        assert!(due.iter().any(|task| Arc::ptr_eq(task, &kept)), "it still waits");
    }

    #[test]
    fn tasks_in_use_are_searched_seldom() {
        let (mut list, tasks) = (WaitingTasks::default(), vec![(); 300]);
        let tasks: Vec<Arc<TaskWaker>> = tasks.iter().map(|()| Arc::default()).collect();
        let mut searches = 0;
        for task in &tasks {
            list.add(Position(1), task);
            let search_at = list.search_at;
            assert!(list.take_abandoned().is_empty());
            searches += usize::from(search_at != list.search_at);
        }
        assert_eq!((list.len(), searches), (300, 3), "at 64, 128 and 256 tasks");
    }
}
