//! What looking costs: the same steps with and without a watch, in turn.

use std::thread;
use std::time::{Duration, Instant};

use resident::Result;
use resident_example_programs::live::simulation::Simulation;

/// Each way is measured so often.
const ROUNDS: usize = 5;

/// The shortest times of the same steps.
pub(crate) struct Cost {
    pub(crate) steps: u64,
    unwatched: Time,
    watched: Time,
    /// The states that were looked at in all rounds.
    states: usize,
}

/// Time on the clock, and time of all processors in this process.
#[derive(Clone, Copy)]
struct Time {
    elapsed: Duration,
    processors: Option<Duration>,
}

/// Measures runs of this many steps.
pub(crate) fn measure(size: usize, steps: u64, every: u64) -> Result<Cost> {
    let mut simulation = Simulation::new(size)?;
    simulation.run(steps.min(10), |_| ())?;
    let (mut unwatched, mut watched, mut states) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        unwatched.push(timed(&mut simulation, steps)?);
        let live = simulation.watch_every(every)?;
        let (time, seen) = thread::scope(|scope| -> Result<_> {
            // The last state is the last look; the end of the run wakes the thread.
            let (ended, has_ended) = std::sync::mpsc::channel::<()>();
            let looking = scope.spawn(move || {
                let mut seen = 0;
                let mut last = 0;
                loop {
                    let is_over = has_ended.recv_timeout(Duration::from_millis(10));
                    if let Some(state) = live.latest().filter(|state| state.change() > last) {
                        last = state.change();
                        seen += 1;
                    }
                    if is_over != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                        return seen;
                    }
                }
            });
            let time = timed(&mut simulation, steps);
            drop(ended);
            Ok((time?, looking.join().unwrap_or(0)))
        })?;
        watched.push(time);
        states += seen;
    }
    Ok(Cost { steps, unwatched: shortest(&unwatched), watched: shortest(&watched), states })
}

fn timed(simulation: &mut Simulation, steps: u64) -> Result<Time> {
    let (start, processors) = (Instant::now(), processor_time());
    simulation.run(steps, |_| ())?;
    let processors = processor_time().zip(processors).map(|(end, start)| end - start);
    Ok(Time { elapsed: start.elapsed(), processors })
}

/// The shortest of each: everything else on the machine only adds to them.
fn shortest(times: &[Time]) -> Time {
    let elapsed = times.iter().map(|time| time.elapsed).min().unwrap_or_default();
    Time { elapsed, processors: times.iter().filter_map(|time| time.processors).min() }
}

#[cfg(unix)]
fn processor_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

#[cfg(not(unix))]
fn processor_time() -> Option<Duration> {
    None
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = |with: Duration, without: Duration| {
            100.0 * (with.as_secs_f64() / without.as_secs_f64().max(f64::MIN_POSITIVE) - 1.0)
        };
        let (with, without) = (self.watched, self.unwatched);
        write!(
            f,
            "{} steps took {:.3?} without a watch and {:.3?} with one: {:+.1} % (shortest of \
             {ROUNDS}, in turn; {} states seen)",
            self.steps,
            without.elapsed,
            with.elapsed,
            share(with.elapsed, without.elapsed),
            self.states
        )?;
        if let (Some(with), Some(without)) = (with.processors, without.processors) {
            let share = share(with, without);
            write!(f, "\nprocessor time {without:.3?} without and {with:.3?} with: {share:+.1} %")?;
        }
        Ok(())
    }
}
