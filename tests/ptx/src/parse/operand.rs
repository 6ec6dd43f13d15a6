//! Operands.

use super::lexer::Token;
use super::number::number;
use super::{Names, Parser};
use crate::Outcome;
use crate::module::{Base, Operand};
use crate::words::Special;

impl Parser<'_> {
    pub(super) fn operand(&mut self, names: &mut Names) -> Outcome<Operand> {
        match self.peek() {
            Some(Token::Sign('{')) => self.list('}', names),
            Some(Token::Sign('(')) => self.list(')', names),
            Some(Token::Sign('[')) => self.address(names),
            Some(Token::Sign('!')) => {
                self.at += 1;
                let word = self.word()?;
                Ok(Operand::Not(names.register(word)))
            }
            Some(Token::Sign('-')) => self.number().map(Operand::Constant),
            _ => self.plain(names),
        }
    }

    fn list(&mut self, end: char, names: &mut Names) -> Outcome<Operand> {
        self.at += 1;
        let mut operands = Vec::new();
        while !self.eat(end) {
            operands.push(self.operand(names)?);
            self.eat(',');
        }
        Ok(Operand::List(operands))
    }

    /// `[%rd1+8]`, `[name]`, `[16]`
    fn address(&mut self, names: &mut Names) -> Outcome<Operand> {
        self.at += 1;
        let word = self.word()?;
        let (base, mut offset) = match self.named(word, names) {
            Operand::Register(register) => (Base::Register(register), 0),
            Operand::Frame(offset) => (Base::Frame, offset as i64),
            Operand::Constant(address) => (Base::Zero, address as i64),
            Operand::Name(name, _) => (Base::Name(name), 0),
            _ => return Err(self.fault(&format!("{word} is no address"))),
        };
        // `[%rd1+-8]` too.
        if self.eat('+') || self.peek() == Some(Token::Sign('-')) {
            offset += self.number()? as i64;
        }
        self.expect(']')?;
        Ok(Operand::Address(base, offset))
    }

    fn plain(&mut self, names: &mut Names) -> Outcome<Operand> {
        let word = self.word()?;
        let operand = self.named(word, names);
        if self.eat('|') {
            let second = self.operand(names)?;
            return Ok(Operand::Pair(Box::new((operand, second))));
        }
        if self.eat('+') {
            let added = self.number()?;
            return match operand {
                Operand::Name(name, _) => Ok(Operand::Name(name, added as i64)),
                Operand::Frame(offset) => Ok(Operand::Frame(offset + added)),
                Operand::Constant(value) => Ok(Operand::Constant(value.wrapping_add(added))),
                _ => Err(self.fault("a sum of a register and a number")),
            };
        }
        Ok(operand)
    }

    fn named(&self, word: &str, names: &mut Names) -> Operand {
        if word == "_" {
            Operand::None
        } else if word == "WARP_SZ" {
            Operand::Constant(32)
        } else if let Some(special) = Special::of(word) {
            Operand::Special(special)
        } else if let Some(value) = number(word) {
            Operand::Constant(value)
        } else if word.starts_with('%') || names.registers.contains_key(word) {
            Operand::Register(names.register(word))
        } else if let Some(offset) = names.frame.get(word) {
            Operand::Frame(*offset)
        } else if let Some(address) = names.entry.get(word) {
            Operand::Constant(*address)
        } else {
            Operand::Name(word.to_owned(), 0)
        }
    }
}
