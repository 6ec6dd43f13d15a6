//! A full device keeps its promises: explicit arrays stay, and there is memory if what is in use
//! fits, whichever threads ask for it at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use support::prelude::*;

type Bytes = SmartArray<u8, Ix1>;
type Explicit = DeviceArray<u8, Ix1>;

fn with_memory(len_bytes: u64) -> Device {
    Device::emulated(Emulation::new().memory(len_bytes))
}

fn bytes(len: usize) -> Bytes {
    Bytes::from(vec![1; len])
}

fn address(array: &Explicit, stream: &Stream) -> u64 {
    array.gpu_on(stream).expect("a device array has its memory").address()
}

fn is_full<T>(outcome: &Result<T>) -> bool {
    matches!(outcome, Err(Error::OutOfMemory { .. }))
}

/// The ways to make a device array of 100 bytes.
fn explicit_arrays(stream: &Stream) -> Result<Vec<Explicit>> {
    let device = stream.device();
    let mut written = Explicit::uninit_on(stream, 100)?;
    written.fill_on(stream, 3)?;
    let like = Explicit::like_on(stream, &written)?;
    let mut halves = Explicit::uninit_on(stream, 100)?;
    halves.slice_mut(s![..50]).fill_on(stream, 4)?;
    Ok(vec![
        written,
        like,
        halves,
        Explicit::uninit_on(stream, 100)?,
        Explicit::zeros_on(stream, 100)?,
        Explicit::full_on(stream, 100, 1)?,
        Explicit::full_on(stream, 100, 7)?,
        Explicit::from_host_on(stream, &Array1::zeros(100))?,
        bytes(100).into_device(&device)?,
        Bytes::zeros(100).into_device(&device)?,
        SmartArray::from_device(Explicit::zeros_on(stream, 100)?).into_device(&device)?,
    ])
}

#[test]
fn device_arrays_keep_their_memory_while_others_need_room() -> Result<()> {
    let device = with_memory(2000);
    let stream = device.stream();
    let mut arrays = explicit_arrays(&stream)?;
    device.synchronize()?;
    assert_eq!(device.memory().in_use, 1100, "all have memory");
    let before: Vec<u64> = arrays[4..].iter().map(|array| address(array, &stream)).collect();
    device.synchronize()?;
    let more = Explicit::uninit_on(&stream, 901);
    assert!(is_full(&more), "1100 of 2000 bytes are taken: {more:?}");
    for len in [900, 700, 500] {
        drop(bytes(len).gpu_on(&stream)?);
        drop(Explicit::uninit_on(&stream, 900)?);
    }
    let after: Vec<u64> = arrays[4..].iter().map(|array| address(array, &stream)).collect();
    assert_eq!(before, after);
    assert_eq!(device.memory().in_use, 1100);
    // What was allocated but never written is there when it is first used.
    arrays[3].copy_from_host_on(&stream, &Array1::from_elem(100, 9))?;
    assert_eq!(arrays[3].copy_to_host()?[99], 9);
    Ok(())
}

#[test]
fn a_device_array_can_be_evicted_once_it_is_coherent_and_stays_once_it_is_explicit() -> Result<()> {
    let device = with_memory(1000);
    let stream = device.stream();
    let coherent = SmartArray::from_device(Explicit::full_on(&stream, 600, 5)?);
    assert_eq!(coherent.host()?.len(), 600);
    drop(bytes(600).gpu_on(&stream)?);
    assert_eq!(coherent.residency().on(&device), Absent);
    let explicit = coherent.into_device(&device)?;
    assert!(is_full(&bytes(600).gpu_on(&stream).map(drop)));
    assert_eq!(explicit.copy_to_host()?[0], 5);
    Ok(())
}

