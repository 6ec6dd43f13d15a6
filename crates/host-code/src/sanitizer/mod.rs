//! The checker of kernels: CUDA C is compiled so that it announces each access before it makes it,
//! and the threads of a launch run one after the other.
//!
//! | file | purpose |
//! |---|---|
//! | `access` | one access |
//! | `order`, `shadow`, `area`, `argument` | which accesses are errors. Pure |
//! | `cells` | the memory for what is known of each unit |
//! | `left_out` | what earlier launches did not write |
//! | `launch`, `collected`, `copied` | the check of one launch; its errors, and what is none |
//! | `gaps` | the memory between variables |
//! | `image` | the variables and the lines of a compiled library |
//! | `unset_locals` | what the compiler says of local variables that are read too early |
//! | `parameters` | the names of a kernel's parameters |
//! | `calls`, `calls.hpp`, `hooks.hpp` | what compiled code calls |
//! | `fast_path`, `fast_path.hpp` | the accesses that compiled code checks itself |
//! | `finding`, `totals` | what is reported; how much was checked |

mod access;
mod area;
mod argument;
mod calls;
mod cells;
mod collected;
mod copied;
mod fast_path;
pub(super) mod finding;
pub(super) mod gaps;
mod image;
mod launch;
pub(super) mod left_out;
mod order;
mod parameters;
mod shadow;
pub(super) mod totals;
mod unset_locals;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::c_void;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use self::finding::{Checked, Finding, FindingKind, OtherThread, SourceLine};

use self::argument::ArrayOfLaunch;
use self::calls::{CALLS, Current, Entered};
use self::fast_path::FastPath;
use self::image::{Image, Lines};
pub(super) use self::image::{debug_data, is_own_file};
pub(super) use self::launch::CheckOfBlock;
use self::launch::{LaunchCheck, LaunchOfKernel, Places, Running};
use self::left_out::LeftOut;
pub(super) use self::parameters::ParameterNames;
pub(super) use self::unset_locals::section as section_of_warnings;
use super::block::{BlockRunner, Observer};
use super::meetings::Meeting;
use super::output::{self, LaunchOutput};
use super::runtime::{LaunchParameters, RunBlocks};
use super::thread_memory::ThreadMemory;
use super::waiting;
use super::work::Work;
use resident_backend::ParameterLayout;
use resident_backend::call_site::CallSite;

/// The option with which the headers are those of checked code.
pub(super) const OPTION: &str = "-DRESIDENT_SANITIZE";

/// Before the other headers.
pub(super) const CALLS_HEADER: &str = include_str!("calls.hpp");

/// Behind it.
pub(super) const FAST_PATH_HEADER: &str = include_str!("fast_path.hpp");

/// The functions that checked code calls, which are compiled on their own, behind the two above.
pub(super) const HOOKS: &str = include_str!("hooks.hpp");

/// The number of findings that a device keeps. Further ones are dropped.
const FINDINGS_MAX: usize = 1 << 10;

/// The number of different findings that a device prints.
const PRINTED_MAX: usize = 1 << 8;

/// The findings of one device.
#[derive(Debug, Default)]
pub struct Findings {
    all: Mutex<Vec<Finding>>,
    launches: AtomicU64,
    accesses: AtomicU64,
    left_out: LeftOut,
    /// Whether what current GPUs allow is a finding where older ones, or CUDA's guide, do not.
    is_strict: bool,
    /// What was printed, if findings are to be printed: each once.
    printed: Option<Mutex<HashSet<String>>>,
}

impl Findings {
    /// Those of a strict device.
    pub fn strict() -> Self {
        Self { is_strict: true, ..Self::default() }
    }

    /// Those that are printed to standard error, notes too, unless a listener wants them.
    #[must_use]
    pub fn printed(self) -> Self {
        Self { printed: Some(Mutex::default()), ..self }
    }

    /// How much the device has checked.
    pub fn checked(&self) -> Checked {
        Checked {
            launches: self.launches.load(Ordering::Relaxed),
            accesses: self.accesses.load(Ordering::Relaxed),
        }
    }

    /// What launches on the device left out.
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    pub fn all(&self) -> Vec<Finding> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells the listener of findings, and keeps them. The caller holds no lock, and runs no block.
    fn add(&self, new: &[Finding]) {
        new.iter().filter(|finding| !output::report(finding)).for_each(|one| self.print(one));
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let room = FINDINGS_MAX - all.len();
        all.extend(new.iter().take(room).cloned());
    }

    /// Prints a finding, unless it was printed before or is one of too many.
    fn print(&self, finding: &Finding) {
        let Some(printed) = &self.printed else { return };
        let text = finding.to_string();
        let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.len() < PRINTED_MAX && printed.insert(text.clone()) {
            let kind = if finding.kind.is_error() { "" } else { "note: " };
            // If standard error is closed, there is nowhere to say so.
            let _unwritten = writeln!(io::stderr(), "resident: {kind}{text}");
        }
    }
}

