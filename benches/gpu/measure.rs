//! Medians of runs that alternate between the contenders.

use std::time::{Duration, Instant};

use resident_benches::gpu::fault::{Fault, Outcome};

/// Warm-up runs of each contender.
const WARM_UP: usize = 3;
/// Measured runs of each contender, unless the time limit ends them earlier.
pub const RUNS: usize = 25;
/// With fewer runs than this there is no result.
const RUNS_MIN: usize = 3;
const RUNS_OF_SMOKE: usize = 3;

/// The times of one run in seconds.
#[derive(Clone, Copy, Default, Debug)]
pub struct Took {
    /// Until everything is queued.
    pub queue_s: f64,
    /// Until everything is complete.
    pub finish_s: f64,
    /// Processor time of all threads.
    pub cpu_s: f64,
}

/// One run of a contender, which ends in the state in which it began.
pub type Run<'a> = Box<dyn FnMut() -> Outcome<Took> + 'a>;

/// One of the compared programs.
pub struct Contender<'a> {
    pub name: &'static str,
    /// The run, or the reason why it cannot run here.
    pub run: Outcome<Run<'a>>,
}

impl<'a> Contender<'a> {
    /// `make` does the one-time preparation and returns the run.
    pub fn new(name: &'static str, make: impl FnOnce() -> Outcome<Run<'a>>) -> Self {
        Self { name, run: make() }
    }
}

/// The measurements of one contender.
pub struct Measured {
    pub name: &'static str,
    pub runs: Outcome<Vec<Took>>,
}

/// A median, and the range of the middle half of the runs.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    pub median_s: f64,
    pub quartiles_s: [f64; 2],
    pub runs: usize,
}

impl Measured {
    pub fn figure(&self, part: impl Fn(&Took) -> f64) -> Outcome<Figure> {
        let mut seconds: Vec<f64> =
            self.runs.as_ref().map_err(Clone::clone)?.iter().map(part).collect();
        seconds.sort_by(f64::total_cmp);
        let at = |share: usize| seconds[(seconds.len() - 1) * share / 4];
        Ok(Figure { median_s: at(2), quartiles_s: [at(1), at(3)], runs: seconds.len() })
    }
}

/// Runs the contenders alternately until there are enough runs or `time` is over. Each round starts
/// with another contender. A contender that fails is dropped. `after_run` is called after each run.
pub fn in_turn(
    contenders: Vec<Contender<'_>>,
    is_smoke: bool,
    time: Duration,
    mut after_run: impl FnMut(&str),
) -> Vec<Measured> {
    let (started, wanted) = (Instant::now(), if is_smoke { RUNS_OF_SMOKE } else { RUNS });
    let mut contenders = contenders;
    let mut runs: Vec<Vec<Took>> = contenders.iter().map(|_| Vec::with_capacity(wanted)).collect();
    for round in 0..WARM_UP + wanted {
        let warm = round.saturating_sub(WARM_UP);
        if warm >= RUNS_MIN && started.elapsed() > time {
            break;
        }
        // The warm-up takes at most a third of the time.
        if round < WARM_UP && round > 0 && started.elapsed() > time / 3 {
            continue;
        }
        for turn in 0..contenders.len() {
            let index = (turn + round) % contenders.len();
            let Ok(run) = &mut contenders[index].run else { continue };
            let outcome = run();
            after_run(contenders[index].name);
            match outcome {
                Ok(took) if round >= WARM_UP => runs[index].push(took),
                Ok(_) => {}
                Err(fault) => contenders[index].run = Err(fault),
            }
        }
    }
    let measured = |(contender, runs): (Contender<'_>, Vec<Took>)| Measured {
        name: contender.name,
        runs: contender.run.map(|_| runs),
    };
    contenders.into_iter().zip(runs).map(measured).collect()
}

/// Measures the time of `queue`, and the time of `queue` and `finish` together.
pub fn timed(queue: impl FnOnce() -> Outcome, finish: impl FnOnce() -> Outcome) -> Outcome<Took> {
    let cpu_started_s = cpu_seconds()?;
    let started = Instant::now();
    queue()?;
    let queue_s = started.elapsed().as_secs_f64();
    finish()?;
    let finish_s = started.elapsed().as_secs_f64();
    Ok(Took { queue_s, finish_s, cpu_s: cpu_seconds()? - cpu_started_s })
}

/// Like [`timed`] for repeated work; returns the mean per repetition.
pub fn timed_each(
    count: usize,
    mut work: impl FnMut() -> Outcome,
    finish: impl FnOnce() -> Outcome,
) -> Outcome<Took> {
    let all = timed(|| (0..count).try_for_each(|_| work()), finish)?;
    let share = |seconds: f64| seconds / count as f64;
    Ok(Took { queue_s: share(all.queue_s), finish_s: share(all.finish_s), cpu_s: share(all.cpu_s) })
}

/// The processor time of the process, all threads together.
#[cfg(target_os = "linux")]
fn cpu_seconds() -> Outcome<f64> {
    use std::ffi::{c_int, c_long};

    #[repr(C)]
    struct Time {
        seconds: c_long,
        nanoseconds: c_long,
    }
    const CLOCK_PROCESS_CPUTIME_ID: c_int = 2;
    // `clock_gettime` is in the C library, which std links.
    unsafe extern "C" {
        fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    }
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: the call writes one `timespec`, which is two `long`s on Linux.
    let code = unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    if code == 0 {
        Ok(time.seconds as f64 + time.nanoseconds as f64 / 1e9)
    } else {
        Err(Fault::new("the processor time is unknown"))
    }
}

/// Unknown on other systems.
#[cfg(not(target_os = "linux"))]
fn cpu_seconds() -> Outcome<f64> {
    Ok(0.0)
}
