//! The events of copies and the spans of launches and waits in the subscribers that programs use:
//! as text, as JSON, in Chrome's format and in OpenTelemetry. Each test has its own process: while
//! a subscriber is being installed, `tracing` may miss events of call sites that other threads use
//! for the first time.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use opentelemetry::Value as Attribute;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use resident::internal::{Transfer, record_transfer};
use resident::{Device, Emulation, Result, SmartArray};
use serde_json::{Value, json};
use support::audited::ones;
use support::bodies::{double, one as grid};
use support::lab::lab;
use support::own_process;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// What a subscriber has written.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().expect("no panic").clone()).expect("UTF-8");
        text.lines().map(str::to_owned).collect()
    }
}

impl Buffer {
    /// The events of a program, which a subscriber has written as JSON.
    fn events<T>(&self, program: impl FnOnce() -> T) -> (T, Vec<Value>) {
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_max_level(LevelFilter::DEBUG)
            .with_writer(self.clone())
            .finish();
        let value = tracing::subscriber::with_default(subscriber, program);
        let event = |line: &String| serde_json::from_str(line).expect("JSON");
        (value, self.lines().iter().map(event).collect())
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
    let mut photo = ones(10).named("photo");
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
    let (memory, lines): (Vec<_>, Vec<_>) =
        buffer.lines().into_iter().partition(|line| line.contains(MEMORY));
    assert!(memory[0].contains("allocation of \"photo\""), "{memory:?}");
    let [upload, download] = &lines[..] else { panic!("two copies: {lines:?}") };
    let span = format!("launch{{kernel=\"double\" device=\"{device}\" stream=0 site={launch}");
    let expected = [
        &*format!("DEBUG {span}"),
        "resident::transfer: \"photo\" to_device for launch, 40 bytes",
        "40 bytes direction=\"to_device\" bytes=40 array=\"photo\"",
        &format!("device=\"{device}\" stream=0 cause=\"launch\" site={launch}"),
    ];
    assert!(expected.iter().all(|part| upload.contains(part)), "{expected:?} in {upload}");
    let expected = [
        "DEBUG resident::transfer: \"photo\" to_host for host, 40 bytes".to_owned(),
        "40 bytes direction=\"to_host\" bytes=40 array=\"photo\"".to_owned(),
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
    let line = line!() + 2;
    let ((), events) = Buffer::default().events(|| {
        record_transfer(Transfer::received(40, "photo", 3));
    });
    let [event] = &events[..] else { panic!("one event: {events:?}") };
    assert_eq!((&event["level"], &event["target"]), (&json!("DEBUG"), &json!(TRANSFER)));
    assert_starts(&event["fields"]["site"], &format!("{}:{line}:", file!()));
    let expected = json!({
        "direction": "received", "bytes": 40, "array": "photo", "device": "host", "peer": 3,
        "cause": "mpi", "message": "\"photo\" received for mpi, 40 bytes",
    });
    assert_eq!(without_calls(&event["fields"]), expected);
}

#[test]
fn json_has_the_fields_of_copies_and_launches() -> Result<()> {
    own_process!();
    let device = lab();
    let (ran, events) = Buffer::default().events(|| program(&device));
    let Ran { launch, read, device } = ran?;
    let (memory, events): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|event| event["target"] == MEMORY);
    let allocation = &memory[0]["fields"];
    assert_starts(&allocation["site"], &launch);
    let message = format!("allocation of \"photo\" on {device}, 40 bytes");
    let expected = json!({
        "change": "allocation", "bytes": 40, "array": "photo", "device": device,
        "message": message,
    });
    assert_eq!(without_calls(allocation), expected);
    let [upload, download] = &events[..] else { panic!("two copies: {events:?}") };
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
const MEMORY: &str = "resident::memory";

/// The fields of the program's copies that are no calls.
fn copy(direction: &str, cause: &str, device: &str) -> Value {
    json!({
        "direction": direction, "bytes": 40, "array": "photo", "device": device, "stream": 0,
        "cause": cause, "message": format!("\"photo\" {direction} for {cause}, 40 bytes"),
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

/// The spans that a program exports to OpenTelemetry.
fn exported(program: impl FnOnce() -> Result<()>) -> Result<Vec<SpanData>> {
    let exported = Exported::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exported.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("program"));
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::with_default(subscriber, || {
        tracing::info_span!("main").in_scope(program)
    })?;
    provider.force_flush().expect("nothing fails");
    Ok(std::mem::take(&mut *exported.0.lock().expect("no panic")))
}

/// OpenTelemetry has events only within spans: the copy back is in the program's own span.
#[test]
fn open_telemetry_has_launches_as_spans_and_copies_as_their_events() -> Result<()> {
    own_process!();
    let (device, mut ran) = (lab(), None);
    let mut spans = exported(|| {
        ran = Some(program(&device)?);
        Ok(())
    })?;
    let Ran { launch, read, device } = ran.expect("the program ran");
    spans.retain(|span| span.name != "wait");
    let [of_launch, of_main] = &spans[..] else { panic!("two spans: {spans:?}") };
    assert_eq!((&*of_launch.name, &*of_main.name), ("launch", "main"));
    assert_eq!(of_launch.parent_span_id, of_main.span_context.span_id());
    let attributes = object(&of_launch.attributes);
    assert_starts(&attributes["site"], &launch);
    let expected = [("kernel", json!("double")), ("device", json!(device)), ("stream", json!(0))];
    expected.iter().for_each(|(key, value)| assert_eq!(attributes[key], *value));
    for (span, direction, cause, site) in
        [(of_launch, "to_device", "launch", &launch), (of_main, "to_host", "host", &read)]
    {
        let is_copy = |attributes: &Value| attributes["target"] == TRANSFER;
        let events = &span.events.events;
        let mut copies = events.iter().filter(|event| is_copy(&object(&event.attributes)));
        let (Some(event), None) = (copies.next(), copies.next()) else {
            panic!("one copy: {span:?}")
        };
        let attributes = object(&event.attributes);
        assert_starts(&attributes["site"], site);
        let mut expected = copy(direction, cause, &device);
        let message = expected["message"].take();
        assert_eq!(message, *event.name, "an event is called after its message");
        for (key, value) in expected.as_object().expect("an object") {
            assert!(value.is_null() || attributes[key] == *value, "{key}: {attributes}");
        }
    }
    Ok(())
}

/// The attributes, numbers as numbers.
fn object(attributes: &[opentelemetry::KeyValue]) -> Value {
    let value = |value: &Attribute| match value {
        Attribute::I64(number) => json!(number),
        other => json!(other.as_str()),
    };
    let pairs = attributes.iter();
    pairs.map(|attribute| (attribute.key.to_string(), value(&attribute.value))).collect()
}

/// On a seeded device nothing runs before a thread waits. The spans end in this order: a launch,
/// the wait of `host()` for its copy, one of `synchronize`, and the program's own.
#[test]
fn waits_are_spans_within_those_of_the_program() -> Result<()> {
    own_process!();
    let device = Device::emulated(Emulation::new().seed(1));
    let stream = device.new_stream()?;
    let line = line!() + 4;
    let spans = exported(|| {
        let mut photo = ones(10);
        double().launch_on(&stream, grid(), (&mut photo,))?;
        assert_eq!(photo.host()?[0], 2.0);
        photo.prefetch(&stream)?;
        double().launch_on(&stream, grid(), (&mut photo,))?;
        stream.synchronize()?;
        stream.synchronize()
    })?;
    let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["launch", "wait", "launch", "wait", "main"], "no wait for nothing");
    let main = spans[4].span_context.span_id();
    for (span, reason, after) in [(&spans[1], "contents", 0), (&spans[3], "synchronize", 3)] {
        assert_eq!(span.parent_span_id, main);
        let attributes = object(&span.attributes);
        assert_eq!(attributes["target"], "resident::wait");
        assert_eq!(attributes["reason"], reason);
        assert_eq!(attributes["device"], device.name());
        assert_eq!(attributes["stream"], 1, "the second stream of the device");
        assert_starts(&attributes["site"], &format!("{}:{}:", file!(), line + after));
        assert!(span.end_time >= span.start_time);
    }
    Ok(())
}

/// Chrome's format, which Chrome's and Perfetto's viewers read.
#[test]
fn chrome_has_copies_by_their_name_and_waits_and_launches_as_spans() -> Result<()> {
    own_process!();
    let (device, buffer) = (Device::emulated(Emulation::new().seed(1)), Buffer::default());
    let (layer, guard) =
        tracing_chrome::ChromeLayerBuilder::new().writer(buffer.clone()).include_args(true).build();
    let subscriber = tracing_subscriber::registry().with(layer);
    let ran = tracing::subscriber::with_default(subscriber, || program(&device))?;
    drop(guard);
    let text = buffer.lines().concat();
    let events: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let of = |name: &str, phase: &str| -> Vec<&Value> {
        let is = |event: &&Value| event["name"] == name && event["ph"] == phase;
        events.iter().filter(is).collect()
    };
    for span in ["launch", "wait"] {
        assert_eq!((of(span, "B").len(), of(span, "E").len()), (1, 1), "{span}: {text}");
    }
    assert_eq!(of("wait", "B")[0]["args"]["reason"], "\"contents\"");
    let [upload, download] = &of("transfer", "i")[..] else { panic!("two copies: {text}") };
    for (event, direction, cause, site) in
        [(upload, "to_device", "launch", &ran.launch), (download, "to_host", "host", &ran.read)]
    {
        assert_eq!(event["cat"], TRANSFER);
        assert_starts(&event["args"]["site"], site);
        let mut expected = copy(direction, cause, &ran.device);
        // This layer writes all arguments as text.
        expected["bytes"] = json!("40");
        expected["stream"] = json!("0");
        let text = |value: &Value| value.as_str().unwrap_or_default().trim_matches('"').to_owned();
        for (key, value) in expected.as_object().expect("an object") {
            assert_eq!(text(&event["args"][key]), text(value), "{key}");
        }
    }
    Ok(())
}

/// Messages are for terminals; fields have names as they are.
#[test]
fn names_are_escaped_and_shortened_in_messages() -> Result<()> {
    own_process!();
    let stream = lab().stream();
    let hostile = "\u{1b}[31m\u{202e}\nDEBUG".to_owned() + &"x".repeat(5000);
    let upload = || SmartArray::from(vec![1_u8; 10]).named(&hostile).prefetch(&stream);
    let (outcome, events) = Buffer::default().events(upload);
    outcome?;
    let copy = events.iter().find(|event| event["target"] == TRANSFER).expect("a copy");
    assert_eq!(copy["fields"]["array"], hostile);
    let message = copy["fields"]["message"].as_str().expect("a text");
    assert!(message.starts_with("\"\\u{1b}[31m\\u{202e}\\nDEBUGx"), "{message}");
    assert!(message.ends_with("xxx\" to_device for prefetch, 10 bytes"), "{message}");
    assert!(message.chars().count() < 130, "{message}");
    Ok(())
}

/// Waits in each of its calls, and panics in one.
struct Waiting {
    device: Device,
    told: Arc<AtomicUsize>,
}

impl<S: tracing::Subscriber> Layer<S> for Waiting {
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        _: &tracing::Id,
        _: Context<'_, S>,
    ) {
        if attributes.metadata().target() != "resident::wait" {
            return;
        }
        self.device.synchronize().expect("the device works");
        assert!(self.told.fetch_add(1, Ordering::Relaxed) > 0, "the first call panics");
    }
}

/// As the default of the process, a subscriber gets the events of its own calls too.
#[test]
fn a_subscriber_that_waits_or_panics_in_a_wait_disturbs_no_call() -> Result<()> {
    own_process!();
    let device = Device::emulated(Emulation::new().seed(1));
    let told = Arc::new(AtomicUsize::new(0));
    let waiting = Waiting { device: device.clone(), told: Arc::clone(&told) };
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(waiting))
        .expect("it is the only one");
    let mut photo = ones(10);
    for round in 1..=3 {
        double().launch_on(&device.stream(), grid(), (&mut photo,))?;
        assert_eq!(photo.host()?[0], f32::from(2_u8.pow(round)));
        assert_eq!(told.load(Ordering::Relaxed), round as usize);
    }
    Ok(())
}
