//! The events of copies and the spans of launches in the subscribers that programs use: as text, as
//! JSON, and in OpenTelemetry. Each test has its own process: while a subscriber is being
//! installed, `tracing` may miss events of call sites that other threads use for the first time.

use std::io;
use std::sync::{Arc, Mutex};

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use resident::{Device, Result, SmartArray, audit};
use serde_json::{Value, json};
use support::lab::lab;
use support::own_process;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

use crate::{double, grid};

/// What a subscriber has written.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8");
        text.lines().map(str::to_owned).collect()
    }
}

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Buffer {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// What the program below does: the calls, as `file:line:column` without the column, and the name
/// of its device.
struct Ran {
    launch: String,
    read: String,
    device: String,
}

/// A launch, which copies its array to the device, and a copy back.
fn program(device: &Device) -> Result<Ran> {
    let mut photo = SmartArray::from(vec![1.0_f32; 10]).named("photo");
    let line = line!() + 1;
    double().launch_on(&device.stream(), grid(), (&mut photo,))?;
    assert_eq!(photo.host()?[0], 2.0);
    let at = |line: u32| format!("{}:{line}:", file!());
    Ok(Ran { launch: at(line), read: at(line + 1), device: device.name() })
}

#[test]
fn text_has_the_fields_of_copies_and_launches() -> Result<()> {
    own_process!();
    let (device, buffer) = (lab(), Buffer::default());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::DEBUG)
        .with_ansi(false)
        .with_writer(buffer.clone())
        .finish();
    let Ran { launch, read, device } =
        tracing::subscriber::with_default(subscriber, || program(&device))?;
    let lines = buffer.lines();
    let [upload, download] = &lines[..] else { panic!("two events: {lines:?}") };
    let span = format!("launch{{kernel=\"double\" device=\"{device}\" stream=0 site={launch}");
    let expected = [
        format!("DEBUG {span}"),
        "resident::transfer: direction=\"to_device\" bytes=40 array=\"photo\"".to_owned(),
        format!("device=\"{device}\" stream=0 cause=\"launch\" site={launch}"),
    ];
    assert!(expected.iter().all(|part| upload.contains(part)), "{expected:?} in {upload}");
    let expected = [
        "DEBUG resident::transfer: direction=\"to_host\" bytes=40 array=\"photo\"".to_owned(),
        format!("device=\"{device}\" stream=0 cause=\"host\" site={read}"),
        format!("stale_since={launch}"),
    ];
    assert!(expected.iter().all(|part| download.contains(part)), "{expected:?} in {download}");
    assert!(!upload.contains("stale_since") && !upload.contains("source="), "{upload}");
    Ok(())
}

#[test]
fn the_event_of_a_message_has_its_peer() {
    own_process!();
    let buffer = Buffer::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(LevelFilter::DEBUG)
        .with_writer(buffer.clone())
        .finish();
    let line = line!() + 2;
    tracing::subscriber::with_default(subscriber, || {
        audit::record_transfer(audit::Transfer::received(40, "photo", 3));
    });
    let lines = buffer.lines();
    let [line_of_event] = &lines[..] else { panic!("one event: {lines:?}") };
    let event: Value = serde_json::from_str(line_of_event).expect("JSON");
    assert_eq!((&event["level"], &event["target"]), (&json!("DEBUG"), &json!(TRANSFER)));
    assert_starts(&event["fields"]["site"], &format!("{}:{line}:", file!()));
    let expected = json!({
        "direction": "received", "bytes": 40, "array": "photo", "device": "host", "peer": 3,
        "cause": "mpi",
    });
    assert_eq!(without_calls(&event["fields"]), expected);
}

