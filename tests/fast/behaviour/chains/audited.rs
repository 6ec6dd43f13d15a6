//! What the audit tells of replays.

use super::{Numbers, adds, numbers, twice};
use resident::audit::DocumentRecord;
use resident::{Flow, Temp};
use support::prelude::*;

/// One launch for each replay, and copies with the replay's line.
#[test]
fn a_replay_is_one_launch_of_its_line() {
    let device = Device::emulated(Emulation::new());
    let (stream, chain) = (device.new_stream().unwrap(), adds(4));
    let mut array = numbers(100);
    let ((), report) = audit::capture(|| {
        for _ in 0..3 {
            chain.launch_on(&stream, (1, &mut array)).unwrap();
        }
        chain.repeat_on(&stream, 50, (1, &mut array)).unwrap();
        stream.synchronize().unwrap();
    });
    assert_eq!(report.launches(), 4);
    assert_eq!(report.traffic().to_device, Flow { count: 1, bytes: 400 });
    let records = report.to_document().records.into_iter();
    let records = records.filter_map(|record| match record {
        DocumentRecord::Copy { site, launch: Some(_), .. } => Some((site, String::from("copy"))),
        DocumentRecord::Launch { site, name, started_ns: Some(_), .. } => Some((site, name)),
        _ => None,
    });
    let seen = records.collect::<Vec<_>>();
    let chain = "chain \"adds\"";
    let expected = [(16, "copy"), (16, chain), (16, chain), (16, chain), (18, chain)];
    assert_eq!(seen.len(), expected.len(), "{seen:?}");
    for ((site, name), (line, what)) in seen.into_iter().zip(expected) {
        assert!(site.contains(&format!("audited.rs:{line}:")) && name == what, "{site} {name}");
    }
    assert_eq!(array.get(0), Ok(4 * 53));
}

/// A launcher would have copied the arguments of each replay, but no temporaries.
#[test]
fn temporaries_count_as_no_arguments() {
    let device = Device::emulated(Emulation::new());
    let (stream, twice) = (device.new_stream().unwrap(), twice());
    let mut array = Numbers::zeros(100);
    let scratch = Temp::like(&array);
    let ((), report) = audit::capture(|| {
        for _ in 0..5 {
            twice.launch_on(&stream, (1, &mut array, scratch)).unwrap();
        }
    });
    assert_eq!(report.conservative(), Flow { count: 10, bytes: 4_000 });
}

/// What a thread denies is refused with the chain's name, and nothing is queued.
#[test]
fn copies_of_a_replay_may_be_denied() {
    let device = Device::emulated(Emulation::new());
    let (chain, mut array) = (adds(2), numbers(10));
    let denied = {
        let _denied = audit::deny(audit::Implicit::ALL);
        chain.launch_on(&device.stream(), (1, &mut array)).unwrap_err()
    };
    assert!(matches!(denied, Error::Denied { .. }), "{denied}");
    assert!(denied.to_string().contains("chain \"adds\""), "{denied}");
    chain.launch_on(&device.stream(), (1, &mut array)).unwrap();
    assert_eq!(array.get(0), Ok(2));
}
