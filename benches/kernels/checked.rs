//! What the checker costs: kernels on a device that checks them, beside one that does not.

use std::rc::Rc;

use resident::{Device, Emulation};

use crate::loops::Loops;
use crate::{median, pairs, seconds};

/// Prints the time of each kernel with and without checks.
pub(crate) fn report(loops: &Rc<Loops>, rounds: usize, is_wanted: impl Fn(&str) -> bool) {
    let pairs = pairs::small_pairs(loops);
    let wanted: Vec<_> = pairs.into_iter().filter(|(pair, _)| is_wanted(pair.name)).collect();
    if wanted.is_empty() {
        return;
    }
    println!("\n| kernel | unchecked, µs | checked, µs | ratio | target | met |");
    println!("|---|---|---|---|---|---|");
    for (mut pair, target) in wanted {
        let [unchecked, checked] = [false, true].map(|is_checked| {
            let device = Device::emulated(Emulation::new().sanitize(is_checked));
            let stream = device.stream();
            let mut run = || seconds(|| pair.run_kernel_on(&stream));
            // The first compiles, and uploads.
            run();
            let time = median((0..rounds).map(|_| run()).collect());
            let findings = device.emulation().expect("it is emulated").findings();
            let errors: Vec<_> = findings.iter().filter(|one| one.kind.is_error()).collect();
            assert!(errors.is_empty(), "{}: {errors:?}", pair.name);
            time
        });
        let ratio = checked / unchecked;
        println!(
            "| {} | {:.0} | {:.0} | {ratio:.0} | ≤ {target} | {} |",
            pair.name,
            unchecked * 1e6,
            checked * 1e6,
            if ratio <= target { "yes" } else { "**no**" },
        );
    }
}
