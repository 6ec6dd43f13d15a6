//! Numbers that bodies in Rust give to the thread that waits for their launch, without an array.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::call::Call;
use crate::device::call_error;
use crate::error::Result;

/// One place for each of the launches whose outcomes are waited for at one time.
static PLACES: [AtomicU64; 64] = [const { AtomicU64::new(NOT_RUN) }; 64];

/// The places in use, one bit each.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// What a place holds until the body has run. No body gives this number.
const NOT_RUN: u64 = u64::MAX - 1;

/// Queues a launch, to which it passes a place, and waits for the number that its body
/// [gives](give) there. `None` if the body did not run, or if all places are in use: then nothing
/// was queued.
pub(super) fn of(call: &Call<'_>, launch: impl FnOnce(u64) -> Result<()>) -> Result<Option<u64>> {
    let Some(place) = Place::take() else { return Ok(None) };
    launch(place.0 as u64)?;
    place.wait(call)
}

/// Called by the body, with the place that the launch passed.
pub(super) fn give(place: u64, number: u64) {
    if let Some(place) = PLACES.get(place as usize) {
        // The thread that reads it waits for the launch, which orders the two.
        place.store(number, Ordering::Relaxed);
    }
}

struct Place(usize);

impl Place {
    fn take() -> Option<Self> {
        let mut taken = TAKEN.load(Ordering::Relaxed);
        loop {
            let free = (!taken).trailing_zeros() as usize;
            let place = PLACES.get(free)?;
            let with_free = taken | 1 << free;
            match TAKEN.compare_exchange_weak(
                taken,
                with_free,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    place.store(NOT_RUN, Ordering::Relaxed);
                    return Some(Self(free));
                }
                Err(now) => taken = now,
            }
        }
    }

    /// Without an end of the wait, the body may still run, so the place is not used again.
    fn wait(self, call: &Call<'_>) -> Result<Option<u64>> {
        let stream = call.stream;
        let position = stream.raw().reserve_position();
        if let Err(error) = stream.wait_until(position, call.site) {
            mem::forget(self);
            let device = stream.device_ref();
            let error = call_error(device, "the indices", "waiting for their check", &error);
            return Err(error.at(call.site));
        }
        let number = PLACES[self.0].load(Ordering::Relaxed);
        Ok(Some(number).filter(|number| *number != NOT_RUN))
    }
}

/// Gives the place back, except after a panic, perhaps of a subscriber that the launch called: it
/// may be queued.
impl Drop for Place {
    fn drop(&mut self) {
        if !thread::panicking() {
            TAKEN.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::{NOT_RUN, PLACES, Place, give};

    #[test]
    fn a_place_has_one_owner_and_forgets_what_was_given_before() {
        let first = Place::take().expect("few calls of other tests wait");
        let second = Place::take().expect("few calls of other tests wait");
        assert_ne!(first.0, second.0);
        give(first.0 as u64, 5);
        assert_eq!(PLACES[first.0].load(Ordering::Relaxed), 5);
        assert_eq!(PLACES[second.0].load(Ordering::Relaxed), NOT_RUN);
        drop(first);
        let all: Vec<Place> = std::iter::from_fn(Place::take).collect();
        assert!(!all.is_empty());
        for place in &all {
            assert_eq!(PLACES[place.0].load(Ordering::Relaxed), NOT_RUN);
        }
        give(PLACES.len() as u64, 5);
    }
}
