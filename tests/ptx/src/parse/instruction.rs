//! Instructions: the guard, the opcode with what modifies it, the operands.

use super::lexer::Token;
use super::{Names, Parser};
use crate::Outcome;
use crate::module::{Function, Instruction, Operand};
use crate::words::{Mode, Opcode, Rounding, Space, Type};

/// What changes nothing here: who sees an access and when, and caches.
const WITHOUT_EFFECT: [&str; 25] = [
    "aligned", "red", "sync", "gpu", "cta", "sys", "cluster", "relaxed", "acquire", "release",
    "acq_rel", "sc", "noftz", "volatile", "nc", "weak", "ca", "cg", "cs", "cv", "wb", "wt", "lu",
    "gl", "level",
];

impl Parser<'_> {
    pub(super) fn instruction(&mut self, function: &mut Function, names: &mut Names) -> Outcome {
        let (start, line) = (self.at, self.line());
        let guard = self.guard(names)?;
        let word = self.word()?;
        let mut parts = word.split('.');
        let opcode = parts.next().and_then(Opcode::of);
        let opcode = opcode
            .ok_or_else(|| format!("line {line}: the instruction `{word}` is not supported"))?;
        let mut instruction = Instruction::new(opcode, guard, line);
        let mut types = Vec::new();
        for part in parts {
            if !instruction.modify(part, &mut types) {
                return Err(format!("line {line}: `.{part}` of `{word}` is not supported"));
            }
        }
        instruction.ty = types.first().copied().unwrap_or(Type::B32);
        instruction.from = types.get(1).copied().unwrap_or(instruction.ty);
        self.operands(&mut instruction, names)?;
        instruction.text = self.text_from(start);
        function.code.push(instruction);
        Ok(())
    }

    fn guard(&mut self, names: &mut Names) -> Outcome<Option<(u32, bool)>> {
        if !self.eat('@') {
            return Ok(None);
        }
        let is_negated = self.eat('!');
        let word = self.word()?;
        Ok(Some((names.register(word), !is_negated)))
    }

    /// Calls have three operands: results, function and arguments.
    fn operands(&mut self, into: &mut Instruction, names: &mut Names) -> Outcome {
        let is_call = into.opcode == Opcode::Call;
        if is_call && self.peek() != Some(Token::Sign('(')) {
            into.operands.push(Operand::List(Vec::new()));
        }
        while !self.eat(';') {
            into.operands.push(self.operand(names)?);
            self.eat(',');
        }
        if is_call && into.operands.len() == 2 {
            into.operands.push(Operand::List(Vec::new()));
        }
        Ok(())
    }

    /// The text of an instruction that has been read, for messages.
    fn text_from(&self, start: usize) -> String {
        let mut text = String::new();
        for (token, _) in &self.tokens[start..self.at.saturating_sub(1)] {
            match token {
                Token::Word(word) => {
                    if text.ends_with(|last: char| last.is_ascii_alphanumeric()) {
                        text.push(' ');
                    }
                    text.push_str(word);
                }
                Token::Sign(',') => text.push_str(", "),
                Token::Sign(sign) => {
                    let is_after_word = text.ends_with(|last: char| last.is_ascii_alphanumeric());
                    if is_after_word && matches!(sign, '[' | '{' | '(') {
                        text.push(' ');
                    }
                    text.push(*sign);
                }
                Token::Text => text.push_str("\"..\""),
            }
        }
        text
    }
}

impl Instruction {
    fn new(opcode: Opcode, guard: Option<(u32, bool)>, line: usize) -> Self {
        Self {
            opcode,
            ty: Type::B32,
            from: Type::B32,
            rounding: None,
            to_integer: false,
            space: None,
            mode: None,
            second_mode: None,
            hi: false,
            wide: false,
            carries: false,
            flushes: false,
            saturates: false,
            is_approximate: false,
            propagates_nan: false,
            relu: false,
            vector: 1,
            guard,
            operands: Vec::new(),
            target: 0,
            line,
            text: String::new(),
        }
    }

    /// Takes one word behind the opcode. Returns whether it is known.
    fn modify(&mut self, word: &str, types: &mut Vec<Type>) -> bool {
        if let Some(ty) = Type::of(word) {
            types.push(ty);
            return true;
        }
        if let Some(space) = Space::of(word) {
            self.space = Some(space.plain());
            return true;
        }
        let mut rounding = |rounding, to_integer| {
            (self.rounding, self.to_integer) = (Some(rounding), to_integer);
        };
        match word {
            "rn" => rounding(Rounding::Nearest, false),
            "rz" => rounding(Rounding::Zero, false),
            "rm" => rounding(Rounding::Down, false),
            "rp" => rounding(Rounding::Up, false),
            "rni" => rounding(Rounding::Nearest, true),
            "rzi" => rounding(Rounding::Zero, true),
            "rmi" => rounding(Rounding::Down, true),
            "rpi" => rounding(Rounding::Up, true),
            "v2" => self.vector = 2,
            "v4" => self.vector = 4,
            "ftz" => self.flushes = true,
            "sat" | "satfinite" => self.saturates = true,
            "approx" | "full" => self.is_approximate = true,
            _ if WITHOUT_EFFECT.contains(&word) || word.starts_with("L1::") => {}
            _ if word.starts_with("L2::") => {}
            _ => return self.modify_by_mode(word),
        }
        true
    }

    fn modify_by_mode(&mut self, word: &str) -> bool {
        let Some(mode) = Mode::of(word) else { return false };
        let compares = matches!(self.opcode, Opcode::Set | Opcode::Setp);
        match mode {
            Mode::Hi if !compares => self.hi = true,
            Mode::Lo if !compares => {}
            Mode::Wide => self.wide = true,
            Mode::Carry => self.carries = true,
            Mode::PropagateNan => self.propagates_nan = true,
            Mode::Relu => self.relu = true,
            Mode::Uni if self.opcode != Opcode::Vote => {}
            _ if self.mode.is_none() => self.mode = Some(mode),
            _ => self.second_mode = Some(mode),
        }
        true
    }
}
