//! The options of `live`.

use std::ffi::OsString;
use std::path::PathBuf;

use resident_example_pipeline::failure::Failure;

pub(crate) const HELP: &str = "\
Computes a wave on a device, and shows it while it runs: the states come down by themselves.

usage: live [--size NUMBER] [--steps NUMBER] [--every NUMBER] [--png FOLDER] [--still]

  --size NUMBER   points along each side, 8 to 8192 [1024]
  --steps NUMBER  steps in all, at most 1000000000 [10000]
  --every NUMBER  steps between two states that are looked at, at least [50]
  --png FOLDER    writes each state that is looked at as a PNG file
  --still         shows only the last picture, nothing that moves

A picture is drawn where stdout is a terminal with colours (not if TERM is \"dumb\" or NO_COLOR is
set). Afterwards the program measures what looking costs. Exits with 1 if the device failed, 2 if
the input cannot be used.";

/// What the user asked for.
pub(crate) struct Arguments {
    pub(crate) size: usize,
    pub(crate) steps: u64,
    pub(crate) every: u64,
    pub(crate) png: Option<PathBuf>,
    pub(crate) is_still: bool,
}

/// `None` asks for the help.
pub(crate) fn parse(words: impl Iterator<Item = OsString>) -> Result<Option<Arguments>, Failure> {
    let mut arguments =
        Arguments { size: 1024, steps: 10_000, every: 50, png: None, is_still: false };
    let mut words = words;
    while let Some(word) = words.next() {
        let name = word.to_string_lossy().into_owned();
        let mut value =
            || words.next().ok_or_else(|| Failure::input(format_args!("{name} needs a value")));
        match name.as_str() {
            "--help" | "-h" => return Ok(None),
            "--still" => arguments.is_still = true,
            "--png" => arguments.png = Some(PathBuf::from(value()?)),
            "--size" => arguments.size = number(&name, &value()?, 8..=8192)? as usize,
            "--steps" => arguments.steps = number(&name, &value()?, 1..=1_000_000_000)?,
            "--every" => arguments.every = number(&name, &value()?, 1..=1_000_000_000)?,
            _ => return Err(Failure::input(format_args!("there is no option {name}; see --help"))),
        }
    }
    Ok(Some(arguments))
}

fn number(
    name: &str,
    value: &OsString,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, Failure> {
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    parsed.filter(|number| range.contains(number)).ok_or_else(|| {
        let (least, most) = range.into_inner();
        Failure::input(format_args!(
            "{name} needs a number from {least} to {most}, not {}; see --help",
            value.display()
        ))
    })
}
