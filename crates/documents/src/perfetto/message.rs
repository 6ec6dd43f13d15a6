//! Messages of protocol buffers: fields, each a key and a value.
//!
//! The numbers of the fields are those of the published `perfetto_trace.proto`.

use crate::text::visible;

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

/// How a value is written, as in the lowest three bits of a key.
#[derive(Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
}

impl Message {
    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.key(field, WireType::Varint);
        self.varint(value);
    }

    pub(super) fn fixed(&mut self, field: u32, value: u64) {
        self.key(field, WireType::Fixed64);
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    pub(super) fn message(&mut self, field: u32, value: &Self) {
        self.bytes(field, &value.0);
    }

    /// Adds a text to the details of an event (`TrackEvent.debug_annotations`), escaped.
    pub(super) fn annotate_text(&mut self, name: &str, value: &str) {
        let mut annotation = Self::default();
        annotation.text(10, name);
        annotation.text(6, &visible(value));
        self.message(4, &annotation);
    }

    /// Adds a number to the details of an event.
    pub(super) fn annotate_number(&mut self, name: &str, value: u64) {
        let mut annotation = Self::default();
        annotation.text(10, name);
        annotation.number(3, value);
        self.message(4, &annotation);
    }

    fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, WireType::Bytes);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn key(&mut self, field: u32, wire_type: WireType) {
        self.varint(u64::from(field) << 3 | wire_type as u64);
    }

    /// Seven bits in each byte, the lowest first; the highest bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    /// The examples of the documentation of protocol buffers' encoding.
    #[test]
    fn messages_are_those_of_the_published_examples() {
        let mut message = Message::default();
        message.number(1, 150);
        assert_eq!(message.0, [0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.text(2, "testing");
        assert_eq!(message.0, *b"\x12\x07testing");
        let mut outer = Message::default();
        let mut inner = Message::default();
        inner.number(1, 150);
        outer.message(3, &inner);
        assert_eq!(outer.0, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.fixed(47, 1);
        assert_eq!(message.0, [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
