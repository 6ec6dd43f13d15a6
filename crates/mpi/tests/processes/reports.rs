//! What the audit of `resident` says of messages.

use resident::audit::{self, Cause, Direction, Report};
use resident::ndarray::Ix2;
use resident::{Device, SmartArray};
use resident_mpi::{Mpi, Reduce};

use crate::launch::run;

/// The bytes and the peers of the sites of one direction that this file has.
fn messages(report: &Report, direction: Direction) -> Vec<(Option<u32>, u64)> {
    let is_wanted = |site: &&audit::Site| site.cause == Cause::Mpi && site.direction == direction;
    let mut found = Vec::new();
    for site in report.sites().iter().filter(is_wanted) {
        assert!(site.location.file().ends_with("reports.rs"), "{site}");
        assert_eq!(site.array, "plate");
        found.push((site.peer, site.flow.bytes));
    }
    found.sort_unstable();
    found
}

/// Each face is in the report with its peer and the program's line.
fn faces_are_in_reports(mpi: &Mpi) {
    let stream = Device::cpu().stream();
    let plate = mpi.grid([10, 12]).halo(1).processes([2, 1]).build().unwrap();
    let mut now: SmartArray<f64, Ix2> = plate.array(|[i, j]| (i + j) as f64).unwrap();
    now.set_name("plate");
    let mut halo = plate.exchange(&now).unwrap();
    let ((), report) = audit::capture(|| {
        for _ in 0..3 {
            halo.start(&now, &stream).unwrap().finish(&mut now).unwrap();
        }
    });
    let (other, bytes) = (1 - mpi.rank() as u32, 3 * 12 * 8);
    assert_eq!(messages(&report, Direction::Sent), [(Some(other), bytes)]);
    assert_eq!(messages(&report, Direction::Received), [(Some(other), bytes)]);
    assert_eq!((report.sent().bytes, report.received().bytes), (bytes, bytes));
    assert_eq!((report.sent().count, report.received().count), (3, 3));
    let document = report.to_document();
    assert_eq!((document.rank, document.ranks), (Some(mpi.rank() as u32), Some(2)));
}

/// A collective operation has no single peer; a broadcast comes from its root.
fn collective_operations_are_in_reports(mpi: &Mpi) {
    let mut plate = SmartArray::<f32, _>::ones(100).named("plate");
    let ((), report) = audit::capture(|| {
        mpi.all_reduce(Reduce::Sum, &mut plate).unwrap();
        mpi.broadcast(&mut plate, 1).unwrap();
        mpi.barrier().unwrap();
    });
    let (sent, received) = if mpi.rank() == 1 {
        (vec![(None, 400), (None, 400)], vec![(None, 400)])
    } else {
        (vec![(None, 400)], vec![(None, 400), (Some(1), 400)])
    };
    assert_eq!(messages(&report, Direction::Sent), sent);
    assert_eq!(messages(&report, Direction::Received), received);
    assert!(report.to_json().contains(r#""kind": "barrier""#));
}

#[test]
fn faces_are_in_reports_of_both_processes() {
    run(2, faces_are_in_reports);
}

#[test]
fn collective_operations_are_in_reports_of_all_processes() {
    run(3, collective_operations_are_in_reports);
}