/// `resident_host_sanitize`.
pub(super) type TakeCalls =
    unsafe extern "C" fn(*const c_void, *mut *const c_void, *mut *const c_void, *mut *const c_void);

/// What the check needs of a loaded library.
#[derive(Debug)]
pub(super) struct CheckedLibrary {
    take_calls: TakeCalls,
    /// Held while a launch runs the code, whose indices are variables of the library. Nothing that
    /// a kernel calls waits for a launch (`backend::scope`).
    running: Mutex<()>,
    code: Arc<[u8]>,
    lines: Lines,
    image: Image,
}

impl CheckedLibrary {
    /// `code` is the library of the source `file`, `pointers` are its arrays of dynamic shared
    /// memory.
    pub(super) fn new(
        take_calls: TakeCalls,
        code: &[u8],
        file: &str,
        pointers: &[String],
    ) -> Result<Self, String> {
        let image = Image::read(code, pointers).map_err(|fault| {
            format!("the compiled code cannot be read, as the checker must on Linux: {fault}")
        })?;
        let running = Mutex::new(());
        let code = Arc::from(code);
        let lines = Lines::new(&code, file);
        Ok(Self { take_calls, running, code, lines, image })
    }

    /// The names of a kernel's parameters.
    pub(super) fn parameter_names(&self, kernel: &str) -> ParameterNames {
        ParameterNames::new(&self.code, kernel)
    }

    /// Where the image is, and the variables of this thread of the machine; the fast path.
    fn places(&self) -> (Places, &FastPath) {
        let [mut image, mut anchor, mut path] = [std::ptr::null(); 3];
        let calls = (&raw const CALLS).cast();
        // SAFETY: the library's function has this type (`hooks.hpp`), and writes three pointers.
        unsafe { (self.take_calls)(calls, &raw mut image, &raw mut anchor, &raw mut path) };
        let places = Places {
            image: image.addr(),
            of_thread: anchor.addr() - self.image.anchor,
            dynamic_shared: waiting::dynamic_shared().addr(),
        };
        // SAFETY: it is a variable of the library, which stays loaded as long as this value lives.
        // Compiled code writes it, as cells allow.
        (places, unsafe { &*path.cast::<FastPath>() })
    }
}

/// A launch to be checked.
pub(super) struct CheckedLaunch<'a> {
    pub(super) kernel: &'a Arc<str>,
    pub(super) library: &'a CheckedLibrary,
    pub(super) thread_memory: Option<&'a ThreadMemory>,
    pub(super) parameter_names: &'a ParameterNames,
    pub(super) entry: RunBlocks,
    pub(super) launch: &'a LaunchParameters,
    pub(super) parameters: &'a [ParameterLayout],
    pub(super) words: &'a [u64],
    pub(super) pointers: &'a [*mut u8],
    /// The names of the arrays, if they are known.
    pub(super) array_names: &'a [String],
    /// The line of the launch, if it is known.
    pub(super) site: Option<CallSite>,
}

/// How a checked launch ended.
struct CheckedOutcome {
    /// The error is the first finding that fails the launch, or says why it failed otherwise.
    outcome: Result<(), String>,
    found: Vec<Finding>,
    accesses: u64,
}

