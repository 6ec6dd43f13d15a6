//! What the audit of `resident` says of messages.

use resident::audit::{self, Cause, Direction, Report};
use resident::ndarray::{Ix1, Ix2, s};
use resident::{Device, Emulation, SmartArray};
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

/// What a device gets of messages is out of date there since the program's lines, not since lines
/// of this library.
fn copies_are_stale_since_lines_of_the_program(mpi: &Mpi) {
    let device = Device::emulated(Emulation::new());
    let (_here, stream) = (device.enter(), device.stream());
    let plate = mpi.grid([10, 12]).halo(1).build().unwrap();
    let mut now: SmartArray<f64, Ix2> = plate.array(|[i, j]| (i + j) as f64).unwrap();
    drop(now.gpu_mut().unwrap());
    let ((), report) = audit::capture(|| {
        let other = 1 - mpi.rank();
        let mut halo = plate.exchange(&now).unwrap();
        halo.start(&now, &stream).unwrap().finish(&mut now).unwrap();
        let sending = mpi.isend(&now.slice(s![.., 1]), other, 0).unwrap();
        mpi.recv(&mut now.slice_mut(s![.., 0]), other, 0).unwrap();
        sending.wait().unwrap();
        let receiving = mpi.irecv::<f64, Ix1>(now.shape()[1], other, 0).unwrap();
        mpi.send(&now.slice(s![1, ..]), other, 0).unwrap();
        receiving.into_part(&mut now.slice_mut(s![0, ..])).unwrap();
        mpi.all_reduce(Reduce::Max, &mut now.slice_mut(s![1, ..])).unwrap();
        mpi.broadcast(&mut now.slice_mut(s![2, ..]), 0).unwrap();
    });
    let uploads = report.sites().into_iter().filter(|site| site.direction == Direction::ToDevice);
    assert!(uploads.count() >= 4, "{report}");
    let json = report.to_json();
    // Pinned memory of messages is made by the crate.
    let (json, _memory) = json.split_once(r#""memory": ["#).expect("memory is told of last");
    assert!(json.contains("reports.rs") && !json.contains("mpi/src"), "{json}");
}

#[test]
fn copies_are_stale_since_lines_of_the_program_in_two_processes() {
    run(2, copies_are_stale_since_lines_of_the_program);
}

#[test]
fn faces_are_in_reports_of_both_processes() {
    run(2, faces_are_in_reports);
}

#[test]
fn collective_operations_are_in_reports_of_all_processes() {
    run(3, collective_operations_are_in_reports);
}
