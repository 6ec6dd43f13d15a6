//! The guards that read device copies.
//!
//! A read guard leaves an open mark, and its drop takes no lock. So that marks and their streams do
//! not accumulate, a guard holds a clone of an `Arc` that the array keeps for its stream. Once the
//! array has the only clone, no guard exists, and the array closes the stream's open reads: the
//! external work is on the stream by then.
//!
//! Guards of the whole array on streams that are published to the fast path hold no clone. The
//! marks of these streams stay open until the array is written; at most two streams per array are
//! published.

use std::sync::Arc;

use super::ArrayState;
use super::cold_state::{OpenRead, OpenReads};
use crate::device::Stream;
use resident_core::coherence::Location;

impl ArrayState {
    /// The token of a new read guard. If the stream is published, `publish_reads` follows. A stream
    /// that is not published now has no guard without a token: these borrow the whole array, and
    /// only a write ends the publication.
    pub(crate) fn open_read(&mut self, stream: &Stream, location: Location) -> OpenRead {
        let reads = &mut self.cold().open_reads;
        let id = stream.id().0;
        if let Some(known) = reads.iter_mut().find(|known| known.stream == id) {
            known.is_published = false;
            return Arc::clone(&known.token);
        }
        let token = OpenRead::default();
        let clone = Arc::clone(&token);
        reads.push(OpenReads { stream: id, location, token, is_published: false });
        clone
    }

    /// Records that a stream is published.
    pub(crate) fn publish_reads(&mut self, stream: &Stream) {
        let id = stream.id().0;
        let reads = self.cold.as_deref_mut().map(|cold| &mut cold.open_reads);
        let known = reads.and_then(|reads| reads.iter_mut().find(|known| known.stream == id));
        if let Some(known) = known {
            known.is_published = true;
        }
    }

    /// Closes the open reads of all streams on which no guard exists any more.
    pub(crate) fn close_dropped_reads(&mut self) {
        let Some(cold) = self.cold.as_deref_mut() else { return };
        // `get_mut` also makes visible what threads did before they dropped their guards.
        let is_over = |reads: &mut OpenReads| Arc::get_mut(&mut reads.token).is_some();
        let over: Vec<OpenReads> = cold.open_reads.extract_if(.., is_over).collect();
        for OpenReads { stream, location, is_published, .. } in over {
            let Some((key, stream)) = self.find_stream(stream).filter(|_| !is_published) else {
                continue;
            };
            let end = stream.raw().reserve_position();
            self.uses_mut(location).close_reads(key, end);
        }
    }
}
