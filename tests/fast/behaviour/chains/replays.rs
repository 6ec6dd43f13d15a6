//! What replays compute, what they move, and which work comes before and after them.

use super::{Numbers, adds, assert_no_hazards, devices, numbers, seen, twice};
use resident::{Chain, Described, Temp};
use support::bodies::{accumulate, add, one, plus};
use support::prelude::*;

#[test]
fn replays_compute_what_their_steps_compute() {
    let (plus, accumulate) = (plus(), accumulate());
    type Mixed = Chain<(u32, In<u32, Ix1>, Out<u32, Ix1>, Temp<u32, Ix1>)>;
    let mixed = Mixed::record("mixed", |r, (k, a, b, tmp)| {
        r.fill(b.write(), k)?;
        r.launch(&accumulate, one(), (a.read(), b.read_write()))?;
        r.copy(b.read(), tmp.write())?;
        r.launch(&plus, one(), (7, tmp.read(), b.write()))?;
        r.fill(tmp.write(), 1)?;
        r.launch(&accumulate, one(), (tmp.read(), b.read_write()))
    })
    .unwrap();
    for device in devices() {
        let stream = device.new_stream().unwrap();
        let (a, mut b) = (numbers(50), Numbers::uninit(50));
        for k in [3, 3, 1000] {
            mixed.launch_on(&stream, (k, &a, &mut b, Temp::like(&a))).unwrap();
            assert_eq!(seen(&b), (0..50).map(|x| x + k + 8).collect::<Vec<_>>(), "{device}");
        }
        assert_no_hazards(&device);
    }
}

#[test]
fn a_replay_moves_what_its_steps_read_first() {
    let plus = plus();
    let chain = Chain::<(In<u32, Ix1>, InOut<u32, Ix1>, InOut<u32, Ix1>, Out<u32, Ix1>)>::record(
        "some",
        |r, (read, overwritten, unused, output)| {
            let _unused = unused;
            r.launch(&plus, one(), (1, read.read(), overwritten.write()))?;
            r.launch(&plus, one(), (1, overwritten.read(), output.write()))
        },
    )
    .unwrap();
    let device = Device::emulated(Emulation::new());
    let stream = device.stream();
    let (read, [mut overwritten, mut unused]) = (numbers(10), [(); 2].map(|()| numbers(10)));
    let mut output = Numbers::uninit(10);
    for _ in 0..3 {
        let arguments = (&read, &mut overwritten, &mut unused, &mut output);
        chain.launch_on(&stream, arguments).unwrap();
    }
    assert_eq!(device.traffic().to_device.bytes, 40, "`read`, once");
    assert_eq!(unused.residency().on(&device), Absent);
    assert_eq!(overwritten.residency().host(), Stale);
    assert_eq!(seen(&output), (2..12).collect::<Vec<_>>());
    let log = device.emulation().unwrap();
    let of_kind = |kind| log.calls().iter().filter(|call| call.kind == kind).count();
    assert_eq!((of_kind(CallKind::Chain), of_kind(CallKind::Launch)), (3, 0));
}

#[test]
fn counted_replays_are_one_operation() {
    for device in devices() {
        let (stream, twice) = (device.new_stream().unwrap(), twice());
        let mut array = numbers(20);
        let scratch = Temp::like(&array);
        for count in [0, 1, 250] {
            twice.repeat_on(&stream, count, (1, &mut array, scratch)).unwrap();
        }
        assert_eq!(array.get(0), Ok(502), "{device}");
        let chains = device
            .emulation()
            .map(|log| log.calls().iter().filter(|call| call.kind == CallKind::Chain).count());
        assert!(chains.is_none_or(|chains| chains == 2));
        assert_no_hazards(&device);
    }
}

#[test]
fn work_of_other_streams_comes_before_and_after() {
    let (add, accumulate) = (add(), accumulate());
    for device in devices() {
        let [one_stream, other] = [(); 2].map(|()| device.new_stream().unwrap());
        let chain = Chain::<(u32, In<u32, Ix1>, InOut<u32, Ix1>, InOut<u32, Ix1>)>::record(
            "both",
            |r, (k, from, a, b)| {
                r.launch(&accumulate, one(), (from.read(), a.read_write()))?;
                r.launch(&add, one(), (k, b.read_write()))?;
                r.launch(&accumulate, one(), (a.read(), b.read_write()))
            },
        )
        .unwrap();
        let [mut from, mut a, mut b] = [(); 3].map(|()| Numbers::zeros(8));
        let (mut in_from, mut in_a, mut in_b) = (0, 0, 0);
        for round in 0..20 {
            let (mine, its) = match round % 2 {
                0 => (&one_stream, &other),
                _ => (&other, &one_stream),
            };
            add.launch_on(its, one(), (1, &mut from)).unwrap();
            chain.launch_on(mine, (2, &from, &mut a, &mut b)).unwrap();
            in_from += 1;
            in_a += in_from;
            in_b += 2 + in_a;
            if round % 3 == 0 {
                add.launch_on(its, one(), (5, &mut a)).unwrap();
                in_a += 5;
            }
        }
        assert_eq!([from, a, b].map(|x| x.get(7).unwrap()), [in_from, in_a, in_b], "{device}");
        assert_no_hazards(&device);
    }
}

