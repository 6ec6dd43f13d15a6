//! What all rows have in common: the GPU, how much may be measured, and what is left of a row's
//! time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use resident::{Device, Stream};

use crate::measure::{self, Contender, Measured};
use resident_benches::gpu::fault::Outcome;
use resident_benches::gpu::stand_in;

pub struct Session {
    pub gpu: Device,
    /// Tiny sizes and few runs: shows that everything works, and measures nothing.
    pub is_smoke: bool,
    pub is_stand_in: bool,
    deadline: Cell<Instant>,
    cases_left: Cell<u32>,
    /// By contender: how much was unordered, as the stand-in driver sees it.
    unordered: RefCell<BTreeMap<String, usize>>,
}

impl Session {
    pub fn new(gpu: Device, is_smoke: bool, is_stand_in: bool) -> Self {
        let (deadline, cases_left) = (Cell::new(Instant::now()), Cell::new(1));
        Self { gpu, is_smoke, is_stand_in, deadline, cases_left, unordered: RefCell::default() }
    }

    /// A row begins, which may take so long.
    pub fn begin(&self, time: Duration) {
        self.deadline.set(Instant::now() + time);
        self.cases_left.set(1);
    }

    /// So many calls of [`measure`](Self::measure) are to come, and share the time that is left.
    pub fn expect(&self, cases: usize) {
        self.cases_left.set(u32::try_from(cases).unwrap_or(u32::MAX).max(1));
    }

    /// Measures one case in its share of the time.
    pub fn measure(&self, contenders: Vec<Contender<'_>>) -> Vec<Measured> {
        let cases = self.cases_left.get().max(1);
        self.cases_left.set(cases - 1);
        let left = self.deadline.get().saturating_duration_since(Instant::now());
        measure::in_turn(contenders, self.is_smoke, left / cases, |name| {
            self.look_for_hazards(name)
        })
    }

    /// What was unordered since the last look is told of this contender.
    pub fn look_for_hazards(&self, name: &str) {
        if self.is_stand_in {
            *self.unordered.borrow_mut().entry(name.to_owned()).or_default() +=
                stand_in::take_hazards();
        }
    }

    /// What was unordered in the row, by contender. Nothing is known of a GPU.
    pub fn take_unordered(&self) -> BTreeMap<String, usize> {
        self.unordered.take()
    }

    /// One of two sizes.
    pub fn size(&self, real: usize, smoke: usize) -> usize {
        if self.is_smoke { smoke } else { real }
    }

    pub fn streams(&self, count: usize) -> Outcome<Vec<Stream>> {
        (0..count).map(|_| Ok(self.gpu.new_stream()?)).collect()
    }

    /// How many bytes a case may take on the device and page-locked on the host, so that it
    /// disturbs nobody: an eighth of what is free there, and here.
    pub fn room_bytes(&self) -> Outcome<u64> {
        let free = self.gpu.capacity()?.free / 8;
        Ok(free.min(host_free_bytes().unwrap_or(8 << 30) / 8))
    }
}

fn host_free_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}
