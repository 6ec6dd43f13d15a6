//! One compilation of a source, behind precompiled headers or behind their text.

use std::ffi::OsString;

use super::advice::{advice, with_source_lines};
use super::compiler::{Compiler, LINKING};
use super::headers::Headers;
use super::launch_bounds;
use super::precompiled::{self, PrecompiledHeader};
use super::refusals::initialisers;
use super::refusals::preprocessed::{self, Preprocessed};
use super::refusals::strictness;
use super::temporary_files::{TemporaryFile, unusable};
use super::translation::{RENAMED, Translation};

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
        let refused = |log: String| self.refusal(&log, translation);
        if translation.is_checked() {
            self.run_checked(&source, &output, &options, refused)?;
        } else {
            self.run(&source, &output, &options, &LINKING).map_err(|fault| fault.text(refused))?;
        }
        let image = std::fs::read(&output.path).map_err(not_used)?;
        if object::File::parse(&*image).is_err() {
            return Err(self.no_code());
        }
        if translation.is_strict() && translation.is_optimised() {
            initialisers::fault(&image, translation.file()).map_or(Ok(()), Err)?;
        }
        Ok(image)
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
        let advice = advice(log, translation.source(), translation.file());
        let advice = advice.map(|advice| format!("{advice}\n")).unwrap_or_default();
        let log = with_source_lines(log, translation.source(), translation.file());
        format!("{advice}{} refuses the source, correct it:\n{log}", self.version)
    }
}
