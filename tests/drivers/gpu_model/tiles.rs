//! Launches on the same parts of arrays, again and again: on one stream for a while, then on
//! several, with other accesses in between. Whether the library remembers the parts or not, a
//! program must see the same. Each of the two stand-ins, `super::face`, has its own copy.

use resident::ndarray::{Array2, Ix2, s};
use resident::{
    CudaSource, Device, Grid, In, InOut, Kernel, Out, Result, SmartArray, SmartView, SmartViewMut,
    Stream,
};
use resident_backend::remembered_parts::{Remember, set};
use support::random::Random;

use super::face::{self as driver, Access, Parameter, declare};

const ROWS: usize = 8;
const COLUMNS: usize = 16;
const STREAMS: usize = 3;

/// Tiles, their borders, and parts that overlap them: the first row and the end, the first column
/// and the end.
const PARTS: [[usize; 4]; 8] = [
    [0, 4, 0, 8],
    [0, 4, 8, 16],
    [4, 8, 0, 8],
    [4, 8, 8, 16],
    [0, 5, 0, 9],
    [3, 8, 7, 16],
    [2, 6, 0, 16],
    [5, 6, 3, 4],
];

const CODE: &str = r#"
extern "C" __global__ void add_sum(resident::View<const unsigned, 2> x,
                                   resident::View<unsigned, 2> y) {
    if (resident::thread() != 0) return;
    unsigned sum = 1;
    for (unsigned long long n = 0; n < x.size(); ++n) sum = sum * 31 + x.at(n);
    for (unsigned long long n = 0; n < y.size(); ++n) y.at(n) += sum;
}
extern "C" __global__ void overwrite(unsigned value, resident::View<unsigned, 2> y) {
    if (resident::thread() != 0) return;
    for (unsigned long long n = 0; n < y.size(); ++n) y.at(n) = value;
}
"#;

type Table = SmartArray<u32, Ix2>;
type AddSum = Kernel<(In<u32, Ix2>, InOut<u32, Ix2>)>;

fn part(table: &Table, [top, bottom, left, right]: [usize; 4]) -> SmartView<'_, u32, Ix2> {
    table.slice(s![top..bottom, left..right])
}

fn part_mut(table: &mut Table, at: [usize; 4]) -> SmartViewMut<'_, u32, Ix2> {
    let [top, bottom, left, right] = at;
    table.slice_mut(s![top..bottom, left..right])
}

fn code(entry: &str) -> CudaSource {
    CudaSource::c(CODE).entry(entry)
}

struct Kernels {
    add_sum: AddSum,
    overwrite: Kernel<(u32, Out<u32, Ix2>)>,
}

impl Kernels {
    fn new() -> Self {
        let view = |access| Parameter::View { dimensions: 2, element_bytes: 4, access };
        declare("add_sum", &[view(Access::Read), view(Access::ReadWrite)]);
        declare("overwrite", &[Parameter::Scalar { len_bytes: 4 }, view(Access::Write)]);
        // SAFETY: it reads its first view and writes its second, each within its shape.
        let add_sum = unsafe { Kernel::new("add_sum").cuda(code("add_sum")) };
        // SAFETY: it writes all of its view and nothing else.
        let overwrite = unsafe { Kernel::new("overwrite").cuda(code("overwrite")) };
        Self { add_sum, overwrite }
    }
}

/// The arrays of a program, and what it has seen so far.
struct World<'a> {
    kernels: &'a Kernels,
    streams: Vec<Stream>,
    tables: [Table; 2],
    random: Random,
    seen: Vec<String>,
}

impl<'a> World<'a> {
    fn new(kernels: &'a Kernels, device: &Device, seed: u64) -> Self {
        let streams = (0..STREAMS).map(|_| device.new_stream().expect("a stream")).collect();
        let value = |(row, column)| (row * COLUMNS + column) as u32;
        let tables =
            std::array::from_fn(|_| Table::from(Array2::from_shape_fn((ROWS, COLUMNS), value)));
        Self { kernels, streams, tables, random: Random::new(seed), seen: Vec::new() }
    }

    /// One of the first in most cases, so that the same are used again and again.
    fn often_first(&mut self, count: usize) -> usize {
        let most = 1 + self.random.below(count);
        self.random.below(most)
    }

    fn launch(&mut self, stream: usize) -> Result<()> {
        let (from, to) = (PARTS[self.often_first(8)], PARTS[self.often_first(8)]);
        let is_overwritten = self.random.below(4) == 0;
        let [one, other] = &mut self.tables;
        let (read, written) = if self.random.below(2) == 0 { (one, other) } else { (other, one) };
        let (grid, stream) = (Grid::new(1, 1), &self.streams[stream]);
        let mut written = part_mut(written, to);
        if is_overwritten {
            return self.kernels.overwrite.launch_on(stream, grid, (7, &mut written));
        }
        self.kernels.add_sum.launch_on(stream, grid, (&part(read, from), &mut written))
    }

    /// An access that is no launch.
    fn access(&mut self, kind: usize) -> Result<()> {
        let (table, at) = (self.random.below(2), PARTS[self.often_first(8)]);
        let stream = &self.streams[self.random.below(STREAMS)];
        let table = &mut self.tables[table];
        match kind {
            0 => part_mut(table, at).host_mut()?.mapv_inplace(|x| x + 1),
            1 => self.seen.push(format!("{:?}", part(table, at).host()?)),
            2 => part_mut(table, at).fill(5)?,
            3 => drop(part(table, at).gpu_on(stream)?),
            4 => drop(table.gpu_mut_on(stream)?),
            5 => part(table, at).prefetch(stream)?,
            6 => table.fill(9)?,
            7 => drop(table.gpu_on(stream)?),
            _ => stream.synchronize()?,
        }
        Ok(())
    }

    /// Runs a program, and returns what it has seen.
    fn run(mut self, steps: usize) -> Vec<String> {
        for table in &mut self.tables {
            drop(table.gpu_mut_on(&self.streams[0]).expect("memory"));
        }
        for step in 0..steps {
            let stream = if step / 40 % 2 == 0 { 0 } else { self.random.below(STREAMS) };
            match self.random.below(60) {
                kind @ 0..=8 => self.access(kind),
                _ => self.launch(stream),
            }
            .expect("nothing fails");
            let tables = self.tables.each_ref();
            let seen = tables.map(|table| (table.residency(), table.traffic()));
            self.seen.push(format!("{step}: {seen:?}"));
        }
        for table in &self.tables {
            self.seen.push(format!("{:?}", table.host().expect("nothing fails").to_owned()));
        }
        self.seen
    }
}

#[test]
fn programs_do_the_same_whether_parts_are_remembered_or_not() {
    support::own_process!();
    driver::load(driver::settings().seed(1)).expect("the stand-in loads");
    driver::load_compiler();
    let (kernels, device) = (Kernels::new(), driver::device(0).expect("a device"));
    for seed in 0..support::cases::sampled(20_u64, 400) {
        let run = |when| {
            set(when);
            let seen = World::new(&kernels, &device, seed).run(240);
            let complaints = [driver::take_hazards(), driver::take_notes()].concat();
            assert_eq!(complaints, Vec::<String>::new(), "seed {seed}, {when:?}");
            driver::take_calls();
            seen
        };
        let expected = run(Remember::Never);
        for when in [Remember::Again, Remember::AtOnce] {
            let seen = run(when);
            let at = seen.iter().zip(&expected).take_while(|(one, other)| one == other).count();
            let differing = (seen.get(at), expected.get(at));
            assert!(seen == expected, "seed {seed}, {when:?}, {at}: {differing:?}");
        }
    }
}
