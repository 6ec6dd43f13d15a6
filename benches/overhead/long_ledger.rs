//! What an attached ledger costs a program that runs for long, on the embedded device: a round of
//! the program without a listener, until the ledger has all records that it keeps, and while old
//! records make room for new ones; then what its full report costs: `cargo bench --bench
//! long_ledger`. Rounds are means, reports medians of 11. All times are those that the processor
//! spent on the calling thread, so that other programs matter less.

use std::hint::black_box;

use resident::audit::Ledger;
use resident::ndarray::Array1;
use resident::{Device, Grid, InOut, Kernel, Result, SmartArray};
use resident_overhead::median;
use rustix::time::{ClockId, clock_gettime};

/// A program, and how many records a round of it makes.
struct Row {
    name: &'static str,
    program: Box<dyn FnMut() -> Result<()>>,
    records: u32,
}

fn kernel() -> Kernel<(InOut<f32>,)> {
    Kernel::<(InOut<f32>,)>::new("touch").host(|_, (values,)| values[0] += 1.0)
}

/// Launches, and now and then a look at the result.
fn launches() -> Box<dyn FnMut() -> Result<()>> {
    let (kernel, mut array) = (kernel(), SmartArray::from(Array1::<f32>::ones(16)).named("state"));
    let mut round = 0;
    Box::new(move || {
        round += 1;
        kernel.launch(Grid::cover(1), (&mut array,))?;
        if round % 1_000 == 0 { array.host().map(drop) } else { Ok(()) }
    })
}

/// An array that the host writes, and a kernel reads.
fn writes() -> Box<dyn FnMut() -> Result<()>> {
    let (kernel, mut array) = (kernel(), SmartArray::from(Array1::<f32>::ones(64)).named("input"));
    Box::new(move || {
        array.host_overwrite()?.fill(2.0);
        kernel.launch(Grid::cover(1), (&mut array,))
    })
}

/// Arrays that live for one launch.
fn temporaries() -> Box<dyn FnMut() -> Result<()>> {
    let kernel = kernel();
    Box::new(move || {
        let mut array = SmartArray::from(Array1::<f32>::ones(64)).named("temporary");
        kernel.launch(Grid::cover(1), (&mut array,))
    })
}

/// The processor's time for this thread so far.
fn thread_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn round_ns(row: &mut Row, rounds: u32) -> f64 {
    let start = thread_ns();
    (0..rounds).for_each(|_| (row.program)().expect("nothing fails"));
    Device::cpu().synchronize().expect("nothing fails");
    (thread_ns() - start) / f64::from(rounds)
}

fn median_ms(mut work: impl FnMut()) -> f64 {
    let mut time_ms = || {
        let start = thread_ns();
        work();
        (thread_ns() - start) / 1e6
    };
    median((0..11).map(|_| time_ms()).collect())
}

fn print(row: &mut Row, records: u32) {
    let rounds = records / row.records;
    round_ns(row, rounds);
    let unobserved = round_ns(row, rounds);
    let ledger = Ledger::attach();
    let filling = round_ns(row, rounds);
    let full = round_ns(row, 4 * rounds);
    let report_ms = median_ms(|| drop(black_box(ledger.report())));
    let report = ledger.report();
    let findings_ms = median_ms(|| drop(black_box(report.findings())));
    let json_ms = median_ms(|| drop(black_box(report.to_json())));
    println!(
        "| {} | {unobserved:.0} | {filling:.0} | {full:.0} | {report_ms:.1} | {findings_ms:.1} | \
         {json_ms:.0} | {:.1} |",
        row.name,
        report.to_json().len() as f64 / 1e6
    );
}

fn main() {
    let _here = Device::cpu().enter();
    let is_test = std::env::args().any(|argument| argument == "--test");
    let records = if is_test { 100 } else { 70_000 };
    println!(
        "| program | round, ns: no listener | ledger fills | is full | report, ms | findings | \
         to_json | MB |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let rows = [
        Row { name: "launch, 1 array", program: launches(), records: 1 },
        Row { name: "256 bytes written and launched", program: writes(), records: 3 },
        Row { name: "an array for one launch", program: temporaries(), records: 3 },
    ];
    for mut row in rows {
        print(&mut row, records);
    }
}
