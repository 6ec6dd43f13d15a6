//! Reports as text.

use std::cmp::Reverse;
use std::fmt;

use super::report::{Report, Site};
use crate::traffic::{Flow, Traffic, grouped};
use resident_documents::{
    DocumentMemoryHolder, DocumentMemoryMoment, DocumentMemoryUse, NOT_COMPARED, Waits, compared,
    saving, shown, visible,
};

/// The table is at most so many columns wide.
const COLUMNS: usize = 100;

/// What begins the second line of something.
const INDENT: &str = "    ";

/// Two lines for each [`Site`], the largest first, then the totals. If there is no site, although
/// other threads copied something meanwhile, the last line says so. A report of nothing is one
/// sentence, and what memory was used.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sites = self.sites();
        if sites.is_empty() && self.launches() == 0 && self.waits().count == 0 {
            writeln!(f, "Nothing was copied, launched or waited for.")?;
            self.write_memory(f)?;
            return self.write_events(f);
        }
        write_sites(f, sites)?;
        self.write_totals(f)
    }
}

fn write_sites(f: &mut fmt::Formatter<'_>, mut sites: Vec<Site>) -> fmt::Result {
    if sites.is_empty() {
        return Ok(());
    }
    sites.sort_by_key(|site| Reverse(site.flow.bytes));
    let header = ["bytes", "copies", "direction", "device", "cause", "array"].map(String::from);
    let rows: Vec<Row> = std::iter::once(header).chain(sites.iter().map(row)).collect();
    let widths: [usize; LEADING] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
    });
    for (number, row) in rows.iter().enumerate() {
        write_row(f, row, &widths)?;
        match number.checked_sub(1) {
            None => writeln!(f, "{}", "-".repeat(COLUMNS))?,
            Some(site) => write_calls(f, &sites[site])?,
        }
    }
    writeln!(f)
}

/// The number of columns before the array.
const LEADING: usize = 5;

/// The cells of a line: [`LEADING`] columns, and the array.
type Row = [String; LEADING + 1];

fn row(site: &Site) -> Row {
    [
        grouped(site.flow.bytes),
        grouped(site.flow.count),
        site.direction.to_string(),
        site.devices(),
        site.cause.to_string(),
        site.array.clone(),
    ]
}

fn write_row(f: &mut fmt::Formatter<'_>, row: &Row, widths: &[usize; LEADING]) -> fmt::Result {
    let [bytes, count, direction, device, cause, array] = row;
    let [w0, w1, w2, w3, w4] = widths;
    let room = COLUMNS.saturating_sub(widths.iter().sum::<usize>() + 2 * LEADING);
    let array = shortened(array, room);
    writeln!(
        f,
        "{bytes:>w0$}  {count:>w1$}  {direction:<w2$}  {device:<w3$}  {cause:<w4$}  {array}"
    )
}

/// The call that needed the bytes, and the one that made them stale: on one line, if they fit.
fn write_calls(f: &mut fmt::Formatter<'_>, site: &Site) -> fmt::Result {
    let call = format!("at {}", site.location);
    let stale = match (site.stale_since, site.never_there) {
        (Some(location), _) => format!("stale since {location}"),
        (None, true) => "never there before".to_owned(),
        (None, false) => String::new(),
    };
    write_pair(f, &call, &stale)
}

/// Two texts, of which the second may be empty: on one line, if they fit.
fn write_pair(f: &mut impl fmt::Write, first: &str, second: &str) -> fmt::Result {
    let room = COLUMNS - INDENT.len();
    let separator = if second.is_empty() { "" } else { ", " };
    if first.chars().count() + separator.len() + second.chars().count() <= room {
        return writeln!(f, "{INDENT}{first}{separator}{second}");
    }
    for line in [first, second].iter().filter(|line| !line.is_empty()) {
        writeln!(f, "{INDENT}{}", shortened(line, room))?;
    }
    Ok(())
}

/// So many holders of memory are in the text.
const HOLDERS_MAX: usize = 4;

