//! A program of replays on a full device, in which each backend call fails in turn: when it is made
//! or when its work runs.

use resident::emulation::Call;
use resident::{Chain, Temp};
use support::bodies::{modes, one, plus};
use support::prelude::*;

use super::{Numbers, assert_no_hazards, numbers, seen};

const LEN: usize = 64;
const HALF: isize = LEN as isize / 2;
const BYTES: u64 = 4 * LEN as u64;

type Swap =
    Chain<(u32, In<u32, Ix1>, Out<u32, Ix1>, InOut<u32, Ix1>, Temp<u32, Ix1>, Temp<u32, Ix1>)>;

/// Writes the halves of an array, one by way of a temporary, and adds to another. Another temporary
/// says that it goes on.
fn swap() -> Swap {
    let plus = plus();
    Swap::record("swap", |r, (k, a, b, c, tmp, go_on)| {
        r.launch(&plus, one(), (k, a.read(), tmp.write()))?;
        r.copy(tmp.slice(s![..HALF]).read(), b.slice(s![HALF..]).write())?;
        r.launch(&plus, one(), (k, tmp.slice(s![HALF..]).read(), b.slice(s![..HALF]).write()))?;
        r.launch(&plus, one(), (1, c.read(), tmp.write()))?;
        r.copy(tmp.read(), c.write())?;
        r.fill(go_on.write(), 1)?;
        r.repeat_while(go_on.read())
    })
    .unwrap()
}

/// What `swap` writes to `b`.
fn swapped(k: u32) -> Vec<u32> {
    let (start, half) = (0..LEN as u32, LEN as u32 / 2);
    start.map(|at| if at < half { half + at + 2 * k } else { at - half + k }).collect()
}

/// What a run saw.
#[derive(Default)]
struct Seen {
    calls: Vec<Call>,
    refused: usize,
    lost: usize,
}

/// The contents; `None` if they are lost. A refused call is repeated.
fn contents(array: &Numbers) -> Option<Vec<u32>> {
    for _ in 0..3 {
        match array.to_vec() {
            Ok(seen) => return Some(seen),
            Err(Error::Lost { .. }) => return None,
            Err(other) => assert!(matches!(other, Error::Backend { .. }), "{other}"),
        }
    }
    panic!("an array can never be read")
}

/// Replays, and uses other arrays, for which the device needs the memory.
fn run(emulation: Emulation) -> Seen {
    let device = Device::emulated(emulation.memory(4 * BYTES + BYTES / 2));
    let stream = (0..2).find_map(|_| device.new_stream().ok()).expect("one call fails");
    let (chain, a, other, mut run) =
        (swap(), numbers(LEN as u32), numbers(LEN as u32), Seen::default());
    for k in 1..5 {
        let (mut b, mut c) = (Numbers::uninit(LEN), Numbers::zeros(LEN));
        let mut ran = None;
        for _ in 0..3 {
            let scratch = (Temp::like(&a), Temp::shape(1));
            let arguments = (k, &a, &mut b, &mut c, scratch.0, scratch.1);
            match chain.repeat_while_on(&stream, 4, 2, arguments) {
                Ok(4) => ran = Some(4),
                Ok(other) => panic!("{other} replays"),
                Err(Error::Lost { .. }) => run.lost += 1,
                // Other replays ran, or none.
                Err(Error::Backend { .. } | Error::OutOfMemory { .. }) => {
                    run.refused += 1;
                    continue;
                }
                Err(other) => panic!("{other}"),
            }
            break;
        }
        run.refused += usize::from(other.gpu_on(&device.stream()).is_err());
        let (b, c) = (contents(&b), contents(&c));
        run.lost += usize::from(b.is_none()) + usize::from(c.is_none());
        if ran.is_some() {
            assert!(b.is_none_or(|b| b == swapped(k)));
            let ran = |c: &Vec<u32>| [4, 6, 8].contains(&c[0]) && c.iter().all(|x| *x == c[0]);
            assert!(c.is_none_or(|c| ran(&c)));
        }
    }
    assert_eq!(seen(&a), (0..LEN as u32).collect::<Vec<_>>());
    run.calls = device.emulation().unwrap().calls();
    while device.synchronize().is_err() {}
    drop((chain, a, other));
    let in_use = [(); 3].map(|()| device.memory().in_use);
    assert_eq!(in_use[2], 0, "{in_use:?}");
    assert_no_hazards(&device);
    run
}

#[test]
fn each_call_of_replays_on_a_full_device_may_fail() {
    for mode in modes() {
        let whole = run(mode());
        assert_eq!((whole.refused, whole.lost), (0, 0));
        let (mut refused, mut lost) = (0, 0);
        let stride = whole.calls.len().div_ceil(sampled(25, usize::MAX));
        for number in (1..=whole.calls.len() as u64).step_by(stride) {
            let at_once = run(mode().fail(Fault::nth(number)));
            assert_eq!(at_once.lost, 0, "call {number}: a refused call loses nothing");
            refused += at_once.refused;
            lost += run(mode().fail(Fault::nth(number).late())).lost;
        }
        assert!(refused > 0 && lost > 0, "{refused} refused, {lost} lost");
    }
}
