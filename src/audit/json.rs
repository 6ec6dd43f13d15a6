//! Reports as JSON.

use std::fmt::{self, Display, Write};

use super::report::{Report, Site};
use crate::traffic::Flow;

impl Report {
    /// The report as one line of JSON. `to_device`, `to_host`, `between_devices`, `avoided` and
    /// `padding` are totals: `{"count": 1, "bytes": 4000}`. Each element of `sites` has `site`
    /// (file:line:column), `array`, `direction`, `device`, `source` (`null` except between
    /// devices), `cause`, `count`, `bytes`, `stale_since` (`null` if unknown) and `never_there`:
    /// see [`Site`]. `version` rises when keys change their meaning or go.
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
        let traffic = self.traffic();
        let totals = [
            ("to_device", traffic.to_device),
            ("to_host", traffic.to_host),
            ("between_devices", traffic.between_devices),
            ("avoided", traffic.avoided),
            ("padding", self.padding()),
        ];
        let totals: String = totals
            .map(|(name, Flow { count, bytes })| {
                format!("\"{name}\": {{\"count\": {count}, \"bytes\": {bytes}}}, ")
            })
            .concat();
        let sites: Vec<String> = self.sites().iter().map(object).collect();
        format!("{{\"version\": 1, {totals}\"sites\": [{}]}}", sites.join(", "))
    }
}

fn object(site: &Site) -> String {
    let source = site.source.as_ref().map_or_else(|| "null".to_owned(), quoted);
    let stale_since = site.stale_since.map_or_else(|| "null".to_owned(), quoted);
    format!(
        "{{\"site\": {}, \"array\": {}, \"direction\": {}, \"device\": {}, \"source\": {source}, \
         \"cause\": {}, \"count\": {}, \"bytes\": {}, \"stale_since\": {stale_since}, \
         \"never_there\": {}}}",
        quoted(site.location),
        quoted(&site.array),
        quoted(site.direction),
        quoted(&site.device),
        quoted(site.cause),
        site.flow.count,
        site.flow.bytes,
        site.never_there
    )
}

fn quoted(text: impl Display) -> String {
    let mut quoted = Quoted(String::from("\""));
    let _ = write!(quoted, "{text}");
    quoted.0 + "\""
}

/// Escapes what is written to it as the inside of a JSON string.
struct Quoted(String);

impl Write for Quoted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '"' | '\\' => self.0.extend(['\\', character]),
                control if control < ' ' => write!(self.0, "\\u{:04x}", u32::from(control))?,
                _ => self.0.push(character),
            }
        }
        Ok(())
    }
}
