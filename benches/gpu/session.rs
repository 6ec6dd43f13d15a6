//! The state that all rows share: the GPU, the sizes, and the remaining time of a row.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use resident::{Device, DeviceKind, Stream};

use crate::measure::{self, Contender, Measured};
use resident_benches::gpu::fault::Outcome;
use resident_benches::gpu::stand_in;

pub struct Session {
    pub gpu: Device,
    /// Tiny sizes and few runs, which only check that everything works.
    pub is_smoke: bool,
    pub is_stand_in: bool,
    deadline: Cell<Instant>,
    cases_left: Cell<u32>,
    /// The number of unordered accesses per contender, found by the stand-in driver.
    unordered: RefCell<BTreeMap<String, usize>>,
}

impl Session {
    pub fn new(gpu: Device, is_smoke: bool, is_stand_in: bool) -> Self {
        let (deadline, cases_left) = (Cell::new(Instant::now()), Cell::new(1));
        Self { gpu, is_smoke, is_stand_in, deadline, cases_left, unordered: RefCell::default() }
    }

    /// Whether it is an AMD GPU, whose programs by hand call HIP.
    pub fn is_hip(&self) -> bool {
        self.gpu.kind() == DeviceKind::Hip
    }

    /// The programs by hand, for the report.
    pub fn by_hand(&self) -> &'static str {
        if self.is_hip() { "HIP by hand" } else { "cudarc, tracking off" }
    }

    /// A text for NVIDIA GPUs, and one for AMD's.
    pub fn either(&self, cuda: &'static str, hip: &'static str) -> &'static str {
        if self.is_hip() { hip } else { cuda }
    }

    /// Begins a row with this time limit.
    pub fn begin(&self, time: Duration) {
        self.deadline.set(Instant::now() + time);
        self.cases_left.set(1);
    }

    /// Announces how many calls to [`measure`](Self::measure) will follow, so that they share the
    /// remaining time.
    pub fn expect(&self, cases: usize) {
        self.cases_left.set(u32::try_from(cases).unwrap_or(u32::MAX).max(1));
    }

    /// Measures one case within its share of the time.
    pub fn measure(&self, contenders: Vec<Contender<'_>>) -> Vec<Measured> {
        let cases = self.cases_left.get().max(1);
        self.cases_left.set(cases - 1);
        let left = self.deadline.get().saturating_duration_since(Instant::now());
        measure::in_turn(contenders, self.is_smoke, left / cases, |name| self.count_hazards(name))
    }

    /// Adds the hazards found since the last call to this contender's count.
    pub fn count_hazards(&self, name: &str) {
        if self.is_stand_in {
            let count = if self.is_hip() {
                stand_in::take_hazards_of_hip()
            } else {
                stand_in::take_hazards()
            };
            *self.unordered.borrow_mut().entry(name.to_owned()).or_default() += count;
        }
    }

    /// Takes the counts of unordered accesses in the row, by contender. They are empty on a GPU.
    pub fn take_unordered(&self) -> BTreeMap<String, usize> {
        self.unordered.take()
    }

    /// The first size, or the second in a smoke run.
    pub fn size(&self, real: usize, smoke: usize) -> usize {
        if self.is_smoke { smoke } else { real }
    }

    pub fn streams(&self, count: usize) -> Outcome<Vec<Stream>> {
        (0..count).map(|_| Ok(self.gpu.new_stream()?)).collect()
    }

    /// The bytes that a case may use on the device and pinned on the host: an eighth of the free
    /// memory of each, so that other processes are not disturbed.
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
