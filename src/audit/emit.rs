//! The only file that names `tracing`.

use tracing::level_filters::LevelFilter;
use tracing::{Level, event, event_enabled};

use super::Record;

/// Whether anybody may listen: a number is compared, and no subscriber is asked. For use under
/// locks.
#[inline]
pub(super) fn may_be_enabled() -> bool {
    LevelFilter::current() >= LevelFilter::DEBUG
}

/// Whether anybody listens to transfers: a cached flag where nobody ever subscribed.
#[inline]
pub(super) fn is_enabled() -> bool {
    event_enabled!(target: "resident::transfer", Level::DEBUG)
}

pub(super) fn emit(record: &Record) {
    let Record { direction, bytes, array, device, source, stream, cause, site, stale } = record;
    event!(
        target: "resident::transfer",
        Level::DEBUG,
        direction = direction.as_str(),
        bytes = *bytes,
        array = &**array,
        device = &**device,
        source = source.as_deref(),
        stream = u64::from(*stream),
        cause = cause.as_str(),
        site = %site,
        stale_since = stale.since().map(tracing::field::display),
    );
}

/// An array was used by others on a stream that its guard does not keep order on.
#[cfg(feature = "cuda")]
pub(super) fn emit_waited_for(array: &str, device: &str, stream: u32) {
    event!(target: "resident::interop", Level::DEBUG, array, device, stream = u64::from(stream), "a foreign stream is waited for");
}
