//! Replays within bodies and grids, on many devices at once, of many chains, and of arguments and
//! slices that are rarely passed.

use std::sync::{Arc, Mutex};

use super::{Numbers, assert_no_hazards, devices, numbers, seen, twice};
use resident::ndarray::{SliceInfo, SliceInfoElem};
use resident::{Chain, Described, Temp};
use support::bodies::{accumulate, add, modes, one, plus};
use support::prelude::*;

/// The condition, and the array that counts.
type Counting = Chain<(u32, InOut<u32, Ix1>, Temp<u32, Ix1>)>;

/// Counts while the condition says so.
fn counting() -> Counting {
    let add = add();
    Counting::record("counting", |r, (k, a, go_on)| {
        r.launch(&add, one(), (1, a.read_write()))?;
        r.fill(go_on.write(), k)?;
        r.repeat_while(go_on.read())
    })
    .unwrap()
}

/// A body may queue a chain, and not wait for one.
#[test]
fn a_body_replays_without_waiting() {
    for emulation in modes() {
        without_deadlock(move || {
            let device = Device::emulated(emulation());
            let (stream, chain) = (device.stream(), counting());
            let outcomes: Arc<Mutex<Vec<Result<u64>>>> = Arc::default();
            let array = Arc::new(Mutex::new(Numbers::zeros(2)));
            let body = Kernel::<(InOut<u32>,)>::new("caller").host({
                let (outcomes, array, stream) = (outcomes.clone(), array.clone(), stream.clone());
                move |_, (_,)| {
                    let a = &mut *array.lock().unwrap();
                    let queued = chain.repeat_on(&stream, 3, (1, &mut *a, Temp::shape(1)));
                    let waited = chain.repeat_while_on(&stream, 3, 1, (1, a, Temp::shape(1)));
                    outcomes.lock().unwrap().extend([queued.map(|()| 3), waited]);
                }
            });
            body.launch_on(&stream, one(), (&mut numbers(1),)).unwrap();
            stream.synchronize().unwrap();
            let outcomes = outcomes.lock().unwrap();
            let is_refused = matches!(outcomes[1], Err(Error::InsideKernel { .. }));
            assert!(outcomes[0] == Ok(3) && is_refused, "{outcomes:?}");
            assert_eq!(seen(&array.lock().unwrap()), [4; 2], "with the replay that was queued");
            assert_no_hazards(&device);
        });
    }
}

/// Threads replay one chain over one input on many devices, by two streams each.
#[test]
fn devices_replay_one_chain_side_by_side() {
    type Sum = Chain<(u32, In<u32, Ix1>, InOut<u32, Ix1>, Temp<u32, Ix1>)>;
    let (plus, accumulate, rounds) = (plus(), accumulate(), sampled(40, 1000));
    let chain = Sum::record("sum", |r, (k, x, a, tmp)| {
        r.launch(&plus, one(), (k, x.read(), tmp.write()))?;
        r.launch(&accumulate, one(), (tmp.read(), a.read_write()))
    })
    .unwrap();
    let (devices, shared) = ([devices(), devices()].concat(), numbers(64));
    std::thread::scope(|scope| {
        for (k, device) in (0..).zip(&devices) {
            let (chain, shared) = (&chain, &shared);
            scope.spawn(move || {
                let streams = [device.stream(), device.new_stream().unwrap()];
                let mut a = Numbers::zeros(64);
                for round in 0..rounds {
                    let arguments = (k, shared, &mut a, Temp::shape(64));
                    chain.repeat_on(&streams[round % 2], 2, arguments).unwrap();
                }
                let expected = (0..64).map(|x| 2 * rounds as u32 * (x + k));
                assert_eq!(seen(&a), expected.collect::<Vec<_>>());
            });
        }
    });
    devices.iter().for_each(assert_no_hazards);
}

/// The temporaries of chains that rest give way.
#[test]
fn many_chains_share_a_device() {
    let device = Device::emulated(Emulation::new().memory(10 * 400));
    let chains: Vec<_> = (0..200).map(|_| twice()).collect();
    let mut array = numbers(100);
    for round in 1..=3 {
        for chain in &chains {
            chain.launch_on(&device.stream(), (1, &mut array, Temp::shape(100))).unwrap();
        }
        assert_eq!(array.get(0), Ok(400 * round));
    }
    drop(chains);
    assert_eq!(device.memory().in_use, 400);
    assert_no_hazards(&device);
}

#[test]
fn only_0_ends_what_repeats() {
    let chain = counting();
    for device in devices() {
        let ran = |k, most| {
            let mut a = Numbers::zeros(3);
            let ran = chain.repeat_while_on(&device.stream(), most, 2, (k, &mut a, Temp::shape(1)));
            assert_eq!(ran.clone().map(|ran| vec![ran as u32; 3]), a.to_vec());
            ran
        };
        for k in [f32::NAN.to_bits(), (-0.0_f32).to_bits(), u32::MAX, 1] {
            assert_eq!(ran(k, 9), Ok(9), "{k:#x}");
        }
        assert_eq!(ran(0, u64::MAX), Ok(2));
    }
}

