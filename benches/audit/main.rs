//! What records cost: launches and copies with no listener, in a capture, and with an attached
//! ledger, in turn: `cargo bench --bench audit`. On a seeded device, on which nothing runs before
//! somebody waits, so that only what queues work is measured. `-- --quick` runs one round.

use std::time::Instant;

use resident::{Device, Emulation, Grid, InOut, Kernel, Result, SmartArray, audit, ndarray::Ix1};

/// Launches or copies of one round.
const COUNT: usize = 1000;

/// What listens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listener {
    Nobody,
    Capture,
    Ledger,
}

/// A device, and what is measured on it.
struct Work {
    device: Device,
    arrays: Vec<SmartArray<f32, Ix1>>,
    kernel: Kernel<(InOut<f32>,)>,
}

impl Work {
    fn new() -> Result<Self> {
        let device = Device::emulated(Emulation::new().seed(1).poison(false));
        let mut arrays: Vec<_> = (0..COUNT).map(|_| SmartArray::from(vec![1.0; 4])).collect();
        for (number, array) in arrays.iter_mut().enumerate() {
            array.set_name(format!("array {number}"));
            array.prefetch(&device.stream())?;
        }
        device.synchronize()?;
        let kernel = Kernel::<(InOut<f32>,)>::new("nothing").host(|_grid, _| ());
        Ok(Self { device, arrays, kernel })
    }

    fn launch(&mut self) -> Result<f64> {
        let stream = self.device.stream();
        let array = &mut self.arrays[0];
        seconds(|| {
            (0..COUNT)
                .try_for_each(|_| self.kernel.launch_on(&stream, Grid::cover(4), (&mut *array,)))
        })
    }

    fn copy(&mut self) -> Result<f64> {
        for array in &mut self.arrays {
            array.host_mut()?[0] += 1.0;
        }
        let stream = self.device.stream();
        seconds(|| self.arrays.iter().try_for_each(|array| array.prefetch(&stream)))
    }

    /// The time of one operation, in nanoseconds.
    fn time(&mut self, listener: Listener, work: fn(&mut Self) -> Result<f64>) -> Result<f64> {
        let taken = match listener {
            Listener::Nobody => work(self)?,
            Listener::Capture => audit::capture(|| work(self)).0?,
            Listener::Ledger => {
                let _ledger = audit::Ledger::attach();
                work(self)?
            }
        };
        self.device.synchronize()?;
        Ok(taken / COUNT as f64 * 1e9)
    }
}

fn main() -> Result<()> {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if is_quick { 1 } else { 301 };
    let mut work = Work::new()?;
    println!("| operation | nobody, ns | capture, ns | ledger, ns | record, ns | target | met |");
    println!("|---|---|---|---|---|---|---|");
    for (name, run, target) in [
        ("launch", Work::launch as fn(&mut Work) -> Result<f64>, 40.0),
        ("copy to a device", Work::copy, 100.0),
    ] {
        let listeners = [Listener::Nobody, Listener::Capture, Listener::Ledger];
        let mut times = listeners.map(|_| Vec::new());
        for round in 0..=rounds {
            for (times, listener) in times.iter_mut().zip(listeners) {
                let taken = work.time(listener, run)?;
                // The first round brings the memory into the state that others find.
                if round > 0 {
                    times.push(taken);
                }
            }
        }
        let [nobody, capture, ledger] = times.map(median);
        let record = capture - nobody;
        let met = if record <= target { "yes" } else { "**no**" };
        println!(
            "| {name} | {nobody:.0} | {capture:.0} | {ledger:.0} | {record:.0} | ≤ {target} | {met} |"
        );
    }
    Ok(())
}

fn seconds(run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
