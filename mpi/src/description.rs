//! What a message holds: the element type and the shape, as bytes.

use std::any::type_name;
use std::fmt;

use crate::call::{Peer, Request, Session};
use crate::error::Result;

/// The length of a header, the same for all, so that a receiver knows it.
pub(crate) const HEADER_BYTES: usize = 512;

const NAME_BYTES: usize = 360;
const AXES: usize = 13;

/// Element type and shape of a message, as bytes:
///
/// - 0: bytes of an element, number of axes, length of the name, hash of name and shape, bytes of
///   all elements (u64 each)
/// - 40: the lengths of up to 13 axes (u64 each)
/// - 144: the name of the element type, cut at 360 bytes
///
/// All processes of a job run on machines of one byte order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header([u8; HEADER_BYTES]);

impl Header {
    /// The header of elements `T` in this shape.
    pub(crate) fn of<T>(shape: &[usize]) -> Self {
        Self::new(type_name::<T>(), size_of::<T>(), shape)
    }

    /// A header that names elements in this shape; it says more than a type for an exchange.
    pub(crate) fn new(name: &str, element_bytes: usize, shape: &[usize]) -> Self {
        let mut header = Self([0; HEADER_BYTES]);
        let name = name.as_bytes();
        let cut = name.len().min(NAME_BYTES);
        let hash = hash(name.iter().copied().chain(shape.iter().flat_map(|n| n.to_ne_bytes())));
        let len_bytes = (element_bytes * shape.iter().product::<usize>()) as u64;
        let words = [element_bytes as u64, shape.len() as u64, cut as u64, hash, len_bytes];
        let lengths = shape.iter().take(AXES).map(|len| *len as u64);
        for (index, word) in words.into_iter().chain(lengths).enumerate() {
            header.0[8 * index..][..8].copy_from_slice(&word.to_ne_bytes());
        }
        header.0[HEADER_BYTES - NAME_BYTES - 8..][..cut].copy_from_slice(&name[..cut]);
        header
    }

    /// What goes instead of the header of a message that cannot be sent.
    pub(crate) fn refusal() -> Self {
        Self::new("nothing, after an error,", 0, &[])
    }

    /// One that is to be received.
    pub(crate) fn empty() -> Self {
        Self([0; HEADER_BYTES])
    }

    /// A request, not started, that sends this header.
    pub(crate) fn send_request(&self, session: &Session, peer: Peer) -> Result<Request> {
        session.send_request(self.0.as_ptr(), HEADER_BYTES, peer)
    }

    /// A request, not started, that receives a header to this one.
    pub(crate) fn receive_request(&mut self, session: &Session, peer: Peer) -> Result<Request> {
        session.receive_request(self.0.as_mut_ptr(), HEADER_BYTES, peer)
    }

    /// How many bytes all elements have.
    pub(crate) fn len_bytes(&self) -> usize {
        self.word(4) as usize
    }

    fn word(&self, index: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.0[8 * index..][..8]);
        u64::from_ne_bytes(word)
    }

    fn name(&self) -> String {
        let len = (self.word(2) as usize).min(NAME_BYTES);
        String::from_utf8_lossy(&self.0[HEADER_BYTES - NAME_BYTES - 8..][..len]).into_owned()
    }
}

/// `f64 of shape [3, 4]`
impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes = self.word(1) as usize;
        let shape: Vec<u64> = (0..axes.min(AXES)).map(|axis| self.word(5 + axis)).collect();
        write!(f, "{} of shape {shape:?}", self.name())?;
        if axes > AXES {
            write!(f, " and {} more axes", axes - AXES)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// FNV-1a, which is the same in all processes.
pub(crate) fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_element_type_and_shape() {
        assert_eq!(Header::of::<f64>(&[3, 4]).to_string(), "f64 of shape [3, 4]");
        assert_eq!(Header::of::<u8>(&[]).to_string(), "u8 of shape []");
    }

    #[test]
    fn other_types_and_shapes_have_other_headers() {
        let header = Header::of::<f64>(&[3, 4]);
        assert_eq!(header, Header::of::<f64>(&[3, 4]));
        assert_ne!(header, Header::of::<i64>(&[3, 4]));
        assert_ne!(header, Header::of::<f64>(&[4, 3]));
        assert_ne!(header, Header::of::<f64>(&[3, 4, 1]));
    }

    #[test]
    fn many_axes_differ_by_their_hash() {
        let (one, mut other) = ([1; 20], [1; 20]);
        other[19] = 2;
        assert_ne!(Header::of::<u8>(&one), Header::of::<u8>(&other));
        assert!(Header::of::<u8>(&one).to_string().ends_with("and 7 more axes"));
    }

    #[test]
    fn long_names_are_cut_and_told_apart() {
        struct Wrapped<T>(#[allow(dead_code)] T);
        type Eight<T> = Wrapped<Wrapped<Wrapped<Wrapped<Wrapped<Wrapped<Wrapped<Wrapped<T>>>>>>>>;
        let (one, other) = (Header::of::<Eight<u32>>(&[1]), Header::of::<Eight<i32>>(&[1]));
        assert_ne!(one, other);
        assert!(one.to_string().len() < HEADER_BYTES);
    }
}
