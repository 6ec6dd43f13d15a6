//! What a queue remembers of work in flight that leaves something to do when it is over, in the
//! order of positions. Plain data: it asks no driver.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use super::lent::Lent;
use crate::backend::{
    Address, CopyBox, Dependencies, FailureKind, FailureRecord, HostMemory, Label, Position,
    QueueId, host_copy,
};
use crate::call_site::CallSite;

/// The operations remembered by name, to say what a dead device was doing.
const NAMES_KEPT: usize = 64;

/// One piece of work in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) position: Position,
    /// Work whose failure spoils this one's outcome: it may have run on what was spoilt by then.
    pub(super) depends: Dependencies,
    /// What is to be done on the host once the device is through.
    pub(super) after: After,
    pub(super) loss: FailureKind,
}

/// What remains to be done.
#[derive(Debug)]
pub(super) enum After {
    Nothing,
    /// Memory that the device uses is let go of.
    LetGo {
        held: SmallVec<[Arc<dyn HostMemory>; 2]>,
    },
    /// What came down packed is put in its place.
    Unpack(Landing),
    /// Memory of a device without pools is given back.
    Free(Address),
    /// What remains to be done on another stream, which this one waited for, comes first: the
    /// device kept the order, and so must the host.
    Behind {
        queue: QueueId,
        position: Position,
    },
    /// Memory of somebody else's is given back, where that cannot be queued.
    GiveBack {
        _lent: Lent,
    },
}

impl After {
    /// Whether somebody on another stream, who waits for this work by an event alone, must find it
    /// done: it writes memory of the host, or keeps some that somebody may want for himself.
    fn is_of_matter_elsewhere(&self) -> bool {
        match self {
            Self::Nothing | Self::Free(_) | Self::GiveBack { .. } => false,
            Self::LetGo { held } => held.iter().any(|host| !host.is_staging()),
            Self::Unpack(_) | Self::Behind { .. } => true,
        }
    }

    fn writes_host_memory(&self) -> bool {
        matches!(self, Self::Unpack(_) | Self::Behind { .. })
    }

    /// The device died: what it may have been writing to stays where it is, for good; whoever waits
    /// for the rest is told not to.
    pub(super) fn give_up(self) {
        match self {
            Self::LetGo { held } => {
                held.iter().for_each(|host| host.mark_leaked());
                std::mem::forget(held);
            }
            Self::Unpack(Landing { packed, .. }) => std::mem::forget(packed),
            kept @ Self::GiveBack { .. } => std::mem::forget(kept),
            Self::Nothing | Self::Free(_) | Self::Behind { .. } => {}
        }
    }
}

/// A download that lies packed in page-locked memory.
#[derive(Debug)]
pub(super) struct Landing {
    pub(super) packed: Arc<dyn HostMemory>,
    pub(super) destination: Arc<dyn HostMemory>,
    /// From the packed bytes to their place.
    pub(super) parts: SmallVec<[CopyBox; 1]>,
}

impl Landing {
    /// Puts the bytes in their place.
    pub(super) fn unpack(&self) {
        for part in &self.parts {
            // SAFETY: the parts lie within both memories: `CudaQueue` checked the destination's
            // bounds when the copy was queued, and made the packed ones itself. The device is
            // through with the packed memory. Nobody else touches these bytes of the destination:
            // they are stale there until this position completes, and the layers above let no one
            // at them before (DESIGN.md, "Why it is sound").
            unsafe {
                host_copy::copy_box_in_parallel(self.packed.base(), self.destination.base(), part)
            };
        }
    }
}

/// What a piece of work is called.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) is_kernel: bool,
    pub(super) text: Arc<str>,
    pub(super) site: Option<CallSite>,
}

impl Name {
    pub(super) fn of_label(label: &Label) -> Self {
        Self { is_kernel: false, text: Arc::clone(&label.text), site: label.site }
    }

    fn in_words(&self) -> String {
        if self.is_kernel {
            format!("kernel \"{}\"", self.text)
        } else {
            self.text.as_ref().to_owned()
        }
    }
}

/// Work that can fail, and the first position of which no other such work is known: between the two
/// stand events, waits and frees.
#[derive(Debug)]
struct Named {
    since: Position,
    position: Position,
    name: Name,
}

/// All that is in flight.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    flights: VecDeque<Flight>,
    names: VecDeque<Named>,
    /// The position named last.
    named_upto: Position,
    /// Taken out, and not over before the host has done its part.
    in_hand: InHand,
}

/// What of the work that is being cleared up others have to know of.
#[derive(Clone, Copy, Debug, Default)]
struct InHand {
    /// The first that is of matter on other streams.
    matters_from: Option<Position>,
    writes_host_memory: bool,
}

