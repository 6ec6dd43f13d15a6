//! The state of reading a text: its tokens, and the names that can be used.

use super::functions;
use super::names::{Variable, c_name, fault_of};
use super::nearest::nearest;
use super::token::{Fault, Kind, Token, tokens};
use super::types::Type;
use super::value::{NESTING_MAX, Value};

/// How deep parentheses, choices and blocks of a text may be nested. Each level takes stack here.
const DEPTH_MAX: usize = 64;

/// Types of one word.
const TYPES: [&str; 5] = ["bool", "int", "unsigned", "float", "double"];

/// Names of values that are no variables.
const CONSTANTS: [&str; 5] = ["true", "false", "M_PI", "INFINITY", "NAN"];

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// A parameter that is read: a scalar, or the element of an array.
    Input,
    /// The element of an array that is written.
    Output,
    Local,
    Constant,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'t> {
    pub(super) name: &'t str,
    pub(super) kind: Type,
    pub(super) role: Role,
    pub(super) is_half: bool,
    pub(super) is_assigned: bool,
}

pub(super) struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    next: usize,
    /// The innermost names last.
    pub(super) names: Vec<Named<'t>>,
    depth: usize,
    /// Inside how many loops.
    pub(super) loops: usize,
    pub(super) has_loops: bool,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, names: &[Variable<'t>]) -> Result<Self, Fault> {
        let named = |variable: &Variable<'t>| Named {
            name: variable.name,
            kind: variable.kind,
            role: if variable.is_output { Role::Output } else { Role::Input },
            is_half: variable.is_half,
            is_assigned: false,
        };
        Ok(Self {
            tokens: tokens(text)?,
            next: 0,
            names: names.iter().map(named).collect(),
            depth: 0,
            loops: 0,
            has_loops: false,
        })
    }

    /// The next token, which stays.
    pub(super) fn peek(&self) -> Token<'t> {
        self.peek_at(0)
    }

    /// The token that many behind the next. The last token, the end, repeats.
    pub(super) fn peek_at(&self, ahead: usize) -> Token<'t> {
        self.tokens[(self.next + ahead).min(self.tokens.len() - 1)]
    }

    pub(super) fn take(&mut self) -> Token<'t> {
        let token = self.peek();
        self.next += 1;
        token
    }

    /// Takes the next token if it is this symbol.
    pub(super) fn take_if(&mut self, symbol: &str) -> bool {
        let is = self.peek().is(symbol);
        self.next += usize::from(is);
        is
    }

    /// Takes the next token if it is this word.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let is = self.peek().kind == Kind::Word(word);
        self.next += usize::from(is);
        is
    }

    pub(super) fn expect(&mut self, symbol: &str, after: &str) -> Result<(), Fault> {
        if self.take_if(symbol) {
            return Ok(());
        }
        Err(self.peek().fault(format!("`{symbol}` is expected {after}; write it here")))
    }

    /// Reads what is one level deeper.
    pub(super) fn deeper<R>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        if self.depth == DEPTH_MAX {
            let text = format!("there are more than {DEPTH_MAX} levels; use local variables");
            return Err(self.peek().fault(text));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// A value that was made of the text up to `token`, unless it is nested too deep for compilers.
    pub(super) fn limited(value: Value, token: Token<'_>) -> Result<Value, Fault> {
        if value.nesting < NESTING_MAX {
            return Ok(value);
        }
        Err(token.fault("this expression has too many parts; use local variables for some of them"))
    }

    /// A name for a new variable, which no other has where it could be used.
    pub(super) fn new_name(&mut self) -> Result<&'t str, Fault> {
        let token = self.take();
        let Kind::Word(name) = token.kind else {
            return Err(token.fault("the name of a variable is expected here"));
        };
        if let Some(fault) = fault_of(name) {
            return Err(token.fault(format!("this {fault}")));
        }
        if self.names.iter().any(|named| named.name == name) {
            return Err(token.fault("there is a variable of this name; choose another name"));
        }
        Ok(name)
    }

    /// The variable of a name, where `token` stands.
    pub(super) fn variable(
        &mut self,
        token: Token<'t>,
        name: &str,
    ) -> Result<&mut Named<'t>, Fault> {
        match self.names.iter().position(|named| named.name == name) {
            Some(index) => Ok(&mut self.names[index]),
            None => Err(token.fault(self.unknown(name))),
        }
    }

    /// Which names there are in place of an unknown one.
    fn unknown(&self, name: &str) -> String {
        let names: Vec<String> =
            self.names.iter().map(|named| format!("`{}`", named.name)).collect();
        let names = names.join(", ");
        if self.peek().is("(") && TYPES.contains(&name) {
            return format!("a cast has parentheses around the type; write `({name})(..)`");
        }
        if self.peek().is("(") {
            let start = "no function of this name can be called";
            return match functions::instead_of(name) {
                Some(function) => format!("{start}; did you mean `{function}`?"),
                None => format!(
                    "{start}; the documentation of `ops::Elementwise` lists those that can, and \
                     the variables are {names}"
                ),
            };
        }
        match name {
            "switch" | "goto" | "return" | "case" => {
                String::from("this statement is not there; use `if` and `for`")
            }
            "auto" | "long" | "unsigned" | "short" | "char" | "signed" | "void" | "size_t" => {
                String::from(
                    "this type is not there; write `bool`, `int`, `unsigned int`, `long long`, \
                     `unsigned long long`, `unsigned char`, `float` or `double`",
                )
            }
            _ => {
                let known = self.names.iter().map(|named| named.name).chain(CONSTANTS);
                let meant = nearest(name, known);
                let meant =
                    meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
                format!("no variable of this name is known here; there are {names}{meant}")
            }
        }
    }

    /// The variable as a value.
    pub(super) fn read(named: &Named<'_>) -> Value {
        Value::plain(c_name(named.name), named.kind)
    }
}
