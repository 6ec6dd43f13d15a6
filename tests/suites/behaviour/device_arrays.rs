//! Device arrays on embedded devices: refusals in the middle of a copy, and long views.

use resident::emulation::CallKind;
use resident::ndarray::{Array1, Array2, s};
use resident::{Device, DeviceArray, Emulation, Fault, Result, SmartArray};

/// The number of backend calls of that kind.
fn calls(device: &Device, kind: CallKind) -> usize {
    let calls = device.emulation().map_or(Vec::new(), |log| log.calls());
    calls.iter().filter(|call| call.kind == kind).count()
}

/// Each call is refused once, also those that queue the later chunks of an upload.
#[test]
fn what_a_refused_upload_has_written_is_known_and_the_rest_is_unchanged() -> Result<()> {
    for nth in 1..12 {
        let device =
            Device::emulated(Emulation::new().poison(true).pieces(16).fail(Fault::nth(nth)));
        let made = DeviceArray::from_host_on(&device.stream(), &Array1::from_elem(12, 1_u32));
        let Ok(mut line) = made else { continue };
        let outcome = line.copy_from_host(&Array1::from_elem(12, 2));
        let seen = line.copy_to_host().or_else(|_the_fault| line.copy_to_host())?.to_vec();
        let written = seen.iter().take_while(|value| **value == 2).count();
        assert!(seen[written..].iter().all(|value| *value == 1), "call {nth}: {seen:?}");
        assert_eq!(outcome.is_ok(), written == 12, "call {nth}: {seen:?}, {outcome:?}");
    }
    Ok(())
}

#[test]
fn elements_that_a_refused_upload_left_out_were_never_written() -> Result<()> {
    let mut refused = 0;
    // The first call allocates the memory.
    for nth in 2..8 {
        let device =
            Device::emulated(Emulation::new().poison(true).pieces(16).fail(Fault::nth(nth)));
        let mut line = DeviceArray::<u32, _>::uninit_on(&device.stream(), 12)?;
        let outcome = line.copy_from_host(&Array1::from_elem(12, 2));
        if outcome.is_err() {
            refused += 1;
            let seen = line.copy_to_host();
            assert!(seen.is_err(), "call {nth}: {seen:?} although {outcome:?}");
        }
    }
    assert!(refused >= 3, "each of the three chunks is refused once");
    Ok(())
}

/// The rest of a long line is copied as a few boxes, not element by element.
#[test]
fn a_part_of_a_reshaped_table_is_copied_in_few_pieces() -> Result<()> {
    let device = Device::emulated(Emulation::new().poison(false));
    let stream = device.stream();
    let table = SmartArray::from(Array2::from_shape_fn((300, 200), |(row, column)| {
        (row * 200 + column) as u32
    }));
    table.prefetch(&stream)?;
    device.synchronize()?;
    let rest = table.reshape(60_000)?.slice(s![1..]);
    let copy = rest.try_clone()?;
    let snapshot = rest.snapshot_on(&stream)?.wait()?;
    assert_eq!(snapshot, Array1::from_iter(1..60_000));
    assert_eq!(copy.host()?.to_owned(), snapshot);
    let copies = calls(&device, CallKind::CopyWithin) + calls(&device, CallKind::Download);
    assert!(copies <= 8, "{copies}");
    Ok(())
}
