//! Bodies that are called for each element of the outputs, on all cores.

mod outputs;
mod parameters;
mod walk;

pub(super) use outputs::Indexed;
pub(super) use walk::{Walk, Walked};

use std::time::{Duration, Instant};

use ndarray::{Axis, Dimension};

use super::arguments::bound::{BoundArgument, BoundArray};
use super::parallel::{Halves, each_piece, pieces_of, threads};
use crate::error::{CalledAt, Error, Result};
use resident_backend::scope::BodyScope;
use resident_documents::quoted;

/// How long the thread of the body works before others help, and what makes a task: to wake them
/// takes as long.
const TASK_TIME: Duration = Duration::from_micros(20);

/// So many tasks for each thread balance those that take longer.
const TASKS_PER_THREAD: usize = 16;

/// The dimension of the index that a body gets with each element.
type IndexDimension<W> = <<W as Walk>::Outputs as Indexed>::Dimension;

/// The index that a body gets with each element.
pub(super) type Index<W> = <IndexDimension<W> as Dimension>::Pattern;

/// Calls `each` for each element of the outputs.
pub(super) fn run<W, Each>(views: W::Views<'_>, each: &Each)
where
    W: Walk<Outputs: Indexed>,
    Each: for<'e> Fn(Index<W>, W::Elements<'e>) + Sync,
{
    let whole = Piece::<W, IndexDimension<W>>::whole(views);
    let Some(halvings) = whole.len().checked_ilog2() else { return };
    let (begun, mut done, mut task_len) = (Instant::now(), 0, 1);
    let mut open = Vec::with_capacity(halvings as usize + 2);
    open.push(whole);
    while let Some(piece) = open.pop() {
        match piece.halves(task_len) {
            (first, Some(second)) => open.extend([second, first]),
            (piece, None) => {
                done += piece.len();
                piece.walk(each);
                // A look at the clock takes as long as some elements.
                if done >= task_len {
                    if begun.elapsed() >= TASK_TIME {
                        break;
                    }
                    task_len = task_len.saturating_mul(4);
                }
            }
        }
    }
    if open.is_empty() {
        return;
    }
    let task_len = task_len_for(&open, done, begun.elapsed());
    let tasks = open.into_iter().flat_map(|piece| pieces_of(piece, &|it| it.halves(task_len)));
    each_piece(tasks.collect(), |piece| piece.walk(each));
}

/// The elements of a task, if `done` of them took `elapsed`.
fn task_len_for<W: Walk, D: Dimension>(
    open: &[Piece<'_, W, D>],
    done: usize,
    elapsed: Duration,
) -> usize {
    let left: usize = open.iter().map(Piece::len).sum();
    let in_task_time = TASK_TIME.div_duration_f64(elapsed) * done as f64;
    (left / (TASKS_PER_THREAD * threads())).max(in_task_time as usize).max(1)
}

/// A part of the elements. What is not an output is whole in each.
struct Piece<'v, W: Walk, D> {
    /// The index of its first element.
    first: D,
    views: W::Views<'v>,
}

impl<'v, W: Walk, D: Dimension> Piece<'v, W, D> {
    fn whole(views: W::Views<'v>) -> Self {
        Self { first: D::zeros(W::output_layout(&views).shape.len()), views }
    }

    fn len(&self) -> usize {
        W::output_layout(&self.views).shape.iter().product()
    }

    /// The halves of a piece with more elements than that: along the axis that is slowest in
    /// memory, so that their elements lie together.
    fn halves(self, len_max: usize) -> Halves<Self> {
        if self.len() <= len_max {
            return (self, None);
        }
        let layout = W::output_layout(&self.views);
        let slowest = layout.long_axes().max_by_key(|axis| layout.strides[*axis].unsigned_abs());
        let Some(axis) = slowest else { return (self, None) };
        let middle = layout.shape[axis] / 2;
        let (views, second_views) = W::split(self.views, Axis(axis), middle);
        let mut second_first = self.first.clone();
        second_first[axis] += middle;
        (Self { first: self.first, views }, Some(Self { first: second_first, views: second_views }))
    }

    /// Calls `each` for each element, along the axis that is fastest in memory.
    fn walk<Each>(self, each: &Each)
    where
        Each: for<'e> Fn(D::Pattern, W::Elements<'e>),
    {
        let _running = BodyScope::enter();
        let layout = W::output_layout(&self.views);
        let mut shape = D::zeros(layout.shape.len());
        shape.slice_mut().copy_from_slice(layout.shape);
        let last = shape.ndim().saturating_sub(1);
        let fastest = layout.long_axes().rev().min_by_key(|axis| layout.strides[*axis].abs());
        match fastest {
            Some(axis) if axis != last && D::NDIM != Some(1) => {
                W::walk::<D, false>(self.views, &self.first, &shape, axis, each);
            }
            _ => W::walk::<D, true>(self.views, &self.first, &shape, last, each),
        }
    }
}

/// Returns an error if the outputs of a launch differ in shape.
pub(super) fn check_shapes(kernel: &str, bound: &[BoundArgument<'_>]) -> Result<()> {
    let mut outputs = bound.iter().enumerate().filter_map(|(parameter, argument)| match argument {
        BoundArgument::Array(array) if array.access.writes() => Some((parameter, array)),
        _ => None,
    });
    let Some(first) = outputs.next() else { return Ok(()) };
    match outputs.find(|(_, array)| array.view.shape != first.1.view.shape) {
        Some(other) => Err(differ(kernel, first, other)),
        None => Ok(()),
    }
}

#[cold]
fn differ(kernel: &str, first: Output<'_>, other: Output<'_>) -> Error {
    let describe = |(parameter, array): Output<'_>| {
        format!(
            "{} of shape {:?} for parameter {parameter}",
            array.storage.named(),
            array.view.shape
        )
    };
    Error::Requirement {
        call: CalledAt::UNKNOWN,
        kernel: quoted(kernel),
        requirement: String::from(
            "the outputs of `host_each` have one shape (a body of `host` takes others)",
        ),
        arguments: format!("{} and {}", describe(first), describe(other)),
    }
}

/// The index of a parameter, and the array that is passed for it.
type Output<'a> = (usize, &'a BoundArray<'a>);
