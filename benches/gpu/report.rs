//! The report: comparisons of two medians, and other facts, as Markdown tables and as JSON.

use crate::measure::Figure;
use resident_benches::gpu::fault::Outcome;

/// The report shows the number of runs if there are fewer than this.
const RUNS_SHOWN: usize = 20;

/// The target of a comparison.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// No target.
    None,
    /// At most this multiple of the competitor's time.
    Ratio(f64),
    /// At most this multiple of the competitor's time, or this many seconds more.
    RatioOrMore(f64, f64),
    /// At most this many seconds more than the competitor's time.
    More(f64),
    /// At least this fraction of the competitor's speed.
    Speed(f64),
    /// Faster than theirs.
    Faster,
}

/// A comparison of our time with a competitor's.
pub struct Comparison {
    pub work: String,
    pub against: String,
    /// The bytes that one run copies, if the speed is of interest.
    pub len_bytes: Option<u64>,
    pub ours: Outcome<Figure>,
    pub theirs: Outcome<Figure>,
    pub target: Target,
}

/// A result that is not a comparison.
pub struct Fact {
    pub work: String,
    pub value: String,
    /// Whether the result is as required; `None` if the row requires none.
    pub holds: Option<bool>,
}

/// The results of one row.
#[derive(Default)]
pub struct Report {
    /// Whether sizes are tiny and runs few: the table then lists what ran, without figures.
    pub is_smoke: bool,
    pub comparisons: Vec<Comparison>,
    pub facts: Vec<Fact>,
}

impl Target {
    fn text(self) -> String {
        match self {
            Self::None => String::new(),
            Self::Ratio(most) => format!("≤ {most:.2}×"),
            Self::RatioOrMore(most, more_s) => format!("≤ {most:.2}× or + {}", seconds(more_s)),
            Self::More(more_s) => format!("≤ + {}", seconds(more_s)),
            Self::Speed(least) => format!("≥ {least:.2} of the speed"),
            Self::Faster => "faster".to_owned(),
        }
    }

    fn is_met(self, ours_s: f64, theirs_s: f64) -> Option<bool> {
        match self {
            Self::None => None,
            Self::Ratio(most) => Some(ours_s <= most * theirs_s),
            Self::RatioOrMore(most, more_s) => {
                Some(ours_s <= most * theirs_s || ours_s <= theirs_s + more_s)
            }
            Self::More(more_s) => Some(ours_s <= theirs_s + more_s),
            Self::Speed(least) => Some(theirs_s / ours_s >= least),
            Self::Faster => Some(ours_s < theirs_s),
        }
    }
}

impl Comparison {
    fn ratio(&self) -> Option<f64> {
        let (ours, theirs) = (self.ours.as_ref().ok()?, self.theirs.as_ref().ok()?);
        Some(ours.median_s / theirs.median_s)
    }

    fn is_met(&self) -> Option<bool> {
        let (ours, theirs) = (self.ours.as_ref().ok()?, self.theirs.as_ref().ok()?);
        self.target.is_met(ours.median_s, theirs.median_s)
    }

    fn markdown(&self, is_smoke: bool) -> String {
        let figure = |figure: &Outcome<Figure>| match figure {
            Ok(Figure { runs, .. }) if is_smoke => format!("ran {runs} times"),
            Ok(Figure { median_s, runs, .. }) => {
                seconds(*median_s) + &self.speed(*median_s) + &few(*runs)
            }
            Err(fault) => format!("not measured: {}", cell(fault)),
        };
        let ratio = self.ratio().filter(|_| !is_smoke).map(|ratio| format!("{ratio:.3}"));
        let is_met = met(self.is_met().filter(|_| !is_smoke));
        let (work, against) = (cell(&self.work), cell(&self.against));
        let figures = [&self.ours, &self.theirs].map(figure).join(" | ");
        let (ratio, target) = (ratio.unwrap_or_default(), self.target.text());
        format!("| {work} | {against} | {figures} | {ratio} | {target} | {is_met} |")
    }

    fn speed(&self, median_s: f64) -> String {
        self.len_bytes
            .map(|len_bytes| format!(", {:.2} GB/s", len_bytes as f64 / median_s / 1e9))
            .unwrap_or_default()
    }

