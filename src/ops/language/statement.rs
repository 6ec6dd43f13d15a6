//! Reads statements.

use super::expression::no_operation;
use super::names::c_name;
use super::parser::{Named, Parser, Role};
use super::token::{Fault, Kind, Token};
use super::types::Type;
use super::value::Value;

/// Statements in CUDA C.
#[derive(Clone, Debug)]
pub(in crate::ops) struct Statements {
    pub(in crate::ops) c: String,
    /// Whether the time of an element is open.
    pub(in crate::ops) has_loops: bool,
}

/// The operators that compute with a variable's value and assign the result.
const ASSIGNING: [(&str, &str); 10] = [
    ("+=", "+"),
    ("-=", "-"),
    ("*=", "*"),
    ("/=", "/"),
    ("%=", "%"),
    ("&=", "&"),
    ("|=", "|"),
    ("^=", "^"),
    ("<<=", "<<"),
    (">>=", ">>"),
];

/// Whether a token behind the name of a variable makes an assignment of it.
fn assigns(token: Token<'_>) -> bool {
    let is_step = ["=", "++", "--"].into_iter().any(|symbol| token.is(symbol));
    is_step || ASSIGNING.into_iter().any(|(symbol, _)| token.is(symbol))
}

impl<'t> Parser<'t> {
    /// All statements of the text.
    pub(super) fn statements(mut self) -> Result<Statements, Fault> {
        let mut c = String::new();
        while self.peek().kind != Kind::End {
            c.push_str(&self.statement()?);
        }
        let is_left = |named: &&Named<'_>| named.role == Role::Output && !named.is_assigned;
        if let Some(output) = self.names.iter().find(is_left) {
            let name = output.name;
            let text = format!(
                "the output `{name}` is never assigned; write `{name} = ...`, or \
                                make the parameter an `In`"
            );
            return Err(self.peek().fault(text));
        }
        let rounds = if self.has_loops { "unsigned int rounds = 0;\n" } else { "" };
        Ok(Statements { c: format!("{rounds}{c}"), has_loops: self.has_loops })
    }

    fn statement(&mut self) -> Result<String, Fault> {
        self.deeper(Self::one_statement)
    }

    fn one_statement(&mut self) -> Result<String, Fault> {
        let token = self.peek();
        match token.kind {
            Kind::Symbol(";") => {
                self.take();
                return Ok(String::new());
            }
            Kind::Symbol("{") => {
                self.take();
                return self.block();
            }
            Kind::Word("if") => return self.condition(),
            Kind::Word("for") => return self.for_loop(),
            Kind::Word("while") => return self.while_loop(),
            Kind::Word("do") => return self.do_loop(),
            _ => {}
        }
        let c = match token.kind {
            Kind::Word(word @ ("break" | "continue")) => {
                self.take();
                if self.loops == 0 {
                    return Err(token.fault("there is no loop around it; use `if` and `else`"));
                }
                format!("{word};\n")
            }
            _ => self.declaration_or_assignment()?,
        };
        // The text may end without one.
        if self.peek().kind != Kind::End {
            self.expect(";", "behind a statement")?;
        }
        Ok(c)
    }

    /// The statements up to `}`. Names end with them.
    fn block(&mut self) -> Result<String, Fault> {
        let outer = self.names.len();
        let mut c = String::from("{\n");
        while !self.take_if("}") {
            if self.peek().kind == Kind::End {
                return Err(self.peek().fault("a block is not closed; write `}`"));
            }
            c.push_str(&self.statement()?);
        }
        self.names.truncate(outer);
        Ok(c + "}\n")
    }

    /// A statement that depends on a condition, in braces. Names end with it.
    fn body(&mut self) -> Result<String, Fault> {
        let outer = self.names.len();
        if self.peek().kind == Kind::End {
            return Err(self.peek().fault("a statement is expected here"));
        }
        let c = self.statement()?;
        self.names.truncate(outer);
        Ok(format!("{{\n{c}}}\n"))
    }

