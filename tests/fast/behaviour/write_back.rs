//! A full device copies what only it has to the host, and frees the copies that were used least
//! recently: results stay exact, and no more bytes are copied than an LRU list needs.

use std::collections::VecDeque;
use std::time::Duration;

use resident::Link;
use support::prelude::*;

type Bytes = SmartArray<u8, Ix1>;

const LEN: usize = 1000;

fn with_memory(len_bytes: u64) -> Device {
    Device::emulated(Emulation::new().memory(len_bytes))
}

fn bytes(value: u8) -> Bytes {
    Bytes::from(vec![value; LEN])
}

fn increment() -> Kernel<(InOut<u8>,)> {
    Kernel::<(InOut<u8>,)>::new("increment")
        .host(|_, (x,)| x.iter_mut().for_each(|x| *x = x.wrapping_add(1)))
}

/// `y += x`.
fn add() -> Kernel<(In<u8>, InOut<u8>)> {
    Kernel::<(In<u8>, InOut<u8>)>::new("add")
        .host(|_, (x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y = y.wrapping_add(*x)))
}

fn launch(array: &mut Bytes, stream: &Stream) -> Result<()> {
    increment().launch_on(stream, Grid::cover(LEN), (array,))
}

fn present(arrays: &[Bytes], device: &Device) -> Vec<usize> {
    let is_there = |index: &usize| arrays[*index].residency().on(device) != Absent;
    (0..arrays.len()).filter(is_there).collect()
}

#[test]
fn what_only_the_device_has_is_written_back_for_the_call_that_needs_room() -> Result<()> {
    let device = with_memory(2500);
    let stream = device.stream();
    let mut arrays = [1, 2, 3].map(bytes);
    let site = line!() + 4;
    let (outcome, report) = audit::capture(|| -> Result<()> {
        launch(&mut arrays[0], &stream)?;
        launch(&mut arrays[1], &stream)?;
        arrays[2].prefetch(&stream)?;
        stream.synchronize()
    });
    outcome?;
    assert_eq!(present(&arrays, &device), [1, 2]);
    assert_eq!(device.traffic().to_host, report.traffic().to_host);
    let sites = report.sites();
    let evicted: Vec<_> = sites.iter().filter(|site| site.cause == audit::Cause::Evict).collect();
    assert_eq!(evicted.len(), 1, "{report}");
    assert_eq!((evicted[0].flow.count, evicted[0].flow.bytes), (1, LEN as u64));
    assert_eq!(evicted[0].location.line(), site);
    assert_eq!(report.evictions().count, 1);
    assert!(arrays[0].host()?.iter().all(|element| *element == 2));
    assert_eq!(device.traffic().to_host.count, 1, "the host has it since the eviction");
    assert_ordered(&device);
    Ok(())
}

#[test]
fn only_the_parts_that_the_host_lacks_are_written_back() -> Result<()> {
    let device = with_memory(1500);
    let stream = device.stream();
    let mut array = bytes(1);
    array.prefetch(&stream)?;
    let mut part = array.slice_mut(s![100..300;2]);
    drop(part.gpu_mut_on(&stream)?);
    array.slice_mut(s![500..600]).fill_on(&stream, 7)?;
    bytes(0).prefetch(&stream)?;
    assert_eq!(array.residency().on(&device), Absent);
    assert_eq!(array.traffic().to_host.bytes, 100, "neither the constant nor what the host has");
    let host = array.host()?;
    assert_eq!((host[100], host[550], host[999]), (1, 7, 1));
    Ok(())
}

#[test]
fn an_array_without_host_memory_gets_some() -> Result<()> {
    let device = with_memory(1500);
    let stream = device.stream();
    let set = Kernel::<(Out<u8>,)>::new("set").host(|_, (x,)| x.fill(9));
    let mut array = Bytes::uninit(LEN);
    set.launch_on(&stream, Grid::cover(LEN), (&mut array,))?;
    let mut half = Bytes::uninit(LEN);
    drop(half.slice_mut(s![..10]).gpu_overwrite_on(&stream)?);
    bytes(0).prefetch(&stream)?;
    assert_eq!((array.residency().host(), half.traffic().to_host.bytes), (Valid, 10));
    assert!(array.host()?.iter().all(|element| *element == 9));
    assert!(matches!(half.host(), Err(Error::Uninitialised { .. })));
    Ok(())
}

