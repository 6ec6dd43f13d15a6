//! Documents as JSON. It is written by hand, since `serde` would take longer to build than all
//! documents.

use std::fmt::Write;

use crate::document::{
    Document, DocumentAccess, DocumentArgument, DocumentArray, DocumentBarrier, DocumentChecked,
    DocumentFinding, DocumentMemory, DocumentMemoryHolder, DocumentMemoryMoment,
    DocumentMemoryPoint, DocumentMemoryUse, DocumentMessage, DocumentProcess, DocumentRecord,
    DocumentSite, DocumentStream,
};
use crate::totals::{Flow, Waits};

impl Document {
    /// The document as one line of JSON, as [`Report::to_json`](struct.Report.html#method.to_json).
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = String::new();
        self.write(&mut json);
        json
    }
}

/// A value of JSON.
trait Json {
    /// Appends the value to a text.
    fn write(&self, json: &mut String);
}

/// A type whose values are objects.
trait Object {
    /// Writes the members, in their order.
    fn write_members(&self, to: &mut Members<'_>);
}

impl<T: Object> Json for T {
    fn write(&self, json: &mut String) {
        let mut members = Members { json, before: "{" };
        self.write_members(&mut members);
        members.end();
    }
}

/// An object that is being written.
struct Members<'j> {
    json: &'j mut String,
    /// What comes before the next member.
    before: &'static str,
}

impl Members<'_> {
    fn add(&mut self, key: &'static str, value: &impl Json) {
        for part in [self.before, "\"", key, "\": "] {
            *self.json += part;
        }
        value.write(self.json);
        self.before = ", ";
    }

    fn end(self) {
        *self.json += if self.before == "{" { "{}" } else { "}" };
    }
}

/// Writes items with commas between, and what is around them.
fn write_all<T: Json>(items: &[T], json: &mut String) {
    json.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            *json += ", ";
        }
        item.write(json);
    }
    json.push(']');
}

/// Writes fields as members, in this order. The lists below have all fields of a type, else they
/// are errors.
macro_rules! write_members {
    ($to:ident: $($field:ident)*) => { $($to.add(stringify!($field), $field);)* };
}

macro_rules! objects {
    ($($object:ident { $($field:ident)* })*) => {$(
        impl Object for $object {
            fn write_members(&self, to: &mut Members<'_>) {
                let Self { $($field),* } = self;
                write_members!(to: $($field)*);
            }
        }
    )*};
}

objects! {
    Document {
        version to_device to_host between_devices avoided padding sites launches waits allocations
        evictions duration_ns streams arrays records records_forgotten findings sent received
        peer_waits rank ranks host started_unix_ns conservative
        compared_contents checked process written_unix_ns memory
    }
    DocumentProcess { program arguments id started_unix_ns library_version }
    DocumentMemoryUse { device before in_use peak out_of_memory series }
    DocumentMemoryMoment { at_ns bytes refused holders }
    DocumentMemoryHolder { array site count bytes }
    DocumentMemoryPoint { at_ns bytes }
    DocumentChecked { kernel launches accesses errors notes }
    Flow { count bytes }
    Waits { count nanoseconds }
    DocumentStream { device stream to_device to_host between_devices }
    DocumentArray { id name element shape }
    DocumentArgument { array access is_whole use_number changed_bytes }
    DocumentAccess {
        queued_ns thread device site array name access is_whole use_number
    }
    DocumentMemory { queued_ns thread device site bytes array name }
    DocumentMessage { queued_ns waited_ns thread device site name direction peer bytes cause }
    DocumentBarrier { queued_ns waited_ns thread site number }
    DocumentFinding {
        kind message change sites array count bytes nanoseconds host_memory_bytes
    }
}

/// Only the sites of messages have a peer.
impl Object for DocumentSite {
    fn write_members(&self, to: &mut Members<'_>) {
        let Self { site, array, direction, device, source, cause, count, bytes, .. } = self;
        let Self { stale_since, never_there, peer, .. } = self;
        write_members!(
            to: site array direction device source cause count bytes stale_since never_there
        );
        if let Some(peer) = peer {
            to.add("peer", peer);
        }
    }
}

/// Writes the members of a record whose fields are in its variant.
macro_rules! write_record {
    ($record:ident $to:ident: $($variant:ident { $($field:ident)* })*) => {
        match $record {
            $(DocumentRecord::$variant { $($field),* } => {
                write_members!($to: $($field)*);
            })*
            DocumentRecord::Allocation(memory)
            | DocumentRecord::Eviction(memory)
            | DocumentRecord::Discard(memory) => memory.write_members($to),
            DocumentRecord::Access(access) => access.write_members($to),
            DocumentRecord::Message(message) => message.write_members($to),
            DocumentRecord::Barrier(barrier) => barrier.write_members($to),
        }
    };
}

