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

/// A text whose control characters are escaped, since a terminal would obey them.
pub fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            visible.extend(character.escape_default());
        } else {
            visible.push(character);
        }
    }
    visible
}
