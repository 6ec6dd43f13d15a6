//! Declarations of variables: `.align 4 .b8 name[12] = {1, 2}`.

use super::Parser;
use super::lexer::Token;
use super::number::number;
use crate::Outcome;
use crate::words::Type;

#[derive(Default)]
pub(super) struct Declaration {
    pub(super) name: String,
    pub(super) len_bytes: u64,
    pub(super) align_bytes: u64,
    pub(super) contents: Vec<u8>,
    pub(super) references: Vec<(usize, String)>,
}

impl Parser<'_> {
    /// A declaration, from behind the word for the memory to before the semicolon.
    pub(super) fn declaration(&mut self) -> Outcome<Declaration> {
        let mut declared = Declaration::default();
        let mut element_bytes = 0;
        let mut count = 1;
        while let Some(Token::Word(word)) = self.peek()
            && let Some(word) = word.strip_prefix('.')
        {
            self.at += 1;
            match word {
                "align" => declared.align_bytes = self.number()?,
                "v2" => count = 2,
                "v4" => count = 4,
                "ptr" | "global" | "shared" | "local" | "const" => {}
                "attribute" => self.skip_to(')')?,
                _ => {
                    let ty = Type::of(word)
                        .ok_or_else(|| self.fault(&format!("the type {word} is not supported")))?;
                    element_bytes = ty.len_bytes();
                }
            }
        }
        declared.name = self.word()?.to_owned();
        declared.align_bytes = declared.align_bytes.max(element_bytes * count).max(1);
        while self.eat('[') {
            count *= if self.peek() == Some(Token::Sign(']')) { 0 } else { self.number()? };
            self.expect(']')?;
        }
        declared.len_bytes = element_bytes * count;
        if self.eat('=') {
            self.initial_value(element_bytes as usize, &mut declared)?;
        }
        declared.contents.resize(declared.len_bytes as usize, 0);
        Ok(declared)
    }

    fn initial_value(&mut self, len_bytes: usize, into: &mut Declaration) -> Outcome {
        if self.eat('{') {
            while !self.eat('}') {
                self.initial_value(len_bytes, into)?;
                self.eat(',');
            }
            return Ok(());
        }
        let is_negative = self.eat('-');
        let mut word = self.word()?;
        let is_generic = word == "generic" && self.eat('(');
        if is_generic {
            word = self.word()?;
        }
        let mut value = number(word).unwrap_or_else(|| {
            into.references.push((into.contents.len(), word.to_owned()));
            0
        });
        if self.eat('+') {
            value = value.wrapping_add(self.number()?);
        }
        if is_generic {
            self.expect(')')?;
        }
        let value = if is_negative { value.wrapping_neg() } else { value };
        into.contents.extend_from_slice(&value.to_le_bytes()[..len_bytes]);
        Ok(())
    }

    pub(super) fn number(&mut self) -> Outcome<u64> {
        let is_negative = self.eat('-');
        let word = self.word()?;
        let value = number(word).ok_or_else(|| self.fault(&format!("{word} is no number")))?;
        Ok(if is_negative { value.wrapping_neg() } else { value })
    }
}
