//! Reads expressions.

use super::functions;
use super::number::{Number, TOO_LARGE};
use super::parser::Parser;
use super::token::{Fault, Kind, Token};
use super::types::Type;
use super::value::Value;

/// The binary operators, those that bind least first.
const RANKS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl<'t> Parser<'t> {
    /// The expression that the whole text is, as a value of type `to`.
    pub(super) fn whole_expression(mut self, to: Type) -> Result<String, Fault> {
        let first = self.peek();
        let value = self.expression()?;
        let token = self.peek();
        if token.kind != Kind::End {
            return Err(token.fault(
                "one expression is expected, which ends before this; leave out \
                                    what follows",
            ));
        }
        Self::keeps_fraction(&value, to, "the values of this reduction are", first)?;
        Ok(Self::limited(Self::converted(&value, to, first)?, token)?.c)
    }

    pub(super) fn expression(&mut self) -> Result<Value, Fault> {
        self.deeper(Self::choice)
    }

    /// `condition ? a : b`, or what binds closer.
    fn choice(&mut self) -> Result<Value, Fault> {
        let condition = self.binary(0)?;
        if !self.take_if("?") {
            return Ok(condition);
        }
        let a = self.expression()?;
        self.expect(":", "between the two values of `? :`")?;
        let b = self.expression()?;
        Self::limited(Value::choice(&condition, &a, &b), self.peek())
    }

    /// Operations whose operators have at least this rank. An operand that begins with the next
    /// ends before an operator that binds as little, so operators of one rank group from the left.
    fn binary(&mut self, rank: usize) -> Result<Value, Fault> {
        let mut value = self.unary()?;
        loop {
            let token = self.peek();
            self.refuse_power(&value)?;
            let Some((operator, own)) = operator_of(token).filter(|(_, own)| *own >= rank) else {
                return Ok(value);
            };
            self.take();
            let other = self.deeper(|parser| parser.binary(own + 1))?;
            let made = Value::binary(&value, operator, &other)
                .ok_or_else(|| no_operation(token, operator, [&value, &other], ", or `fmod`"))?;
            value = Self::limited(made, token)?;
        }
    }

    /// Refuses Python's operator for powers.
    fn refuse_power(&self, base: &Value) -> Result<(), Fault> {
        let (token, exponent) = (self.peek(), self.peek_at(1));
        if !token.is("**") {
            return Ok(());
        }
        let (x, n) = (base.shown(), if exponent.is_operand() { exponent.seen } else { ".." });
        let square = if n == "2" { format!(" or `{x} * {x}`") } else { String::new() };
        Err(token.fault(format!("there is no operator for powers; write `pow({x}, {n})`{square}")))
    }

    /// Refuses what would be a method of Rust, of the value before the next token.
    fn refuse_method(&self, of: &Value) -> Result<(), Fault> {
        let (token, method) = (self.peek(), self.peek_at(1));
        let Kind::Word(name) = method.kind else { return Ok(()) };
        if !token.is(".") {
            return Ok(());
        }
        let argument = self.peek_at(3);
        let function = functions::instead_of(name).filter(|_| self.peek_at(2).is("("));
        let advice = match function {
            Some(function) => {
                let more = match argument.kind {
                    Kind::Symbol(")") => String::new(),
                    _ if argument.is_operand() => format!(", {}", argument.seen),
                    _ => String::from(", .."),
                };
                format!("write `{function}({}{more})`", of.shown())
            }
            None => format!("call a function, such as `sqrt({})`", of.shown()),
        };
        Err(token.fault(format!("there are no methods and no fields; {advice}")))
    }

    fn unary(&mut self) -> Result<Value, Fault> {
        let token = self.peek();
        let Kind::Symbol(symbol @ ("-" | "+" | "!" | "~")) = token.kind else {
            let value = self.primary()?;
            return self.refuse_method(&value).map(|()| value);
        };
        self.take();
        let number = self.peek();
        if let ("-", Kind::Number(lowest @ Number::MinusLowest)) = (symbol, number.kind) {
            self.take();
            return Ok(Value::number(lowest));
        }
        let value = self.deeper(Self::unary)?;
        let made = match symbol {
            "-" => value.negated(),
            "!" => value.not(),
            "~" if value.kind >= Type::F32 => {
                return Err(no_operation(token, symbol, [&value; 2], ""));
            }
            "~" => value.complement(),
            _ => value.to(value.kind.promoted()),
        };
        Self::limited(made, token)
    }

    fn primary(&mut self) -> Result<Value, Fault> {
        let token = self.take();
        match token.kind {
            Kind::Number(Number::MinusLowest) => Err(token.fault(TOO_LARGE)),
            Kind::Number(number) => Ok(Value::number(number)),
            Kind::Symbol("(") => match self.type_name() {
                Some(kind) => {
                    self.expect(")", "behind the type")?;
                    let value = self.deeper(Self::unary)?;
                    Self::limited(Self::converted(&value, kind, token)?, token)
                }
                None => {
                    let value = self.expression()?;
                    self.expect(")", "behind the expression in parentheses")?;
                    Ok(value)
                }
            },
            Kind::Word(word) => self.word(token, word),
            _ => Err(token.fault(no_value(token))),
        }
    }

    /// What a word begins: a variable, a constant, or a call.
    fn word(&mut self, token: Token<'t>, word: &'t str) -> Result<Value, Fault> {
        match word {
            "true" => return Ok(Value::plain("true", Type::Bool)),
            "false" => return Ok(Value::plain("false", Type::Bool)),
            "M_PI" => return Ok(Value::plain("3.141592653589793", Type::F64)),
            "INFINITY" => return Ok(Value::plain("__int_as_float(0x7f800000)", Type::F32)),
            "NAN" => return Ok(Value::plain("__int_as_float(0x7fc00000)", Type::F32)),
            _ => {}
        }
        if functions::is_function(word) || (functions::is_of_complex(word) && self.peek().is("(")) {
            return self.call(token, word);
        }
        let named = self.variable(token, word)?;
        let value = Self::read(named);
        let next = self.peek();
        if next.is("=") || next.is("++") || next.is("--") {
            return Err(next.fault(
                "assignments are statements, and have no value; write this one \
                                   as a statement before",
            ));
        }
        Ok(value)
    }

    fn call(&mut self, token: Token<'t>, name: &str) -> Result<Value, Fault> {
        self.expect("(", "behind the name of a function")?;
        let mut arguments = Vec::new();
        if !self.take_if(")") {
            loop {
                arguments.push(self.expression()?);
                if !self.take_if(",") {
                    break;
                }
            }
            self.expect(")", "behind the arguments of a function")?;
        }
        let value = functions::call(name, &arguments).map_err(|text| token.fault(text))?;
        Self::limited(value, token)
    }

    /// Takes the name of a type, if one stands here.
    pub(super) fn type_name(&mut self) -> Option<Type> {
        let word = |ahead: usize| match self.peek_at(ahead).kind {
            Kind::Word(word) => word,
            _ => "",
        };
        let is_complex = self.peek_at(1).is("<") && self.peek_at(3).is(">");
        let (kind, len) = match [word(0), word(1), word(2), word(3)] {
            ["complex", "", "float", ""] if is_complex => (Type::C32, 4),
            ["complex", "", "double", ""] if is_complex => (Type::C64, 4),
            ["bool", ..] => (Type::Bool, 1),
            ["float", ..] => (Type::F32, 1),
            ["double", ..] => (Type::F64, 1),
            ["int", ..] => (Type::I32, 1),
            ["unsigned", "char", ..] => (Type::U8, 2),
            ["unsigned", "long", "long", "int"] => (Type::U64, 4),
            ["unsigned", "long", "long", _] => (Type::U64, 3),
            ["unsigned", "int", ..] => (Type::U32, 2),
            ["unsigned", "long" | "short", ..] => return None,
            ["unsigned", ..] => (Type::U32, 1),
            ["long", "long", "int", _] => (Type::I64, 3),
            ["long", "long", ..] => (Type::I64, 2),
            _ => return None,
        };
        for _ in 0..len {
            self.take();
        }
        Some(kind)
    }
}