#[test]
fn no_more_is_evicted_than_the_free_bytes_lack() -> Result<()> {
    let device = with_memory(1000);
    let stream = device.stream();
    let [small, large] = [bytes(100), bytes(600)];
    small.prefetch(&stream)?;
    large.prefetch(&stream)?;
    let third = bytes(400);
    third.prefetch(&stream)?; // 300 bytes are free, so `small` is enough
    let here = |array: &Bytes| array.residency().on(&device);
    assert_eq!((here(&small), here(&large)), (Absent, Valid));
    assert_eq!(device.memory().in_use, 1000);
    Ok(())
}

/// `large` is freed behind queued work, so its memory drains when another array needs room.
#[test]
fn no_more_is_evicted_than_free_and_draining_bytes_lack() -> Result<()> {
    let device = Device::emulated(Emulation::new().memory(1000).seed(1));
    let stream = device.stream();
    let read = Kernel::<(In<u8>,)>::new("read").host(|_, _| ());
    let [first, second, large] = [bytes(100), bytes(200), bytes(600)];
    first.prefetch(&stream)?;
    second.prefetch(&stream)?;
    read.launch_on(&stream, Grid::cover(1), (&large,))?;
    drop(large);
    // 100 bytes are free and 600 drain.
    bytes(750).prefetch(&stream)?;
    let here = |array: &Bytes| array.residency().on(&device);
    assert_eq!((here(&first), here(&second)), (Absent, Valid));
    device.synchronize()
}

#[test]
fn a_copy_gives_way_once_its_guards_are_dropped() -> Result<()> {
    let device = with_memory(1000);
    let stream = device.stream();
    let [first, second] = [bytes(600), bytes(600)];
    for _ in 0..3 {
        for array in [&first, &second] {
            let [one, other] = [array.gpu_on(&stream)?, array.gpu_on(&device.new_stream()?)?];
            assert_eq!(one.address(), other.address());
            assert!(is_full(&bytes(600).gpu_on(&stream).map(drop)), "a guard lives");
        }
    }
    Ok(())
}

#[test]
fn a_copy_gives_way_once_a_download_ahead_of_its_use_is_complete() -> Result<()> {
    let device = with_memory(1000);
    let stream = device.stream();
    let slow = Kernel::<(InOut<u8>,)>::new("slow")
        .host(|_, _| std::thread::sleep(std::time::Duration::from_millis(20)));
    let mut first = bytes(600);
    slow.launch_on(&stream, Grid::cover(1), (&mut first,))?;
    first.prefetch_host()?; // queued behind the kernel
    device.synchronize()?;
    bytes(600).prefetch(&stream)?;
    assert_eq!(first.residency().on(&device), Absent);
    Ok(())
}

