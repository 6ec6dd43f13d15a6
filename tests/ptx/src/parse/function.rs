//! Functions: their parameters, variables, labels and instructions.

use super::lexer::Token;
use super::number::number;
use super::{Names, Parser};
use crate::Outcome;
use crate::module::{Function, Operand, PARAMETERS_START, Slot};
use crate::words::{Opcode, Space};

impl Parser<'_> {
    /// A function, from behind `.entry` or `.func`.
    pub(super) fn function(&mut self, is_entry: bool) -> Outcome {
        let mut function = Function { is_entry, ..Function::default() };
        let mut names = Names::default();
        while let Some(Token::Word(".noreturn" | ".attribute")) = self.peek() {
            if self.word()? == ".attribute" {
                self.skip_to(')')?;
            }
        }
        function.results = self.slots(&mut function, &mut names)?;
        function.name = self.word()?.to_owned();
        function.parameters = self.slots(&mut function, &mut names)?;
        if is_entry {
            function.frame_bytes = 0;
            let entry = names.frame.drain();
            names.entry = entry.map(|(name, at)| (name, PARAMETERS_START + at)).collect();
        }
        self.skip_directives();
        if self.eat(';') {
            function.is_external = true;
        } else {
            self.expect('{')?;
            self.body(&mut function, &mut names)?;
            resolve_branches(&mut function, &names)?;
        }
        function.registers = names.registers.len();
        self.add_function(function);
        Ok(())
    }

    /// A definition takes the place of a declaration.
    fn add_function(&mut self, function: Function) {
        let module = &mut self.module;
        match module.names.get(&function.name) {
            Some(index) if module.functions[*index].is_external => {
                module.functions[*index] = function;
            }
            Some(_) => {}
            None => {
                module.names.insert(function.name.clone(), module.functions.len());
                module.functions.push(function);
            }
        }
    }

    /// Directives between the parameters and the body, such as `.maxntid 256`.
    fn skip_directives(&mut self) {
        while !matches!(self.peek(), Some(Token::Sign('{' | ';')) | None) {
            self.at += 1;
        }
    }

    /// A list of parameters or results, if there is one.
    fn slots(&mut self, function: &mut Function, names: &mut Names) -> Outcome<Vec<Slot>> {
        let mut slots = Vec::new();
        if !self.eat('(') {
            return Ok(slots);
        }
        while !self.eat(')') {
            if self.word()? != ".param" {
                return Err(self.fault("only parameters in `.param` are supported"));
            }
            slots.push(self.frame_variable(function, names)?);
            self.eat(',');
        }
        Ok(slots)
    }

    /// A variable in the function's frame.
    fn frame_variable(&mut self, function: &mut Function, names: &mut Names) -> Outcome<Slot> {
        let variable = self.declaration()?;
        let offset = function.frame_bytes.next_multiple_of(variable.align_bytes);
        function.frame_bytes = offset + variable.len_bytes;
        names.frame.insert(variable.name, offset);
        Ok(Slot { offset, len_bytes: variable.len_bytes })
    }

    fn body(&mut self, function: &mut Function, names: &mut Names) -> Outcome {
        let mut depth = 1;
        while depth > 0 {
            match self.peek() {
                None => return Err(self.fault("} expected")),
                Some(Token::Sign('{')) => (self.at, depth) = (self.at + 1, depth + 1),
                Some(Token::Sign('}')) => (self.at, depth) = (self.at + 1, depth - 1),
                Some(Token::Sign(';')) => self.at += 1,
                Some(Token::Word(word)) if word.starts_with('.') => {
                    self.at += 1;
                    self.directive(word, function, names)?;
                }
                Some(Token::Word(word)) if self.is_label() => {
                    self.at += 2;
                    self.label(word, function, names)?;
                }
                Some(_) => self.instruction(function, names)?,
            }
        }
        Ok(())
    }

    fn is_label(&self) -> bool {
        matches!(self.tokens.get(self.at + 1), Some((Token::Sign(':'), _)))
    }

    fn label(&mut self, name: &str, function: &mut Function, names: &mut Names) -> Outcome {
        match self.peek() {
            Some(Token::Word(".branchtargets")) => {
                self.at += 1;
                let mut targets = Vec::new();
                while !self.eat(';') {
                    targets.push(self.word()?.to_owned());
                    self.eat(',');
                }
                names.tables.insert(name.to_owned(), targets);
            }
            Some(Token::Word(".callprototype")) => self.skip_to(';')?,
            _ => drop(names.labels.insert(name.to_owned(), function.code.len())),
        }
        Ok(())
    }

    fn directive(&mut self, word: &str, function: &mut Function, names: &mut Names) -> Outcome {
        match word {
            ".reg" => {
                self.word()?;
                self.registers(names)
            }
            // With the type in the same word.
            _ if word.starts_with(".reg.") => self.registers(names),
            ".param" | ".local" => {
                self.frame_variable(function, names)?;
                self.expect(';')
            }
            ".loc" => {
                self.skip_line();
                Ok(())
            }
            ".pragma" => self.skip_to(';'),
            ".shared" | ".global" | ".const" => {
                let declaration = self.declaration()?;
                self.expect(';')?;
                let space = Space::of(&word[1..]).unwrap_or(Space::Global);
                self.add_variable(space, declaration)
            }
            _ => Err(self.fault(&format!("the directive {word} is not supported"))),
        }
    }

    /// Registers, from behind their type. Those that are numbered, as in `%r<10>`, are known by
    /// their first use.
    fn registers(&mut self, names: &mut Names) -> Outcome {
        while !self.eat(';') {
            let name = self.word()?;
            if self.eat('<') {
                self.skip_to('>')?;
            } else if number(name).is_none() {
                names.register(name);
            }
            self.eat(',');
        }
        Ok(())
    }
}

/// Finds where branches go.
fn resolve_branches(function: &mut Function, names: &Names) -> Outcome {
    let label = |name: &str| {
        let at = names.labels.get(name).copied();
        at.ok_or_else(|| format!("the function has no label {name}"))
    };
    let mut tables: Vec<&str> = Vec::new();
    for instruction in &mut function.code {
        let Some(Operand::Name(name, 0)) = instruction.operands.last() else { continue };
        match instruction.opcode {
            Opcode::Bra => instruction.target = label(name)?,
            Opcode::Brx => {
                let (table, targets) = names
                    .tables
                    .get_key_value(name)
                    .ok_or_else(|| format!("the function has no list of targets {name}"))?;
                instruction.target = tables.len();
                tables.push(table);
                let targets = targets.iter().map(|name| label(name)).collect::<Result<_, _>>()?;
                function.tables.push(targets);
                instruction.operands.pop();
            }
            _ => {}
        }
    }
    Ok(())
}
