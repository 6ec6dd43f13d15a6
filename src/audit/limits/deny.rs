//! Rules about copies that the calls of a thread cause by themselves: denied, logged or allowed.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{BitOr, BitOrAssign};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::audit::recording::cause::Cause;
use crate::traffic::Direction;
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::sync::{Mutex, ThreadList};

/// A set of directions of implicit copies, for [`deny`] and [`allow`]. Sets are combined by `|`.
///
/// A copy is *implicit* if the call that needs it does something else: a launch, `host`, `gpu` and
/// their variants, `to_vec`, `Kernel::call`. That depends on the call, never on which copies are up
/// to date. `prefetch`, `copy_from_host` and its kin, `assign`, `get`, `set`, `snapshot_on`,
/// `watch`, `into_array`, `release_on` and `release_host` are explicit: copying is what they are
/// for, and a [`Budget`](crate::audit::Budget) limits them. Scalars, shapes and strides of launches
/// are not copies, and neither is a fill with a constant. Waits are not limited: `try_host`,
/// [`Stream::is_idle`](crate::Stream::is_idle) and
/// [`Event::is_complete`](crate::Event::is_complete) never wait.
///
/// ```
/// use resident::audit::Implicit;
///
/// let across_the_link = Implicit::TO_HOST | Implicit::TO_DEVICE;
/// assert!(Implicit::ALL.contains(across_the_link));
/// assert!(!across_the_link.contains(Implicit::BETWEEN_DEVICES));
/// assert_eq!(across_the_link.to_string(), "TO_HOST | TO_DEVICE");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Implicit(u8);

impl Implicit {
    /// Copies from a device to the host.
    pub const TO_HOST: Self = Self(1);
    /// Copies from the host to a device.
    pub const TO_DEVICE: Self = Self(2);
    /// Copies from one device to another. Devices that cannot access each other exchange contents
    /// through the host: such copies are in all three directions.
    pub const BETWEEN_DEVICES: Self = Self(4);
    /// All copies.
    pub const ALL: Self = Self(7);

    const EACH: [(Self, &'static str); 3] = [
        (Self::TO_HOST, "TO_HOST"),
        (Self::TO_DEVICE, "TO_DEVICE"),
        (Self::BETWEEN_DEVICES, "BETWEEN_DEVICES"),
    ];

    /// Whether all directions of `other` are in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether no direction is in this set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn of(direction: Direction) -> Self {
        match direction {
            Direction::ToHost => Self::TO_HOST,
            Direction::ToDevice => Self::TO_DEVICE,
            Direction::BetweenDevices => Self::BETWEEN_DEVICES,
            // No call sends a message without saying so.
            Direction::Sent | Direction::Received => Self(0),
        }
    }

    /// The set as an expression in Rust.
    pub(crate) fn path(self) -> String {
        match self {
            Self::ALL => "Implicit::ALL".to_owned(),
            _ => format!("Implicit::{}", self.to_string().replace(" | ", " | Implicit::")),
        }
    }

    const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Implicit {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Implicit {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// `TO_HOST | TO_DEVICE`; `nothing` for the empty set.
impl fmt::Display for Implicit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Self::EACH
            .into_iter()
            .filter(|(direction, _)| self.contains(*direction))
            .map(|(_, name)| name)
            .collect();
        f.pad(if names.is_empty() { "nothing" } else { "" })?;
        f.write_str(&names.join(" | "))
    }
}

impl fmt::Debug for Implicit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Implicit({self})")
    }
}

/// What one guard denies or allows.
#[derive(Clone, Copy, Debug)]
struct Rule {
    ticket: u64,
    set: Implicit,
    verdict: Verdict,
}

/// What a rule says of a direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Allow,
    /// With the call that denies.
    Deny(CallSite),
    Log,
}

/// The rules of [`deny_all`], which hold where a thread has none of its own.
static RULES_OF_ALL: Mutex<Vec<Rule>> = Mutex::new(Vec::new());

/// What these rules deny.
static DENIED_TO_ALL: AtomicU8 = AtomicU8::new(0);

thread_local! {
    /// The rules of this thread. The later ones are stronger.
    static RULES: ThreadList<Rule> = const { ThreadList::new() };
    /// What these rules log.
    static LOGGED: Cell<Implicit> = const { Cell::new(Implicit(0)) };
    /// What these rules deny.
    static DENIED: Cell<Implicit> = const { Cell::new(Implicit(0)) };
}

/// Keeps a rule of [`deny`], [`log`] or [`allow`] on this thread until it drops. Guards may be
/// nested, and may drop in any order. If the guard is leaked, the rule stays on its thread.
#[derive(Debug)]
#[must_use = "the rule holds only while this guard lives"]
pub struct ImplicitGuard {
    ticket: u64,
    threads: Threads,
    /// Makes the type not `Send`: a rule belongs to its thread.
    not_send: PhantomData<*const ()>,
}

