//! Texts that stand for themselves by a number, so that what is kept for long is small.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// So many texts are told apart; a program has few call sites, and may make names without end.
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
}

impl Symbols {
    pub(super) fn of(&mut self, text: &str) -> Symbol {
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