/// Makes `first_use` of two parts of an array of 1000 bytes at once, each on a thread of its own,
/// on a device with memory for one and a half. Returns the bytes in use.
fn at_once<P: Send>(
    round: usize,
    parts: [P; 2],
    first_use: impl Fn(P, &Stream) -> Result<()> + Sync,
) -> u64 {
    let paged = Emulation::new().page_bytes([0, 16][round % 2]);
    let (device, wall) = (Device::emulated(paged.memory(1500)), Barrier::new(2));
    let outcomes = std::thread::scope(|scope| {
        let threads = parts.map(|part| {
            let (device, wall, first_use) = (&device, &wall, &first_use);
            scope.spawn(move || {
                let stream = device.new_stream()?;
                wall.wait();
                first_use(part, &stream)
            })
        });
        threads.map(|thread| thread.join().expect("no panic"))
    });
    for outcome in outcomes {
        outcome.unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    device.synchronize().expect("nothing fails");
    device.memory().in_use
}

fn first_uses(first_use: impl Fn(&Bytes, usize, &Stream) -> Result<()> + Sync) {
    for round in 0..sampled(60, 300) {
        let array = bytes(1000);
        let in_use = at_once(round, [0, 1], |thread, stream| first_use(&array, thread, stream));
        assert_eq!(in_use, 1000);
    }
}

#[test]
fn threads_that_first_use_parts_of_an_array_allocate_it_once() {
    let read = Kernel::<(In<u8>,)>::new("read").host(|_, _| ());
    let half = |thread: usize| s![500 * thread..500 * thread + 500];
    first_uses(|array, thread, stream| array.slice(half(thread)).gpu_on(stream).map(drop));
    first_uses(|array, thread, stream| array.slice(half(thread)).prefetch(stream));
    first_uses(|array, thread, stream| {
        read.launch_on(stream, Grid::cover(1), (&array.slice(half(thread)),))
    });
    first_uses(|array, _, stream| array.gpu_on(stream).map(drop));
    first_uses(|array, thread, stream| match thread {
        0 => array.host().map(|host| assert_eq!(host[0], 1)),
        // The first byte of the last page.
        _ => array.slice(s![..993]).gpu_on(stream).map(drop),
    });
}

#[test]
fn threads_that_first_write_halves_of_an_array_allocate_it_once() {
    let write = Kernel::<(Out<u8>,)>::new("write").host(|_, (x,)| x.fill(1));
    for round in 0..sampled(60, 300) {
        let mut array = Bytes::uninit(1000);
        let (low, high) = array.split_at_mut(Axis(0), 500);
        let in_use = at_once(round, [low, high], |mut half, stream| match round % 4 {
            0 => write.launch_on(stream, Grid::cover(1), (&mut half,)),
            1 => half.fill_on(stream, 1),
            2 => half.assign_on(stream, &Bytes::ones(500)),
            _ => half.gpu_overwrite_on(stream).map(drop),
        });
        assert_eq!(in_use, 1000);
    }
}

/// On a device that checks kernels, the search for room waits for the write-back. Meanwhile a body
/// queues another launch with the array.
#[test]
fn a_copy_that_is_used_while_it_is_written_back_stays() -> Result<()> {
    let mut kept = 0;
    for (seed, page_bytes) in (0..16).flat_map(|seed| [(seed, 0), (seed, 16)]) {
        let emulation = Emulation::new().page_bytes(page_bytes).sanitize(true);
        let device = Device::emulated(emulation.memory(1100).seed(seed));
        let [stream, other] = [device.new_stream()?, device.new_stream()?];
        let read = Kernel::<(In<u8>,)>::new("read").host(|_, _| ());
        let write = Kernel::<(InOut<u8>,)>::new("write").host(|_, (x,)| x.fill(9));
        let (mut oldest, newer, mut small) = (bytes(500), bytes(500), bytes(10));
        write.launch_on(&stream, Grid::cover(1), (&mut oldest,))?;
        newer.prefetch(&stream)?;
        let (oldest, is_used) = (Arc::new(oldest), Arc::new(AtomicBool::new(false)));
        let again = {
            let (oldest, is_used) = (Arc::clone(&oldest), Arc::clone(&is_used));
            let (stream, device) = (stream.clone(), device.clone());
            Kernel::<(InOut<u8>,)>::new("again").host(move |_, _| {
                if oldest.residency().on(&device) == Valid {
                    let queued = read.launch_on(&stream, Grid::cover(1), (&*oldest,));
                    is_used.store(queued.is_ok(), Ordering::Relaxed);
                }
            })
        };
        again.launch_on(&other, Grid::cover(1), (&mut small,))?;
        bytes(500).prefetch(&stream)?;
        if is_used.load(Ordering::Relaxed) {
            kept += 1;
            assert_eq!(oldest.residency().on(&device), Valid, "{seed}, {page_bytes}");
            assert_eq!(newer.residency().on(&device), Absent, "{seed}, {page_bytes}");
        }
        device.synchronize()?;
        assert_eq!(oldest.host()?[499], 9);
    }
    assert!(kept > 0, "some order of the work uses the array meanwhile");
    Ok(())
}

#[test]
fn a_limit_makes_room_when_it_is_needed_and_ends() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let stream = device.stream();
    let first = bytes(500);
    first.prefetch(&stream)?;
    device.set_memory_limit(Some(600))?;
    assert!(device.capacity()?.total > 600, "the memory of the device is what it was");
    bytes(550).prefetch(&stream)?;
    assert_eq!(first.residency().on(&device), Absent);
    assert!(is_full(&bytes(601).prefetch(&stream)));
    device.set_memory_limit(None)?;
    bytes(601).prefetch(&stream)
}