#[test]
fn json_has_the_fields_of_copies_and_launches() -> Result<()> {
    own_process!();
    let (device, buffer) = (lab(), Buffer::default());
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(LevelFilter::DEBUG)
        .with_writer(buffer.clone())
        .finish();
    let Ran { launch, read, device } =
        tracing::subscriber::with_default(subscriber, || program(&device))?;
    let lines = buffer.lines();
    let events: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [upload, download] = &events[..] else { panic!("two events: {lines:?}") };
    for event in [upload, download] {
        assert_eq!((&event["level"], &event["target"]), (&json!("DEBUG"), &json!(TRANSFER)));
    }
    let fields = &upload["fields"];
    assert_starts(&fields["site"], &launch);
    assert_eq!(without_calls(fields), copy("to_device", "launch", &device));
    assert!(fields.get("stale_since").is_none(), "it was never there");
    let span = &upload["span"];
    assert_starts(&span["site"], &launch);
    let expected = json!({"name": "launch", "kernel": "double", "device": device, "stream": 0});
    assert_eq!(without_calls(span), expected);
    let fields = &download["fields"];
    assert_starts(&fields["site"], &read);
    assert_starts(&fields["stale_since"], &launch);
    assert_eq!(without_calls(fields), copy("to_host", "host", &device));
    assert!(download.get("span").is_none(), "no launch needed it");
    Ok(())
}

const TRANSFER: &str = "resident::transfer";

/// The fields of the program's copies that are no calls.
fn copy(direction: &str, cause: &str, device: &str) -> Value {
    json!({
        "direction": direction, "bytes": 40, "array": "photo", "device": device, "stream": 0,
        "cause": cause,
    })
}

fn without_calls(fields: &Value) -> Value {
    let mut fields = fields.as_object().expect("an object").clone();
    fields.retain(|name, _| !matches!(&**name, "site" | "stale_since"));
    fields.into()
}

#[track_caller]
fn assert_starts(value: &Value, start: &str) {
    assert!(value.as_str().is_some_and(|text| text.starts_with(start)), "{value} for {start}");
}

/// Keeps the spans that have ended.
#[derive(Clone, Debug, Default)]
struct Exported(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Exported {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().expect("no panic").extend(batch);
        Ok(())
    }
}

/// OpenTelemetry has events only within spans: the copy back is in the program's own span.
#[test]
fn open_telemetry_has_launches_as_spans_and_copies_as_their_events() -> Result<()> {
    own_process!();
    let (device, exported) = (lab(), Exported::default());
    let provider = SdkTracerProvider::builder().with_simple_exporter(exported.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("program"));
    let subscriber = tracing_subscriber::registry().with(layer);
    let Ran { launch, read, device } = tracing::subscriber::with_default(subscriber, || {
        tracing::info_span!("main").in_scope(|| program(&device))
    })?;
    provider.force_flush().expect("nothing fails");
    let spans = exported.0.lock().expect("no panic");
    let [of_launch, of_main] = &spans[..] else { panic!("two spans: {spans:?}") };
    assert_eq!((&*of_launch.name, &*of_main.name), ("launch", "main"));
    assert_eq!(of_launch.parent_span_id, of_main.span_context.span_id());
    let attributes = object(&of_launch.attributes);
    assert_starts(&attributes["site"], &launch);
    for (key, value) in [("kernel", json!("double")), ("device", json!(device))] {
        assert_eq!(attributes[key], value);
    }
    for (span, direction, cause, site) in
        [(of_launch, "to_device", "launch", &launch), (of_main, "to_host", "host", &read)]
    {
        let [event] = &span.events.events[..] else { panic!("one copy: {span:?}") };
        let attributes = object(&event.attributes);
        assert_eq!(attributes["target"], TRANSFER);
        assert_starts(&attributes["site"], site);
        let expected = copy(direction, cause, &device);
        for (key, value) in expected.as_object().expect("an object") {
            let expected = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            assert_eq!(attributes[key], expected, "{key}");
        }
    }
    Ok(())
}

/// The attributes as text. OpenTelemetry has no unsigned numbers: the layer makes text of them.
fn object(attributes: &[opentelemetry::KeyValue]) -> Value {
    let pairs = attributes.iter();
    pairs.map(|attribute| (attribute.key.to_string(), json!(attribute.value.as_str()))).collect()
}