    fn json(&self) -> String {
        let mut object = Object::default();
        object.text("work", &self.work);
        object.text("against", &self.against);
        object.raw("bytes", &or_null(self.len_bytes));
        object.raw("ours", &figure_json(&self.ours));
        object.raw("theirs", &figure_json(&self.theirs));
        object.raw("ratio", &or_null(self.ratio().map(|ratio| format!("{ratio:.5}"))));
        object.text("target", &self.target.text());
        object.raw("met", &or_null(self.is_met()));
        object.end()
    }
}

impl Report {
    /// Adds a comparison of two figures.
    pub fn compare(
        &mut self,
        work: impl Into<String>,
        against: impl Into<String>,
        [ours, theirs]: [Outcome<Figure>; 2],
        target: Target,
    ) -> &mut Comparison {
        let (work, against) = (work.into(), against.into());
        let comparison = Comparison { work, against, len_bytes: None, ours, theirs, target };
        self.comparisons.push(comparison);
        self.comparisons.last_mut().expect("it was just added")
    }

    pub fn add_fact(
        &mut self,
        work: impl Into<String>,
        value: impl Into<String>,
        holds: Option<bool>,
    ) {
        self.facts.push(Fact { work: work.into(), value: value.into(), holds });
    }

    /// Whether this library could not be measured, or a result is not as required. A missed target
    /// is not a failure.
    pub fn has_failed(&self) -> bool {
        self.comparisons.iter().any(|line| line.ours.is_err())
            || self.facts.iter().any(|fact| fact.holds == Some(false))
    }

    pub fn markdown(&self, name: &str, about: &str) -> String {
        let mut text = format!("### {name}\n\n{about}\n\n");
        if !self.comparisons.is_empty() {
            text += "| work | against | ours | theirs | ours / theirs | target | met \
                |\n|---|---|---|---|---|---|---|\n";
            text.extend(self.comparisons.iter().map(|line| line.markdown(self.is_smoke) + "\n"));
            text.push('\n');
        }
        if !self.facts.is_empty() {
            text += "| other results | | as required |\n|---|---|---|\n";
            text.extend(self.facts.iter().map(|Fact { work, value, holds }| {
                format!("| {} | {} | {} |\n", cell(work), cell(value), met(*holds))
            }));
            text.push('\n');
        }
        text
    }

    pub fn json(&self, name: &str) -> String {
        let fact = |fact: &Fact| {
            let mut object = Object::default();
            object.text("work", &fact.work);
            object.text("value", &fact.value);
            object.raw("holds", &or_null(fact.holds));
            object.end()
        };
        let mut object = Object::default();
        object.text("row", name);
        object.raw("lines", &list(self.comparisons.iter().map(Comparison::json)));
        object.raw("facts", &list(self.facts.iter().map(fact)));
        object.end()
    }
}

/// The number of runs, if the time limit ended them early.
fn few(runs: usize) -> String {
    if runs < RUNS_SHOWN { format!(" ({runs} runs)") } else { String::new() }
}

/// Formats seconds with a suitable unit.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}

fn met(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "",
    }
}

fn cell(text: impl ToString) -> String {
    text.to_string().replace('|', "\\|")
}

fn or_null<T: ToString>(value: Option<T>) -> String {
    value.map_or("null".to_owned(), |value| value.to_string())
}

fn figure_json(figure: &Outcome<Figure>) -> String {
    let mut object = Object::default();
    match figure {
        Ok(Figure { median_s, quartiles_s: [lower_s, upper_s], runs }) => {
            object.raw("median_s", &format!("{median_s:e}"));
            object.raw("quartiles_s", &format!("[{lower_s:e},{upper_s:e}]"));
            object.raw("runs", &runs.to_string());
        }
        Err(fault) => object.text("not_measured", &fault.to_string()),
    }
    object.end()
}

/// A JSON list.
pub fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A JSON object that is written field by field.
#[derive(Default)]
pub struct Object(String);

impl Object {
    pub fn text(&mut self, name: &str, value: &str) {
        let mut quoted = String::from("\"");
        for character in value.chars() {
            match character {
                '"' | '\\' => quoted.extend(['\\', character]),
                character if character.is_control() => quoted.push(' '),
                character => quoted.push(character),
            }
        }
        quoted.push('"');
        self.raw(name, &quoted);
    }

    pub fn raw(&mut self, name: &str, value: &str) {
        let comma = if self.0.is_empty() { "" } else { "," };
        self.0 += &format!("{comma}\"{name}\":{value}");
    }

    pub fn end(self) -> String {
        format!("{{{}}}", self.0)
    }
}
