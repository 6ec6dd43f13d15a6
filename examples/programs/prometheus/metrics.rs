//! The library's counters as metrics of Prometheus, read anew for each request.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, prometheus_text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use resident::audit::{self, Counters, Flow, MemoryCounter};

/// The metrics in Prometheus's text format.
pub(crate) fn text() -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("resident");
    registry.register_collector(Box::new(Audit));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry)?;
    Ok(text)
}

/// Collects the counters of the process. A program that has a registry registers it there.
#[derive(Debug)]
struct Audit;

impl Collector for Audit {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counters = audit::counters();
        encode_flows(&mut encoder, &counters)?;
        encode_work(&mut encoder, &counters)?;
        encode_memory(&mut encoder, &counters)
    }
}

/// A metric with a value for each value of a label.
fn family<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    label: &str,
    metrics: impl IntoIterator<Item = (&'static str, M)>,
) -> fmt::Result {
    let mut metrics = metrics.into_iter().peekable();
    let Some((_, first)) = metrics.peek() else { return Ok(()) };
    let mut family = encoder.encode_descriptor(name, help, None, first.metric_type())?;
    for (value, metric) in metrics {
        metric.encode(family.encode_family(&[(label, value)])?)?;
    }
    Ok(())
}

fn metric(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    metric: &impl EncodeMetric,
) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

fn encode_flows(encoder: &mut DescriptorEncoder<'_>, counters: &Counters) -> fmt::Result {
    let traffic = &counters.traffic;
    let flows = [
        ("to_device", traffic.to_device),
        ("to_host", traffic.to_host),
        ("between_devices", traffic.between_devices),
        ("sent", counters.sent),
        ("received", counters.received),
    ];
    let counts = flows.map(|(direction, Flow { count, .. })| (direction, ConstCounter::new(count)));
    let bytes = flows.map(|(direction, Flow { bytes, .. })| (direction, ConstCounter::new(bytes)));
    family(encoder, ("copies", "Copies and messages of arrays"), "direction", counts)?;
    family(encoder, ("copied_bytes", "Their bytes"), "direction", bytes)
}

fn encode_work(encoder: &mut DescriptorEncoder<'_>, counters: &Counters) -> fmt::Result {
    let Counters { launches, waits, allocations, evictions, .. } = counters;
    let seconds = waits.nanoseconds as f64 / 1e9;
    metric(encoder, ("launches", "Launches of kernels"), &ConstCounter::new(*launches))?;
    metric(encoder, ("waits", "Waits for devices"), &ConstCounter::new(waits.count))?;
    metric(encoder, ("wait_seconds", "Time of these waits"), &ConstCounter::new(seconds))?;
    for (name, help, number) in [
        ("allocations", "Allocations of device memory for arrays", allocations.count),
        ("allocated_bytes", "Bytes of these allocations", allocations.bytes),
        ("evictions", "Copies that gave way to others on a full device", evictions.count),
        ("evicted_bytes", "Bytes of these copies", evictions.bytes),
    ] {
        metric(encoder, (name, help), &ConstCounter::new(number))?;
    }
    Ok(())
}

fn encode_memory(encoder: &mut DescriptorEncoder<'_>, counters: &Counters) -> fmt::Result {
    let Counters { live_arrays, device_memory, pinned_memory, .. } = counters;
    let live = ConstGauge::new(*live_arrays as i64);
    metric(encoder, ("live_arrays", "Arrays that live now"), &live)?;
    let memories = [("device", device_memory), ("pinned", pinned_memory)];
    let gauges = |of: fn(&MemoryCounter) -> u64| {
        memories.map(|(memory, counter)| (memory, ConstGauge::new(of(counter) as i64)))
    };
    let in_use = ("memory_bytes", "Bytes of arrays in use");
    family(encoder, in_use, "memory", gauges(|counter| counter.in_use))?;
    let peak = ("memory_peak_bytes", "The most bytes that were in use at one time");
    family(encoder, peak, "memory", gauges(|counter| counter.peak))
}