/// What was in use of a memory, and whose it was at the peak.
fn write_memory(f: &mut impl fmt::Write, memory: &DocumentMemoryUse) -> fmt::Result {
    let DocumentMemoryUse { device, in_use, peak, out_of_memory, .. } = memory;
    let (in_use, most) = (grouped(*in_use), grouped(peak.bytes));
    let name =
        if device == "host" { "pinned memory of the host" } else { &format!("memory of {device}") };
    let at = grouped(peak.at_ns / 1000);
    write_wrapped(f, &format!("{name}: {in_use} bytes in use, peak {most} after {at} µs:"))?;
    write_holders(f, peak)?;
    let Some(moment) = out_of_memory else { return Ok(()) };
    let (bytes, refused) = (grouped(moment.bytes), grouped(moment.refused.unwrap_or(0)));
    let at = grouped(moment.at_ns / 1000);
    write_wrapped(
        f,
        &format!("{name}: {refused} more bytes were refused after {at} µs, beside {bytes} of:"),
    )?;
    write_holders(f, moment)
}

fn write_holders(f: &mut impl fmt::Write, moment: &DocumentMemoryMoment) -> fmt::Result {
    for holder in moment.holders.iter().take(HOLDERS_MAX) {
        let DocumentMemoryHolder { array, site, count, bytes } = holder;
        let number = if *count > 1 { format!("{} x ", grouped(*count)) } else { String::new() };
        let what = format!("{} bytes: {number}{}", grouped(*bytes), shortened(array, 60));
        let at = site.as_ref().map_or_else(String::new, |site| format!("at {site}"));
        write_pair(f, &what, &at)?;
    }
    if let more @ 1.. = moment.holders.len().saturating_sub(HOLDERS_MAX) {
        writeln!(f, "{INDENT}and {more} more")?;
    }
    Ok(())
}

/// So many findings are in the text.
const FINDINGS_MAX: usize = 32;

/// Writes a text, whose lines are broken between words.
fn write_wrapped(f: &mut impl fmt::Write, text: &str) -> fmt::Result {
    write_broken(f, text, "")
}

/// As [`write_wrapped`], with all lines as far from the margin as the second.
fn write_indented(f: &mut impl fmt::Write, text: &str) -> fmt::Result {
    write_broken(f, text, INDENT)
}

