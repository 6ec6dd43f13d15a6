//! Predicts for which uses of an array another stream will wait, so that an event is recorded
//! directly after these uses, and after no others.

use resident_core::Access;
use resident_core::ordering::StreamKey;

/// Whether a use changes contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UseKind {
    Read,
    Write,
}

impl UseKind {
    #[inline]
    pub(crate) fn of(access: Access) -> Self {
        if access.writes() { Self::Write } else { Self::Read }
    }
}

/// For each stream that uses the array: whether another stream has waited for its last recorded
/// read, or write.
///
/// A wait sets the flag of the use that it waits for. The next use of that kind on that stream
/// clears the flag and records an event. So if every use is waited for, each records an event, as
/// in a program that places its events by hand; and if none is, none does. A wait for a use without
/// an event of its own records one late, which may cover more work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExpectedWaits {
    for_reads: u8,
    for_writes: u8,
}

impl ExpectedWaits {
    fn flags(&mut self, kind: UseKind) -> &mut u8 {
        match kind {
            UseKind::Read => &mut self.for_reads,
            UseKind::Write => &mut self.for_writes,
        }
    }

    #[inline]
    pub(super) fn is_none(self) -> bool {
        self.for_reads | self.for_writes == 0
    }

    /// Another stream waits for a use of the stream with this key.
    pub(super) fn expect(&mut self, key: StreamKey, kind: UseKind) {
        *self.flags(kind) |= flag(key);
    }

    /// Whether another stream is expected to wait for any use of the stream with this key.
    #[inline]
    pub(super) fn include(&self, key: StreamKey) -> bool {
        (self.for_reads | self.for_writes) & flag(key) != 0
    }

    /// Whether another stream is expected to wait for this use. Clears the flag.
    #[inline]
    pub(super) fn take(&mut self, key: StreamKey, kind: UseKind) -> bool {
        let flags = self.flags(kind);
        let is_expected = *flags & flag(key) != 0;
        *flags &= !flag(key);
        is_expected
    }
}

/// The flag of a stream. Streams whose keys differ by a multiple of 8 share one; the worst effect
/// is an event that nobody waits for.
fn flag(key: StreamKey) -> u8 {
    1 << (key.index() % u8::BITS as usize)
}

#[cfg(test)]
mod tests {
    use super::ExpectedWaits;
    use super::UseKind::{Read, Write};
    use resident_core::ordering::StreamKey;

    #[test]
    fn one_wait_lets_one_later_use_of_that_kind_and_stream_record_an_event() {
        let (mut waits, first, second) =
            (ExpectedWaits::default(), StreamKey::at(0), StreamKey::at(1));
        assert!(waits.is_none() && !waits.take(first, Write));
        waits.expect(first, Write);
        assert!(!waits.take(first, Read) && !waits.take(second, Write));
        assert!(waits.take(first, Write) && waits.is_none());
        assert!(!waits.take(first, Write), "without a new wait there is no event");
    }

    #[test]
    fn any_number_of_streams_has_flags() {
        let mut waits = ExpectedWaits::default();
        waits.expect(StreamKey::at(255), Read);
        assert!(waits.take(StreamKey::at(255), Read) && waits.is_none());
    }
}
