//! Documents as JSON.

use std::fmt::{Display, Write};

use crate::document::{
    Document, DocumentAccess, DocumentArgument, DocumentArray, DocumentMemory, DocumentRecord,
    DocumentSite, DocumentStream, Finding,
};
use crate::totals::Flow;

impl Document {
    /// The document as one line of JSON, as [`Report::to_json`](struct.Report.html#method.to_json).
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut object = Object::new();
        object.number("version", self.version);
        let flows = [
            ("to_device", self.to_device),
            ("to_host", self.to_host),
            ("between_devices", self.between_devices),
            ("avoided", self.avoided),
            ("padding", self.padding),
        ];
        flows.into_iter().for_each(|(name, flow)| object.flow(name, flow));
        object.list("sites", &self.sites, site);
        object.number("launches", self.launches);
        let mut waits = Object::new();
        waits.number("count", self.waits.count);
        waits.number("nanoseconds", self.waits.nanoseconds);
        object.raw("waits", waits.end());
        object.flow("allocations", self.allocations);
        object.flow("evictions", self.evictions);
        object.number("duration_ns", self.duration_ns);
        object.list("streams", &self.streams, stream);
        object.list("arrays", &self.arrays, array);
        object.list("records", &self.records, record);
        object.number("records_forgotten", self.records_forgotten);
        object.list("findings", &self.findings, finding);
        object.end()
    }
}

fn site(site: &DocumentSite) -> String {
    let mut object = Object::new();
    object.text("site", &site.site);
    object.text("array", &site.array);
    object.text("direction", &site.direction);
    object.text("device", &site.device);
    object.optional("source", site.source.as_ref());
    object.text("cause", &site.cause);
    object.number("count", site.count);
    object.number("bytes", site.bytes);
    object.optional("stale_since", site.stale_since.as_ref());
    object.raw("never_there", site.never_there);
    object.end()
}

fn stream(stream: &DocumentStream) -> String {
    let mut object = Object::new();
    object.text("device", &stream.device);
    object.number_or_null("stream", stream.stream.map(u64::from));
    object.flow("to_device", stream.to_device);
    object.flow("to_host", stream.to_host);
    object.flow("between_devices", stream.between_devices);
    object.end()
}

fn array(array: &DocumentArray) -> String {
    let mut object = Object::new();
    object.number("id", array.id);
    object.text("name", &array.name);
    object.text("element", &array.element);
    object.list("shape", &array.shape, usize::to_string);
    object.end()
}

fn record(record: &DocumentRecord) -> String {
    let mut object = Object::new();
    match record {
        DocumentRecord::Copy { queued_ns, started_ns, finished_ns, thread, .. } => {
            object.text("kind", "copy");
            object.times(*queued_ns, *started_ns, *finished_ns);
            object.text("thread", thread);
            copy(&mut object, record);
        }
        DocumentRecord::Launch {
            id,
            called_ns,
            queued_ns,
            started_ns,
            finished_ns,
            thread,
            ..
        } => {
            object.text("kind", "launch");
            object.number("id", *id);
            object.number_or_null("called_ns", *called_ns);
            object.times(*queued_ns, *started_ns, *finished_ns);
            object.text("thread", thread);
            launch(&mut object, record);
        }
        DocumentRecord::Wait { queued_ns, finished_ns, thread, device, stream, site, reason } => {
            object.text("kind", "wait");
            object.number("queued_ns", *queued_ns);
            object.number("finished_ns", *finished_ns);
            object.text("thread", thread);
            object.text("device", device);
            object.number("stream", *stream);
            object.text("site", site);
            object.text("reason", reason);
        }
        DocumentRecord::Allocation(of) => memory(&mut object, "allocation", of),
        DocumentRecord::Eviction(of) => memory(&mut object, "eviction", of),
        DocumentRecord::Discard(of) => memory(&mut object, "discard", of),
        DocumentRecord::Access(of) => access(&mut object, of),
    }
    object.end()
}