impl Ledger {
    /// Remembers what the work at `position` is called. Old names make room.
    #[inline]
    pub(super) fn name(&mut self, position: Position, name: Name) {
        if self.names.len() == NAMES_KEPT {
            self.names.pop_front();
        }
        let since = Position(self.named_upto.0 + 1);
        self.names.push_back(Named { since, position, name });
        self.named_upto = position;
    }

    /// Remembers work that leaves something to do, unless it leaves nothing; says which.
    pub(super) fn push(&mut self, flight: Flight) -> bool {
        let leaves_something =
            !flight.depends.is_empty() || !matches!(flight.after, After::Nothing);
        if leaves_something {
            self.flights.push_back(flight);
        }
        leaves_something
    }

    /// The first of what is remembered.
    pub(super) fn front(&self) -> Option<Position> {
        self.flights.front().map(|flight| flight.position)
    }

    /// Whether something up to `upto` remains to be done that is of matter on other streams.
    pub(super) fn matters_elsewhere(&self, upto: Position) -> bool {
        let in_flight = || {
            self.flights
                .iter()
                .take_while(|flight| flight.position <= upto)
                .any(|flight| flight.after.is_of_matter_elsewhere())
        };
        self.in_hand.matters_from.is_some_and(|from| from <= upto) || in_flight()
    }

    /// Whether the host has yet to write something that work in flight brought down.
    pub(super) fn writes_host_memory(&self) -> bool {
        self.in_hand.writes_host_memory
            || self.flights.iter().any(|flight| flight.after.writes_host_memory())
    }

    /// How much is remembered.
    pub(super) fn len(&self) -> usize {
        self.flights.len()
    }

    /// Whether the work at `position` may still turn out as failed because of other work.
    pub(super) fn may_inherit(&self, position: Position) -> bool {
        self.flights.iter().any(|flight| flight.position == position && !flight.depends.is_empty())
    }

    /// The first work behind `behind` and up to `upto` that others come before, and which: those
    /// that may spoil it, and those whose rest the host has to do first.
    pub(super) fn prerequisites_behind(
        &self,
        behind: Position,
        upto: Position,
    ) -> Option<(Position, Dependencies)> {
        let start = self.flights.partition_point(|flight| flight.position <= behind);
        let flights = self.flights.range(start..).take_while(|flight| flight.position <= upto);
        let prerequisites = |flight: &Flight| {
            let mut prerequisites = flight.depends.clone();
            if let After::Behind { queue, position } = flight.after {
                prerequisites.push((queue, position));
            }
            (flight.position, prerequisites)
        };
        { flights }.map(prerequisites).find(|(_, prerequisites)| !prerequisites.is_empty())
    }

    /// All work up to `upto` that other work may spoil, with what that would mean.
    pub(super) fn inheriting(
        &self,
        upto: Position,
    ) -> SmallVec<[(Position, Dependencies, FailureKind); 1]> {
        let flights = self.flights.iter().take_while(|flight| flight.position <= upto);
        flights
            .filter(|flight| !flight.depends.is_empty())
            .map(|flight| (flight.position, flight.depends.clone(), flight.loss))
            .collect()
    }

    /// Takes out what is over at `upto`, to be cleared up. Until [`put_down`](Self::put_down) it
    /// counts as there: whoever waits for it waits for the host too.
    pub(super) fn take_in_hand(&mut self, upto: Position) -> SmallVec<[Flight; 4]> {
        let over = self.take_upto(upto);
        self.in_hand = InHand {
            matters_from: over
                .iter()
                .find(|flight| flight.after.is_of_matter_elsewhere())
                .map(|flight| flight.position),
            writes_host_memory: over.iter().any(|flight| flight.after.writes_host_memory()),
        };
        over
    }

    /// What was taken in hand is over, and counts so already.
    pub(super) fn put_down(&mut self) {
        self.in_hand = InHand::default();
    }

    /// Takes out what is over at `upto`.
    pub(super) fn take_upto(&mut self, upto: Position) -> SmallVec<[Flight; 4]> {
        let over = self.flights.iter().take_while(|flight| flight.position <= upto).count();
        self.flights.drain(..over).collect()
    }

    /// The record of what a dying device takes with it from behind `completed` on: it names the
    /// first work that is not known to be over.
    pub(super) fn last_words(&self, completed: Position, cause: String) -> FailureRecord {
        let first = self.names.iter().find(|named| named.position > completed);
        let (operation, site) = match first {
            Some(Named { since, name, .. }) if since.0 <= completed.0 + 1 => {
                (name.in_words(), name.site)
            }
            Some(Named { name, .. }) => {
                (format!("{} or work queued shortly before it", name.in_words()), name.site)
            }
            None => ("work queued on this device".to_owned(), None),
        };
        FailureRecord { kind: FailureKind::Device, operation, site, cause, inherited: false }
    }
}