#[test]
fn arrays_in_memory_of_the_host_count_their_copies() -> Result<()> {
    let _here = Device::cpu().enter();
    let mut mapped = MappedArray::<u8, _>::zeros(100)?;
    mapped.copy_from_host(&Array1::ones(100))?;
    let explicit = DeviceArray::from_host(&Array1::<u8>::ones(100))?;
    assert_eq!((mapped.traffic().to_host.count, explicit.traffic().to_device.bytes), (0, 100));
    Ok(())
}

const THREADS: usize = 4;
/// What each thread may have in use: so all that is in use fits.
const SHARE: usize = 4000;

/// A device array, its address, and its elements.
struct Held {
    array: Explicit,
    address: u64,
    value: u8,
}

/// What one thread has in use.
struct User<'a> {
    stream: Stream,
    shared: &'a [Bytes],
    random: Random,
    explicit: Vec<Held>,
    guards: Vec<resident::DeviceRef<'a, u8, Ix1>>,
    /// Its elements are `value`.
    own: Bytes,
    value: u8,
    /// Whether the newest contents are on the device only.
    is_own_there: bool,
}

impl<'a> User<'a> {
    fn new(device: &Device, shared: &'a [Bytes], seed: u64) -> Result<Self> {
        Ok(Self {
            stream: device.new_stream()?,
            shared,
            random: Random::new(seed),
            explicit: Vec::new(),
            guards: Vec::new(),
            own: bytes(700),
            value: 1,
            is_own_there: false,
        })
    }

    fn in_use_bytes(&self) -> usize {
        let explicit: usize = self.explicit.iter().map(|held| held.array.len()).sum();
        let guards: usize = self.guards.iter().map(resident::DeviceRef::len).sum();
        explicit + guards + if self.is_own_there { self.own.len() } else { 0 }
    }

    /// Gives something up until another `len` bytes fit into the thread's share.
    fn make_room(&mut self, len: usize) -> Result<()> {
        while self.in_use_bytes() + len > SHARE {
            match self.random.below(3) {
                0 => drop(self.guards.pop()),
                1 if !self.explicit.is_empty() => {
                    let index = self.random.below(self.explicit.len());
                    drop(self.explicit.swap_remove(index));
                }
                _ => self.bring_home()?,
            }
        }
        Ok(())
    }

    fn bring_home(&mut self) -> Result<()> {
        assert!(self.own.host()?.iter().all(|element| *element == self.value));
        self.is_own_there = false;
        Ok(())
    }

    fn make_explicit(&mut self) -> Result<()> {
        let len = 1 + self.random.below(900);
        self.make_room(len)?;
        let (stream, value) = (&self.stream, self.random.below(256) as u8);
        let mut array = match self.random.below(4) {
            0 => Explicit::full_on(stream, len, value)?,
            1 => Explicit::from_host_on(stream, &Array1::from_elem(len, value))?,
            2 => Bytes::from(vec![value; len]).into_device(&stream.device())?,
            _ => Explicit::uninit_on(stream, len)?,
        };
        let address = array.gpu_overwrite_on(stream)?.address();
        array.fill_on(stream, value)?;
        self.explicit.push(Held { array, address, value });
        Ok(())
    }

    fn check_explicit(&mut self) -> Result<()> {
        for Held { array, address, value } in &self.explicit {
            assert_eq!(array.gpu_on(&self.stream)?.address(), *address, "its address is constant");
            assert!(array.copy_to_host()?.iter().all(|element| element == value));
        }
        Ok(())
    }

