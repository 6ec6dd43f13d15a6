//! One compilation of a source, behind precompiled headers or behind their text.

use std::ffi::OsString;

use super::advice::{advice, asserted, overloaded, shortened, undefined, with_source_lines};
use super::compiler::{Compiler, LINKING};
use super::contraction::{WITHOUT_VECTORS, alternates};
use super::expanded::Expanded;
use super::gpu_values::{self, implicit};
use super::headers::Headers;
use super::launch_bounds;
use super::precompiled::{self, PrecompiledHeader};
use super::refusals::initialisers;
use super::refusals::preprocessed::{self, Preprocessed};
use super::refusals::strictness;
use super::temporary_files::{TemporaryFile, unusable};
use super::translation::{RENAMED, Translation};
use resident_code::prelude;

/// A source that is compiled, and what for.
struct Job<'t> {
    translation: &'t Translation,
    options: &'t [OsString],
    /// What stands before it: headers that are not precompiled, and more.
    before: String,
    source: TemporaryFile,
    output: TemporaryFile,
}

/// The name of a source whose lines have the numbers that they have in the text for the compiler.
const UNMARKED: &str = "resident-source";

fn not_used(fault: std::io::Error) -> String {
    unusable(&fault.to_string())
}

impl Compiler {
    /// Compiles. The error contains the compiler's log.
    pub fn compile(&self, translation: &Translation) -> Result<Vec<u8>, String> {
        match precompiled::header(self, translation) {
            None => self.compile_behind(None, translation),
            Some(header) => self.compile_behind_either(&header, translation),
        }
    }

    /// Compiles behind precompiled headers or, if they may be the reason why that fails, behind
    /// their text.
    pub(super) fn compile_behind_either(
        &self,
        header: &PrecompiledHeader,
        translation: &Translation,
    ) -> Result<Vec<u8>, String> {
        self.compile_behind(Some(header), translation).or_else(|log| {
            if !header.may_have_caused(&log) {
                return Err(log);
            }
            let compiled = self.compile_behind(None, translation);
            if compiled.is_ok() {
                header.give_up();
            }
            compiled
        })
    }

    /// Compiles behind the headers: precompiled ones, or their text.
    fn compile_behind(
        &self,
        precompiled: Option<&PrecompiledHeader>,
        translation: &Translation,
    ) -> Result<Vec<u8>, String> {
        let (source, output) = (TemporaryFile::new("cpp")?, TemporaryFile::new("so")?);
        let write = || Headers::write(translation.missing_headers());
        let headers = translation.has_headers.then(write).transpose().map_err(not_used)?;
        let folders = headers.iter().flat_map(Headers::options);
        let first = precompiled.into_iter().flat_map(|header| header.options());
        let others = translation.options().iter().cloned();
        let options: Vec<OsString> = first.chain(folders).chain(others).collect();
        let headers = if precompiled.is_some() { "" } else { translation.headers() };
        let before = [headers, &translation.text_before()].concat();
        let job = Job { translation, options: &options, before, source, output };
        let (text, preprocessed) = self.text_with_bounds(&job, headers)?;
        let expanded = preprocessed.as_deref();
        let expanded = expanded.and_then(|text| Expanded::of(text, translation.file()));
        let image = match expanded {
            Some(expanded) => self.compile_expanded(&job, &expanded, &text)?,
            None => self.compile_text(&job, &text, implicit::WARNING)?,
        };
        if object::File::parse(&*image).is_err() {
            return Err(self.no_code());
        }
        if translation.is_strict() && translation.is_optimised() {
            initialisers::fault(&image, translation.file()).map_or(Ok(()), Err)?;
        }
        Ok(image)
    }

    /// The source as it was given, with the launch bounds of its kernels, and what the preprocessor
    /// makes of it. Refuses what NVRTC does.
    fn text_with_bounds(
        &self,
        job: &Job<'_>,
        headers: &str,
    ) -> Result<(String, Option<String>), String> {
        let translation = job.translation;
        let text = [headers, &translation.text(&[])].concat();
        job.source.fill(text.as_bytes())?;
        let Some(preprocessed) = self.preprocessed(job)? else { return Ok((text, None)) };
        if !translation.is_strict() {
            return Ok((text, Some(preprocessed)));
        }
        let found = Preprocessed::of(&preprocessed, translation.file());
        let fault = strictness::fault(&found, translation.options_of_source());
        fault.map_or(Ok(()), Err)?;
        let hidden = launch_bounds::hidden(&found.text);
        let with_bounds = [headers, &translation.text(&hidden)].concat();
        if with_bounds == text {
            return Ok((text, Some(preprocessed)));
        }
        job.source.fill(with_bounds.as_bytes())?;
        Ok((with_bounds, self.preprocessed(job)?))
    }

    /// Compiles a source with a GPU's values. Where the compiler refuses these, it gets those of C
    /// in the lines of the errors, or everywhere. Errors are those of the source as it was given.
    fn compile_expanded(
        &self,
        job: &Job<'_>,
        expanded: &Expanded<'_>,
        given: &str,
    ) -> Result<Vec<u8>, String> {
        let source = expanded.source();
        let changed = gpu_values::with_gpu_values(&source);
        let log = match self.compile_source(job, expanded, &changed) {
            Ok(image) => return Ok(image),
            Err(log) => log,
        };
        let image = self.compile_text(job, given, implicit::WARNING)?;
        let in_part = expanded.without_errors(&changed, &source, &log);
        let compiled = self.compile_source(job, expanded, &in_part);
        Ok(compiled.or_else(|_| self.compile_source(job, expanded, &source)).unwrap_or(image))
    }