#[test]
fn a_chain_is_awaited_once() {
    for device in devices() {
        let (stream, mut array) = (device.new_stream().unwrap(), numbers(4));
        adds(8).repeat_on(&stream, 10, (1, &mut array)).unwrap();
        block_on(async { stream.done().await }).unwrap();
        assert!(stream.is_idle().unwrap());
        assert_eq!(seen(&array), [80, 81, 82, 83]);
    }
}

#[test]
fn threads_replay_one_chain_side_by_side() {
    for device in [Device::cpu(), Device::emulated(Emulation::new())] {
        let twice = twice();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (twice, device) = (twice.clone(), device.clone());
                scope.spawn(move || {
                    let stream =
                        if thread == 0 { device.stream() } else { device.new_stream().unwrap() };
                    let mut array = numbers(30);
                    for _ in 0..50 {
                        let scratch = Temp::like(&array);
                        twice.launch_on(&stream, (1, &mut array, scratch)).unwrap();
                    }
                    assert_eq!(seen(&array), (100..130).collect::<Vec<_>>());
                });
            }
        });
        assert_no_hazards(&device);
    }
}

#[test]
fn replays_go_on_while_an_array_says_so() {
    let count = Kernel::<(u32, InOut<u32>, Out<u32>)>::new("count").host(|_, (end, n, go_on)| {
        n[0] += 1;
        go_on[0] = u32::from(n[0] < end);
    });
    let chain =
        Chain::<(u32, InOut<u32, Ix1>, Temp<u32, Ix1>)>::record("count", |r, (end, n, go_on)| {
            r.launch(&count, one(), (end, n.read_write(), go_on.write()))?;
            r.repeat_while(go_on.read())
        })
        .unwrap();
    for device in devices() {
        let stream = device.new_stream().unwrap();
        let ran = |most, every, end| {
            let mut n = Numbers::zeros(1);
            let ran = chain.repeat_while_on(&stream, most, every, (end, &mut n, Temp::shape(1)));
            (ran.unwrap(), n.get(0).unwrap())
        };
        assert_eq!(ran(100, 1, 5), (5, 5));
        assert_eq!(ran(100, 4, 5), (8, 8));
        assert_eq!(ran(7, 4, 50), (7, 7));
        assert_eq!(ran(0, 4, 50), (0, 0));
        assert_no_hazards(&device);
    }
}

#[test]
fn what_repeats_needs_an_array_of_one_element() {
    let stream = Device::cpu().stream();
    let (mut array, unnamed) = (numbers(2), adds(1));
    let refused = unnamed.repeat_while_on(&stream, 1, 1, (1, &mut array));
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    let chain = Chain::<(InOut<u32, Ix1>,)>::record("named", |r, (a,)| {
        r.fill(a.write(), 1)?;
        r.repeat_while(a.read())
    })
    .unwrap();
    for (most, every, text) in [(2, 1, "shape [2]"), (0, 1, "shape [2]"), (2, 0, "every 0 replays")]
    {
        let refused = chain.repeat_while_on(&stream, most, every, (&mut array,)).unwrap_err();
        assert!(refused.to_string().contains(text), "{refused}");
    }
    assert_eq!(seen(&array), [0, 1], "nothing was queued");
    let none = [
        unnamed.repeat_while_on(&stream, 0, 1, (1, &mut array)),
        chain.repeat_while_on(&stream, 0, 0, (&mut array,)),
    ];
    for refused in none {
        assert!(matches!(refused, Err(Error::Shape { .. })), "0 replays: {refused:?}");
    }
}

#[test]
fn grids_follow_the_arguments_of_a_replay() {
    let threads = Kernel::<(Out<u32>,)>::new("threads").host(|grid, (n,)| {
        n[0] = (grid.blocks().count() * grid.threads().count()) as u32;
    });
    type Sized = Chain<(u32, In<u32, Ix2>, Out<u32, Ix1>)>;
    let chain = Sized::record("sized", |r, (_, _, n)| {
        let grid = |(k, a, _): (u32, Described, Described)| Grid::new(a.shape()[0] as u32, k);
        r.launch(&threads, grid, (n.write(),))
    })
    .unwrap();
    let stream = Device::cpu().new_stream().unwrap();
    let mut n = Numbers::uninit(1);
    for (rows, k) in [(3, 4), (3, 5), (7, 5), (3, 4)] {
        let a = SmartArray::<u32, Ix2>::zeros((rows, 2));
        chain.launch_on(&stream, (k, &a, &mut n)).unwrap();
        assert_eq!(n.get(0), Ok(rows as u32 * k));
    }
}

