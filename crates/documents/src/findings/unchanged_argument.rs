//! Arguments that kernels declare as `InOut` and never change.

use std::collections::BTreeMap;

use super::replay::{Parameter, Replay, Saved};
use super::step::Launched;
use super::symbols::Symbols;
use super::tally::{Sites, Text, finding, quoted};
use crate::document::DocumentFinding;
use crate::totals::grouped;

/// A kernel that was launched fewer times is left alone: it may change the argument another time.
const LAUNCHES_MIN: u64 = 3;

/// So many parameters of kernels are looked at.
const PARAMETERS_MAX: usize = 1 << 12;

/// The launches of a kernel with one of its parameters.
#[derive(Clone, Debug, Default)]
struct Launches {
    count: u64,
    /// Whether a launch changed the argument, or may have.
    is_changed: bool,
    sites: Sites,
    /// What arrays that are not looked at any more would have saved.
    saved: Option<Saved>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Parameters(BTreeMap<Parameter, Launches>);

impl Parameters {
    pub(super) fn add(&mut self, launch: &Launched<'_>, symbols: &mut Symbols) {
        let in_out = launch.arguments.iter().enumerate().filter(|(_, it)| it.access == "in_out");
        for (index, argument) in in_out {
            let parameter = Parameter { kernel: symbols.of(launch.kernel), index };
            if self.0.len() >= PARAMETERS_MAX && !self.0.contains_key(&parameter) {
                continue;
            }
            let launches = self.0.entry(parameter).or_default();
            launches.count += 1;
            launches.is_changed |= argument.changed_bytes != Some(0);
            if !launches.is_changed {
                launches.sites.add(symbols.of(launch.site));
            }
        }
    }

    /// Adds what the uses of an array would have saved.
    pub(super) fn close(&mut self, replay: Replay) {
        for (parameter, saved) in replay.saved() {
            let Some(launches) = self.0.get_mut(&parameter).filter(|it| !it.is_changed) else {
                continue;
            };
            match &mut launches.saved {
                Some(known) => {
                    known.sites.add_all(&saved.sites);
                    known.tally.add(&saved.tally);
                }
                None => launches.saved = Some(saved),
            }
        }
    }

    pub(super) fn findings(&self, symbols: &Symbols) -> Vec<DocumentFinding> {
        let unchanged = self.0.iter().filter(|(_, it)| !it.is_changed && it.count >= LAUNCHES_MIN);
        let of = |(parameter, launches): (&Parameter, &Launches)| {
            let Saved { name, sites, tally } = launches.saved.as_ref()?;
            let mut all = launches.sites.clone();
            all.add_all(sites);
            let message = format!(
                "array argument {} of kernel {} is `InOut`, and {} launches have changed none of \
                 its elements",
                parameter.index,
                quoted(symbols.text(parameter.kernel)),
                grouped(launches.count)
            );
            let change = "Declare it as `In`, if the kernel never changes it: then its other \
                          copies stay valid.";
            let text = Text { kind: "unchanged_argument", message, change };
            Some(finding(symbols.text(*name), text, all.texts(symbols), tally))
        };
        unchanged.filter_map(of).collect()
    }
}
