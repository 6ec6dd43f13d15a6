//! From the text of a module to what is executed.

mod declaration;
mod function;
mod instruction;
mod lexer;
mod link;
mod number;
mod operand;

use std::collections::HashMap;

use self::declaration::Declaration;
use self::lexer::{Placed, Token};
use crate::Outcome;
use crate::module::{Module, SHARED_START, VARIABLES_START, Variable};
use crate::words::Space;

/// Reads a module. The error says what is not supported, and in which line.
pub fn parse(text: &str) -> Outcome<Module> {
    let mut parser = Parser::new(text)?;
    while parser.peek().is_some() {
        parser.statement()?;
    }
    parser.place_dynamic_memory();
    link::link(&mut parser.module)?;
    Ok(parser.module)
}

struct Parser<'a> {
    tokens: Vec<Placed<'a>>,
    at: usize,
    module: Module,
    next_address: u64,
    /// The names of shared memory whose size a launch gives.
    dynamic: Vec<String>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Outcome<Self> {
        Ok(Self {
            tokens: lexer::tokens(text)?,
            at: 0,
            module: Module::default(),
            next_address: VARIABLES_START,
            dynamic: Vec::new(),
        })
    }

    fn statement(&mut self) -> Outcome {
        let mut word = self.word()?;
        while matches!(word, ".visible" | ".extern" | ".weak" | ".common") {
            word = self.word()?;
        }
        match word {
            ".version" | ".target" | ".address_size" | ".file" => {
                self.skip_line();
                Ok(())
            }
            ".pragma" => self.skip_to(';'),
            ".section" => self.skip_to('}'),
            ".entry" => self.function(true),
            ".func" => self.function(false),
            _ => match word.strip_prefix('.').and_then(Space::of).map(Space::plain) {
                Some(space) => {
                    let declaration = self.declaration()?;
                    self.expect(';')?;
                    self.add_variable(space, declaration)
                }
                None => Err(self.fault(&format!("the statement {word} is not supported"))),
            },
        }
    }

    /// Places a variable of the module, or of a function, in memory that all threads, or those of a
    /// block, share.
    fn add_variable(&mut self, space: Space, variable: Declaration) -> Outcome {
        let Declaration { name, len_bytes, align_bytes, contents, references } = variable;
        let address = match space {
            Space::Shared if len_bytes == 0 => {
                self.dynamic.push(name);
                return Ok(());
            }
            Space::Shared => {
                let start = self.module.shared_bytes.next_multiple_of(align_bytes);
                self.module.shared_bytes = start + len_bytes;
                SHARED_START + start
            }
            Space::Global | Space::Const => {
                let address = self.next_address.next_multiple_of(align_bytes.max(256));
                self.next_address = address + len_bytes + 256;
                let is_constant = space == Space::Const;
                self.module.variables.push(Variable { address, contents, is_constant, references });
                address
            }
            _ => return Err(self.fault("a variable of the module in this memory")),
        };
        self.module.addresses.insert(name, address);
        Ok(())
    }

    /// Dynamic shared memory begins behind the static one.
    fn place_dynamic_memory(&mut self) {
        if !self.dynamic.is_empty() {
            self.module.shared_bytes = self.module.shared_bytes.next_multiple_of(16);
        }
        let address = SHARED_START + self.module.shared_bytes;
        self.module.addresses.extend(self.dynamic.drain(..).map(|name| (name, address)));
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).map(|(token, _)| *token)
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |(_, line)| *line)
    }

    /// Takes a sign, if it is the next token.
    fn eat(&mut self, sign: char) -> bool {
        let is_next = self.peek() == Some(Token::Sign(sign));
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, sign: char) -> Outcome {
        if self.eat(sign) { Ok(()) } else { Err(self.fault(&format!("{sign} expected"))) }
    }

    fn word(&mut self) -> Outcome<&'a str> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            _ => {
                self.at -= 1;
                Err(self.fault("a word expected"))
            }
        }
    }

    fn skip_to(&mut self, sign: char) -> Outcome {
        while !self.eat(sign) {
            if self.next().is_none() {
                return Err(self.fault(&format!("{sign} expected")));
            }
        }
        Ok(())
    }

    fn skip_line(&mut self) {
        let line = self.tokens.get(self.at.saturating_sub(1)).map_or(0, |(_, line)| *line);
        while self.tokens.get(self.at).is_some_and(|(_, other)| *other == line) {
            self.at += 1;
        }
    }

    fn fault(&self, what: &str) -> String {
        let found = self.peek().map_or("the end".to_owned(), |token| format!("{token:?}"));
        format!("line {}: {what}, at {found}", self.line())
    }
}

/// The names that a function knows beside those of the module.
#[derive(Default)]
struct Names {
    registers: HashMap<String, u32>,
    /// Variables in the frame: where they start.
    frame: HashMap<String, u64>,
    /// Parameters of an entry: their addresses.
    entry: HashMap<String, u64>,
    labels: HashMap<String, usize>,
    tables: HashMap<String, Vec<String>>,
}

impl Names {
    fn register(&mut self, name: &str) -> u32 {
        let next = self.registers.len() as u32;
        *self.registers.entry(name.to_owned()).or_insert(next)
    }
}
