//! What the checker costs: kernels on a device that checks them, beside one that does not, in the
//! same rounds.

use std::rc::Rc;

use resident::{Device, Emulation, Stream};
use resident_benches::median;

use crate::loops::Loops;
use crate::pairs::Pair;
use crate::{pairs, seconds};

/// Prints the time of each kernel with and without checks.
pub(crate) fn report(loops: &Rc<Loops>, rounds: usize, is_wanted: impl Fn(&str) -> bool) {
    // Each device has arrays of its own, so that nothing is copied between them.
    let [unchecked, checked] = [pairs::small_pairs(loops), pairs::small_pairs(loops)];
    let both = unchecked.into_iter().zip(checked).filter(|((pair, _), _)| is_wanted(pair.name));
    println!("\n| kernel | unchecked, µs | checked, µs | ratio | target | met |");
    println!("|---|---|---|---|---|---|");
    for ((unchecked, target), (checked, _)) in both {
        let name = unchecked.name;
        let [unchecked, checked] = medians([unchecked, checked], rounds);
        let ratio = checked / unchecked;
        println!(
            "| {name} | {:.0} | {:.0} | {ratio:.0} | ≤ {target} | {} |",
            unchecked * 1e6,
            checked * 1e6,
            if ratio <= target { "yes" } else { "**no**" },
        );
    }
}

/// The times of a kernel on a device that does not check it, and on one that does.
fn medians(mut pairs: [Pair; 2], rounds: usize) -> [f64; 2] {
    let streams = [false, true].map(stream);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        for ((pair, stream), times) in pairs.iter_mut().zip(&streams).zip(&mut times) {
            let time = seconds(|| pair.run_kernel_on(stream));
            // The first round compiles, and uploads.
            if round > 0 {
                times.push(time);
            }
        }
    }
    let findings = streams[1].device().emulation().expect("it is emulated").findings();
    let errors: Vec<_> = findings.iter().filter(|one| one.kind.is_error()).collect();
    assert!(errors.is_empty(), "{}: {errors:?}", pairs[1].name);
    times.map(median)
}

fn stream(is_checked: bool) -> Stream {
    Device::emulated(Emulation::new().sanitize(is_checked)).stream()
}