/// An operator without floats, or without complex numbers. `or` adds to what floats take instead.
pub(super) fn no_operation(
    token: Token<'_>,
    operator: &str,
    operands: [&Value; 2],
    or: &str,
) -> Fault {
    if operands.iter().any(|operand| operand.kind.is_complex()) {
        return token.fault(format!(
            "`{operator}` has no complex numbers; take `re(..)`, `im(..)` or `abs(..)` of them"
        ));
    }
    token.fault(format!("`{operator}` has no floats; convert them: `(int)x`{or}"))
}

/// The binary operator that a token is, and its rank.
fn operator_of(token: Token<'_>) -> Option<(&'static str, usize)> {
    let ranked = RANKS
        .iter()
        .zip(0..)
        .flat_map(|(operators, rank)| operators.iter().map(move |operator| (*operator, rank)));
    ranked.into_iter().find(|(operator, _)| token.is(operator))
}

/// What to write in place of a token that begins no value.
fn no_value(token: Token<'_>) -> &'static str {
    match token.kind {
        Kind::Symbol("*" | "**") => {
            "there are no pointers here; the name of an array parameter is the value of its element"
        }
        Kind::Symbol("&") => "there are no addresses here; write the name of the variable alone",
        Kind::Symbol("++" | "--") => {
            "assignments are statements, and have no value; write this one as a statement before"
        }
        Kind::Symbol("{" | "}") => "a value is expected here; braces stand around statements only",
        _ => "a value is expected here: a name, a number, a call, or `(`",
    }
}