/// Bytes that a link moves in the time of one call: about 6 microseconds at 25 GB/s.
const CALL_BYTES: u64 = 150_000;

/// Bytes that a link moves while a device goes on to the next of many short rows: about 2.5
/// nanoseconds.
const ROW_BYTES: u64 = 64;

/// How a download comes to packed memory, and from there to its place.
#[derive(Debug)]
pub(super) struct Descent {
    pub(super) into: SmallVec<[CopyBox; 1]>,
    pub(super) out_of: SmallVec<[CopyBox; 1]>,
    pub(super) len_bytes: u64,
}

/// The cheaper of two ways: each part by itself, packed one behind the other; or all that lies
/// between the first byte and the last in one call, of which only the parts are put in their place.
pub(super) fn descent(parts: &[CopyBox], calls: u64, may_read_between: bool) -> Descent {
    let (into, out_of, len_bytes) = packed(parts);
    let start = parts.iter().map(|part| part.source_offset_bytes).min().unwrap_or(0);
    let end = parts.iter().filter_map(CopyBox::source_end_bytes).max().unwrap_or(0);
    let covered = end.saturating_sub(start);
    let apart =
        calls.saturating_mul(CALL_BYTES).saturating_add(parts.iter().map(weight_bytes).sum());
    if !may_read_between || covered.saturating_add(CALL_BYTES) >= apart {
        return Descent { into, out_of, len_bytes };
    }
    let line = CopyBox {
        run_bytes: covered,
        source_offset_bytes: start,
        destination_offset_bytes: 0,
        axes: SmallVec::new(),
    };
    let moved = |part: &CopyBox| CopyBox {
        source_offset_bytes: part.source_offset_bytes - start,
        ..part.clone()
    };
    Descent {
        into: SmallVec::from_iter([line]),
        out_of: parts.iter().map(moved).collect(),
        len_bytes: covered,
    }
}

/// What a part costs beside its calls: its bytes, or the rows that they lie in, where those are
/// short.
fn weight_bytes(part: &CopyBox) -> u64 {
    let rows: u64 = part.axes.iter().map(|(count, ..)| count).product();
    let row_bytes =
        if part.axes.is_empty() { part.run_bytes } else { part.run_bytes.max(ROW_BYTES) };
    rows.saturating_mul(row_bytes)
}

/// Count, source stride, destination stride.
type Axis = (u64, u64, u64);

/// Packs parts of a copy one behind the other: the copy into packed memory, the copy out of it, and
/// the bytes.
fn packed(parts: &[CopyBox]) -> (SmallVec<[CopyBox; 1]>, SmallVec<[CopyBox; 1]>, u64) {
    let (mut into, mut out_of, mut len_bytes) = (SmallVec::new(), SmallVec::new(), 0);
    for part in parts {
        let mut strides: SmallVec<[u64; 3]> = SmallVec::new();
        let mut stride = part.run_bytes;
        for (count, ..) in part.axes.iter().rev() {
            strides.push(stride);
            stride *= count;
        }
        strides.reverse();
        let axes = |pick: fn(Axis, u64) -> Axis| {
            part.axes
                .iter()
                .zip(&strides)
                .map(|(axis, stride)| pick(*axis, *stride))
                .collect::<SmallVec<[Axis; 3]>>()
        };
        into.push(CopyBox {
            destination_offset_bytes: len_bytes,
            axes: axes(|(n, from, _), packed| (n, from, packed)),
            ..part.clone()
        });
        out_of.push(CopyBox {
            source_offset_bytes: len_bytes,
            axes: axes(|(n, _, to), packed| (n, packed, to)),
            ..part.clone()
        });
        len_bytes += stride;
    }
    (into, out_of, len_bytes)
}

#[cfg(test)]
mod tests {
    use smallvec::{SmallVec, smallvec};

    use super::{After, CALL_BYTES, Flight, Ledger, Name, descent, packed};
    use crate::backend::{CopyBox, Dependencies, FailureKind, Position, QueueId};

    fn flight(position: u64, depends: Dependencies) -> Flight {
        Flight {
            position: Position(position),
            depends,
            after: After::Nothing,
            loss: FailureKind::Contents,
        }
    }

