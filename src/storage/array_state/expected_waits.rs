//! Predicts for which uses of an array another stream will wait, so that an event is recorded
//! directly after these uses, and after no others.

use resident_core::ordering::StreamKey;

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
    fn flags(&mut self, writes: bool) -> &mut u8 {
        if writes { &mut self.for_writes } else { &mut self.for_reads }
    }

    #[inline]
    pub(super) fn is_none(self) -> bool {
        self.for_reads | self.for_writes == 0
    }

    /// Another stream waits for a use of the stream with this key.
    pub(super) fn expect(&mut self, key: StreamKey, writes: bool) {
        *self.flags(writes) |= flag(key);
    }

    /// Whether another stream is expected to wait for this use. Clears the flag.
    #[inline]
    pub(super) fn take(&mut self, key: StreamKey, writes: bool) -> bool {
        let flags = self.flags(writes);
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
    use resident_core::ordering::StreamKey;

    #[test]
    fn one_wait_lets_one_later_use_of_that_kind_and_stream_record_an_event() {
        let (mut waits, first, second) =
            (ExpectedWaits::default(), StreamKey::at(0), StreamKey::at(1));
        assert!(waits.is_none() && !waits.take(first, true));
        waits.expect(first, true);
        assert!(!waits.take(first, false) && !waits.take(second, true));
        assert!(waits.take(first, true) && waits.is_none());
        assert!(!waits.take(first, true), "without a new wait there is no event");
    }

    #[test]
    fn any_number_of_streams_has_flags() {
        let mut waits = ExpectedWaits::default();
        waits.expect(StreamKey::at(255), false);
        assert!(waits.take(StreamKey::at(255), false) && waits.is_none());
    }
}
