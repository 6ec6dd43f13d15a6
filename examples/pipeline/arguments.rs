//! The command line of `pipeline` and `photos`: one input, and options with one value each.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::failure::Failure;
use super::kernels::SIGMA_MAX;

/// The requested action.
pub enum Command {
    Help,
    Run(Arguments),
}

/// The values from the command line, or the defaults.
pub struct Arguments {
    pub input: Option<PathBuf>,
    pub output: Option<PathBuf>,
    /// The page to write of what was copied.
    pub html: Option<PathBuf>,
    pub settings: Settings,
}

/// The width of the blur, and the thresholds for edges.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub sigma: f32,
    pub low: f32,
    pub high: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { sigma: 1.4, low: 0.04, high: 0.1 }
    }
}

/// Parses the words after the program's name.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, Failure> {
    let mut arguments =
        Arguments { input: None, output: None, html: None, settings: Settings::default() };
    let mut words = words.into_iter();
    let mut options_ended = false;
    while let Some(word) = words.next() {
        match word.to_str().filter(|word| !options_ended && word.len() > 1 && word.starts_with('-'))
        {
            Some("-h" | "--help") => return Ok(Command::Help),
            Some("--") => options_ended = true,
            Some(option) => {
                let (name, value) = with_value(option, &mut words)?;
                arguments.set(name, value)?;
            }
            None if arguments.input.is_none() => arguments.input = Some(PathBuf::from(word)),
            None => {
                return Err(refused(format_args!(
                    "only one input is accepted, {} is a second one",
                    word.display()
                )));
            }
        }
    }
    arguments.settings.check()?;
    Ok(Command::Run(arguments))
}

impl Arguments {
    fn set(&mut self, name: &str, value: OsString) -> Result<(), Failure> {
        match name {
            "--output" => self.output = Some(PathBuf::from(value)),
            "--html" => self.html = Some(PathBuf::from(value)),
            "--sigma" => self.settings.sigma = number(name, &value)?,
            "--low" => self.settings.low = number(name, &value)?,
            "--high" => self.settings.high = number(name, &value)?,
            _ => return Err(refused(format_args!("there is no option {name}"))),
        }
        Ok(())
    }
}

impl Settings {
    fn check(&self) -> Result<(), Failure> {
        if !(0.0..=SIGMA_MAX).contains(&self.sigma) {
            return Err(refused(format_args!(
                "--sigma is {}, but must be between 0 and {SIGMA_MAX}",
                self.sigma
            )));
        }
        // The negated form also rejects NaN.
        if !(0.0 <= self.low && self.low <= self.high && self.high.is_finite()) {
            return Err(refused(format_args!(
                "--low is {} and --high is {}, but 0 <= low <= high must hold",
                self.low, self.high
            )));
        }
        Ok(())
    }
}

/// `--name value` or `--name=value`.
fn with_value<'a>(
    option: &'a str,
    words: &mut impl Iterator<Item = OsString>,
) -> Result<(&'a str, OsString), Failure> {
    if let Some((name, value)) = option.split_once('=') {
        return Ok((name, OsString::from(value)));
    }
    match words.next() {
        Some(value) => Ok((option, value)),
        None => Err(refused(format_args!("{option} is not an option, or needs a value"))),
    }
}

fn number(name: &str, value: &OsStr) -> Result<f32, Failure> {
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| refused(format_args!("{name} needs a number, not {}", value.display())))
}

fn refused(message: std::fmt::Arguments<'_>) -> Failure {
    Failure::input(format_args!("{message}; see --help"))
}