    #[test]
    fn work_that_leaves_nothing_to_do_is_not_remembered() {
        let mut ledger = Ledger::default();
        ledger.push(flight(1, Dependencies::new()));
        ledger.push(flight(2, smallvec![(QueueId(9), Position(4))]));
        ledger.push(flight(3, smallvec![(QueueId(9), Position(5))]));
        assert!(ledger.may_inherit(Position(2)) && !ledger.may_inherit(Position(1)));
        let over: Vec<Position> =
            ledger.take_upto(Position(2)).iter().map(|flight| flight.position).collect();
        assert_eq!(over, [Position(2)]);
        assert_eq!(ledger.take_upto(Position(9)).len(), 1);
    }

    #[test]
    fn what_is_in_hand_is_not_over() {
        let mut ledger = Ledger::default();
        let behind = After::Behind { queue: QueueId(7), position: Position(1) };
        ledger.push(Flight { after: behind, ..flight(2, Dependencies::new()) });
        assert!(!ledger.matters_elsewhere(Position(1)) && ledger.matters_elsewhere(Position(2)));
        assert_eq!(ledger.take_in_hand(Position(5)).len(), 1);
        assert!(!ledger.matters_elsewhere(Position(1)) && ledger.matters_elsewhere(Position(2)));
        ledger.put_down();
        assert!(!ledger.matters_elsewhere(Position(2)));
    }

    #[test]
    fn a_dying_device_names_the_first_work_that_is_not_over() {
        let mut ledger = Ledger::default();
        for position in 1..=100 {
            ledger.name(
                Position(position),
                Name { is_kernel: true, text: format!("k{position}").into(), site: None },
            );
        }
        assert_eq!(ledger.last_words(Position(49), String::new()).operation, "kernel \"k50\"");
        assert_eq!(
            ledger.last_words(Position(3), String::new()).operation,
            "kernel \"k37\" or work queued shortly before it"
        );
        assert_eq!(
            ledger.last_words(Position(100), String::new()).operation,
            "work queued on this device"
        );
        // Between the two stand an event and a wait.
        ledger.name(Position(103), Name { is_kernel: true, text: "late".into(), site: None });
        assert_eq!(ledger.last_words(Position(100), String::new()).operation, "kernel \"late\"");
    }

    fn part(source: u64, destination: u64, axes: &[(u64, u64, u64)]) -> CopyBox {
        CopyBox {
            run_bytes: 4,
            source_offset_bytes: source,
            destination_offset_bytes: destination,
            axes: SmallVec::from_slice(axes),
        }
    }

    #[test]
    fn what_lies_between_comes_along_where_that_is_cheaper_than_a_call() {
        let near = [part(1000, 1000, &[]), part(1100, 1100, &[(2, 8, 8)])];
        assert_eq!(descent(&near, 2, false).len_bytes, 12);
        let gathered = descent(&near, 2, true);
        assert_eq!(gathered.into.as_slice(), [CopyBox { run_bytes: 112, ..part(1000, 0, &[]) }]);
        assert_eq!(gathered.out_of.as_slice(), [part(0, 1000, &[]), part(100, 1100, &[(2, 8, 8)])]);
        assert_eq!(gathered.len_bytes, 112);
        let far = [part(0, 0, &[]), part(CALL_BYTES + 4, 0, &[])];
        assert_eq!(descent(&far, 2, true).len_bytes, 8);
        assert_eq!(descent(&far, 3, true).into.len(), 1);
        assert_eq!(descent(&near[..1], 1, true).len_bytes, 4, "one call as it is");
    }

    #[test]
    fn short_rows_come_with_what_lies_between_them() {
        let (second, far) = ([part(0, 0, &[(1000, 8, 4)])], [part(0, 0, &[(1000, 2000, 4)])]);
        assert_eq!(descent(&second, 1, true).len_bytes, 7996);
        assert_eq!(descent(&second, 1, false).len_bytes, 4000);
        assert_eq!(descent(&far, 1, true).len_bytes, 4000, "a face of a cube");
        let long = [CopyBox { run_bytes: 1024, ..part(0, 0, &[(1000, 1100, 1024)]) }];
        assert_eq!(
            descent(&long, 1, true).len_bytes,
            1_024_000,
            "long rows cost their bytes alone"
        );
    }

    #[test]
    fn parts_are_packed_one_behind_the_other() {
        let (into, out_of, len_bytes) =
            packed(&[part(100, 200, &[(3, 50, 60), (2, 8, 12)]), part(7, 9, &[])]);
        assert_eq!(len_bytes, 28);
        assert_eq!(into.as_slice(), [part(100, 0, &[(3, 50, 8), (2, 8, 4)]), part(7, 24, &[])]);
        assert_eq!(out_of.as_slice(), [part(0, 200, &[(3, 8, 60), (2, 4, 12)]), part(24, 9, &[])]);
    }
}
