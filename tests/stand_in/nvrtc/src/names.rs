//! Name expressions, such as `scale<float>`, which select a kernel.

#![forbid(unsafe_code)]

use crate::source::{Kernel, Token, split, words};

/// A parsed name expression.
#[derive(Debug)]
pub(crate) struct Expression {
    /// The name without its path.
    pub(crate) name: String,
    /// The tokens of each template argument.
    pub(crate) arguments: Vec<Vec<String>>,
}

/// Parses an expression such as `&space::scale<float, 4>`.
pub(crate) fn read(expression: &str) -> Expression {
    let words: Vec<String> = words(expression.trim().trim_start_matches('&'));
    let open = words.iter().position(|word| word == "<");
    let path = &words[..open.unwrap_or(words.len())];
    let name = path.last().cloned().unwrap_or_default();
    let inside = open.map_or(&[][..], |open| &words[open + 1..words.len().max(open + 2) - 1]);
    let tokens: Vec<Token> = inside.iter().map(|word| Token::bare(word)).collect();
    Expression { name, arguments: split(&tokens) }
}

impl Expression {
    /// Whether the expression names this kernel.
    pub(crate) fn means(&self, kernel: &Kernel) -> bool {
        kernel.name == self.name && kernel.template.len() == self.arguments.len()
    }
}