    /// Compiles a source whose floats become integers as on a GPU also where only the compiler sees
    /// it.
    fn compile_source(
        &self,
        job: &Job<'_>,
        expanded: &Expanded<'_>,
        source: &str,
    ) -> Result<Vec<u8>, String> {
        let compile = |source: &str, conversions| {
            let text = [&*job.before, &expanded.with(source)].concat();
            self.compile_text(job, &text, conversions)
        };
        let compiled = compile(source, implicit::REFUSED);
        if !compiled.as_ref().is_err_and(|log| implicit::is_refused(log)) {
            return compiled;
        }
        let changed = self.with_conversions(job, expanded, source)?;
        let compiled = changed.and_then(|changed| compile(&changed, implicit::WARNING).ok());
        compiled.map_or_else(|| compile(source, implicit::WARNING), Ok)
    }

    /// Makes code of a text. Implicit conversions of floats are warnings or errors.
    fn compile_text(
        &self,
        job: &Job<'_>,
        text: &str,
        conversions: &str,
    ) -> Result<Vec<u8>, String> {
        job.source.fill(text.as_bytes())?;
        self.compile_file(job, conversions)?;
        std::fs::read(&job.output.path).map_err(not_used)
    }

    /// Makes code of a file.
    fn compile_file(&self, job: &Job<'_>, conversions: &str) -> Result<(), String> {
        let Job { translation, options, source, output, .. } = job;
        let refused = |log: String| match conversions {
            implicit::REFUSED if implicit::is_refused(&log) => log,
            _ => self.refusal(&implicit::without_warnings(&log), translation),
        };
        let constants = match conversions {
            implicit::REFUSED if self.is_gcc() => Some(implicit::REFUSED_BY_GCC),
            implicit::REFUSED if self.is_clang() => Some(implicit::REFUSED_BY_CLANG),
            _ => None,
        };
        let more = [Some(conversions), constants].into_iter().flatten().map(OsString::from);
        let options: Vec<OsString> = options.iter().cloned().chain(more).collect();
        if translation.is_checked() {
            return self.run_checked(source, output, &options, refused);
        }
        let run = |more: &[&str]| {
            let ran = self.run(source, output, &options, &[&LINKING[..], more].concat());
            ran.map(drop).map_err(|fault| fault.text(refused))
        };
        run(&[])?;
        let is_alternating = || std::fs::read(&output.path).is_ok_and(|image| alternates(&image));
        if self.is_gcc() && !translation.contracts() && is_alternating() {
            run(&[WITHOUT_VECTORS])?;
        }
        Ok(())
    }

    /// The source whose floats become integers as on a GPU where only the compiler sees it. `None`
    /// if there is nothing to change.
    fn with_conversions(
        &self,
        job: &Job<'_>,
        expanded: &Expanded<'_>,
        source: &str,
    ) -> Result<Option<String>, String> {
        let before = prelude::from_line_1("", UNMARKED);
        let before = [&*job.before, &before].concat();
        let text = [&*before, &expanded.without_markers(source)].concat();
        job.source.fill(text.as_bytes())?;
        let listing: &[_] =
            if self.is_clang() { &implicit::OPTIONS_OF_CLANG } else { &implicit::OPTIONS_OF_GCC };
        let mut command = self.command();
        command.args(job.options).args(listing).arg(implicit::WARNING).arg(&job.source.path);
        let output = self.output(&mut command)?;
        let listed = String::from_utf8_lossy(&output.stderr);
        let lines_before = before.lines().count();
        let mut operands = implicit::operands(&listed, UNMARKED, lines_before);
        operands.retain(|operand| expanded.is_of_source(operand.line()));
        Ok(implicit::with_operands(source, &operands))
    }

    /// The preprocessed source. If the source does not get so far, the compiler says why later.
    fn preprocessed(&self, job: &Job<'_>) -> Result<Option<String>, String> {
        let mut command = self.command();
        if job.translation.is_checked() {
            command.args(self.checked_options());
        }
        command.arg("-E").args(job.options).arg(preprocessed::OPTION);
        let output = self.output(command.arg(&job.source.path))?;
        let text = || String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(output.status.success().then(text))
    }

    /// What to say of a source that the compiler refuses.
    fn refusal(&self, log: &str, translation: &Translation) -> String {
        let log = &log.replace(RENAMED, "");
        let (source, file) = (translation.source(), translation.file());
        let sentence = asserted(log, source, file).or_else(|| undefined(log, file));
        if let Some(sentence) = sentence.or_else(|| overloaded(log, file)) {
            return sentence;
        }
        let advice = advice(log, source, file);
        let advice = advice.map(|advice| format!("{advice}\n")).unwrap_or_default();
        let start = format!("{advice}{} refuses the source, correct it:\n", self.version);
        let log = with_source_lines(log, source, file);
        start.clone() + &shortened(&log, start.chars().count())
    }
}