fn write_broken(f: &mut impl fmt::Write, text: &str, mut indent: &str) -> fmt::Result {
    let mut line = String::new();
    for word in text.split(' ') {
        let word = shortened(word, COLUMNS - INDENT.len());
        let len = indent.len() + line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && len > COLUMNS {
            writeln!(f, "{indent}{line}")?;
            (indent, line) = (INDENT, String::new());
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += &word;
    }
    writeln!(f, "{indent}{line}")
}

/// The text in at most `room` columns. What a terminal would obey is escaped.
fn shortened(text: &str, room: usize) -> String {
    resident_documents::shortened(&visible(text), room)
}

impl Report {
    fn write_totals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traffic { to_device, to_host, between_devices, avoided } = self.traffic();
        let lines = [
            ("to devices", to_device),
            ("to the host", to_host),
            ("between devices", between_devices),
        ];
        let width = lines.iter().map(|(_, flow)| grouped(flow.bytes).len()).max().unwrap_or(0);
        for (name, flow) in lines {
            let copies = if flow.count == 1 { "copy" } else { "copies" };
            writeln!(
                f,
                "{:>width$} bytes in {:>4} {copies:<6}  {name}",
                grouped(flow.bytes),
                grouped(flow.count)
            )?;
        }
        let messages = [("sent to", self.sent()), ("received from", self.received())];
        for (verb, Flow { count, bytes }) in messages.into_iter().filter(|(_, it)| it.count > 0) {
            let noun = if count == 1 { "message" } else { "messages" };
            let (bytes, count) = (grouped(bytes), grouped(count));
            writeln!(f, "{bytes:>width$} bytes in {count:>4} {noun} {verb} other processes")?;
        }
        let padding = self.padding();
        if padding.bytes > 0 {
            let padding = grouped(padding.bytes);
            writeln!(f, "{padding:>width$} bytes to devices were padding between stale parts")?;
        }
        self.write_memory(f)?;
        self.write_events(f)?;
        if self.conservative().count > 0 {
            writeln!(f, "{}", compared(self.conservative(), avoided))?;
        }
        Ok(())
    }

    /// Of the devices whose memory in use has changed.
    fn write_memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_changed = |memory: &&DocumentMemoryUse| memory.series.len() > 1;
        let mut changed = self.memory().iter().filter(has_changed);
        changed.try_for_each(|memory| write_memory(f, memory))
    }

    fn write_events(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let launches = self.launches();
        let waits = self.waits();
        if launches > 0 || waits.count > 0 {
            let micros = grouped(waits.nanoseconds / 1000);
            let (launches, waits) = (grouped(launches), grouped(waits.count));
            writeln!(f, "launches: {launches}; waits: {waits}, {micros} µs")?;
        }
        let Waits { count, nanoseconds } = self.peer_waits();
        if count > 0 {
            let (count, micros) = (grouped(count), grouped(nanoseconds / 1000));
            writeln!(f, "waits for other processes: {count}, {micros} µs")?;
        }
        for (array, count) in self.waited_for() {
            let uses = if count == 1 { "use" } else { "uses" };
            let (count, array) = (grouped(count), shown(array));
            write_wrapped(f, &format!("{count} {uses} of {array} on foreign streams, waited for"))?;
        }
        let findings = self.findings();
        for finding in findings.iter().take(FINDINGS_MAX) {
            write_wrapped(f, &format!("finding: {}", finding.message))?;
            write_indented(f, &finding.change)?;
            write_indented(f, &format!("{} At {}.", saving(finding), finding.sites.join(", ")))?;
        }
        if let more @ 1.. = findings.len().saturating_sub(FINDINGS_MAX) {
            writeln!(f, "and {more} more; `json:PATH` and `html:PATH` have all")?;
        }
        let has_work = self.launches() > 0 || self.traffic().moved().count > 0;
        if has_work && !self.compared_contents() {
            write_wrapped(f, NOT_COMPARED)?;
        }
        if let Some(missed) = self.missed() {
            let text = format!(
                "other threads copied {missed} meanwhile, which do not count here: use \
                 `audit::capture_all`, or run them in an `audit::scope` of this capture",
            );
            write_wrapped(f, &text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, shortened, write_pair, write_wrapped};

    #[test]
    fn control_characters_are_escaped_and_others_are_not() {
        assert_eq!(shortened("\u{1b}[31m\0 µ\n\"a\"", 80), "\\u{1b}[31m\\u{0} µ\\n\"a\"");
    }

    #[test]
    fn lines_are_broken_between_words() {
        let wrapped = |text: &str| {
            let mut wrapped = String::new();
            write_wrapped(&mut wrapped, text).expect("a string takes all");
            wrapped
        };
        assert_eq!(wrapped("a text"), "a text\n");
        for len in 1..=150 {
            let text = [&*"ä".repeat(len), "word"].repeat(30).join(" ");
            let lines = wrapped(&text);
            assert!(lines.lines().all(|line| line.chars().count() <= COLUMNS), "{lines}");
            let words = lines.split_whitespace().count();
            assert_eq!((words, lines.matches("word").count()), (60, 30), "{lines}");
        }
    }

    #[test]
    fn two_texts_are_on_one_line_if_they_fit() {
        for (first, second) in
            (0..120).flat_map(|first| (0..120).map(move |second| (first, second)))
        {
            let mut lines = String::new();
            write_pair(&mut lines, &"ä".repeat(first), &"ö".repeat(second)).expect("it takes all");
            assert!(lines.lines().all(|line| line.chars().count() <= COLUMNS), "{lines}");
            let separator = if second == 0 { 0 } else { 2 };
            let fits = 4 + first + separator + second <= COLUMNS;
            assert_eq!(lines.lines().count() == 1, fits || first * second == 0, "{lines}");
        }
    }

    #[test]
    fn long_texts_keep_their_ends() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("ä/long/path/main.rs:1:2", 13), "ä/lo…n.rs:1:2");
        for room in 1..30 {
            let text: String = ('a'..='z').collect();
            assert_eq!(shortened(&text, room).chars().count(), room.min(26));
        }
    }
}
