//! Text for terminals.

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

/// Whether a character has no shape of its own, and makes others look like what they are not: marks
/// of the direction of writing, and what has no width.
fn is_deceptive(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
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
