//! One compilation of a source, behind precompiled headers or behind their text.

use std::ffi::OsString;

use super::advice::{
    advice, asserted, lines_of_errors, overloaded, shortened, undefined, with_source_lines,
};
use super::compiler::{Compiler, LINKING};
use super::contraction::{WITHOUT_VECTORS, alternates};
use super::gpu_values::implicit;
use super::headers::Headers;
use super::launch_bounds;
use super::precompiled::{self, PrecompiledHeader};
use super::refusals::initialisers;
use super::refusals::preprocessed::{self, Preprocessed};
use super::refusals::strictness;
use super::temporary_files::{TemporaryFile, unusable};
use super::translation::{self, RENAMED, Translation};

impl Compiler {
    /// Compiles. The error contains the compiler's log. Where the compiler refuses a source with a
    /// GPU's operators, it gets those of C, in the lines of the errors or everywhere: so the log
    /// shows the source's own text.
    pub fn compile(&self, translation: &Translation) -> Result<Vec<u8>, String> {
        let in_part = |log: String| {
            let lines = lines_of_errors(&log, translation.file());
            translation.without_gpu_values_in(&lines).map_or(Err(log), |it| self.compile_once(&it))
        };
        let everywhere = |log| {
            translation.without_gpu_values().map_or(Err(log), |plain| self.compile_once(&plain))
        };
        self.compile_once(translation).or_else(in_part).or_else(everywhere)
    }

    fn compile_once(&self, translation: &Translation) -> Result<Vec<u8>, String> {
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
        let not_used = |fault: std::io::Error| unusable(&fault.to_string());
        let source = TemporaryFile::new("cpp")?;
        let output = TemporaryFile::new("so")?;
        let before = if precompiled.is_some() { "" } else { translation.headers() };
        let fill =
            |hidden: &[_]| source.fill([before, &translation.text(hidden)].concat().as_bytes());
        fill(&[])?;
        let write = || Headers::write(translation.missing_headers());
        let headers = translation.has_headers.then(write).transpose().map_err(not_used)?;
        let folders = headers.iter().flat_map(Headers::options);
        let first = precompiled.into_iter().flat_map(|header| header.options());
        let others = translation.options().iter().cloned();
        let options: Vec<OsString> = first.chain(folders).chain(others).collect();
        if translation.is_strict()
            && let Some(preprocessed) = self.preprocessed(&source, &options, translation)?
        {
            let fault = strictness::fault(&preprocessed, translation.options_of_source());
            fault.map_or(Ok(()), Err)?;
            let hidden = launch_bounds::hidden(&preprocessed.text);
            if !hidden.is_empty() {
                fill(&hidden)?;
            }
        }
        let log = self.compile_file(&source, &output, &options, translation)?;
        let mut image = std::fs::read(&output.path).map_err(not_used)?;
        if implicit::is_warned(&log, translation.file())
            && self.show_conversions(&source, &options, translation)?
            && self.compile_file(&source, &output, &options, translation).is_ok()
        {
            image = std::fs::read(&output.path).map_err(not_used)?;
        }
        if object::File::parse(&*image).is_err() {
            return Err(self.no_code());
        }
        if translation.is_strict() && translation.is_optimised() {
            initialisers::fault(&image, translation.file()).map_or(Ok(()), Err)?;
        }
        Ok(image)
    }

    /// Makes code of a file. Returns the compiler's log.
    fn compile_file(
        &self,
        source: &TemporaryFile,
        output: &TemporaryFile,
        options: &[OsString],
        translation: &Translation,
    ) -> Result<String, String> {
        let refused = |log: String| self.refusal(&implicit::without_warnings(&log), translation);
        if translation.is_checked() {
            return self.run_checked(source, output, options, refused);
        }
        let more = [&[implicit::WARNING], &LINKING[..]].concat();
        let run = |more: &[&str]| {
            self.run(source, output, options, more).map_err(|fault| fault.text(refused))
        };
        let log = run(&more)?;
        let is_alternating = || std::fs::read(&output.path).is_ok_and(|image| alternates(&image));
        if self.is_gcc() && !translation.contracts() && is_alternating() {
            run(&[&more[..], &[WITHOUT_VECTORS]].concat())?;
        }
        Ok(log)
    }

    /// Fills the file with a source whose floats become integers as on a GPU also where only the
    /// compiler sees it. Returns whether there are such.
    fn show_conversions(
        &self,
        source: &TemporaryFile,
        options: &[OsString],
        translation: &Translation,
    ) -> Result<bool, String> {
        let listing: &[_] =
            if self.is_clang() { &implicit::OPTIONS_OF_CLANG } else { &implicit::OPTIONS_OF_GCC };
        let mut command = self.command();
        command.args(options).args(listing).arg(implicit::WARNING).arg(&source.path);
        let output = self.output(&mut command)?;
        let listed = String::from_utf8_lossy(&output.stderr);
        let text = std::fs::read_to_string(&source.path);
        let text = text.map_err(|fault| unusable(&fault.to_string()))?;
        let Some([before, own, behind]) = translation::parts(&text) else { return Ok(false) };
        let lines_before = before.lines().count();
        let operands = implicit::operands(&listed, translation.file(), lines_before);
        match implicit::with_operands(own, &operands) {
            Some(own) => source.fill([before, &own, behind].concat().as_bytes()).map(|()| true),
            None => Ok(false),
        }
    }

    /// The preprocessed source. If the source does not get so far, the compiler says why later.
    fn preprocessed(
        &self,
        source: &TemporaryFile,
        options: &[OsString],
        translation: &Translation,
    ) -> Result<Option<Preprocessed>, String> {
        let mut command = self.command();
        if translation.is_checked() {
            command.args(self.checked_options());
        }
        command.arg("-E").args(options).arg(preprocessed::OPTION);
        let output = self.output(command.arg(&source.path))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let is_whole = output.status.success();
        Ok(is_whole.then(|| Preprocessed::of(&text, translation.file())))
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