/// How an array is used on a stream.
type Use = fn(&mut Bytes, &Stream) -> Result<()>;

#[test]
fn the_copy_that_was_used_least_recently_gives_way() -> Result<()> {
    let uses: [(&str, Use); 6] = [
        ("launch", |array, stream| launch(array, stream)),
        ("read guard", |array, stream| array.gpu_on(stream).map(drop)),
        ("write guard", |array, stream| array.gpu_mut_on(stream).map(drop)),
        ("part", |array, stream| {
            increment().launch_on(stream, Grid::cover(9), (&mut array.slice_mut(s![..9]),))
        }),
        ("fill", |array, stream| array.fill_on(stream, 3)),
        ("download", |array, _| array.get(3).map(drop)),
    ];
    for (name, each) in uses {
        for streams in [1, 3] {
            let device = with_memory(3500);
            let streams = (0..streams).map(|_| device.new_stream()).collect::<Result<Vec<_>>>()?;
            let stream = |number: usize| &streams[number % streams.len()];
            let mut arrays: Vec<Bytes> = (0..4).map(bytes).collect();
            // Launches of one stream with one array soon leave only a summary.
            for round in 0..3 {
                for index in [0, 1, 2] {
                    launch(&mut arrays[index], stream(index + round / 2))?;
                }
            }
            each(&mut arrays[1], stream(1))?;
            each(&mut arrays[0], stream(0))?;
            launch(&mut arrays[3], stream(3))?;
            assert_eq!(present(&arrays, &device), [0, 1, 3], "{name}");
            launch(&mut arrays[2], stream(2))?;
            assert_eq!(present(&arrays, &device), [0, 2, 3], "{name}");
            assert_eq!(arrays[2].host()?[9], 6, "{name}");
        }
    }
    Ok(())
}

#[test]
fn a_use_is_later_than_the_one_before_it_whatever_they_are() -> Result<()> {
    let prefetch: Use = |array, stream| array.prefetch(stream);
    let read: Use = |array, stream| {
        let show = Kernel::<(In<u8>,)>::new("show").host(|_grid, _| ());
        show.launch_on(stream, Grid::cover(1), (&*array,))
    };
    for (one, other) in [(read, prefetch), (prefetch, read), (read, read), (prefetch, prefetch)] {
        let device = with_memory(2500);
        let (stream, mut arrays) = (device.stream(), [bytes(0), bytes(1), bytes(2)]);
        one(&mut arrays[0], &stream)?;
        other(&mut arrays[1], &stream)?;
        read(&mut arrays[0], &stream)?;
        device.synchronize()?;
        prefetch(&mut arrays[2], &stream)?;
        assert_eq!(present(&arrays, &device), [0, 2]);
    }
    Ok(())
}

#[test]
fn of_the_arguments_of_one_launch_what_the_host_has_gives_way_first() -> Result<()> {
    for is_first in [true, false] {
        let device = with_memory(2500);
        let stream = device.stream();
        let mut arrays = [1, 2, 3].map(bytes);
        let [one, two, three] = &mut arrays;
        if is_first {
            add().launch_on(&stream, Grid::cover(LEN), (&*one, &mut *two))?;
        } else {
            add().launch_on(&stream, Grid::cover(LEN), (&*two, &mut *one))?;
        }
        three.prefetch(&stream)?;
        assert_eq!(present(&arrays, &device), [usize::from(is_first), 2]);
        assert_eq!(device.traffic().to_host.count, 0, "nothing had to be written back");
    }
    Ok(())
}