impl CheckedLaunch<'_> {
    /// Runs all blocks on this thread, one at a time, and then tells the listener what they
    /// print and what is found: it runs code of the program's, which may wait for another launch of
    /// the same code. The error is the first finding that fails the launch, or says why it failed
    /// otherwise.
    ///
    /// # Safety
    ///
    /// As for [`BlockRunner::new`].
    pub(super) unsafe fn run(&self, findings: &Findings) -> Result<(), String> {
        if self.launch.threads() > order::THREADS_MAX || self.launch.blocks() > order::BLOCKS_MAX {
            return Err(format!(
                "the checker runs at most {} blocks of {} threads; launch a smaller grid",
                order::BLOCKS_MAX,
                order::THREADS_MAX
            ));
        }
        let output = LaunchOutput::of_launch();
        // SAFETY: the caller promises this.
        let ran = unsafe { self.run_alone(output.as_ref(), findings) };
        let CheckedOutcome { outcome, found, accesses } = ran;
        output.into_iter().for_each(LaunchOutput::pass_on);
        totals::add(self.kernel, accesses, &found);
        findings.launches.fetch_add(1, Ordering::Relaxed);
        findings.accesses.fetch_add(accesses, Ordering::Relaxed);
        findings.add(&found);
        outcome
    }

    /// Runs all blocks while no other launch runs the code.
    ///
    /// # Safety
    ///
    /// As for [`BlockRunner::new`].
    unsafe fn run_alone(
        &self,
        output: Option<&LaunchOutput>,
        findings: &Findings,
    ) -> CheckedOutcome {
        // SAFETY: the caller promises this.
        let mut runner = unsafe { BlockRunner::new(self.entry, self.launch) };
        let arrays = ArrayOfLaunch::all(self.parameters, self.words, self.pointers);
        let _alone = self.library.running.lock().unwrap_or_else(PoisonError::into_inner);
        let (places, fast_path) = self.library.places();
        let CheckedLibrary { lines, image, .. } = self.library;
        let of = LaunchOfKernel {
            kernel: self.kernel,
            launch: self.launch,
            lines,
            image,
            parameters: self.parameter_names,
            layouts: self.parameters,
            array_names: self.array_names,
            site: self.site,
            left_out: &findings.left_out,
            is_strict: findings.is_strict,
        };
        let check = LaunchCheck::new(of, places, arrays, fast_path);
        let current = Current {
            check: RefCell::new(check),
            progress: runner.progress(),
            finding: Cell::new(None),
        };
        // SAFETY: `current` and `runner`, which keeps the progress in a box, drop after this value.
        let entered = unsafe { Entered::new(&current) };
        let runner = runner.observed_by(&current).in_turns(self.thread_memory).printing_to(output);
        let outcome = runner.run(&Work::new(self.launch.blocks(), 1, self.launch.threads()));
        drop(entered);
        current.outcome(outcome)
    }
}

impl Current<'_> {
    /// The outcome of a launch, with what was found in it.
    fn outcome(&self, outcome: Result<(), String>) -> CheckedOutcome {
        let accesses = self.check.borrow().accesses();
        let mut found = self.check.borrow_mut().errors();
        let is_stopped = self.check.borrow().has_stopped_threads();
        let last = self.finding.take().filter(|_| !is_stopped);
        if let Some(last) = last.filter(|last| !found.contains(last)) {
            found.push(*last);
        }
        if found.is_empty() && outcome.is_ok() {
            self.check.borrow().tell_left_out();
        } else {
            self.check.borrow().forget_left_out();
        }
        match (found.first(), &outcome) {
            (None, Ok(())) => found = self.check.borrow().notes(),
            (None, Err(_)) => {}
            (Some(first), _) => {
                let outcome = Err(format!("{first}{}", Others(found.len() - 1)));
                return CheckedOutcome { outcome, found, accesses };
            }
        }
        CheckedOutcome { outcome, found, accesses }
    }
}

/// So many further findings, behind the text of the first.
struct Others(usize);

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => f.write_str(". The launch has one more finding"),
            others => write!(f, ". The launch has {others} more findings"),
        }
    }
}

impl Observer for Current<'_> {
    fn set_aside(&self) -> CheckOfBlock {
        self.check.borrow_mut().exchange_block(CheckOfBlock::default())
    }

    fn bring_back(&self, of_block: CheckOfBlock) {
        self.check.borrow_mut().exchange_block(of_block);
    }

    fn pass_barrier(&self, block: u64) {
        self.check.borrow_mut().pass_barrier(block);
    }

    fn pass_meeting(&self, block: u64, meeting: &Meeting) {
        let mut check = self.check.borrow_mut();
        if meeting.is_barrier {
            check.pass_warp_barrier(block, meeting.warp, meeting.came);
        }
        check.judge_meeting(block, meeting);
    }

    fn judge_stuck(&self, block: u64, waiting: u32, code: usize, missing: u32) -> Option<String> {
        let me = Running { block, thread: waiting, stack: (0, 0) };
        let finding = self.check.borrow().missed_barrier(me, code, missing);
        let text = finding.to_string();
        self.finding.set(Some(finding));
        Some(text)
    }

    fn judge_barrier(&self, block: u64, waiting: &[(u32, usize)], threads: u32) -> Option<String> {
        let check = self.check.borrow();
        let &(first, code) = waiting.first()?;
        let is_missing = |thread: &u32| {
            let is_there = waiting.binary_search_by_key(thread, |one| one.0).is_ok();
            !is_there && !check.is_excused(*thread)
        };
        let elsewhere = || {
            let differs = |(_, other): &&(u32, usize)| !check.lines().is_one_place(code, *other);
            waiting.iter().find(differs).map(|(thread, code)| (*thread, Some(*code)))
        };
        let missing = (0..threads).find(is_missing).map(|thread| (thread, None));
        let (other, other_code) = missing.or_else(elsewhere)?;
        let me = Running { block, thread: first, stack: (0, 0) };
        let mut finding = check.missed_barrier(me, code, other);
        finding.other_line = other_code.and_then(|code| check.lines().at(code));
        let text = finding.to_string();
        self.finding.set(Some(finding));
        Some(text)
    }
}
