//! Four-byte handles on texts, so that an error with four texts still fits three machine words.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Deref;

use crate::sync::Mutex;

/// A piece of an error's message. Reads as a `str`; cheap to carry, freed with its last handle.
///
/// ```
/// let text = resident::Text::from("photo");
/// assert!(text == "photo" && text.starts_with("ph") && text.len() == 5);
/// ```
pub struct Text(NonZeroU32);

/// One text and how many handles it has. The text's bytes never move while the count is above zero.
struct Entry {
    text: Option<Box<str>>,
    handles: u32,
}

struct Table {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

static TABLE: Mutex<Table> = Mutex::new(Table { entries: Vec::new(), free: Vec::new() });

impl Text {
    /// Enters a text.
    pub(crate) fn new(text: impl Into<Box<str>>) -> Self {
        let entry = Entry { text: Some(text.into()), handles: 1 };
        let mut table = TABLE.lock();
        let index = if let Some(index) = table.free.pop() {
            table.entries[index as usize] = entry;
            index
        } else {
            table.entries.push(entry);
            u32::try_from(table.entries.len() - 1)
                .ok()
                .filter(|index| *index < u32::MAX - 1)
                .unwrap_or_else(|| std::process::abort())
        };
        Self(NonZeroU32::MIN.saturating_add(index))
    }

    fn index(&self) -> usize {
        self.0.get() as usize - 1
    }
}

impl Clone for Text {
    fn clone(&self) -> Self {
        let mut table = TABLE.lock();
        let handles = &mut table.entries[self.index()].handles;
        // As `Arc` does: handles were forgotten by the billion, and a count that wrapped would free
        // a text in use.
        *handles = handles.checked_add(1).unwrap_or_else(|| std::process::abort());
        Self(self.0)
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        let mut table = TABLE.lock();
        let index = self.index();
        table.entries[index].handles -= 1;
        if table.entries[index].handles == 0 {
            table.entries[index].text = None;
            table.free.push(self.0.get() - 1);
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        let table = TABLE.lock();
        let text: *const str = table.entries[self.index()].text.as_deref().unwrap_or_default();
        // SAFETY: this handle is counted in the entry, so `drop` frees the boxed text no earlier
        // than `self`, which the result borrows; the box's bytes stay put when the table grows, and
        // nothing changes an entry's text in between.
        unsafe { &*text }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        &**self == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        &**self == *other
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn a_text_lives_as_long_as_its_last_handle() {
        let first = Text::new("a first text");
        let second = first.clone();
        drop(first);
        let others: Vec<Text> =
            (0..100).map(|number| Text::new(format!("text {number}"))).collect();
        assert_eq!(second, "a first text");
        assert_eq!(others[42], "text 42");
    }

    #[test]
    fn a_freed_entry_is_used_again() {
        let reused: std::collections::HashSet<u32> =
            (0..1000).map(|number| Text::new(format!("{number}")).0.get()).collect();
        assert!(reused.len() < 1000, "no entry was used again");
    }
}