#[test]
fn a_limit_makes_room_at_once_and_is_read_back() -> Result<()> {
    for device in [Device::emulated(Emulation::new().memory(1 << 20)), lab()] {
        let stream = device.stream();
        let mut arrays: Vec<Bytes> = (0..4).map(bytes).collect();
        for array in &mut arrays {
            launch(array, &stream)?;
            drop(array.gpu_on(&stream)?);
        }
        drop(bytes(9).gpu_on(&stream)?); // its memory is pooled, or drains
        assert_eq!(device.memory_limit(), None);
        device.set_memory_limit(Some(3000))?;
        let memory = device.memory();
        assert_eq!((memory.in_use, memory.pooled, device.memory_limit()), (3000, 0, Some(3000)));
        assert_eq!(present(&arrays, &device), [1, 2, 3]);
        let _guard = arrays[3].gpu_on(&stream)?;
        let refused = device.set_memory_limit(Some(999)).expect_err("a guard has 1000 bytes");
        assert!(matches!(refused, Error::OutOfMemory { .. }), "{refused}");
        assert_eq!((device.memory_limit(), device.memory().in_use), (Some(3000), 1000));
        device.set_memory_limit(Some(1000))?;
        assert!(matches!(bytes(0).prefetch(&stream), Err(Error::OutOfMemory { .. })));
        device.set_memory_limit(None)?;
        assert_eq!(device.memory_limit(), None);
        for (value, array) in arrays.iter().enumerate() {
            assert_eq!(array.host()?[LEN - 1], value as u8 + 1);
        }
    }
    Ok(())
}

#[test]
fn memory_that_is_kept_for_reuse_counts_against_a_limit() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    drop(bytes(0).gpu_on(&stream)?);
    device.synchronize()?;
    assert_eq!(device.memory().pooled, LEN as u64);
    device.set_memory_limit(Some(1500))?;
    drop(SmartArray::from(vec![0_u8; 600]).gpu_on(&stream)?);
    device.synchronize()?;
    assert!(device.memory().pooled <= 1500, "{:?}", device.memory());
    let kept = bytes(1);
    drop(kept.gpu_on(&stream)?);
    let memory = device.memory();
    assert!(memory.in_use + memory.pooled <= 1500, "{memory:?}");
    Ok(())
}

#[test]
fn a_full_device_waits_for_work_that_reads_and_for_downloads() -> Result<()> {
    let read = Kernel::<(In<u8>,)>::new("read").host(|_, _| ());
    for seed in 0..8 {
        for seeded in [true, false] {
            let emulation = Emulation::new().memory(1500);
            let device = Device::emulated(if seeded { emulation.seed(seed) } else { emulation });
            let (stream, other) = (device.stream(), device.new_stream()?);
            let mut array = bytes(1);
            read.launch_on(&stream, Grid::cover(1), (&array,))?;
            let second = bytes(2);
            second.prefetch(&other)?;
            launch(&mut array, &stream)?;
            array.prefetch_host()?;
            second.prefetch(&other)?;
            assert_eq!(array.residency().on(&device), Absent);
            assert_eq!(array.host()?[1], 2);
            assert_eq!(array.traffic().to_host.count, 1, "the download was under way");
            assert_ordered(&device);
        }
    }
    Ok(())
}

#[test]
fn a_failed_write_back_loses_what_only_the_device_had_and_says_so() -> Result<()> {
    for (late, seeded) in [(false, false), (false, true), (true, true)] {
        let fault = Fault::nth(1).of(CallKind::Download);
        let fault = if late { fault.late() } else { fault };
        let emulation = Emulation::new().memory(1500).fail(fault);
        let device = Device::emulated(if seeded { emulation.seed(1) } else { emulation });
        let stream = device.stream();
        let mut array = bytes(1).named("state");
        drop(array.slice_mut(s![..100]).gpu_mut_on(&stream)?);
        bytes(2).prefetch(&stream)?;
        if !late {
            // The contents stayed where they were, and the next attempt copied them.
            assert_eq!((array.residency().on(&device), array.host()?[5]), (Absent, 1));
            continue;
        }
        assert_eq!(array.slice(s![100..]).host()?[5], 1, "the host had it");
        let Err(Error::Lost { array: name, operation, .. }) = array.host() else {
            panic!("{:?}", array.host())
        };
        assert_eq!(name, "\"state\"");
        assert!(operation.contains("write-back of \"state\""), "{operation}");
        let reported = device.synchronize().expect_err("once").to_string();
        assert!(reported.contains("are lost until they are overwritten"), "{reported}");
        device.synchronize()?;
        array.fill(4)?;
        assert_eq!(array.host()?[5], 4);
    }
    Ok(())
}