/// Whose copies a rule is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Threads {
    This,
    All,
}

/// Denies copies that calls of this thread cause without saying so: until the guard drops, a
/// launch, `host`, `gpu` or one of their variants that would have to copy in one of these
/// directions is [`Error::Denied`](crate::Error::Denied), before anything is copied or queued. What
/// is where it is needed can be used, and explicit calls copy as ever; see [`Implicit`].
///
/// This is for loops that must not move data: bring it in before the loop, and let the loop fail
/// at the line that moves something.
///
/// Another thread is not affected, unless it runs in a [`scope`](crate::audit::scope()) that was
/// made under the guard, since it may work for another caller: so what a called function hands to a
/// thread pool of its own is not denied. To deny that too, use [`deny_all`];
/// [`Budget::of_all_threads`](crate::audit::Budget::of_all_threads) counts it.
///
/// ```
/// use resident::{Device, Error, Grid, InOut, Kernel, SmartArray};
/// use resident::audit::{self, Implicit};
///
/// let double = Kernel::<(InOut<f32>,)>::new("double")
///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
/// let _here = Device::cpu().enter();
/// let mut field = SmartArray::from(vec![1.0_f32; 1000]).named("field");
/// field.prefetch(&Device::cpu().stream())?;
///
/// let guard = audit::deny(Implicit::ALL);
/// for _ in 0..10 {
///     double.launch(Grid::cover(1000), (&mut field,))?;      // moves nothing
/// }
/// let Err(error @ Error::Denied { .. }) = field.host() else { panic!("4,000 bytes down") };
/// assert!(error.to_string().contains("4_000 bytes of \"field\""));
/// assert_eq!(field.get(0)?, 1024.0);                         // explicit
/// {
///     let _output = audit::allow(Implicit::TO_HOST);
///     assert_eq!(field.host()?[999], 1024.0);
/// }
/// drop(guard);
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn deny(set: Implicit) -> ImplicitGuard {
    add(set, Verdict::Deny(call_site()))
}

/// As [`deny`], for the calls of all threads: whatever thread a called function hands its work to,
/// the copy is an error there. A thread that has a rule of its own for a direction keeps to that,
/// so an [`allow`] on a thread is stronger. For programs and tests that do nothing else meanwhile.
///
/// ```
/// use resident::{Device, Error, SmartArray, audit::{self, Implicit}};
///
/// let array = SmartArray::from(vec![1_u8; 10]);
/// let on_another_thread = || {
///     let upload = || array.gpu_on(&Device::cpu().stream()).map(drop);
///     std::thread::scope(|threads| threads.spawn(upload).join().expect("no panic"))
/// };
/// let guard = audit::deny_all(Implicit::TO_DEVICE);
/// assert!(matches!(on_another_thread(), Err(Error::Denied { .. })));
/// drop(guard);
/// on_another_thread()?;
/// # Ok::<(), Error>(())
/// ```
#[track_caller]
pub fn deny_all(set: Implicit) -> ImplicitGuard {
    let ticket = next_ticket();
    let verdict = Verdict::Deny(call_site());
    change_rules_of_all(|rules| rules.push(Rule { ticket, set, verdict }));
    ImplicitGuard { ticket, threads: Threads::All, not_send: PhantomData }
}

fn change_rules_of_all(change: impl FnOnce(&mut Vec<Rule>)) {
    let mut rules = RULES_OF_ALL.lock();
    change(&mut rules);
    let denied = rules.iter().fold(Implicit::default(), |all, rule| all | rule.set);
    DENIED_TO_ALL.store(denied.0, Ordering::Relaxed);
}

/// The number of a rule, unique in the process.
fn next_ticket() -> u64 {
    static TICKETS: AtomicU64 = AtomicU64::new(0);
    TICKETS.fetch_add(1, Ordering::Relaxed)
}

/// Allows copies in these directions again, which an earlier [`deny`] on this thread denies or a
/// [`log`] logs, until the guard drops. A later `deny` denies them again.
///
/// ```
/// use resident::{Device, SmartArray, audit::{self, Implicit}};
///
/// let _here = Device::cpu().enter();
/// let _none = audit::deny(Implicit::ALL);
/// let input = SmartArray::from(vec![1_u8; 10]);
/// assert!(input.gpu().is_err());
/// let _uploads = audit::allow(Implicit::TO_DEVICE);
/// assert_eq!(input.gpu()?.len(), 10);
/// # Ok::<(), resident::Error>(())
/// ```
pub fn allow(set: Implicit) -> ImplicitGuard {
    add(set, Verdict::Allow)
}