    fn step(&mut self, kernels: &Kernels) -> Result<()> {
        let array = &self.shared[self.random.below(self.shared.len())];
        match self.random.below(8) {
            0 => self.make_explicit(),
            1 => self.check_explicit(),
            2 => {
                self.make_room(array.len())?;
                self.guards.push(array.gpu_on(&self.stream)?);
                Ok(())
            }
            3 => {
                self.make_room(array.len())?;
                array.prefetch(&self.stream)
            }
            4 => {
                self.make_room(array.len() / 2)?;
                self.make_room(array.len())?;
                array.slice(s![..array.len() / 2]).gpu_on(&self.stream).map(drop)
            }
            5 => {
                self.make_room(array.len())?;
                kernels.read.launch_on(&self.stream, Grid::cover(1), (array,))
            }
            6 => {
                self.make_room(self.own.len())?;
                self.is_own_there = true;
                self.value = self.value.wrapping_add(1);
                kernels.increment.launch_on(&self.stream, Grid::cover(1), (&mut self.own,))
            }
            _ => self.bring_home(),
        }
    }
}

struct Kernels {
    read: Kernel<(In<u8>,)>,
    increment: Kernel<(InOut<u8>,)>,
}

fn use_at_random(device: &Device, seed: u64) {
    let kernels = Kernels {
        read: Kernel::<(In<u8>,)>::new("read").host(|_, (x,)| assert!(x.iter().all(|x| *x == 1))),
        increment: Kernel::<(InOut<u8>,)>::new("increment")
            .host(|_, (x,)| x.iter_mut().for_each(|x| *x = x.wrapping_add(1))),
    };
    let mut random = Random::new(seed);
    let shared: Vec<Bytes> = (0..20).map(|_| bytes(1 + random.below(1500))).collect();
    let users: Vec<User<'_>> = std::thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|thread| {
            let (shared, kernels) = (&shared, &kernels);
            scope.spawn(move || {
                let seed = seed * THREADS as u64 + thread;
                let mut user = User::new(device, shared, seed).expect("a stream");
                for step in 0..150 {
                    user.step(kernels).unwrap_or_else(|error| panic!("step {step}: {error}"));
                }
                user
            })
        });
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    device.synchronize().expect("nothing fails");
    let all = shared.iter().chain(users.iter().map(|user| &user.own));
    let present = all.filter(|array| array.residency().on(device) != Absent);
    let coherent_bytes: usize = present.map(|array| array.len()).sum();
    let explicit = users.iter().flat_map(|user| &user.explicit);
    let explicit_bytes: usize = explicit.map(|held| held.array.len()).sum();
    let memory = device.memory();
    let (all, is_paged) = ((coherent_bytes + explicit_bytes) as u64, seed % 2 == 1);
    let is_counted = if is_paged { memory.in_use <= all } else { memory.in_use == all };
    assert!(is_counted, "seed {seed}: {memory:?}, {all} bytes of arrays with memory");
    assert!(memory.in_use + memory.pooled <= (THREADS * SHARE) as u64, "{memory:?}");
    assert_ordered(device);
}

#[test]
fn there_is_memory_if_what_all_threads_use_fits() {
    for seed in 0..sampled(4, 12) {
        // Some arrays have memory for the parts that are used.
        let emulation = Emulation::new().page_bytes(seed % 2 * 64);
        use_at_random(&Device::emulated(emulation.memory((THREADS * SHARE) as u64)), seed);
    }
}

/// The mark of a forgotten guard on memory in place stays, and is no copy that arrives there.
#[test]
fn a_forgotten_guard_of_another_device_keeps_no_copy_on_a_full_one() {
    without_deadlock(|| {
        let (home, full) = (Device::emulated(Emulation::new()), with_memory(1000));
        let _here = home.enter();
        let mapped = MappedArray::from_array(Array1::from_elem(600, 3_u8).view());
        let mut array = SmartArray::from(mapped.expect("memory"));
        std::mem::forget(array.gpu_mut_on(&home.stream()).expect("it is there"));
        array.prefetch(&full.stream()).expect("room");
        bytes(600).prefetch(&full.stream()).expect("the copy is evicted");
        assert_eq!(array.residency().on(&full), Absent);
        assert_eq!(array.host().expect("it is here").to_vec(), [3; 600]);
    });
}
