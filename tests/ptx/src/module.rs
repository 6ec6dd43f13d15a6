//! A module as it is read: functions, variables, instructions.

use std::collections::HashMap;

use crate::Outcome;
use crate::words::{Mode, Opcode, Rounding, Space, Special, Type};

/// Where the memory of a block starts. Its addresses fit in 32 bits, and generic addresses of
/// shared memory are the same.
pub(crate) const SHARED_START: u64 = 0x0100_0000;
/// The shared memory that a block can have.
pub(crate) const SHARED_BYTES_MAX: u64 = 256 << 10;
/// Where the memory of a thread starts: local variables, and what functions are passed.
pub(crate) const STACK_START: u64 = 0x1_0000_0000;
/// The memory that a thread can have.
pub(crate) const STACK_BYTES_MAX: u64 = 64 << 20;
/// Where the parameters of the kernel are.
pub(crate) const PARAMETERS_START: u64 = 0x2_0000_0000;
/// Where variables of the module start.
pub(crate) const VARIABLES_START: u64 = 0x4_0000_0000;
/// The address of the first function. The next one is at the next address.
pub(crate) const FUNCTIONS_START: u64 = 0x3_0000_0000;

#[derive(Default, Debug)]
pub struct Module {
    pub(crate) functions: Vec<Function>,
    pub(crate) names: HashMap<String, usize>,
    pub(crate) variables: Vec<Variable>,
    /// Addresses of variables by name.
    pub(crate) addresses: HashMap<String, u64>,
    /// The bytes of the static shared memory of a block.
    pub(crate) shared_bytes: u64,
}

/// A variable of the module in global or constant memory.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) address: u64,
    pub(crate) contents: Vec<u8>,
    pub(crate) is_constant: bool,
    /// Where addresses of other variables and functions are to be put.
    pub(crate) references: Vec<(usize, String)>,
}

#[derive(Default, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) is_entry: bool,
    pub(crate) is_external: bool,
    pub(crate) code: Vec<Instruction>,
    pub(crate) registers: usize,
    /// The bytes of its variables, and of what it passes to other functions and gets from them.
    pub(crate) frame_bytes: u64,
    /// Of an entry: where they start behind `PARAMETERS_START`. Else: in the frame.
    pub(crate) parameters: Vec<Slot>,
    pub(crate) results: Vec<Slot>,
    /// The lists of targets of `brx.idx`.
    pub(crate) tables: Vec<Vec<usize>>,
}

/// A place for a value.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    pub(crate) offset: u64,
    pub(crate) len_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Instruction {
    pub(crate) opcode: Opcode,
    pub(crate) ty: Type,
    /// The type of the source, where it has one of its own.
    pub(crate) from: Type,
    pub(crate) rounding: Option<Rounding>,
    /// Whether the result is a whole number: `.rni` and its like.
    pub(crate) to_integer: bool,
    pub(crate) space: Option<Space>,
    pub(crate) mode: Option<Mode>,
    pub(crate) second_mode: Option<Mode>,
    pub(crate) hi: bool,
    pub(crate) wide: bool,
    pub(crate) carries: bool,
    pub(crate) flushes: bool,
    pub(crate) saturates: bool,
    pub(crate) is_approximate: bool,
    pub(crate) propagates_nan: bool,
    pub(crate) relu: bool,
    /// The number of elements of a vector.
    pub(crate) vector: usize,
    /// The predicate under which it is executed, and the value that it must have.
    pub(crate) guard: Option<(u32, bool)>,
    pub(crate) operands: Vec<Operand>,
    /// Of a branch: the instruction, or the table, that it goes to.
    pub(crate) target: usize,
    pub(crate) line: usize,
    pub(crate) text: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Operand {
    /// `_`: the result is not used.
    None,
    Register(u32),
    /// `!%p1`
    Not(u32),
    Constant(u64),
    Special(Special),
    /// The address of a variable of the function.
    Frame(u64),
    /// `[%r1+4]`
    Address(Base, i64),
    /// `{%r1, %r2}`
    List(Vec<Self>),
    /// `%p1|%p2`
    Pair(Box<(Self, Self)>),
    /// A name that is looked up when all of the module is read, and what is added.
    Name(String, i64),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    Zero,
    Register(u32),
    Frame,
    Name(String),
}

impl Module {
    /// The position of the kernel of this name.
    pub(crate) fn entry(&self, name: &str) -> Outcome<usize> {
        let index = self.names.get(name).copied();
        let index = index.filter(|index| self.functions[*index].is_entry);
        index.ok_or_else(|| format!("the PTX has no kernel {name:?}"))
    }
}

impl Instruction {
    /// The addition that an atomic one makes.
    pub(crate) fn as_addition(&self) -> Self {
        let (operands, text) = (Vec::new(), self.text.clone());
        Self { opcode: Opcode::Add, mode: None, rounding: None, operands, text, ..*self }
    }

    /// An error that says where it is.
    pub(crate) fn fault(&self, what: &str) -> String {
        format!("{what}: `{}` (line {})", self.text, self.line)
    }

    pub(crate) fn not_supported(&self) -> String {
        self.fault("not supported")
    }
}
