//! Programs: their sources and compiled code.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::kernels;
use crate::options::{Code, HostOptions, Options};
use resident_backend::{self, CudaSource};
use resident_code::cache::DiskCache;
use resident_host_code::compiler::Compiler;
use resident_host_code::translation::{Checks, Translation};
use resident_stand_in_code::library::{CodeLibrary, Kernel};

/// The error of a compilation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    InvalidOption,
    Compilation,
}

/// A program.
#[derive(Debug)]
pub struct Program {
    pub name: String,
    pub text: String,
    pub expressions: Vec<String>,
    pub outcome: Option<Product>,
}

/// The result of a compilation.
#[derive(Debug, Default)]
pub struct Product {
    pub log: String,
    pub code: Option<Code>,
    /// Lowered names by name expression, as C strings.
    pub lowered: HashMap<String, CString>,
}

static COMPILATIONS: AtomicU64 = AtomicU64::new(0);

/// Programs compiled so far.
pub fn compilations() -> u64 {
    COMPILATIONS.load(Ordering::Relaxed)
}

impl Program {
    /// Compiles the program, and stores the log and the result.
    pub fn compile<O: Options>(&mut self, options: &[String]) -> Result<(), Fault> {
        COMPILATIONS.fetch_add(1, Ordering::Relaxed);
        let made = O::read(options)
            .and_then(|options| self.make(&options).map_err(|log| (Fault::Compilation, log)));
        match made {
            Ok(product) => {
                self.outcome = Some(product);
                Ok(())
            }
            Err((fault, log)) => {
                self.outcome = Some(Product { log, ..Product::default() });
                Err(fault)
            }
        }
    }

    fn make(&self, options: &impl Options) -> Result<Product, String> {
        let compiled = self.library(options.for_host());
        let image = compiled.map_err(|log| options.log(&log, &self.name))?;
        let library = CodeLibrary::load(&image)?;
        let code = options.code(&library.kernels, &image)?;
        let lowered = |expression: &String| {
            let named = |kernel: &&Kernel| kernel.name == *expression;
            let kernel =
                library.kernels.iter().rfind(named).ok_or("a kernel that is not listed")?;
            let symbol = CString::new(kernel.symbol.as_str()).map_err(|fault| fault.to_string())?;
            Ok((expression.clone(), symbol))
        };
        let lowered = self.expressions.iter().map(lowered).collect::<Result<_, String>>()?;
        Ok(Product { code: Some(code), lowered, ..Product::default() })
    }

    /// The library that a C++ compiler makes of the source, now or in an earlier run.
    fn library(&self, options: &HostOptions) -> Result<Vec<u8>, String> {
        let compiler = Compiler::find()?;
        let translation =
            Translation::new(&self.translated(options), &self.text(), None, Checks::Off, None)?;
        if !translation.is_self_contained {
            return compiler.compile(&translation);
        }
        let disk = disk();
        let key = [compiler.key(), translation.key()].concat();
        if let Some([library]) = disk.as_ref().and_then(|disk| disk.get(&key)) {
            return Ok(library);
        }
        let library = compiler.compile(&translation)?;
        disk.inspect(|disk| disk.put(&key, &[&library]));
        Ok(library)
    }

    fn translated(&self, options: &HostOptions) -> resident_backend::Program {
        let mut source = CudaSource::c("");
        for (name, value) in &options.macros {
            source = source.define(name.as_str(), value);
        }
        for folder in &options.include_paths {
            source = source.include(folder);
        }
        for option in &options.others {
            source = source.option(option.as_str());
        }
        resident_backend::Program {
            kernel: Arc::from(self.name.as_str()),
            source,
            parameters: Box::default(),
        }
    }

    /// The source with all its kernels listed, line by line as it is.
    fn text(&self) -> String {
        let line = format!("#line 1 \"{}\"", self.name.replace(['"', '\\', '\n'], "_"));
        let listed = |expression: &String| {
            let function = expression.trim().trim_start_matches('&');
            format!("{line}\nRESIDENT_EXPRESSION({expression:?}, {function})\n")
        };
        let expressions: String = self.expressions.iter().map(listed).collect();
        format!(
            "#line 1 \"kernels.hpp\"\n{LIST}{line}\n{}\n{expressions}",
            kernels::with_list(&self.text)
        )
    }
}

/// What stands before each source.
const LIST: &str = include_str!("kernels.hpp");

/// The libraries of earlier runs, beside the program.
fn disk() -> Option<DiskCache> {
    let program = std::env::current_exe().ok()?;
    Some(DiskCache::at(&program.parent()?.join("stand_in_code")))
}
