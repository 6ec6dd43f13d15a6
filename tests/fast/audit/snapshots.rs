//! The text of reports, with one of each of its parts. In processes of their own, in which devices
//! have the same numbers in each run. Lines, columns and times are left out.

use resident::ndarray::Ix2;
use resident::{Device, Emulation, Result, SmartArray, audit};
use support::own_process;

use crate::{double, grid, ones, report_of};

/// The text with `L:C` for lines and columns, and `T` for the time of waits.
fn redacted(report: &audit::Report) -> String {
    let text = report.to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let mut calls = text.split(".rs:");
    let first = calls.next().unwrap_or_default().to_owned();
    let text = calls.fold(first, |text, rest| {
        let rest = rest.trim_start_matches(|it: char| it.is_ascii_digit() || it == ':');
        format!("{text}.rs:L:C{rest}")
    });
    let mut times: Vec<&str> = text.split(" µs").collect();
    let last = times.pop().unwrap_or_default();
    let untimed = times.into_iter().map(|before| {
        let before = before.trim_end_matches(|it: char| it.is_ascii_digit() || it == '_');
        format!("{before}T µs")
    });
    untimed.collect::<String>() + last
}

/// Copies in each direction: of bytes that were never there, that other calls changed, that are
/// padding; avoided ones; launches, waits and a finding. On seeded devices each wait is one, since
/// nothing runs before.
#[test]
fn copies_launches_waits_and_findings() -> Result<()> {
    own_process!();
    let [near, far] = [1, 2].map(|seed| Device::emulated(Emulation::new().seed(seed)));
    let stream = near.stream();
    let mut photo = SmartArray::<f32, Ix2>::zeros((100, 100)).named("photo");
    photo.gpu_on(&stream).map(drop)?;
    // Too many parts to be copied one by one.
    let scattered = (0..3_000_usize).map(|number| ((number * 2_654_435_761) >> 12) % 10_000);
    scattered
        .map(|index| (index / 100, index % 100))
        .try_for_each(|index| photo.set(index, 1.0))?;
    stream.synchronize()?;
    let mut weights = ones(50)
        .named("the weights of a layer, whose name is too long for the room that is left for it");
    let report = report_of(|| {
        photo.prefetch(&stream)?;
        for _ in 0..3 {
            double().launch_on(&stream, grid(), (&mut weights,))?;
        }
        weights.prefetch(&far.stream())?;
        far.synchronize()?;
        (0..40).try_for_each(|index| weights.get(index).map(drop))
    })?;
    insta::assert_snapshot!(redacted(&report));
    Ok(())
}

#[test]
fn copies_of_other_threads() {
    own_process!();
    let stream = Device::emulated(Emulation::new()).stream();
    let array = SmartArray::from(vec![1_u8; 1000]);
    let upload = || array.prefetch(&stream).expect("there is memory");
    let ((), report) = audit::capture(|| {
        std::thread::scope(|threads| threads.spawn(upload).join().expect("no panic"));
    });
    insta::assert_snapshot!(redacted(&report));
}
