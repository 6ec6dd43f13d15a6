//! What NVRTC and hiprtc do differently.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use crate::compiler::Fault;
use resident_stand_in_code::library::Kernel;

/// The parsed options of a compilation.
pub trait Options: Sized {
    /// Parses options. An error has the log.
    fn read(options: &[String]) -> Result<Self, (Fault, String)>;

    /// What concerns the compiler for the host.
    fn for_host(&self) -> &HostOptions;

    /// The log of a source with this name, for the log of the C++ compiler.
    fn log(&self, of_compiler: &str, name: &str) -> String;

    /// The code of kernels, and of the library behind them. An error is the log.
    fn code(&self, kernels: &[Kernel], library: &[u8]) -> Result<Code, String>;
}

/// The options that concern the compiler for the host.
#[derive(Debug, Default)]
pub struct HostOptions {
    pub include_paths: Vec<String>,
    pub macros: BTreeMap<String, String>,
    /// Other options, in NVRTC's spelling.
    pub others: Vec<String>,
}

/// What a compilation yields.
#[derive(Debug, Default)]
pub struct Code {
    /// PTX, or a code object.
    pub bytes: Vec<u8>,
    /// Whether the architecture is real, so that there is machine code.
    pub is_real: bool,
}

impl HostOptions {
    /// Adds a macro from `NAME=value` or `NAME`.
    pub fn define(&mut self, text: &str) {
        let (name, value) = text.split_once('=').unwrap_or((text, "1"));
        self.macros.insert(name.trim().to_owned(), value.to_owned());
    }
}

/// The kernels without those that are listed twice: a name expression may name a kernel that is no
/// template.
pub fn without_repetitions(kernels: &[Kernel]) -> impl Iterator<Item = &Kernel> {
    let is_first = |(index, kernel): &(usize, &Kernel)| {
        kernels[..*index].iter().all(|other| other.symbol != kernel.symbol)
    };
    kernels.iter().enumerate().filter(is_first).map(|(_, kernel)| kernel)
}