    fn loop_body(&mut self) -> Result<String, Fault> {
        self.loops += 1;
        self.has_loops = true;
        let c = self.body();
        self.loops -= 1;
        c
    }

    /// A condition in parentheses.
    fn in_parentheses(&mut self, word: &str) -> Result<String, Fault> {
        self.expect("(", &format!("behind `{word}`"))?;
        let value = self.expression()?.to(Type::Bool);
        self.expect(")", "behind the condition")?;
        Ok(Self::limited(value, self.peek())?.c)
    }

    fn condition(&mut self) -> Result<String, Fault> {
        self.take();
        let condition = self.in_parentheses("if")?;
        let then = self.body()?;
        if !self.take_word("else") {
            return Ok(format!("if ({condition}) {then}"));
        }
        Ok(format!("if ({condition}) {then}else {}", self.body()?))
    }

    fn while_loop(&mut self) -> Result<String, Fault> {
        self.take();
        let condition = self.in_parentheses("while")?;
        Ok(format!("while ({condition} && text::go_on(rounds)) {}", self.loop_body()?))
    }

    fn do_loop(&mut self) -> Result<String, Fault> {
        self.take();
        let body = self.loop_body()?;
        if !self.take_word("while") {
            return Err(self.peek().fault("`while` is expected behind the statement of `do`"));
        }
        let condition = self.in_parentheses("while")?;
        if self.peek().kind != Kind::End {
            self.expect(";", "behind a statement")?;
        }
        Ok(format!("do {body}while ({condition} && text::go_on(rounds));\n"))
    }

    fn for_loop(&mut self) -> Result<String, Fault> {
        self.take();
        self.expect("(", "behind `for`")?;
        let outer = self.names.len();
        let first =
            if self.peek().is(";") { String::new() } else { self.declaration_or_assignment()? };
        self.expect(";", "behind the first part of `for`")?;
        let condition = if self.peek().is(";") {
            String::from("true")
        } else {
            Self::limited(self.expression()?.to(Type::Bool), self.peek())?.c
        };
        self.expect(";", "behind the condition of `for`")?;
        let mut steps = Vec::new();
        if !self.peek().is(")") {
            steps.push(self.assignment()?);
            while self.take_if(",") {
                steps.push(self.assignment()?);
            }
        }
        self.expect(")", "behind the last part of `for`")?;
        let body = self.loop_body()?;
        self.names.truncate(outer);
        let steps = steps.join(", ");
        Ok(format!("{{\n{first}for (; {condition} && text::go_on(rounds); {steps}) {body}}}\n"))
    }

    /// A declaration or assignments, without the `;`.
    fn declaration_or_assignment(&mut self) -> Result<String, Fault> {
        let mut is_constant = self.take_word("const");
        let token = self.peek();
        if let Some(kind) = self.type_name() {
            is_constant |= self.take_word("const");
            return self.declaration(kind, is_constant);
        }
        if is_constant {
            return Err(token.fault("a type is expected behind `const`, such as `float`"));
        }
        let mut c = String::new();
        loop {
            c.push_str(&self.assignment()?);
            c.push_str(";\n");
            if !self.take_if(",") {
                return Ok(c);
            }
        }
    }

    /// New variables, each with its first value.
    fn declaration(&mut self, kind: Type, is_constant: bool) -> Result<String, Fault> {
        let mut c = String::new();
        loop {
            let token = self.peek();
            if ["*", "**", "&"].into_iter().any(|symbol| token.is(symbol)) {
                return Err(token.fault("there are no pointers and references; write a name"));
            }
            let name = self.new_name()?;
            self.expect("=", "behind a new variable, which needs a value")?;
            let value = Self::converted(&self.expression()?, kind, token)?;
            let value = Self::limited(value, token)?;
            c.push_str(&format!("{} {} = {};\n", kind.c(), c_name(name), value.c));
            let role = if is_constant { Role::Constant } else { Role::Local };
            self.names.push(Named { name, kind, role, is_half: false, is_assigned: true });
            if !self.take_if(",") {
                return Ok(c);
            }
        }
    }

