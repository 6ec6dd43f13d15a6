//! Reports in the forms of documents: JSON, pages, traces.

use std::io;
use std::path::Path;

use super::report::Report;
use resident_documents::write_file;

impl Report {
    /// The report as one line of JSON. `to_device`, `to_host`, `between_devices`, `avoided` and
    /// `padding` are totals: `{"count": 1, "bytes": 4000}`. Each element of `sites` has `site`
    /// (file:line:column), `array`, `direction`, `device`, `source` (`null` except between
    /// devices), `cause`, `count`, `bytes`, `stale_since` (`null` if unknown) and `never_there`:
    /// see [`Site`](crate::audit::Site). `streams` has the totals of each stream. `records` has the
    /// latest copies, launches, waits and allocations with their times.
    /// [`Document`](crate::audit::Document) lists all keys. `version` rises when keys change their
    /// meaning or go.
    ///
    /// ```
    /// use resident::{Device, SmartArray, audit};
    ///
    /// let array = SmartArray::from(vec![0_u8; 1000]).named("photo");
    /// let ((), report) = audit::capture(|| array.prefetch(&Device::cpu().stream()).unwrap());
    /// let json = report.to_json();
    /// assert!(json.starts_with(r#"{"version": 1, "to_device": {"count": 1, "bytes": 1000}, "#));
    /// assert!(json.contains(r#""array": "photo", "direction": "to_device""#));
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        self.to_document().to_json()
    }

    /// Writes the report to a file, as [`to_json`](Self::to_json) and the end of a line.
    ///
    /// # Errors
    ///
    /// The system's, if the file cannot be written; the text names the file.
    pub fn write_json(&self, path: impl AsRef<Path>) -> io::Result<()> {
        write_file(path.as_ref(), (self.to_json() + "\n").as_bytes())
    }

    /// Writes a page to a file: one file, for any browser, which requests nothing from elsewhere.
    ///
    /// It has a timeline that can be zoomed, with lanes for each stream of a device, for copies in
    /// each direction and for each thread of the host; the bytes over time; tables of the call
    /// sites, arrays, devices and streams; what could be saved; and the devices with the arrays
    /// between them. It can be used by keyboard and by screen readers.
    ///
    /// ```
    /// use resident::{Device, SmartArray, audit};
    ///
    /// let stream = Device::cpu().stream();
    /// let array = SmartArray::from(vec![0_u8; 1000]).named("photo");
    /// let (outcome, report) = audit::capture(|| {
    ///     array.prefetch(&stream)?;
    ///     stream.synchronize()                          // so that the copy's time is known
    /// });
    /// outcome?;
    /// let path = std::env::temp_dir().join(format!("photo-{}.html", std::process::id()));
    /// report.write_html(&path)?;
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The system's, if the file cannot be written; the text names the file.
    pub fn write_html(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.to_document().write_html(path)
    }

    /// Writes a trace to a file, which <https://ui.perfetto.dev> and the other tools of Perfetto
    /// open: a track for each stream of a device, for copies in each direction, and for each thread
    /// of the host; arrows lead from a launch to the copies that it caused and to its run on the
    /// device. Counters show the bytes moved in each direction and the memory in use over time.
    ///
    /// A thread's track shows its waits, a slice from each launch's call to when it was queued, and
    /// other accesses of arrays as instants. Work whose times on the device are not known is an
    /// instant, when it was queued. A trace of nothing, and one whose earlier records made room for
    /// later ones, have a note that says so.
    ///
    /// ```
    /// use resident::{Device, SmartArray, audit};
    ///
    /// let stream = Device::cpu().stream();
    /// let array = SmartArray::from(vec![0_u8; 1000]).named("photo");
    /// let (outcome, report) = audit::capture(|| {
    ///     array.prefetch(&stream)?;
    ///     stream.synchronize()
    /// });
    /// outcome?;
    /// let path = std::env::temp_dir().join(format!("photo-{}.pftrace", std::process::id()));
    /// report.write_perfetto(&path)?;
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The system's, if the file cannot be written; the text names the file.
    pub fn write_perfetto(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.to_document().write_perfetto(path)
    }
}
