//! Launches remember the parts that they use again. Whatever another access does to the array in
//! between, a launch must do what it does if it remembers nothing: the same copies, waits, errors
//! and values.

use resident_backend::remembered_parts::{Remember, set};
use support::prelude::*;

const ROWS: usize = 8;
const COLUMNS: usize = 16;
const ARRAYS: usize = 2;
const STREAMS: usize = 3;

/// The first row and the end, the first column and the end.
type Part = [usize; 4];

/// Tiles, their borders, and parts that overlap them.
const PARTS: [Part; 8] = [
    [0, 4, 0, 8],
    [0, 4, 8, 16],
    [4, 8, 0, 8],
    [4, 8, 8, 16],
    [0, 5, 0, 9],
    [3, 8, 7, 16],
    [2, 6, 0, 16],
    [5, 6, 3, 4],
];

type Table = SmartArray<u32, Ix2>;

fn part(table: &Table, [top, bottom, left, right]: Part) -> SmartView<'_, u32, Ix2> {
    table.slice(s![top..bottom, left..right])
}

fn part_mut(table: &mut Table, [top, bottom, left, right]: Part) -> SmartViewMut<'_, u32, Ix2> {
    table.slice_mut(s![top..bottom, left..right])
}

type AddSum = Kernel<(u32, In<u32, Ix2>, InOut<u32, Ix2>)>;

/// Adds the sum of what is read to all that is written. Fails if that is asked for.
fn add_sum() -> AddSum {
    Kernel::<(u32, In<u32, Ix2>, InOut<u32, Ix2>)>::new("add_sum").host(|_, (fails, x, mut y)| {
        assert!(fails == 0, "it is broken");
        let sum = x.iter().fold(1_u32, |sum, x| sum.wrapping_mul(31).wrapping_add(*x));
        y.mapv_inplace(|y| y.wrapping_add(sum));
    })
}

fn overwrite() -> Kernel<(u32, Out<u32, Ix2>)> {
    Kernel::<(u32, Out<u32, Ix2>)>::new("overwrite").host(|_, (value, mut y)| y.fill(value))
}

/// The arrays of a program, what it has seen so far, and where it runs.
struct World {
    device: Device,
    streams: Vec<Stream>,
    tables: [Table; ARRAYS],
    others: Vec<Table>,
    random: Random,
    seen: Vec<String>,
}

impl World {
    fn new(emulation: Emulation, seed: u64) -> Self {
        let device = Device::emulated(emulation.seed(seed));
        let streams = (0..STREAMS).map(|_| device.new_stream().expect("a stream")).collect();
        let tables = std::array::from_fn(|at| Self::table(at as u32));
        let (others, random, seen) = (Vec::new(), Random::new(seed), Vec::new());
        Self { device, streams, tables, others, random, seen }
    }

    fn table(seed: u32) -> Table {
        let value = |(row, column)| seed * 1_000 + (row * COLUMNS + column) as u32;
        Table::from(Array2::from_shape_fn((ROWS, COLUMNS), value))
    }

    /// One of the first in most cases, so that the same are used again and again.
    fn often_first(&mut self, count: usize) -> usize {
        let most = 1 + self.random.below(count);
        self.random.below(most)
    }

    fn launch(&mut self, fails: bool) -> Result<()> {
        let stream = self.often_first(STREAMS);
        let (from, to) = (PARTS[self.often_first(8)], PARTS[self.often_first(8)]);
        let first = self.random.below(4) == 0;
        let [one, other] = &mut self.tables;
        let (read, written) = if first { (one, other) } else { (other, one) };
        let (read, mut written) = (part(read, from), part_mut(written, to));
        let arguments = (u32::from(fails), &read, &mut written);
        add_sum().launch_on(&self.streams[stream], Grid::cover(1), arguments)
    }

    fn overwrite(&mut self) -> Result<()> {
        let (stream, table) = (self.often_first(STREAMS), self.random.below(ARRAYS));
        let at = PARTS[self.often_first(8)];
        let mut part = part_mut(&mut self.tables[table], at);
        overwrite().launch_on(&self.streams[stream], Grid::cover(1), (7, &mut part))
    }

    /// An access that is no launch.
    fn access(&mut self, kind: usize) -> Result<()> {
        let (table, at) = (self.random.below(ARRAYS), PARTS[self.often_first(8)]);
        let stream = &self.streams[self.random.below(STREAMS)];
        let table = &mut self.tables[table];
        match kind {
            0 => part_mut(table, at).host_mut()?.mapv_inplace(|x| x + 1),
            1 => part_mut(table, at).host_overwrite()?.fill(3),
            2 => self.seen.push(format!("{:?}", part(table, at).host()?)),
            3 => part_mut(table, at).fill(5)?,
            4 => drop(part(table, at).gpu_on(stream)?),
            5 => drop(part_mut(table, at).gpu_mut_on(stream)?),
            6 => part(table, at).prefetch(stream)?,
            7 => table.fill(9)?,
            8 => *table = Self::table(40),
            9 => stream.synchronize()?,
            10 => drop(table.gpu_on(stream)?),
            _ => {
                // On a device with little memory, a copy of another array is evicted.
                let other = Self::table(50);
                other.prefetch(stream)?;
                self.others = vec![other];
            }
        }
        Ok(())
    }

