//! What is found in the kernels of a file, and whether it is what their texts state.

use std::collections::HashMap;

use resident::emulation::Finding;
use resident::{CudaSource, Device, Emulation};

use crate::text::{Text, source, texts};
use crate::{elsewhere, known, launch};

/// The findings that a device keeps, at most: with as many it could have dropped one.
const FINDINGS_MAX: usize = 1 << 10;

/// The first finding in each kernel that has one.
#[derive(Debug, Default)]
pub(crate) struct Found(Option<HashMap<String, Finding>>);

impl Found {
    /// The finding in a kernel is such a one. Nothing was found if the kernels did not run.
    pub(crate) fn is(&self, name: &str, is_such: impl FnOnce(&Finding) -> bool) {
        let Self(Some(all)) = self else { return };
        let finding = all.get(name).unwrap_or_else(|| panic!("{name}: nothing is found"));
        assert!(is_such(finding), "{name}: {finding:#?}");
    }

    /// The text of that finding has these words.
    pub(crate) fn says(&self, name: &str, words: &str) {
        self.is(name, |finding| finding.to_string().contains(words));
    }
}

/// Checks all kernels of some texts, which become one source.
pub(crate) fn check_texts(part: &str) -> Found {
    let texts = texts(part);
    if elsewhere::is_asked_for() {
        texts.iter().for_each(elsewhere::visit);
        return Found::default();
    }
    if std::env::var_os("RESIDENT_TEST_PTX").is_some() {
        // Each kernel is compiled for a GPU with what it was recorded with. Those with types, of
        // which there are hundreds, are not recorded.
        let recorded = texts.into_iter().filter(|text| text.parameters.is_none());
        recorded.for_each(|text| drop(check_all(&[text])));
        return Found::default();
    }
    check_all(&texts)
}

fn check_all(texts: &[Text]) -> Found {
    let checks = Checks::new(texts);
    let (mut all, mut wrong) = (HashMap::new(), Vec::new());
    for text in texts {
        for (type_name, variant) in text.variants() {
            match checks.found_in(text, type_name, variant) {
                Ok(found) => {
                    wrong.extend(checks.judge(text, type_name, variant, &found));
                    let name = text.kernel_name(type_name, variant);
                    all.extend(first(&found).map(|finding| (name, finding.clone())));
                }
                Err(fault) => wrong.push(fault),
            }
        }
    }
    assert!(wrong.is_empty(), "{} kernels:\n{}", wrong.len(), wrong.join("\n"));
    Found(Some(all))
}

/// The first error, or the first note.
fn first(found: &[Finding]) -> Option<&Finding> {
    found.iter().find(|one| one.kind.is_error()).or(found.first())
}

/// The kernels of some texts, and the devices that check them.
struct Checks {
    text: String,
    source: CudaSource,
    usual: Device,
    strict: Device,
}

impl Checks {
    fn new(texts: &[Text]) -> Self {
        let text = source(texts);
        let device =
            |is_strict| Device::emulated(Emulation::new().sanitize(true).strict(is_strict));
        Self { source: CudaSource::c(&*text), text, usual: device(false), strict: device(true) }
    }

    /// What a launch finds.
    fn found_in(
        &self,
        text: &Text,
        type_name: &str,
        variant: usize,
    ) -> Result<Vec<Finding>, String> {
        if text.is_strict {
            let usual = self.found_on(&self.usual, text, type_name, variant)?;
            let error = usual.iter().find(|one| one.kind.is_error());
            if let Some(error) = error {
                return Err(format!("{}: not only a strict device finds {error}", text.name));
            }
            return self.found_on(&self.strict, text, type_name, variant);
        }
        self.found_on(&self.usual, text, type_name, variant)
    }

    fn found_on(
        &self,
        device: &Device,
        text: &Text,
        type_name: &str,
        variant: usize,
    ) -> Result<Vec<Finding>, String> {
        let name = text.kernel_name(type_name, variant);
        let log = device.emulation().expect("it is emulated");
        let before = log.findings().len();
        let outcome = launch::launch(device, &self.source, text, type_name, variant);
        let mut found = log.findings();
        assert!(found.len() < FINDINGS_MAX, "the device keeps no more findings");
        let found = found.split_off(before);
        let error = found.iter().find(|one| one.kind.is_error());
        match (outcome, error) {
            (Ok(()), None) => Ok(found),
            (Err(error), Some(finding)) if error.to_string().contains(&finding.to_string()) => {
                Ok(found)
            }
            (outcome, _) => Err(format!("{name}: {outcome:?} where this is found: {found:?}")),
        }
    }

    /// What is wrong with that.
    fn judge(
        &self,
        text: &Text,
        type_name: &str,
        variant: usize,
        found: &[Finding],
    ) -> Option<String> {
        let name = text.kernel_name(type_name, variant);
        let first = first(found);
        let Some(kind) = text.kind(variant) else {
            // With a switch there may be notes, since the switch leaves elements out.
            let wrong = first.filter(|one| text.parameters.is_some() || one.kind.is_error());
            return wrong.map(|finding| format!("{name}: it is correct: {finding}"));
        };
        let line = text.line_in(&self.text);
        let is_there = |finding: &Finding| {
            let number = finding.line.as_ref().map(|line| line.number);
            line.is_none() || number == line
        };
        let is_known = known().iter().any(|(known, _)| *known == name);
        let is_found = first.is_some_and(|finding| finding.kind == kind && is_there(finding));
        match (is_found, is_known) {
            (true, true) => Some(format!("{name}: it is found: remove it from the list")),
            (false, false) => Some(match first {
                None => format!("{name}: nothing is found instead of {kind:?}"),
                Some(found) => {
                    let what = (found.kind, found.line.as_ref().map(|line| line.number));
                    format!("{name}: {what:?} instead of {:?}: {found}", (kind, line))
                }
            }),
            _ => None,
        }
    }
}
