//! Exchanges of fields that are on the host only: one guard for all faces of a field.
//!
//! In an exchange in one call, MPI reads and writes the cells of the field, where that is possible.
//! The field is borrowed until the call returns, and the guard lives meanwhile. So the call returns
//! only when MPI is done with the cells. If that cannot be known, as after a time-out, the job
//! ends.

use std::sync::Arc;
use std::time::Instant;

use resident::ndarray::{AxisDescription, Dim, Dimension, RawArrayViewMut, Slice};
use resident::{Element, SmartView, SmartViewMut};

use super::messages::{FINISH, FaceMessages, FieldMessages, Link, State, awaited, other_length};
use crate::call::Outcome;
use crate::decomposition::Cells;
use crate::ending::abort;
use crate::error::Result;
use crate::world::World;

pub(super) const UPDATE: &str = "Exchange::update";

/// Why faces that NCCL carries are not met here.
const BY_NCCL: &str = "faces that NCCL carries are packed and unpacked on the device";

impl<T: Element, const N: usize> FieldMessages<T, N>
where
    Dim<[usize; N]>: Dimension,
{
    /// As `prepare`.
    #[track_caller]
    pub(super) fn prepare_on_host(
        &mut self,
        field: &SmartView<'_, T, Dim<[usize; N]>>,
    ) -> Result<()> {
        let (name, cells) = (field.name(), field.host()?);
        for FaceMessages { face, link } in &mut self.faces {
            match link {
                Link::Itself { source, memory } => {
                    memory.pack_from_host(&cells.slice_each_axis(of(source)))?;
                }
                Link::Peer { sent, received, state } => {
                    if *state == State::Unpacked {
                        received.start(None)?;
                        *state = State::Received;
                    }
                    sent.pack_from_host(&name, &cells.slice_each_axis(of(&face.send)))?;
                }
                Link::Gpu(_) => unreachable!("{BY_NCCL}"),
            }
        }
        Ok(())
    }

    /// As `unpack`.
    #[track_caller]
    pub(super) fn unpack_on_host(
        &mut self,
        field: &mut SmartViewMut<'_, T, Dim<[usize; N]>>,
        deadline: Instant,
    ) -> Result<()> {
        let name = field.name();
        let mut cells = field.host_mut()?;
        for FaceMessages { face, link } in &mut self.faces {
            let halo = &mut cells.slice_each_axis_mut(of(&face.receive));
            match link {
                Link::Itself { memory, .. } => memory.unpack_to_host(halo)?,
                Link::Peer { state: State::Unpacked, .. } => {}
                Link::Peer { received, state, .. } => {
                    if received.wait(&awaited(FINISH, face), deadline)? != Outcome::Done {
                        return Err(other_length(FINISH, face));
                    }
                    received.unpack_to_host(&name, halo)?;
                    *state = State::Unpacked;
                }
                Link::Gpu(_) => unreachable!("{BY_NCCL}"),
            }
        }
        Ok(())
    }

    /// Exchanges the halo of a field that is on the host.
    #[track_caller]
    pub(crate) fn update(
        &mut self,
        world: &World,
        field: &mut SmartViewMut<'_, T, Dim<[usize; N]>>,
        deadline: Instant,
    ) -> Result<()> {
        let name = field.name();
        // Lives longer than `over`: no other code sees the cells before MPI is done with them.
        let mut guard = field.host_mut()?;
        let cells = guard.raw_view_mut();
        let mut over = Over { world, messages: self, reason: None };
        let outcome = over.messages.exchange_in_place(&name, cells, deadline);
        over.reason = outcome.as_ref().err().map(ToString::to_string);
        outcome
    }
}

/// Ends the job if it drops while MPI may use the cells of a field.
struct Over<'a, T: Element, const N: usize>
where
    Dim<[usize; N]>: Dimension,
{
    world: &'a World,
    messages: &'a mut FieldMessages<T, N>,
    reason: Option<String>,
}

