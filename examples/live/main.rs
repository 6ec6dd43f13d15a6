//! A wave that is shown while a device computes it. One thread launches the steps and never copies
//! a byte; another draws the states that come down by themselves (`watch_every`). If drawing is
//! slow, states are skipped, and the computation does not wait.

mod arguments;
mod cost;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use resident::ndarray::Ix2;
use resident::{Watch, WatchState};
use resident_example_pipeline::failure::{Failure, finish};
use resident_example_programs::live::picture;
use resident_example_programs::live::simulation::Simulation;

use arguments::Arguments;

/// The time between two pictures, at least.
const PICTURE_EVERY: Duration = Duration::from_millis(40);

/// Of the steps, this share is used to measure what looking costs.
const MEASURED_SHARE: u64 = 20;

fn main() -> ExitCode {
    let outcome = match arguments::parse(std::env::args_os().skip(1)) {
        Ok(None) => Ok(arguments::HELP.to_owned()),
        Ok(Some(arguments)) => run(&arguments),
        Err(failure) => Err(failure),
    };
    finish("live", outcome)
}

fn run(arguments: &Arguments) -> Result<String, Failure> {
    if let Some(folder) = &arguments.png {
        std::fs::create_dir_all(folder).map_err(|fault| {
            Failure::input(format_args!("cannot make {}: {fault}", folder.display()))
        })?;
    }
    let screen = Screen::open(arguments);
    let mut simulation = Simulation::new(arguments.size)?;
    let live = simulation.watch_every(arguments.every)?;
    let seen = thread::scope(|scope| -> Result<u64, Failure> {
        let bar = &screen.bar;
        let looking = scope.spawn(|| screen.look(live, arguments.png.as_deref()));
        let computed = simulation.run(arguments.steps, |done| bar.set_position(done));
        // The last state is looked at too: the watch ends with its array.
        drop(simulation);
        bar.finish_and_clear();
        let seen = looking.join().map_err(|_| Failure::result("the screen's thread panicked"))?;
        computed?;
        seen
    })?;
    let (size, steps) = (arguments.size, arguments.steps);
    let measured = (steps / MEASURED_SHARE).max(1);
    let cost = cost::measure(size, measured, arguments.every)?;
    Ok(format!("{steps} steps on {size} x {size} points; {seen} states were looked at\n{cost}"))
}

/// Where pictures and progress are shown.
struct Screen {
    bar: ProgressBar,
    /// The terminal, if pictures are to be drawn there.
    terminal: Option<Term>,
    is_still: bool,
}

impl Screen {
    fn open(arguments: &Arguments) -> Self {
        let is_plain = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let has_colours = !is_plain && std::env::var_os("NO_COLOR").is_none();
        let terminal =
            Some(Term::stdout()).filter(|_| has_colours && std::io::stdout().is_terminal());
        // indicatif draws nothing where stderr is no terminal.
        let target = match is_plain || arguments.is_still {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(Some(arguments.steps), target);
        let style = "{bar:30} {pos}/{len} steps, {per_sec}, {eta} left";
        bar.set_style(ProgressStyle::with_template(style).unwrap_or(ProgressStyle::default_bar()));
        Self { bar, terminal, is_still: arguments.is_still }
    }

    /// Shows the states until the array is gone, and returns their number.
    fn look(&self, live: Watch<f32, Ix2>, folder: Option<&Path>) -> Result<u64, Failure> {
        let (mut seen, mut last) = (0, None);
        let mut lines = 0;
        while let Some(state) = live.changed()? {
            seen += 1;
            if let Some(folder) = folder {
                let path = folder.join(format!("{:08}.png", 2 * state.change()));
                picture::write_png(&state, &path).map_err(|fault| {
                    Failure::result(format_args!("cannot write {}: {fault}", path.display()))
                })?;
            }
            if !self.is_still {
                self.draw(&state, &mut lines)?;
                thread::sleep(PICTURE_EVERY);
            }
            last = Some(state);
        }
        match last {
            Some(state) if self.is_still => self.draw(&state, &mut lines)?,
            _ => {}
        }
        Ok(seen)
    }

    /// Draws a picture over the one before, which has so many lines.
    fn draw(&self, state: &WatchState<f32, Ix2>, lines: &mut usize) -> Result<(), Failure> {
        let Some(terminal) = &self.terminal else { return Ok(()) };
        let (rows, columns) = terminal.size();
        let text = picture::text(state, columns.into(), usize::from(rows).saturating_sub(3));
        let drawn = self.bar.suspend(|| {
            terminal.move_cursor_up(*lines)?;
            write!(&mut &*terminal, "{text}")
        });
        *lines = text.lines().count();
        drawn.map_err(|fault| Failure::result(format_args!("cannot draw: {fault}")))
    }
}
