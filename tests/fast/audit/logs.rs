//! `audit::log`: implicit copies as events, and launches as spans. In processes of their own, since
//! a subscriber belongs to the process.

use std::sync::{Arc, Mutex};

use resident::Result;
use resident::audit::{self, Implicit};
use support::lab::lab;
use support::own_process;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::{double, grid, ones};

/// The target of each event, with the names of the spans that it is in.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Seen {
    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let spans = context.event_scope(event).into_iter().flatten();
        let names: String = spans.map(|span| format!(" in {}", span.name())).collect();
        self.0.lock().unwrap().push(format!("{}{names}", event.metadata().target()));
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, _id: &Id, _context: Context<'_, S>) {
        // Whether a call waits depends on how fast the device is.
        if attributes.metadata().target() != "resident::wait" {
            self.0.lock().unwrap().push(format!("span {}", attributes.metadata().target()));
        }
    }
}

impl Seen {
    fn install() -> Self {
        let seen = Self::default();
        let subscriber = tracing_subscriber::registry().with(seen.clone());
        tracing::subscriber::set_global_default(subscriber).expect("the first one");
        seen
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[test]
fn implicit_copies_are_logged_where_a_rule_says_so() -> Result<()> {
    own_process!();
    let seen = Seen::install();
    let stream = lab().stream();
    let mut array = ones(10);
    let guard = audit::log(Implicit::TO_HOST);
    drop(array.gpu_mut_on(&stream)?);
    assert_eq!(seen.take(), ["resident::memory", "resident::transfer"], "another direction");
    drop(array.host()?);
    assert_eq!(seen.take(), ["resident::transfer", "resident::implicit"]);
    drop(array.gpu_mut_on(&stream)?);
    seen.take();
    array.prefetch_host()?;
    assert_eq!(seen.take(), ["resident::transfer"], "explicit");
    drop(array.gpu_mut_on(&stream)?);
    seen.take();
    let denied = audit::deny(Implicit::ALL);
    assert!(array.host().is_err(), "the later rule is stronger");
    drop(denied);
    let scope = audit::scope();
    drop(guard);
    std::thread::scope(|threads| {
        threads.spawn(|| scope.run(|| array.host().map(drop))).join().expect("no panic")
    })?;
    assert_eq!(seen.take(), ["resident::transfer", "resident::implicit"], "a scope carries it");
    Ok(())
}

/// Subscribers of programs usually take no events of level `DEBUG`.
#[test]
fn a_subscriber_for_warnings_gets_what_is_logged() -> Result<()> {
    own_process!();
    let seen = Seen::default();
    let warnings = tracing_subscriber::filter::LevelFilter::WARN;
    let subscriber = tracing_subscriber::registry().with(seen.clone().with_filter(warnings));
    tracing::subscriber::set_global_default(subscriber).expect("the first one");
    let array = ones(10);
    let _guard = audit::log(Implicit::ALL);
    drop(array.gpu_on(&lab().stream())?);
    assert_eq!(seen.take(), ["resident::implicit"]);
    Ok(())
}

#[test]
fn what_a_thread_denies_stays_denied_in_a_scope_that_logs() -> Result<()> {
    let array = ones(10);
    let guard = audit::log(Implicit::ALL);
    let scope = audit::scope();
    drop(guard);
    let stream = lab().stream();
    let _denied = audit::deny(Implicit::ALL);
    assert!(scope.run(|| array.gpu_on(&stream).map(drop)).is_err());
    Ok(())
}

#[test]
fn the_copies_of_a_launch_are_in_its_span() -> Result<()> {
    own_process!();
    let seen = Seen::install();
    let stream = lab().stream();
    let mut array = ones(10);
    double().launch_on(&stream, grid(), (&mut array,))?;
    let in_launch = ["span resident::launch", "resident::memory in launch"];
    assert_eq!(seen.take(), [&in_launch[..], &["resident::transfer in launch"]].concat());
    drop(array.host()?);
    assert_eq!(seen.take(), ["resident::transfer"]);
    Ok(())
}