    fn step(&mut self) {
        let outcome = match self.random.below(26) {
            0 => self.launch(true),
            kind @ 1..=12 => self.access(kind - 1),
            13 => self.overwrite(),
            _ => self.launch(false),
        };
        if let Err(error) = outcome {
            self.seen.push(error.to_string());
            // What is lost is made anew, so that the program goes on.
            for table in &mut self.tables {
                if table.host().is_err() {
                    *table = Self::table(60);
                }
            }
        }
    }

    /// Runs a program, and returns what it has seen.
    fn run(mut self, steps: usize) -> Vec<String> {
        for _ in 0..steps {
            self.step();
            let (traffic, tables) = (self.device.traffic(), &self.tables);
            let residency = tables.each_ref().map(|table| table.residency());
            let log = self.device.emulation().expect("an emulated device");
            let calls: Vec<CallKind> = log.take_calls().iter().map(|call| call.kind).collect();
            self.seen.push(format!("{calls:?} {traffic:?} {residency:?}"));
        }
        for table in &self.tables {
            self.seen.push(format!("{:?}", table.host().map(|values| values.to_owned())));
        }
        self.seen.push(format!("{:?}", self.device.synchronize()));
        assert_ordered(&self.device);
        let name = self.device.name();
        self.seen.iter().map(|seen| seen.replace(&name, "the device")).collect()
    }
}

/// A launch on a part that is known tells watches of its change.
#[test]
fn a_watch_sees_each_launch_on_a_part() -> Result<()> {
    let device = Device::emulated(Emulation::new().seed(3));
    let (stream, mut table) = (device.new_stream()?, World::table(0));
    let live = table.watch()?;
    for round in 1..=6 {
        let mut part = part_mut(&mut table, PARTS[0]);
        overwrite().launch_on(&stream, Grid::cover(1), (round, &mut part))?;
        let state = live.changed()?.expect("the array lives");
        assert_eq!(state[[0, 0]], round);
    }
    Ok(())
}

/// Guards of the whole array that were handed out without a wait before.
#[test]
fn a_guard_of_another_stream_waits_for_each_launch_on_a_part() -> Result<()> {
    let device = Device::emulated(Emulation::new().seed(3));
    let (one, two) = (device.new_stream()?, device.new_stream()?);
    let log = device.emulation().expect("an emulated device");
    let mut table = World::table(0);
    // Else the rest would stay valid on the host, and no guard be without a wait.
    drop(table.gpu_mut_on(&one)?);
    for round in 1..=6 {
        let mut part = part_mut(&mut table, PARTS[0]);
        overwrite().launch_on(&one, Grid::cover(1), (round, &mut part))?;
        drop(log.take_calls());
        drop(table.gpu_on(&two)?);
        let calls = log.take_calls();
        assert!(calls.iter().any(|call| call.kind == CallKind::WaitEvent), "{round}: {calls:?}");
        drop(table.gpu_on(&two)?);
        assert!(log.take_calls().is_empty());
    }
    Ok(())
}

#[test]
fn memory_of_a_known_part_is_not_evicted_for_another_argument() -> Result<()> {
    let bytes = (ROWS * COLUMNS * 4) as u64;
    let device = Device::emulated(Emulation::new().seed(3).memory(bytes + bytes / 2));
    let (stream, mut first, mut second) = (device.new_stream()?, World::table(0), World::table(1));
    for round in 1..=4 {
        let mut part = part_mut(&mut first, PARTS[0]);
        overwrite().launch_on(&stream, Grid::cover(1), (round, &mut part))?;
    }
    let kernel = Kernel::<(InOut<u32, Ix2>, InOut<u32, Ix2>)>::new("add")
        .host(|_, (mut x, mut y)| (x += 1, y += 1).0);
    let mut parts = (part_mut(&mut first, PARTS[0]), part_mut(&mut second, PARTS[0]));
    let refused = kernel.launch_on(&stream, Grid::cover(1), (&mut parts.0, &mut parts.1));
    assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
    assert_eq!((first.get([0, 0])?, second.get([0, 0])?), (4, 1_000));
    Ok(())
}

/// A name and a device.
type NamedDevice = (&'static str, fn() -> Emulation);

/// Devices with room for all arrays, for few, and with pages.
const DEVICES: [NamedDevice; 4] = [
    ("large", Emulation::new),
    ("small", || Emulation::new().memory((2 * ROWS * COLUMNS * 4) as u64)),
    ("pages", || Emulation::new().page_bytes(16)),
    ("few pages", || Emulation::new().page_bytes(16).memory((2 * ROWS * COLUMNS * 4 - 16) as u64)),
];

#[test]
fn programs_do_the_same_whether_parts_are_remembered_or_not() {
    own_process!();
    for (name, emulation) in DEVICES {
        for seed in 0..sampled(12_u64, 300) {
            let run = |when| {
                set(when);
                World::new(emulation(), seed).run(80)
            };
            let expected = run(Remember::Never);
            for when in [Remember::Again, Remember::AtOnce] {
                let seen = run(when);
                let same = seen.iter().zip(&expected).take_while(|(one, other)| one == other);
                let at = same.count();
                let differing = (seen.get(at), expected.get(at));
                assert_eq!(seen, expected, "{name}, seed {seed}, {when:?}, {at}: {differing:?}");
            }
        }
    }
}
