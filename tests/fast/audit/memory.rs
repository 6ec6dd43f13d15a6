//! The heap memory of captures and ledgers that run for long. Each test has its own process, whose
//! other threads only run the device: events are passed between threads, so all of them count.

use resident::{Device, Result, Stream, audit};
use support::allocations::live_bytes_of_all_threads;
use support::own_process;

use crate::{RECORDS_KEPT, double, grid, ones, report_of};

/// Records at least so many events: copies in both directions, of new arrays that one line makes,
/// launches, accesses, allocations and waits. Returns how many bytes are live at the end.
fn live_after(events: u64, stream: &Stream) -> Result<i64> {
    let kernel = double();
    for _ in 0..events.div_ceil(64) {
        let mut array = ones(4);
        let mut launch = || kernel.launch_on(stream, grid(), (&mut array,));
        (0..16).try_for_each(|_| launch())?;
        (0..48).try_for_each(|_| array.host_mut().map(drop))?;
    }
    stream.synchronize()?;
    Ok(live_bytes_of_all_threads())
}

/// Four times as many events as are kept need no more memory than two times as many; `read` reads
/// the report now and then, as a program does that runs for long.
fn assert_is_flat(read: impl Fn()) -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    // What is made once, such as the device's threads and tables.
    let before = live_after(1, &stream)?;
    let in_use = |rounds: u64| -> Result<i64> {
        let mut live = 0;
        for _ in 0..rounds {
            live = live_after(RECORDS_KEPT, &stream)?;
            read();
        }
        Ok(live - before)
    };
    let (two, four) = (in_use(2)?, in_use(2)?);
    assert!(two > RECORDS_KEPT as i64 * 32, "{two} bytes: each record has some");
    // The chunks that are kept may have a few events more.
    assert!(four < two + two / 16, "{two} bytes with 2 times the records, {four} with 4 times");
    Ok(())
}

#[test]
fn a_capture_stays_as_large_as_its_latest_records() -> Result<()> {
    own_process!();
    let report = report_of(|| assert_is_flat(|| ()))?;
    let document = report.to_document();
    assert_eq!(document.records.len() as u64, RECORDS_KEPT, "the latest, and no fewer");
    assert!(document.records_forgotten >= 3 * RECORDS_KEPT);
    Ok(())
}

#[test]
fn a_ledger_stays_as_large_as_its_latest_records() -> Result<()> {
    own_process!();
    let ledger = audit::Ledger::attach();
    assert_is_flat(|| drop(ledger.report()))?;
    assert!(ledger.report().to_document().records_forgotten >= 3 * RECORDS_KEPT);
    Ok(())
}