impl Object for DocumentRecord {
    fn write_members(&self, to: &mut Members<'_>) {
        to.add("kind", &kind(self));
        write_record! { self to:
            Copy {
                queued_ns started_ns finished_ns thread device stream site array name direction
                source bytes padding cause stale_since launch use_number changed_bytes host_ns
                is_pageable contents_hash
            }
            Launch {
                id called_ns queued_ns started_ns finished_ns thread device stream site name
                arguments
            }
            Wait { queued_ns finished_ns thread device stream site reason }
        }
    }
}

fn kind(record: &DocumentRecord) -> &'static str {
    match record {
        DocumentRecord::Copy { .. } => "copy",
        DocumentRecord::Launch { .. } => "launch",
        DocumentRecord::Wait { .. } => "wait",
        DocumentRecord::Allocation(_) => "allocation",
        DocumentRecord::Eviction(_) => "eviction",
        DocumentRecord::Discard(_) => "discard",
        DocumentRecord::Access(_) => "access",
        DocumentRecord::Message(_) => "message",
        DocumentRecord::Barrier(_) => "barrier",
    }
}

macro_rules! written_as_displayed {
    ($($number:ty)*) => {$(
        impl Json for $number {
            fn write(&self, json: &mut String) {
                // Writing to a string cannot fail.
                let _ = write!(json, "{self}");
            }
        }
    )*};
}

written_as_displayed! { bool u16 u32 u64 usize }

impl<T: Json> Json for Option<T> {
    fn write(&self, json: &mut String) {
        match self {
            Some(value) => value.write(json),
            None => *json += "null",
        }
    }
}

impl<T: Json> Json for Vec<T> {
    fn write(&self, json: &mut String) {
        write_all(self, json);
    }
}

impl Json for String {
    fn write(&self, json: &mut String) {
        self.as_str().write(json);
    }
}

impl Json for &str {
    fn write(&self, json: &mut String) {
        json.push('"');
        let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        if self.bytes().all(is_plain) {
            *json += self;
        } else {
            self.chars().for_each(|character| write_escaped(character, json));
        }
        json.push('"');
    }
}

fn write_escaped(character: char, json: &mut String) {
    match character {
        '"' | '\\' => json.extend(['\\', character]),
        control if control < ' ' => {
            // Writing to a string cannot fail.
            let _ = write!(json, "\\u{:04x}", u32::from(control));
        }
        _ => json.push(character),
    }
}

#[cfg(test)]
mod tests {
    use crate::document::{Document, DocumentMemory, DocumentRecord};

    #[test]
    fn keys_have_the_order_in_which_readers_know_them() {
        let memory = DocumentMemory {
            queued_ns: 1,
            thread: "a \"name\"\n".to_owned(),
            device: "cpu:0".to_owned(),
            site: "a.rs:1:2".to_owned(),
            bytes: 3,
            array: 4,
            name: "ä".to_owned(),
        };
        let records = vec![DocumentRecord::Allocation(memory)];
        let document = Document { records, ..Document::default() };
        let flow = r#"{"count": 0, "bytes": 0}"#;
        let expected = format!(
            r#"{{"version": 0, "to_device": {flow}, "to_host": {flow}, "between_devices": {flow}, "#
        ) + &format!(
            r#""avoided": {flow}, "padding": {flow}, "sites": [], "launches": 0, "#
        ) + r#""waits": {"count": 0, "nanoseconds": 0}, "#
            + &format!(r#""allocations": {flow}, "evictions": {flow}, "duration_ns": 0, "#)
            + r#""streams": [], "arrays": [], "records": [{"kind": "allocation", "queued_ns": 1, "#
            + r#""thread": "a \"name\"\u000a", "device": "cpu:0", "site": "a.rs:1:2", "bytes": 3, "#
            + r#""array": 4, "name": "ä"}], "records_forgotten": 0, "findings": [], "#
            + &format!(r#""sent": {flow}, "received": {flow}, "#)
            + r#""peer_waits": {"count": 0, "nanoseconds": 0}, "rank": null, "ranks": null, "#
            + r#""host": null, "started_unix_ns": 0, "#
            + &format!(r#""conservative": {flow}, "compared_contents": null, "checked": null, "#)
            + r#""process": null, "written_unix_ns": 0, "memory": []}"#;
        assert_eq!(document.to_json(), expected);
    }
}
