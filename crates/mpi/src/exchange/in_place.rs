//! Exchanges in one call: MPI reads and writes the cells of the array where that is possible.
//!
//! The array is borrowed until the call returns, and a guard of the host's copy lives meanwhile. So
//! the call returns only when MPI is done with the cells. If that cannot be known, as after a
//! time-out, the job ends.

use std::sync::Arc;
use std::time::Instant;

use resident::ndarray::{Dim, Dimension, RawArrayViewMut, Slice};
use resident::{Element, SmartView, SmartViewMut, Validity};

use super::messages::{FaceMessages, FieldMessages, Link, State, awaited, other_length};
use crate::call::Outcome;
use crate::decomposition::Cells;
use crate::ending::abort;
use crate::error::Result;
use crate::world::World;

pub(super) const OPERATION: &str = "Exchange::update";

/// Whether all cells are on the host, and no device has memory for them.
pub(super) fn is_on_host<T: Element, D: Dimension>(field: &SmartView<'_, T, D>) -> bool {
    let residency = field.residency();
    residency.host() == Validity::Valid
        && residency.devices().all(|(_, validity)| validity == Validity::Absent)
}

impl<T: Element, const N: usize> FieldMessages<T, N>
where
    Dim<[usize; N]>: Dimension,
{
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
            match link {
                Link::Itself { source, .. } => {
                    let (to, from) = (part(cells, &face.receive), part(cells, source));
                    // SAFETY: cells of the halo, which nothing else uses: MPI writes others.
                    let mut to = unsafe { to.deref_into_view_mut() };
                    // SAFETY: own cells, which MPI only reads, and which are not of the halo.
                    to.assign(&unsafe { from.deref_into_view() });
                }
                Link::Peer { received, state, .. } => {
                    if received.wait(&awaited(OPERATION, face), deadline)? != Outcome::Done {
                        return Err(other_length(OPERATION, face));
                    }
                    if *state == State::Received {
                        // SAFETY: as above.
                        let mut to = unsafe { part(cells, &face.receive).deref_into_view_mut() };
                        received.unpack_to_host(&mut to)?;
                    }
                    *state = State::Unpacked;
                    received.record_for(Arc::clone(name))?;
                }
                Link::Gpu(_) => unreachable!("with NCCL nothing is exchanged in place"),
            }
        }
        self.wait_sent(OPERATION, deadline)
    }

    /// Begins the receives, and then sends.
    #[track_caller]
    fn begin(&mut self, name: &Arc<str>, cells: Raw<T, N>) -> Result<()> {
        for FaceMessages { face, link } in &mut self.faces {
            let Link::Peer { received, state, .. } = link else { continue };
            if *state != State::Unpacked {
                continue;
            }
            let to = part(cells, &face.receive);
            if to.is_standard_layout() {
                // SAFETY: these cells of the halo are contiguous. They live, and nothing else uses
                // them, until the message is complete, or the job ends (`Over`).
                unsafe { received.start_to(to.as_ptr().cast_mut()) }?;
                *state = State::InPlace;
            } else {
                received.start(None)?;
                *state = State::Received;
            }
        }
        for FaceMessages { face, link } in &mut self.faces {
            let Link::Peer { sent, .. } = link else { continue };
            let from = part(cells, &face.send);
            sent.set_array(Arc::clone(name));
            if from.is_standard_layout() {
                // SAFETY: these own cells are contiguous. They live, and nothing writes them, until
                // the message is complete, or the job ends (`Over`).
                unsafe { sent.start_from(from.as_ptr()) }?;
            } else {
                // SAFETY: own cells, which MPI only reads.
                sent.pack_from_host(&unsafe { from.deref_into_view() })?;
                sent.start()?;
            }
        }
        Ok(())
    }
}

fn part<T, const N: usize>(cells: Raw<T, N>, of: &Cells<N>) -> Raw<T, N>
where
    Dim<[usize; N]>: Dimension,
{
    let mut part = cells;
    part.slice_each_axis_inplace(|axis| Slice::from(of.ranges()[axis.axis.index()].clone()));
    part
}