/// Logs copies in these directions that calls of this thread cause without saying so: each is a
/// `tracing` event of level `WARN`, target `resident::implicit`, with the fields `direction`,
/// `bytes`, `array`, `cause` and `site`, besides its event of level `DEBUG`. For programs that
/// cannot do without some of the copies yet. Another rule of [`deny`] or [`allow`] that is made
/// later is stronger, and a [`scope`](crate::audit::scope()) carries this one too.
///
/// ```
/// use resident::{Device, SmartArray, audit::{self, Implicit}};
///
/// let input = SmartArray::from(vec![1_u8; 10]);
/// let guard = audit::log(Implicit::TO_DEVICE);
/// input.gpu_on(&Device::cpu().stream())?;               // is made, and logged
/// drop(guard);
/// # Ok::<(), resident::Error>(())
/// ```
pub fn log(set: Implicit) -> ImplicitGuard {
    add(set, Verdict::Log)
}

fn add(set: Implicit, verdict: Verdict) -> ImplicitGuard {
    let ticket = next_ticket();
    RULES.with(|rules| {
        rules.change(|rules| {
            rules.push(Rule { ticket, set, verdict });
            note(rules);
        });
    });
    ImplicitGuard { ticket, threads: Threads::This, not_send: PhantomData }
}

impl Drop for ImplicitGuard {
    fn drop(&mut self) {
        if self.threads == Threads::All {
            return change_rules_of_all(|rules| rules.retain(|rule| rule.ticket != self.ticket));
        }
        RULES.with(|rules| {
            rules.change(|rules| {
                rules.retain(|rule| rule.ticket != self.ticket);
                note(rules);
            });
        });
    }
}

/// What the rules say of a direction: the last one that names it.
fn named(rules: &[Rule], direction: Implicit) -> Option<Verdict> {
    rules.iter().rev().find(|rule| rule.set.contains(direction)).map(|rule| rule.verdict)
}

fn verdict(rules: &[Rule], direction: Implicit) -> Verdict {
    named(rules, direction).unwrap_or(Verdict::Allow)
}

/// The call that denies a direction; `None` if it is allowed.
fn denier(rules: &[Rule], direction: Implicit) -> Option<CallSite> {
    let own = named(rules, direction);
    match own.or_else(|| named(&RULES_OF_ALL.lock(), direction))? {
        Verdict::Deny(site) => Some(site),
        Verdict::Allow | Verdict::Log => None,
    }
}

/// Notes what this thread denies and logs.
fn note(rules: &[Rule]) {
    let mut denied = Implicit::default();
    let mut logged = Implicit::default();
    for (direction, _) in Implicit::EACH {
        match verdict(rules, direction) {
            Verdict::Allow => {}
            Verdict::Deny(_) => denied |= direction,
            Verdict::Log => logged |= direction,
        }
    }
    DENIED.set(denied);
    LOGGED.set(logged);
}

/// What the rules of a thread say of each direction, for other threads.
#[derive(Clone, Debug)]
pub(in crate::audit) struct Rules([Verdict; 3]);

impl Rules {
    /// Those of this thread.
    pub(in crate::audit) fn current() -> Self {
        let rule =
            |(direction, _)| RULES.with(|rules| rules.read(|rules| verdict(rules, direction)));
        Self(Implicit::EACH.map(rule))
    }

    /// Denies and logs the same on this thread too, until the guards drop.
    pub(in crate::audit) fn enter(&self) -> [Option<ImplicitGuard>; 3] {
        let mut verdicts = self.0.into_iter();
        Implicit::EACH.map(|(direction, _)| {
            let verdict = verdicts.next().filter(|verdict| *verdict != Verdict::Allow)?;
            // What this thread denies stays denied.
            let is_denied = verdict == Verdict::Log && DENIED.get().contains(direction);
            (!is_denied).then(|| add(direction, verdict))
        })
    }
}

/// Whether this thread logs a copy for this cause. May be called with locks held.
#[inline]
pub(in crate::audit) fn is_logged(cause: Cause, direction: Direction) -> bool {
    let is_in = |logged: &Cell<Implicit>| logged.get().contains(Implicit::of(direction));
    cause.is_implicit() && LOGGED.try_with(is_in).unwrap_or(false)
}

/// Whether this thread logs copies. May be called with locks held.
#[inline]
pub(in crate::audit) fn logs_any() -> bool {
    LOGGED.try_with(|logged| !logged.get().is_empty()).unwrap_or(false)
}

/// Whether this thread may deny a copy for this cause. May be called with locks held.
#[inline]
pub(crate) fn may_be_denied(cause: Cause) -> bool {
    cause.is_implicit()
        && (DENIED_TO_ALL.load(Ordering::Relaxed) != 0
            || DENIED.try_with(|denied| !denied.get().is_empty()).unwrap_or(false))
}

/// The call by which this thread denies copies in any of these directions; `None` if it allows
/// them. May be called with locks held.
pub(crate) fn denied_at(directions: Implicit) -> Option<CallSite> {
    RULES.with(|rules| {
        rules.read(|rules| {
            let mut wanted = Implicit::EACH.into_iter().map(|(direction, _)| direction);
            wanted.find_map(|direction| {
                directions.intersects(direction).then(|| denier(rules, direction)).flatten()
            })
        })
    })
}