#[test]
fn a_failed_kernel_loses_only_its_own_part_of_what_is_written_back() -> Result<()> {
    let set = Kernel::<(u8, Out<u8>)>::new("set").host(|_, (value, x)| x.fill(value));
    let parts = [600..LEN, 0..300, 300..600];
    for (seed, page_bytes, failed) in (0..6).flat_map(|seed| {
        [0, 50, 100]
            .into_iter()
            .flat_map(move |page| (0..3).map(move |failed| (seed, page, failed)))
    }) {
        let fault = Fault::nth(failed as u64 + 1).of(CallKind::Launch).late();
        // The other array needs all pages.
        let emulation = Emulation::new().memory(LEN as u64).page_bytes(page_bytes).seed(seed);
        let device = Device::emulated(emulation.fail(fault));
        let (stream, other) = (device.stream(), device.new_stream()?);
        let mut array = bytes(0);
        set.launch_on(&stream, Grid::cover(1), (1, &mut array))?;
        set.launch_on(&stream, Grid::cover(1), (2, &mut array.slice_mut(s![..300])))?;
        set.launch_on(&other, Grid::cover(1), (3, &mut array.slice_mut(s![300..600])))?;
        bytes(9).prefetch(&stream)?;
        assert_eq!(array.residency().on(&device), Absent);
        for (number, part) in parts.iter().enumerate() {
            let at = format!("part {number}, kernel {failed} failed, seed {seed}, {page_bytes}");
            match array.slice(s![part.clone()]).host() {
                Ok(host) => {
                    assert!(number != failed, "{at}");
                    assert!(host.iter().all(|element| usize::from(*element) == number + 1), "{at}");
                }
                Err(Error::Lost { .. }) => assert_eq!(number, failed, "{at}"),
                Err(error) => panic!("{at}: {error}"),
            }
        }
        assert_ordered(&device);
    }
    Ok(())
}

