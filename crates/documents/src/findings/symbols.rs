//! Texts that stand for themselves by a number, so that what is kept for long is small.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// So many texts are distinguished; a program has few call sites, and may make names without end.
const SYMBOLS_MAX: usize = 1 << 16;

/// What stands for all texts beyond those.
const OTHERS: &str = "(others)";

/// A text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Symbol(u32);

/// All texts so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    numbers: FxHashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    latest: Latest,
}

/// Of some addresses of texts the number that was found last. Most texts come again at the same
/// address, and to compare one costs less than to look it up.
#[derive(Clone, Copy, Debug)]
struct Latest([u32; 64]);

impl Default for Latest {
    fn default() -> Self {
        Self([u32::MAX; 64])
    }
}

impl Latest {
    fn slot(&mut self, text: &str) -> &mut u32 {
        let hash = (text.as_ptr().addr() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58;
        &mut self.0[hash as usize]
    }
}

impl Symbols {
    #[inline]
    pub(super) fn of(&mut self, text: &str) -> Symbol {
        let latest = *self.latest.slot(text);
        if self.texts.get(latest as usize).is_some_and(|known| **known == *text) {
            return Symbol(latest);
        }
        let symbol = self.find(text);
        *self.latest.slot(text) = symbol.0;
        symbol
    }

    fn find(&mut self, text: &str) -> Symbol {
        if let Some(number) = self.numbers.get(text) {
            return Symbol(*number);
        }
        if self.texts.len() >= SYMBOLS_MAX && text != OTHERS {
            return self.of(OTHERS);
        }
        let text: Arc<str> = text.into();
        let number = self.texts.len() as u32;
        self.numbers.insert(Arc::clone(&text), number);
        self.texts.push(text);
        Symbol(number)
    }

    pub(super) fn text(&self, symbol: Symbol) -> &str {
        &self.texts[symbol.0 as usize]
    }

    /// A place: a device, or the host.
    pub(super) fn place(&mut self, device: Option<&str>) -> Place {
        device.map(|device| self.of(device))
    }
}

/// A device, or `None` for the host.
pub(super) type Place = Option<Symbol>;
