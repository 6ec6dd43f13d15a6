//! Text for terminals.

use crate::document::DocumentFinding;
use crate::totals::{Flow, grouped};

/// What launches saved, and compared with what, in lines.
pub fn compared(launcher: Flow, avoided: Flow) -> String {
    let saved = match avoided.bytes {
        0 => "nothing: as much was moved of these arrays".to_owned(),
        bytes => format!("{} bytes", grouped(bytes)),
    };
    format!(
        "a launcher that copies every argument in and out would have moved {launcher}\n    \
         avoided compared with it, for the arrays of launches: {saved}"
    )
}

/// What a report says of contents that were not compared.
pub const NOT_COMPARED: &str = "contents were not compared, so no finding tells of writes that \
    change nothing or little, or of equal contents that are uploaded again: ask for it by the \
    word `contents` in RESIDENT_AUDIT, or by `audit::compare_contents()`. It costs about 0.2 ms \
    for each MiB that is uploaded, and 1.3 ms for each MiB that the host or a kernel on an \
    embedded device may change";

/// What a finding would save, as a sentence.
pub fn saving(finding: &DocumentFinding) -> String {
    let bytes = (finding.bytes > 0).then(|| format!("{} bytes", grouped(finding.bytes)));
    let copies = match finding.count {
        0 => None,
        1 => Some("1 copy".to_owned()),
        count => Some(format!("{} copies", grouped(count))),
    };
    let time = finding.nanoseconds.map(|time_ns| format!("{} µs", grouped(time_ns / 1000)));
    let memory = (finding.host_memory_bytes > 0)
        .then(|| format!("{} bytes of host memory", grouped(finding.host_memory_bytes)));
    let parts: Vec<String> = [bytes, copies, time, memory].into_iter().flatten().collect();
    let saved = if parts.is_empty() { "calls, no copies".to_owned() } else { parts.join(", ") };
    format!("It would save {saved}.")
}

/// The text in at most so many characters: of a longer one its first third and its end.
pub fn shortened(text: &str, room: usize) -> String {
    let len = text.chars().count();
    if len <= room || room == 0 {
        return text.to_owned();
    }
    let head = (room - 1) / 3;
    let tail = room - 1 - head;
    let first = text.chars().take(head);
    let last = text.chars().skip(len - tail);
    first.chain(['…']).chain(last).collect()
}

/// Names of arrays are at most so long in messages, titles and cells.
const NAME_MAX: usize = 80;

/// A name as it is in messages and titles: escaped as by [`visible`], and shortened.
pub fn shown(name: &str) -> String {
    shortened(&visible(name), NAME_MAX)
}

/// A text of several lines, such as a compiler's log, escaped as by [`visible`] but for its line
/// breaks and tabs.
pub fn visible_lines(text: &str) -> String {
    let is_kept = |character| matches!(character, '\n' | '\t');
    let visible_part = |part: &str| {
        let kept = part.strip_suffix(is_kept).unwrap_or(part);
        visible(kept) + &part[kept.len()..]
    };
    text.split_inclusive(is_kept).map(visible_part).collect()
}

/// A name as it is in errors: in quotation marks, and escaped as by [`visible`].
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", visible(name))
}

/// Whether a character has no shape of its own, and makes others look like what they are not: marks
/// of the direction of writing, and what has no width.
fn is_deceptive(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e007f}')
}

/// A text whose control characters are escaped, since a terminal would obey them, and those that
/// change the direction of writing or cannot be seen.
pub fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_deceptive(character) {
            visible.extend(character.escape_default());
        } else {
            visible.push(character);
        }
    }
    visible
}

#[cfg(test)]
mod tests {
    use super::{quoted, saving, shortened, shown, visible, visible_lines};
    use crate::document::DocumentFinding;

    #[test]
    fn what_a_terminal_would_obey_and_what_turns_the_writing_is_escaped() {
        assert_eq!(visible("\u{1b}[31m\0\n\u{9b}"), "\\u{1b}[31m\\u{0}\\n\\u{9b}");
        for deceptive in
            "\u{202e}\u{202a}\u{2066}\u{2069}\u{200f}\u{61c}\u{feff}\u{2028}\u{e0041}".chars()
        {
            let escaped = visible(&format!("a{deceptive}b"));
            assert_eq!(escaped, format!("a\\u{{{:x}}}b", u32::from(deceptive)));
        }
        assert_eq!(visible("µ 日本語 🦀 \"a\""), "µ 日本語 🦀 \"a\"");
        assert_eq!(visible_lines("\ta\u{1b}\n\n\rb\t"), "\ta\\u{1b}\n\n\\rb\t");
        assert_eq!(quoted("k\u{1b}[31m\n"), "\"k\\u{1b}[31m\\n\"");
    }

    #[test]
    fn long_texts_keep_their_ends() {
        assert_eq!(shortened("ä/long/path/main.rs:1:2", 13), "ä/lo…n.rs:1:2");
        assert_eq!(shortened(&"x".repeat(5000), 80).chars().count(), 80);
        assert_eq!(shown(&"\u{202e}".repeat(5000)).chars().count(), 80);
    }

    #[test]
    fn a_saving_names_what_is_saved_and_nothing_else() {
        let of = |count, bytes, nanoseconds, host_memory_bytes| {
            let (kind, message, change) = Default::default();
            let (array, sites) = (None, Vec::new());
            saving(&DocumentFinding {
                kind,
                message,
                change,
                sites,
                array,
                count,
                bytes,
                nanoseconds,
                host_memory_bytes,
            })
        };
        assert_eq!(of(1, 12_345, Some(7_000), 0), "It would save 12_345 bytes, 1 copy, 7 µs.");
        assert_eq!(of(1_000, 0, None, 0), "It would save 1_000 copies.");
        assert_eq!(of(0, 0, Some(1_234_567_000), 0), "It would save 1_234_567 µs.");
        assert_eq!(of(0, 0, None, 12_345), "It would save 12_345 bytes of host memory.");
    }
}