/// A closure that chooses a grid may replay the chain for which it does.
#[test]
fn a_grid_replays_its_chain() {
    type Own = Chain<(u32, InOut<u32, Ix1>)>;
    let (device, add, own) = (Device::emulated(Emulation::new()), add(), Arc::default());
    let (stream, known) = (device.stream(), Arc::<Mutex<Option<Own>>>::clone(&own));
    let chain = Own::record("own", |r, (k, a)| {
        let grid = move |(k, _): (u32, Described)| {
            let chain = known.lock().unwrap().clone().filter(|_| k > 0);
            if let Some(chain) = chain {
                let mut other = numbers(4);
                chain.launch_on(&stream, (k - 1, &mut other)).unwrap();
                assert_eq!(other.get(0), Ok(k - 1));
            }
            one()
        };
        r.launch(&add, grid, (k, a.read_write()))
    })
    .unwrap();
    *own.lock().unwrap() = Some(chain.clone());
    let mut array = numbers(4);
    for k in [3, 2] {
        chain.launch_on(&device.stream(), (k, &mut array)).unwrap();
    }
    assert_eq!(array.get(0), Ok(5));
    *own.lock().unwrap() = None;
    assert_no_hazards(&device);
}

/// Elements that occur many times, as an input with slices.
#[test]
fn an_input_may_be_broadcast() {
    type Wide = Chain<(In<u32, Ix2>, InOut<u32, Ix2>, Temp<u32, Ix2>)>;
    let chain = Wide::record("wide", |r, (x, a, tmp)| {
        r.copy(x.slice(s![..;2, ..]).read(), a.slice(s![..;2, ..]).write())?;
        r.copy(x.slice(s![1.., 1..]).read(), tmp.write())?;
        r.copy(tmp.read(), a.slice(s![1.., 1..]).write())
    })
    .unwrap();
    for device in devices() {
        let (x, mut a) = (numbers(4), SmartArray::<u32, Ix2>::zeros((3, 4)));
        let wide = x.broadcast((3, 4)).unwrap();
        chain.launch_on(&device.stream(), (&wide, &mut a, Temp::shape((2, 3)))).unwrap();
        assert_eq!(a.to_vec().unwrap(), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
        assert_no_hazards(&device);
    }
}

/// Slices of an array's bytes may not divide a number that a step writes.
#[test]
fn bytes_of_numbers_are_arguments() {
    let chain = |from: usize| {
        Chain::<(InOut<u8, Ix1>, Out<u8, Ix1>)>::record("bytes", move |r, (a, b)| {
            r.fill(a.slice(s![4..8]).write(), 7)?;
            r.copy(a.slice(s![from..from + 4]).read(), b.write())
        })
        .unwrap()
    };
    for device in devices() {
        let (mut a, mut b) = (SmartArray::from([1_u32, 2, 3]), SmartArray::<u8, Ix1>::uninit(4));
        let mut bytes = a.reinterpret_mut::<u8>().unwrap();
        let refused = chain(6).launch_on(&device.stream(), (&mut bytes, &mut b)).unwrap_err();
        assert!(matches!(refused, Error::Shape { .. }), "{refused}");
        chain(4).launch_on(&device.stream(), (&mut bytes, &mut b)).unwrap();
        assert_eq!(b.to_vec().unwrap(), [7; 4]);
        assert_eq!(a.to_vec().unwrap(), [1, 0x0707_0707, 3]);
        assert_no_hazards(&device);
    }
}

/// Steps over drawn slices, which cut each other.
#[test]
fn slices_may_have_any_steps() {
    let add = Kernel::<(u32, InOut<u32, Ix1>)>::new("add").host(|_, (k, mut a)| a += k);
    let mut random = Random::new(5);
    for seed in 0..sampled(60, 5000) {
        let len = 1 + random.below(30);
        let slices = [(); 6].map(|()| {
            let start = random.below(len + 1);
            let end = Some((start + random.below(len + 1 - start)) as isize);
            let step = [1, 2, 3, 5, -1, -2, -4][random.below(7)];
            let slice = [SliceInfoElem::Slice { start: start as isize, end, step }];
            SliceInfo::<_, Ix1, Ix1>::try_from(slice).unwrap()
        });
        let chain = Chain::<(InOut<u32, Ix1>,)>::record("slices", |r, (a,)| {
            slices.iter().zip(0..).try_for_each(|(slice, k)| match k % 2 {
                0 => r.fill(a.slice(slice).write(), 100 * k),
                _ => r.launch(&add, one(), (k, a.slice(slice).read_write())),
            })
        })
        .unwrap();
        let device = Device::emulated(Emulation::new().seed(seed as u64));
        let (mut array, mut expected) = (numbers(len as u32), Array1::from_iter(0..len as u32));
        chain.repeat_on(&device.stream(), 2, (&mut array,)).unwrap();
        for (slice, k) in slices.iter().zip(0..).chain(slices.iter().zip(0..)) {
            let mut part = expected.slice_mut(slice);
            if k % 2 == 0 { part.fill(100 * k) } else { part += k }
        }
        assert_eq!(*array.host().unwrap(), expected, "{slices:?}");
        assert_no_hazards(&device);
    }
}