fn copy(object: &mut Object, record: &DocumentRecord) {
    let DocumentRecord::Copy {
        device,
        stream,
        site,
        array,
        name,
        direction,
        source,
        bytes,
        padding,
        cause,
        stale_since,
        launch,
        use_number,
        changed_bytes,
        host_ns,
        is_pageable,
        ..
    } = record
    else {
        return;
    };
    object.text("device", device);
    object.number("stream", *stream);
    object.text("site", site);
    object.number("array", *array);
    object.text("name", name);
    object.text("direction", direction);
    object.optional("source", source.as_ref());
    object.number("bytes", *bytes);
    object.number("padding", *padding);
    object.text("cause", cause);
    object.optional("stale_since", stale_since.as_ref());
    object.number_or_null("launch", *launch);
    object.number_or_null("use_number", use_number.map(u64::from));
    object.number_or_null("changed_bytes", *changed_bytes);
    object.number_or_null("host_ns", *host_ns);
    object.raw("is_pageable", is_pageable);
}

fn launch(object: &mut Object, record: &DocumentRecord) {
    let DocumentRecord::Launch { device, stream, site, name, arguments, .. } = record else {
        return;
    };
    object.text("device", device);
    object.number("stream", *stream);
    object.text("site", site);
    object.text("name", name);
    object.list("arguments", arguments, argument);
}

fn argument(argument: &DocumentArgument) -> String {
    let mut object = Object::new();
    object.number("array", argument.array);
    object.text("access", &argument.access);
    object.raw("is_whole", argument.is_whole);
    object.number_or_null("use_number", argument.use_number.map(u64::from));
    object.number_or_null("changed_bytes", argument.changed_bytes);
    object.end()
}

fn access(object: &mut Object, access: &DocumentAccess) {
    object.text("kind", "access");
    object.number("queued_ns", access.queued_ns);
    object.text("thread", &access.thread);
    object.optional("device", access.device.as_ref());
    object.text("site", &access.site);
    object.number("array", access.array);
    object.text("name", &access.name);
    object.text("access", &access.access);
    object.raw("is_whole", access.is_whole);
    object.number("use_number", access.use_number);
}

fn memory(object: &mut Object, kind: &str, memory: &DocumentMemory) {
    object.text("kind", kind);
    object.number("queued_ns", memory.queued_ns);
    object.text("thread", &memory.thread);
    object.text("device", &memory.device);
    object.text("site", &memory.site);
    object.number("bytes", memory.bytes);
    object.number("array", memory.array);
    object.text("name", &memory.name);
}

fn finding(finding: &Finding) -> String {
    let mut object = Object::new();
    object.text("kind", &finding.kind);
    object.text("message", &finding.message);
    object.text("change", &finding.change);
    object.list("sites", &finding.sites, |site| quoted(site));
    object.optional("array", finding.array.as_ref());
    object.number("count", finding.count);
    object.number("bytes", finding.bytes);
    object.number_or_null("nanoseconds", finding.nanoseconds);
    object.end()
}

/// An object of JSON that is being written.
struct Object(String);

impl Object {
    fn new() -> Self {
        Self(String::from("{"))
    }

    fn raw(&mut self, key: &str, value: impl Display) {
        let separator = if self.0.len() > 1 { ", " } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{separator}\"{key}\": {value}");
    }

    fn number(&mut self, key: &str, value: impl Into<u64>) {
        self.raw(key, value.into());
    }

    fn number_or_null(&mut self, key: &str, value: Option<u64>) {
        match value {
            Some(value) => self.raw(key, value),
            None => self.raw(key, "null"),
        }
    }

    fn times(&mut self, queued_ns: u64, started_ns: Option<u64>, finished_ns: Option<u64>) {
        self.number("queued_ns", queued_ns);
        self.number_or_null("started_ns", started_ns);
        self.number_or_null("finished_ns", finished_ns);
    }

    fn text(&mut self, key: &str, value: &str) {
        self.raw(key, quoted(value));
    }

    fn optional(&mut self, key: &str, value: Option<&String>) {
        self.raw(key, value.map_or_else(|| "null".to_owned(), |text| quoted(text)));
    }

    fn flow(&mut self, key: &str, Flow { count, bytes }: Flow) {
        self.raw(key, format_args!("{{\"count\": {count}, \"bytes\": {bytes}}}"));
    }

    fn list<T>(&mut self, key: &str, items: &[T], object: impl Fn(&T) -> String) {
        let items: Vec<String> = items.iter().map(object).collect();
        self.raw(key, format_args!("[{}]", items.join(", ")));
    }

    fn end(self) -> String {
        self.0 + "}"
    }
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            _ => quoted.push(character),
        }
    }
    quoted + "\""
}
