//! The `tracing` events of transfers. The test has its own process: while a subscriber is being
//! installed, `tracing` may miss events of call sites that other threads use for the first time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use support::prelude::*;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl tracing::field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: tracing::Subscriber> Layer<S> for Collected {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() == "resident::transfer" {
            let mut fields = BTreeMap::new();
            event.record(&mut Fields(&mut fields));
            self.0.lock().expect("no panic").push(fields);
        }
    }
}

#[test]
fn each_transfer_is_one_tracing_event_with_all_fields() -> Result<()> {
    own_process!();
    let device = lab();
    let collected = Collected::default();
    let mut array = SmartArray::from(vec![1.0_f32; 10]).named("xs");
    let subscriber = tracing_subscriber::registry().with(collected.clone());
    tracing::subscriber::with_default(subscriber, || -> Result<()> {
        drop(array.gpu_mut_on(&device.stream())?);
        drop(array.host()?);
        Ok(())
    })?;
    let events = collected.0.lock().expect("no panic");
    assert_eq!(events.len(), 2);
    let first: Vec<(&str, &str)> =
        events[0].iter().map(|(field, value)| (field.as_str(), value.as_str())).collect();
    let name = device.name();
    for expected in [
        ("array", "xs"),
        ("bytes", "40"),
        ("cause", "gpu"),
        ("device", &name),
        ("direction", "to_device"),
        ("stream", "0"),
    ] {
        assert!(first.contains(&expected), "{expected:?} is not in {first:?}");
    }
    assert!(
        events[0]["site"].contains("tracing_events.rs:")
            && events[0]["site"].matches(':').count() >= 2,
        "{}",
        events[0]["site"]
    );
    assert!(!events[0].contains_key("stale_since"), "it was never valid there");
    assert_eq!((events[1]["direction"].as_str(), events[1]["cause"].as_str()), ("to_host", "host"));
    assert_eq!(events[1]["stale_since"], events[0]["site"]);
    Ok(())
}

/// Two ledgers of one subscriber, and an event that is not the library's.
#[test]
fn ledgers_report_what_their_subscriber_saw() -> Result<()> {
    own_process!();
    let device = lab();
    let (ledger, other) = (audit::Ledger::new(), audit::Ledger::new());
    let subscriber = tracing_subscriber::registry().with(ledger.layer()).with(other.layer());
    let mut array = SmartArray::from(vec![1.0_f32; 10]).named("xs");
    let (outcome, report) = audit::capture(|| {
        tracing::subscriber::with_default(subscriber, || -> Result<()> {
            drop(array.gpu_mut_on(&device.stream())?);
            assert_eq!(ledger.report().sites().len(), 1, "what it has seen so far");
            array.host().map(drop)
        })
    });
    outcome?;
    drop(array.gpu_mut_on(&device.stream())?);
    drop(array.host()?);
    assert_eq!(ledger.report().traffic(), report.traffic(), "not what came after");
    for ledger in [&ledger, &other, &ledger.clone()] {
        assert_eq!(ledger.report().sites(), report.sites());
    }
    tracing::subscriber::with_default(
        tracing_subscriber::registry().with(ledger.layer()),
        || tracing::debug!(target: "resident::transfer", bytes = 3_u64, "of another library"),
    );
    assert_eq!(ledger.report().sites(), report.sites());
    Ok(())
}