#[test]
fn a_step_without_threads_is_left_out() {
    let plus = plus();
    let chain = Chain::<(u32, In<u32, Ix1>, Temp<u32, Ix1>, InOut<u32, Ix1>)>::record(
        "some threads",
        |r, (_, a, tmp, b)| {
            let grid = |(threads, ..): (u32, Described, Described, Described)| {
                Grid::cover(threads as usize)
            };
            r.launch(&plus, grid, (1, a.read(), tmp.write()))?;
            r.launch(&plus, grid, (1, tmp.read(), b.write()))
        },
    )
    .unwrap();
    let stream = Device::cpu().new_stream().unwrap();
    let (a, mut b) = (numbers(5), Numbers::zeros(5));
    for (threads, expected) in [(0, [0; 5]), (1, [2, 3, 4, 5, 6]), (0, [2, 3, 4, 5, 6])] {
        chain.launch_on(&stream, (threads, &a, Temp::like(&a), &mut b)).unwrap();
        assert_eq!(seen(&b), expected, "{threads}");
    }
    let half = Chain::<(u32, Temp<u32, Ix1>, InOut<u32, Ix1>)>::record("half", |r, (_, tmp, b)| {
        let none = |(threads, ..): (u32, Described, Described)| Grid::cover(threads as usize);
        r.launch(&plus, none, (1, b.read(), tmp.write()))?;
        r.launch(&plus, one(), (1, tmp.read(), b.write()))
    })
    .unwrap();
    let scratch = Temp::like(&b);
    let refused = half.launch_on(&stream, (0, scratch, &mut b)).unwrap_err();
    assert!(matches!(refused, Error::Uninitialised { .. }), "{refused}");
    half.launch_on(&stream, (1, scratch, &mut b)).unwrap();
    assert_eq!(seen(&b), [4, 5, 6, 7, 8]);
}

/// One array, and parts of it that overlap, as two inputs of a chain and of a step.
#[test]
fn inputs_may_share_elements() {
    let sum = Kernel::<(In<u32>, In<u32>, Out<u32>)>::new("sum").host(|_, (a, b, c)| {
        c.iter_mut().zip(a.iter().zip(b)).for_each(|(c, (a, b))| *c = a + b);
    });
    type Sums = Chain<(In<u32, Ix1>, In<u32, Ix1>, Out<u32, Ix1>, Temp<u32, Ix1>)>;
    let sums = Sums::record("sums", |r, (a, b, c, tmp)| {
        r.launch(&sum, one(), (a.read(), b.read(), tmp.write()))?;
        r.launch(&sum, one(), (tmp.read(), tmp.read(), c.write()))?;
        r.launch(&sum, one(), (a.read(), b.read(), tmp.write()))
    })
    .unwrap();
    for device in devices() {
        let [stream, other] = [(); 2].map(|()| device.new_stream().unwrap());
        let (mut a, mut c) = (numbers(9), Numbers::uninit(9));
        for _ in 0..3 {
            sums.launch_on(&stream, (&a, &a, &mut c, Temp::like(&a))).unwrap();
            add().launch_on(&other, one(), (1, &mut a)).unwrap();
        }
        assert_eq!(seen(&c), (0..9).map(|x| 4 * (x + 2)).collect::<Vec<_>>());
        let (x, y, mut z) = (a.slice(s![..6]), a.slice(s![3..]), Numbers::uninit(6));
        sums.launch_on(&stream, (&x, &y, &mut z, Temp::shape(6))).unwrap();
        assert_eq!(seen(&z), (0..6).map(|i| 2 * (i + 3 + i + 6)).collect::<Vec<_>>());
        assert_no_hazards(&device);
    }
}

/// The last step that reads an array comes after the last that writes it.
#[test]
fn arrays_change_right_after_a_replay_that_read_them_last() {
    let (plus, slow) = (plus(), Kernel::<(In<u32>, Out<u32>)>::new("slow"));
    let slow = slow.host(|_, (a, b)| {
        std::thread::sleep(std::time::Duration::from_millis(2));
        b.copy_from_slice(a);
    });
    let chain = Chain::<(InOut<u32, Ix1>, Out<u32, Ix1>, Temp<u32, Ix1>)>::record(
        "slow at last",
        |r, (a, b, tmp)| {
            r.launch(&plus, one(), (1, a.read(), tmp.write()))?;
            r.copy(tmp.read(), a.write())?;
            r.launch(&slow, one(), (a.read(), b.write()))
        },
    )
    .unwrap();
    for device in devices() {
        let [stream, other] = [(); 2].map(|()| device.new_stream().unwrap());
        let (mut a, mut b, mut expected) = (Numbers::zeros(64), Numbers::uninit(64), 0);
        for round in 0..10 {
            chain.launch_on(&stream, (&mut a, &mut b, Temp::shape(64))).unwrap();
            let read_by_chain = expected + 1;
            expected = read_by_chain;
            if round % 2 == 0 {
                expected = 100 * round;
                a.host_mut().unwrap().fill(expected);
            }
            add().launch_on(&other, one(), (3, &mut a)).unwrap();
            expected += 3;
            assert_eq!(b.get(63), Ok(read_by_chain), "{device}");
        }
        assert_eq!(a.get(63), Ok(expected));
        assert_no_hazards(&device);
    }
}