    /// `name = value` and its like, without the `;`.
    fn assignment(&mut self) -> Result<String, Fault> {
        let steps = ["++", "--"];
        let before = steps.into_iter().find(|step| self.take_if(step));
        let token = self.take();
        let name = match token.kind {
            Kind::Word(name) => name,
            Kind::Symbol("*" | "**") => {
                return Err(token.fault(
                    "there are no pointers here; assign to \
                the name of an output alone, which is the value of its element",
                ));
            }
            _ => return Err(token.fault("a statement is expected here, such as `y = 2 * x`")),
        };
        let next = self.peek();
        let is_known = self.variable(token, name).is_ok();
        if is_known && before.is_none() && !assigns(next) {
            return Err(next.fault("an assignment is expected here, such as `y = 2 * x`"));
        }
        let named = self.variable(token, name)?;
        match named.role {
            Role::Input => {
                return Err(token.fault(
                    "this is an input, which no text changes; make \
                the parameter an `Out` or `InOut`, or use a local variable",
                ));
            }
            Role::Constant => {
                return Err(token.fault(
                    "this is `const`; leave out `const` where \
                it is declared",
                ));
            }
            Role::Output | Role::Local => named.is_assigned = true,
        }
        let named = *named;
        let old = Self::read(&named);
        let value = match before.or_else(|| steps.into_iter().find(|step| self.take_if(step))) {
            Some(step) => Value::binary(&old, &step[..1], &Value::plain("1", Type::I32)),
            None => self.assigned(&old)?,
        };
        // A step of one has no operator without floats.
        let value = value.unwrap_or_else(|| old.clone());
        let value = Self::limited(Self::stored(&named, &value, token)?, token)?;
        Ok(format!("{} = {}", old.c, value.c))
    }

    /// The value as one of the variable's type. What an array keeps of a float is not truncated
    /// unless the text says so, and is rounded once.
    fn stored(named: &Named<'_>, value: &Value, token: Token<'_>) -> Result<Value, Fault> {
        if named.role == Role::Output {
            Self::keeps_fraction(value, named.kind, "the elements of this output are", token)?;
        }
        let converted = Self::converted(value, named.kind, token)?;
        Ok(if named.is_half { value.to_odd() } else { converted })
    }

    /// The value as another type, unless that would drop the imaginary part.
    pub(super) fn converted(value: &Value, kind: Type, token: Token<'_>) -> Result<Value, Fault> {
        let is_dropped = value.kind.is_complex() && !kind.is_complex() && kind != Type::Bool;
        if !is_dropped {
            return Ok(value.to(kind));
        }
        Err(token.fault(format!(
            "no complex number becomes a `{}`; use `re(..)`, `im(..)` or `abs(..)`",
            kind.c()
        )))
    }

    /// Refuses a float that would become an integer.
    pub(super) fn keeps_fraction(
        value: &Value,
        kind: Type,
        what: &str,
        token: Token<'_>,
    ) -> Result<(), Fault> {
        if kind >= Type::F32 || !value.kind.is_float() {
            return Ok(());
        }
        let (kind, float) = (kind.c(), value.kind.c());
        Err(token.fault(format!(
            "{what} `{kind}`, and the value is a `{float}`, which would lose its fraction; convert \
             it: `({kind})(..)` truncates, and `({kind})round(..)` rounds"
        )))
    }

    /// The value behind the operator of an assignment to a variable, which has the value `old`.
    fn assigned(&mut self, old: &Value) -> Result<Option<Value>, Fault> {
        let token = self.take();
        if token.is("=") {
            return self.expression().map(Some);
        }
        let found = ASSIGNING.into_iter().find(|(symbol, _)| token.is(symbol));
        let (_, operator) = found.unwrap_or_else(|| unreachable!("`assigns` has found one"));
        let value = self.expression()?;
        match Value::binary(old, operator, &value) {
            Some(value) => Ok(Some(value)),
            None => Err(no_operation(token, operator, [old, &value], "")),
        }
    }
}
