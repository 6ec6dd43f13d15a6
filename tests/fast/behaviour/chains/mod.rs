//! Chains: launches, copies and fills that are recorded once and queued as one operation.

mod audited;
mod drawn;
mod each_call;
mod extremes;
mod failures;
mod losses;
mod memory;
mod parts;
mod recording;
mod replays;
mod shapes;

use resident::{Chain, Temp};
use support::bodies::{add, modes, one, plus};
use support::prelude::*;

type Numbers = SmartArray<u32, Ix1>;
/// `k`, the array, and a temporary.
type Twice = Chain<(u32, InOut<u32, Ix1>, Temp<u32, Ix1>)>;

/// Adds `k` twice, by way of the temporary.
fn twice() -> Twice {
    let plus = plus();
    Twice::record("twice", |r, (k, a, tmp)| {
        r.launch(&plus, one(), (k, a.read(), tmp.write()))?;
        r.launch(&plus, one(), (k, tmp.read(), a.write()))
    })
    .unwrap()
}

/// Devices with threads and in a seed's order, which check the order of work, and the usual one.
fn devices() -> [Device; 3] {
    let [one, other] = modes().map(|emulation| Device::emulated(emulation()));
    [one, other, Device::cpu()]
}

#[track_caller]
fn assert_no_hazards(device: &Device) {
    device.synchronize().unwrap();
    if device.emulation().is_some() {
        assert_ordered(device);
    }
}

fn numbers(len: u32) -> Numbers {
    SmartArray::from((0..len).collect::<Vec<u32>>())
}

fn seen(array: &Numbers) -> Vec<u32> {
    array.to_vec().unwrap()
}

/// Adds `k` in place, so often.
fn adds(count: usize) -> Chain<(u32, InOut<u32, Ix1>)> {
    let add = add();
    Chain::<(u32, InOut<u32, Ix1>)>::record("adds", |r, (k, a)| {
        (0..count).try_for_each(|_| r.launch(&add, one(), (k, a.read_write())))
    })
    .unwrap()
}
