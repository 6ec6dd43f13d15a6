//! The counters in Prometheus's text format.

use std::fmt::{Display, Write};

use crate::audit::totals::counters::{Counters, MemoryCounter};
use crate::traffic::Flow;

impl Counters {
    /// The counters in Prometheus's text format, version 0.0.4: what a program answers to a request
    /// for its metrics, with the content type `text/plain; version=0.0.4`.
    ///
    /// | metric | type | label and its values | unit |
    /// |---|---|---|---|
    /// | `resident_copies_total` | counter | `direction`: `to_device`, `to_host`, `between_devices`, `sent`, `received` | copies; messages of the last two |
    /// | `resident_copied_bytes_total` | counter | the same | bytes |
    /// | `resident_launches_total` | counter | | launches of kernels |
    /// | `resident_waits_total`, `resident_wait_seconds_total` | counter | | waits for devices, seconds |
    /// | `resident_allocations_total`, `resident_allocated_bytes_total` | counter | | allocations of device memory, bytes |
    /// | `resident_evictions_total`, `resident_evicted_bytes_total` | counter | | evicted copies, bytes |
    /// | `resident_live_arrays` | gauge | | arrays |
    /// | `resident_memory_bytes`, `resident_memory_peak_bytes` | gauge | `memory`: `device`, `pinned` | bytes |
    ///
    /// All are of the process, with all its devices. Each family has its lines `HELP` and `TYPE`,
    /// and each line ends with a line feed. These names stay as they are in later versions; more
    /// may come. The call moves nothing and cannot fail; it allocates the text, of about 3 KB.
    ///
    /// ```
    /// use resident::{Device, SmartArray, audit};
    ///
    /// SmartArray::from(vec![1.0_f32; 1000]).prefetch(&Device::cpu().stream())?;
    /// let text = audit::counters().to_prometheus();
    /// let uploaded = "resident_copied_bytes_total{direction=\"to_device\"} ";
    /// let line = text.lines().find_map(|line| line.strip_prefix(uploaded)).unwrap();
    /// assert!(line.parse::<u64>().unwrap() >= 4000);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut text = Families(String::new());
        self.write_flows(&mut text);
        self.write_work(&mut text);
        self.write_memory(&mut text);
        text.0
    }

    fn write_flows(&self, text: &mut Families) {
        let flows = [
            ("to_device", self.traffic.to_device),
            ("to_host", self.traffic.to_host),
            ("between_devices", self.traffic.between_devices),
            ("sent", self.sent),
            ("received", self.received),
        ];
        let of = |part: fn(Flow) -> u64| flows.map(|(direction, flow)| (direction, part(flow)));
        let counts = of(|flow| flow.count);
        text.family("copies_total", "Copies and messages of arrays.", "direction", counts);
        let bytes = of(|flow| flow.bytes);
        text.family("copied_bytes_total", "Bytes of these copies.", "direction", bytes);
    }

    fn write_work(&self, text: &mut Families) {
        let Self { launches, waits, allocations, evictions, .. } = *self;
        text.number("launches_total", "Launches of kernels.", launches);
        text.number("waits_total", "Waits of threads for devices.", waits.count);
        let seconds = waits.nanoseconds as f64 / 1e9;
        text.number("wait_seconds_total", "Seconds of these waits, summed.", seconds);
        let help = "Allocations of device memory for arrays.";
        text.number("allocations_total", help, allocations.count);
        text.number("allocated_bytes_total", "Bytes of these allocations.", allocations.bytes);
        let help = "Copies that were freed to make room on a full device.";
        text.number("evictions_total", help, evictions.count);
        text.number("evicted_bytes_total", "Bytes of these copies.", evictions.bytes);
    }

    fn write_memory(&self, text: &mut Families) {
        text.number("live_arrays", "Arrays that live now.", self.live_arrays);
        let of = |part: fn(MemoryCounter) -> u64| {
            [("device", part(self.device_memory)), ("pinned", part(self.pinned_memory))]
        };
        let in_use = of(|counter| counter.in_use);
        text.family("memory_bytes", "Bytes of arrays in use.", "memory", in_use);
        let help = "The most bytes that were in use at one time.";
        text.family("memory_peak_bytes", help, "memory", of(|counter| counter.peak));
    }
}

/// The text so far: families, each with its samples. What ends with `_total` is a counter, all else
/// a gauge.
struct Families(String);

impl Families {
    /// A family of one sample without a label.
    fn number(&mut self, name: &str, help: &str, value: impl Display) {
        self.begin(name, help);
        self.line(format_args!("resident_{name} {value}"));
    }

    /// A family with a sample for each value of a label. Names, help and values of labels are those
    /// above, which have nothing to escape.
    fn family<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        samples: [(&str, u64); N],
    ) {
        self.begin(name, help);
        for (of, value) in samples {
            self.line(format_args!("resident_{name}{{{label}=\"{of}\"}} {value}"));
        }
    }

    fn begin(&mut self, name: &str, help: &str) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        self.line(format_args!("# HELP resident_{name} {help}"));
        self.line(format_args!("# TYPE resident_{name} {kind}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("a string takes all that is written");
    }
}
