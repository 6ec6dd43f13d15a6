//! What is in use on a full device, for messages.

use std::sync::Arc;

use crate::device::Device;
use crate::storage::{self, Storage};
use crate::traffic::grouped;

/// So many arrays are named.
const NAMED_MAX: usize = 4;

/// What happened to the copies that nothing uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unused {
    /// A search for room tried to evict them, and could not copy their contents to the host.
    CouldNotGiveWay,
    /// Nothing: the allocation would not fit either without them.
    WouldNotHelp,
}

/// The largest copies that a full device cannot evict: the arrays' names, their bytes, what uses
/// them, and the lines that made them. `None` if there are none. The caller holds no lock.
pub(super) fn in_use_by(device: &Device, unused: Unused) -> Option<Arc<String>> {
    let described = |array: &Arc<Storage>| describe(array, device, unused);
    let mut arrays: Vec<(u64, String)> =
        storage::live_arrays().iter().filter_map(described).collect();
    arrays.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    let others = arrays.len().saturating_sub(NAMED_MAX);
    let other_bytes: u64 = arrays.iter().skip(NAMED_MAX).map(|(len_bytes, _)| len_bytes).sum();
    let mut named: Vec<String> =
        arrays.into_iter().take(NAMED_MAX).map(|(_, description)| description).collect();
    if others > 0 {
        named.push(format!("{others} more ({} bytes)", grouped(other_bytes)));
    }
    (!named.is_empty()).then(|| Arc::new(named.join(", ")))
}

/// An array whose copy on the device cannot be evicted, and the copy's bytes.
fn describe(array: &Storage, device: &Device, unused: Unused) -> Option<(u64, String)> {
    let (bytes, user) = {
        let mut state = array.lock();
        let location = state.find_location(device)?;
        let copy = state.device_copy(location);
        let bytes = copy.has_memory().then(|| copy.memory_bytes(array.memory_order()))?;
        let user = if state.is_explicit() {
            "a device array"
        } else if location == state.host_location() {
            "memory that the host accesses too"
        } else if state.has_pins() || state.has_claims() {
            "an argument of a call under way"
        } else if state.is_in_use(location) {
            "with a guard"
        } else if unused == Unused::CouldNotGiveWay {
            "whose contents could not be copied to the host"
        } else {
            return None;
        };
        (bytes, user)
    };
    let (name, made_at) = (array.named(), array.made_at());
    Some((bytes, format!("{name} ({} bytes, {user}, made at {made_at})", grouped(bytes))))
}
