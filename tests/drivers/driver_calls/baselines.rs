//! What the programs of `benches/baselines.rs` copy: with this library no more bytes than by hand
//! with exact copies, and far fewer than with copies of whole arrays.

use resident::Device;
use resident::ndarray::{Array2, s};
use resident_benches::gpu::fault::Outcome;
use resident_benches::gpu::programs::{NAMES, exposures, photograph};
use resident_benches::gpu::stand_in::{self, Traffic};
use resident_stand_in::Settings;

/// Bytes and copies of each program.
type Expected = [(u64, usize); 3];

fn gpu() -> Outcome<Device> {
    stand_in::load(Settings::new().seed(1))?;
    Ok(Device::cuda(0)?)
}

/// Fails unless the programs return the same, and copy this much in a second run.
fn check<Input: Clone, Output: PartialEq>(
    programs: [impl Fn(Input) -> Outcome<Output>; 3],
    input: &Input,
    expected: Expected,
) -> Outcome {
    let results = programs.each_ref().map(|program| program(input.clone()));
    let [ours, careful, hurried] = results;
    let ours = ours?;
    assert!(ours == careful?, "the results of ours and of exact copies by hand differ");
    assert!(ours == hurried?, "the results of ours and of copies of whole arrays differ");
    for ((name, program), (bytes, copies)) in NAMES.iter().zip(&programs).zip(expected) {
        stand_in::take_traffic();
        program(input.clone())?;
        let traffic = stand_in::take_traffic();
        println!("{name}: {traffic:?}");
        assert_eq!(traffic, Traffic { bytes, copies, ..traffic }, "{name}");
    }
    assert_eq!(resident_stand_in::take_hazards(), Vec::<String>::new());
    Ok(())
}

#[test]
fn a_photograph_is_copied_as_by_hand() {
    support::own_process!();
    let portrait = photograph::portrait().expect("the portrait");
    let photo = portrait.slice(s![..64, ..128, ..]).to_owned();
    let gpu = gpu().expect("the stand-in driver");
    let programs = photograph::programs(&gpu, photo.dim()).expect("programs");
    let (photo_bytes, plane_bytes, sheet_bytes) = (64 * 128 * 3, 64 * 128 * 4, 64 * 400 * 3);
    let bins_bytes = 256 * 4;
    let once = photo_bytes + bins_bytes + sheet_bytes;
    let (rows, column, scale) = (2 * 128 * 4, 64 * 4, 128 * 3);
    let parts = once + rows + column + scale;
    let whole = once + 3 * plane_bytes + 2 * photo_bytes;
    check(programs, &photo, [(parts, 7), (parts, 7), (whole, 8)]).expect("three programs");
}

/// The column goes down in the two parts above and below the row that is newest on the host; the
/// last row does not go up, and what the host has of the last picture does not go down again.
#[test]
fn a_loop_copies_fewer_bytes_than_by_hand() {
    support::own_process!();
    let gpu = gpu().expect("the stand-in driver");
    let programs = exposures::programs(&gpu).expect("programs");
    let (picture, row, column) = (1024 * 768 * 4, 768 * 4, 1024 * 4);
    let parts = 2 * picture + 20 * (row + column);
    let ours = parts - 20 * 4 - row - (row + column - 4);
    let whole = 2 * picture + 20 * 2 * picture;
    let picture = Array2::zeros(exposures::SHAPE);
    check(programs, &picture, [(ours, 63), (parts, 42), (whole, 42)]).expect("three programs");
}