#[test]
fn the_error_names_what_is_in_use() -> Result<()> {
    let device = with_memory(3500);
    let stream = device.stream();
    let explicit = DeviceArray::<u8, _>::zeros_on(&stream, 600)?.named("table");
    let guarded = bytes(1).named("guarded");
    let guard = guarded.gpu_on(&stream)?;
    let argument = bytes(2).named("argument");
    let mut other = Bytes::from(vec![0; 2000]).named("other");
    let refused = Kernel::<(In<u8>, InOut<u8>)>::new("add")
        .host(|_, _| ())
        .launch_on(&stream, Grid::cover(1), (&argument, &mut other))
        .expect_err("2600 bytes are in use")
        .to_string();
    let made = format!("made at {}", file!());
    let expected = [
        "\"other\" needs 2000 bytes",
        "of at most 3500",
        "\"guarded\" (1_000 bytes, with a guard, made at",
        "\"argument\" (1_000 bytes, an argument of a call under way, made at",
        "\"table\" (600 bytes, a device array, made at",
        "drop guards",
        &made,
    ];
    for words in expected {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    drop((guard, explicit));
    increment().launch_on(&stream, Grid::cover(1), (&mut other,))?;
    // Nothing would help here.
    let refused = SmartArray::from(vec![0_u8; 4000]).prefetch(&stream).expect_err("too large");
    assert!(!refused.to_string().contains("in use:"), "{refused}");
    Ok(())
}

/// A least recently used list of arrays on a device with room for some of them.
struct Lru {
    room: usize,
    /// The arrays that are there, the least recently used first, and whether only the device has
    /// their contents.
    there: VecDeque<(usize, bool)>,
    copies: usize,
}

impl Lru {
    /// A use by a launch, whose arguments do not give way to each other.
    fn launch(&mut self, arguments: &[(usize, bool)]) {
        for (array, _) in arguments {
            let known = self.there.iter().position(|(known, _)| known == array);
            let there = known.and_then(|index| self.there.remove(index));
            self.there.extend(there);
        }
        arguments.iter().for_each(|(array, writes)| self.touch(*array, *writes));
    }

    fn touch(&mut self, array: usize, writes: bool) {
        let known = self.there.iter().position(|(known, _)| *known == array);
        let was_newest = match known.and_then(|index| self.there.remove(index)) {
            Some((_, is_newest)) => is_newest,
            None => {
                if self.there.len() == self.room {
                    let is_newest = self.there.pop_front().is_some_and(|(_, is_newest)| is_newest);
                    self.copies += usize::from(is_newest);
                }
                self.copies += 1;
                false
            }
        };
        self.there.push_back((array, was_newest || writes));
    }
}

/// A chain over four times as many arrays as the device holds, or a random one. Each step adds an
/// array to the next one.
fn chain(emulation: Emulation, streams: usize, next: impl Fn(usize) -> (usize, usize)) -> f64 {
    const ROOM: usize = 6;
    const ARRAYS: usize = 4 * ROOM;
    let device = Device::emulated(emulation);
    device.set_memory_limit(Some((ROOM * LEN) as u64)).expect("nothing is in use");
    let streams: Vec<Stream> =
        (0..streams).map(|_| device.new_stream().expect("a stream")).collect();
    let mut arrays: Vec<Bytes> = (0..ARRAYS).map(|value| bytes(value as u8)).collect();
    let mut expected: Vec<u8> = (0..ARRAYS).map(|value| value as u8).collect();
    let mut lru = Lru { room: ROOM, there: VecDeque::new(), copies: 0 };
    let add = add();
    for step in 0..100 {
        let (from, to) = next(step);
        let (from, to) = (from % ARRAYS, to % ARRAYS);
        if from == to {
            continue;
        }
        lru.launch(&[(from, false), (to, true)]);
        expected[to] = expected[to].wrapping_add(expected[from]);
        let [from, to] = arrays.get_disjoint_mut([from, to]).expect("two arrays");
        let stream = &streams[step % streams.len()];
        add.launch_on(stream, Grid::cover(LEN), (&*from, to)).expect("what is in use fits");
        let memory = device.memory();
        assert!(memory.in_use + memory.pooled <= (ROOM * LEN) as u64, "{memory:?}");
    }
    let traffic = device.traffic();
    for (array, expected) in arrays.iter().zip(expected) {
        assert!(array.host().expect("nothing is lost").iter().all(|x| *x == expected));
    }
    assert_ordered(&device);
    let moved = traffic.to_device.bytes + traffic.to_host.bytes;
    moved as f64 / (lru.copies * LEN) as f64
}

#[test]
fn a_chain_over_four_times_the_limit_is_exact_and_copies_no_more_than_an_lru_list() {
    let emulations =
        [Emulation::new(), Emulation::new().seed(3), Emulation::new().pieces(100).poison(true)];
    for emulation in emulations {
        for streams in [1, 3] {
            let ratio = chain(emulation.clone(), streams, |step| (step, step + 1));
            assert!(ratio <= 1.01, "in turn: {ratio}");
            for seed in 0..2 {
                let drawn = |step: usize| {
                    let mut random = Random::new(1000 * seed + step as u64);
                    // Some arrays are used more often than others.
                    let mut draw = || {
                        let most = 1 + random.below(24);
                        random.below(most)
                    };
                    (draw(), draw())
                };
                let ratio = chain(emulation.clone(), streams, drawn);
                assert!(ratio <= 1.02, "seed {seed}: {ratio}");
            }
        }
    }
}

/// The first argument gets the room that another array gives up, and not the copies of the others,
/// although they were used less recently.
#[test]
fn arguments_of_one_launch_do_not_give_way_to_each_other() -> Result<()> {
    let sum = Kernel::<(In<u8>, In<u8>, InOut<u8>)>::new("sum")
        .host(|_, (x, y, z)| z.iter_mut().zip(x).zip(y).for_each(|((z, x), y)| *z += x + y));
    for streams in [1, 2] {
        let device = Device::emulated(Emulation::new());
        device.set_memory_limit(Some(3 * LEN as u64))?;
        let streams = (0..streams).map(|_| device.new_stream()).collect::<Result<Vec<_>>>()?;
        let stream = |number: usize| &streams[number % streams.len()];
        let [x, mut y, mut z, other] = [1, 2, 3, 4].map(bytes);
        for round in 0..10 {
            launch(&mut y, stream(round))?;
            launch(&mut z, stream(round))?;
            other.prefetch(stream(round))?;
            let before = device.traffic();
            sum.launch_on(stream(round + 1), Grid::cover(LEN), (&x, &y, &mut z))?;
            let after = device.traffic();
            assert_eq!(
                (after.to_device.count, after.to_host),
                (before.to_device.count + 1, before.to_host)
            );
            assert_eq!(other.residency().on(&device), Absent);
        }
        assert_eq!((y.get(5)?, z.get(5)?), (12, 3 + 10 + 10 + 75));
    }
    Ok(())
}

/// The modelled time of a stream that computes on tiles of which the device holds four of twelve.
fn time_of_tiles(is_prefetched: bool) -> Result<Duration> {
    const TILES: usize = 12;
    // A tile crosses the link in 20 microseconds, and its launches take as long.
    let link = Link { bytes_per_second: 5e7, latency: Duration::ZERO };
    let device = Device::emulated(Emulation::new().seed(5).poison(false).link(link));
    device.set_memory_limit(Some(4 * LEN as u64))?;
    let (stream, copies) = (device.stream(), device.new_stream()?);
    let mut tiles: Vec<Bytes> = (0..TILES).map(|value| bytes(value as u8)).collect();
    let begin = stream.record()?;
    for _ in 0..2 {
        for tile in 0..TILES {
            if is_prefetched {
                tiles[(tile + 1) % TILES].prefetch(&copies)?;
            }
            for _ in 0..20 {
                launch(&mut tiles[tile], &stream)?;
            }
        }
    }
    let end = stream.record()?;
    device.synchronize()?;
    for (value, tile) in tiles.iter().enumerate() {
        assert!(tile.host()?.iter().all(|element| *element == value as u8 + 40));
    }
    assert_eq!(device.traffic().to_host.count, 24, "each tile was written back twice, or read");
    assert_ordered(&device);
    end.elapsed_since(&begin)
}

#[test]
fn copies_to_and_from_a_full_device_overlap_launches() -> Result<()> {
    let (in_turn, overlapped) = (time_of_tiles(false)?, time_of_tiles(true)?);
    let launches = Duration::from_micros(24 * 20);
    assert!(in_turn >= 2 * launches, "{in_turn:?}: uploads and launches, no write-backs");
    assert!(overlapped <= launches + launches / 8, "{overlapped:?}");
    Ok(())
}

#[test]
fn threads_write_back_for_each_other() {
    let device = with_memory(5 * LEN as u64);
    let kernel = increment();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let stream = device.new_stream().expect("a stream");
                let mut arrays: Vec<Bytes> = (0..5).map(bytes).collect();
                for round in 0..sampled(60, 400) {
                    for array in &mut arrays {
                        // Each thread has one array in use.
                        kernel
                            .launch_on(&stream, Grid::cover(LEN), (&mut *array,))
                            .expect("what is in use fits");
                    }
                    let element = &arrays[round % 5];
                    let expected = (round % 5 + round + 1) as u8;
                    if round % 3 == 0 {
                        assert_eq!(element.get(7).expect("it is somewhere"), expected);
                    } else if round % 3 == 1 {
                        assert!(element.host().expect("there").iter().all(|x| *x == expected));
                    } else {
                        let mut host = arrays[round % 5].host_overwrite().expect("no contents");
                        host.fill(expected);
                    }
                }
            });
        }
    });
    assert_ordered(&device);
}