impl<T: Element, const N: usize> Drop for Over<'_, T, N>
where
    Dim<[usize; N]>: Dimension,
{
    fn drop(&mut self) {
        let is_active = |face: &FaceMessages<T, N>| match &face.link {
            Link::Itself { .. } | Link::Gpu(_) => false,
            Link::Peer { sent, received, .. } => sent.is_active() || received.is_active(),
        };
        if self.messages.faces.iter().any(is_active) {
            let unwinds = "a panic unwinds through an exchange";
            abort(self.world, &self.reason.as_deref().unwrap_or(unwinds));
        }
    }
}

/// The cells of a field on the host: `Over` lives until nothing but this module uses them.
type Raw<T, const N: usize> = RawArrayViewMut<T, Dim<[usize; N]>>;

impl<T: Element, const N: usize> FieldMessages<T, N>
where
    Dim<[usize; N]>: Dimension,
{
    #[track_caller]
    fn exchange_in_place(
        &mut self,
        name: &Arc<str>,
        cells: Raw<T, N>,
        deadline: Instant,
    ) -> Result<()> {
        self.begin(name, cells)?;
        for FaceMessages { face, link } in &mut self.faces {
            let halo = part(cells, &face.receive);
            match link {
                Link::Itself { source, .. } => {
                    // SAFETY: cells of the halo, which nothing else uses: MPI writes others.
                    let mut halo = unsafe { halo.deref_into_view_mut() };
                    // SAFETY: own cells, which MPI only reads, and which are not of the halo.
                    halo.assign(&unsafe { part(cells, source).deref_into_view() });
                }
                Link::Peer { received, state, .. } => {
                    if received.wait(&awaited(UPDATE, face), deadline)? != Outcome::Done {
                        return Err(other_length(UPDATE, face));
                    }
                    if *state == State::InPlace {
                        received.record_for(name)?;
                    } else {
                        // SAFETY: as above.
                        let mut halo = unsafe { halo.deref_into_view_mut() };
                        received.unpack_to_host(name, &mut halo)?;
                    }
                    *state = State::Unpacked;
                }
                Link::Gpu(_) => unreachable!("{BY_NCCL}"),
            }
        }
        self.wait_sent(UPDATE, deadline)
    }

    /// Begins the receives, and then sends.
    #[track_caller]
    fn begin(&mut self, name: &Arc<str>, cells: Raw<T, N>) -> Result<()> {
        for FaceMessages { face, link } in &mut self.faces {
            let Link::Peer { received, state: state @ State::Unpacked, .. } = link else {
                continue;
            };
            let halo = part(cells, &face.receive);
            if halo.is_standard_layout() {
                // SAFETY: these cells of the halo are contiguous. They live, and nothing else uses
                // them, until the message is complete, or the job ends (`Over`).
                unsafe { received.start_to(halo.as_ptr().cast_mut()) }?;
                *state = State::InPlace;
            } else {
                received.start(None)?;
                *state = State::Received;
            }
        }
        for FaceMessages { face, link } in &mut self.faces {
            let Link::Peer { sent, .. } = link else { continue };
            let own = part(cells, &face.send);
            if own.is_standard_layout() {
                // SAFETY: these own cells are contiguous. They live, and nothing writes them, until
                // the message is complete, or the job ends (`Over`).
                unsafe { sent.start_from(name, own.as_ptr()) }?;
            } else {
                // SAFETY: own cells, which MPI only reads.
                sent.pack_from_host(name, &unsafe { own.deref_into_view() })?;
                sent.start()?;
            }
        }
        Ok(())
    }
}

fn part<T, const N: usize>(mut cells: Raw<T, N>, part: &Cells<N>) -> Raw<T, N>
where
    Dim<[usize; N]>: Dimension,
{
    cells.slice_each_axis_inplace(of(part));
    cells
}

/// The indices of these cells along each axis.
fn of<const N: usize>(cells: &Cells<N>) -> impl FnMut(AxisDescription) -> Slice {
    |axis| Slice::from(cells.ranges()[axis.axis.index()].clone())
}
