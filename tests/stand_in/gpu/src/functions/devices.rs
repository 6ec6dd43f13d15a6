//! Devices.

use crate::arguments::Out;
use crate::code::{Code, Outcome};
use crate::machine::{self, settings};

/// The device with an ordinal, which is its number.
pub fn get(device: Out<i32>, ordinal: i32) -> Outcome {
    machine::ordinal(ordinal)?;
    device.set(ordinal)
}

/// Writes a device's name. A text that does not fit is truncated.
pub fn name(place: Out<u8>, len_bytes: i32, text: &str) -> Outcome {
    let len_bytes = usize::try_from(len_bytes).ok().filter(|len_bytes| *len_bytes > 0);
    let room = len_bytes.ok_or(Code::INVALID_VALUE)? - 1;
    place.set_all(text.bytes().take(room).chain([0]))
}

/// Writes a device's place on the bus. A text that does not fit is an error.
pub fn bus_id(place: Out<u8>, len_bytes: i32, text: &str) -> Outcome {
    if usize::try_from(len_bytes).unwrap_or(0) <= text.len() {
        return Err(Code::INVALID_VALUE);
    }
    place.set_all(text.bytes().chain([0]))
}

/// Writes a device's UUID: the text that is given for device 0, its last digit counted up.
pub fn uuid(place: Out<[u8; 16]>, device: i32, mut text: [u8; 16]) -> Outcome {
    let ordinal = machine::ordinal(device)?;
    text[15] = text[15].wrapping_add(ordinal as u8);
    place.set(text)
}

/// Writes the memory of a device in bytes.
pub fn total_memory(len_bytes: Out<usize>, device: i32) -> Outcome {
    machine::ordinal(device)?;
    len_bytes.set(settings().memory_bytes as usize)
}

/// Whether a device can access memory of another.
pub fn can_access_peer(can: Out<i32>, device: i32, peer: i32) -> Outcome {
    let device = machine::ordinal(device)?;
    let peer = machine::ordinal(peer)?;
    can.set(i32::from(device != peer && settings().can_access_peers))
}
