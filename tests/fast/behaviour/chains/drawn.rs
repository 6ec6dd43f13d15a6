//! Chains of drawn steps, over drawn arrays and parts, between other uses of these arrays, beside
//! plain arrays.

use super::{assert_no_hazards, devices};
use resident::ndarray::{SliceInfo, SliceInfoElem};
use resident::ops::Elementwise;
use resident::{Chain, Temp};
use support::prelude::*;

type Table = SmartArray<u32, Ix2>;
type Values = Array2<u32>;
/// `k`; an input, two arrays that change, an output; two temporaries.
type Plus = Kernel<(u32, In<u32, Ix2>, Out<u32, Ix2>)>;
type Drawn = Chain<(
    u32,
    In<u32, Ix2>,
    InOut<u32, Ix2>,
    InOut<u32, Ix2>,
    Out<u32, Ix2>,
    Temp<u32, Ix2>,
    Temp<u32, Ix2>,
)>;

const ROWS: usize = 12;
const COLUMNS: usize = 10;

/// A part of an array of the chain, by the numbers of the array and of slices of its rows and
/// columns. Array 0 is the input, 3 the output, and 4 and 5 are the temporaries.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Part(usize, usize, usize);

/// What a step does.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// `to = from + k`.
    Plus(Part, Part),
    /// `to += from`.
    Accumulate(Part, Part),
    /// `to = to * k + from`.
    Apply(Part, Part),
    Copy(Part, Part),
    Fill(Part, Option<u32>),
}

type Slices = SliceInfo<[SliceInfoElem; 2], Ix2, Ix2>;

impl Part {
    /// Slices of one length are pairs, from an even number on.
    fn slices(self) -> Slices {
        let any = |start, end, step| SliceInfoElem::Slice { start, end, step };
        let rows = [any(0, None, 1), any(0, None, -1), any(0, None, 2), any(0, None, -2)];
        let columns = [
            any(0, None, 1),
            any(0, None, -1),
            any(0, Some(1), 1),
            any(-1, None, 1),
            any(1, None, 1),
            any(0, Some(-1), -1),
        ];
        [rows[self.1], columns[self.2]].try_into().expect("two ranges")
    }

    /// A part of another array, in the shape of this one.
    fn like(self, array: usize, random: &mut Random) -> Self {
        let mut twin = |number: usize| number / 2 * 2 + random.below(2);
        Self(array, twin(self.1), twin(self.2))
    }
}

struct Kernels {
    plus: Plus,
    accumulate: Kernel<(In<u32, Ix2>, InOut<u32, Ix2>)>,
    apply: Elementwise<(u32, In<u32>, InOut<u32>)>,
}

fn kernels() -> Kernels {
    Kernels {
        plus: Kernel::<(u32, In<u32, Ix2>, Out<u32, Ix2>)>::new("plus")
            .host(|_, (k, x, mut y)| y.assign(&x.mapv(|x| x.wrapping_add(k)))),
        accumulate: Kernel::<(In<u32, Ix2>, InOut<u32, Ix2>)>::new("accumulate")
            .host(|_, (x, mut y)| y.zip_mut_with(&x, |y, x| *y = y.wrapping_add(*x))),
        apply: Elementwise::new("apply", "y = y * k + x", ["k", "x", "y"])
            .host(|(k, x, y): (u32, u32, &mut u32)| *y = y.wrapping_mul(k).wrapping_add(x)),
    }
}

/// Draws steps that read nothing before it is written.
fn draw(random: &mut Random) -> Vec<Step> {
    let mut written: Vec<Part> = (0..3).map(|array| Part(array, 0, 0)).collect();
    let mut steps = Vec::new();
    for _ in 0..1 + random.below(8) {
        let is_whole = random.below(2) == 0;
        let mut number = |below| if is_whole { 0 } else { random.below(below) };
        let (rows, columns) = (number(4), number(6));
        let to = Part(1 + random.below(5), rows, columns);
        let has_contents =
            |part: Part| written.iter().any(|known| *known == part || *known == Part(part.0, 0, 0));
        let known: Vec<Part> = (0..6).map(|array| to.like(array, random)).collect();
        let known: Vec<Part> =
            known.into_iter().filter(|part| part.0 != to.0 && has_contents(*part)).collect();
        let from = known[random.below(known.len())];
        let step = match random.below(5) {
            0 => Step::Plus(from, to),
            1 if has_contents(to) => Step::Accumulate(from, to),
            2 if has_contents(to) => Step::Apply(from, to),
            3 => Step::Copy(from, to),
            4 => Step::Fill(to, (random.below(2) == 0).then_some(7)),
            _ => continue,
        };
        written.push(to);
        steps.push(step);
    }
    steps
}

/// Calls a method of the symbol with a number, or of a part of it.
macro_rules! symbol {
    ($symbols:ident, $part:expr, $method:ident) => {
        match $part.0 {
            1 => of_part!($symbols.1, $part, $method),
            2 => of_part!($symbols.2, $part, $method),
            3 => of_part!($symbols.3, $part, $method),
            4 => of_part!($symbols.4, $part, $method),
            _ => of_part!($symbols.5, $part, $method),
        }
    };
}

macro_rules! of_part {
    ($symbol:expr, $part:expr, $method:ident) => {
        if ($part.1, $part.2) == (0, 0) {
            $symbol.$method()
        } else {
            $symbol.slice($part.slices()).$method()
        }
    };
}

fn record(kernels: &Kernels, steps: &[Step]) -> Drawn {
    Drawn::record("drawn", |r, (k, a, b, c, d, e, f)| {
        let symbols = (a, b, c, d, e, f);
        let reads = |part: Part| match part.0 {
            0 => of_part!(a, part, read),
            _ => symbol!(symbols, part, read),
        };
        steps.iter().try_for_each(|step| match *step {
            Step::Plus(from, to) => {
                r.launch(&kernels.plus, 1, (k, reads(from), symbol!(symbols, to, write)))
            }
            Step::Accumulate(from, to) => {
                let to = symbol!(symbols, to, read_write);
                r.launch(&kernels.accumulate, 1, (reads(from), to))
            }
            Step::Apply(from, to) => {
                r.apply(&kernels.apply, (k, reads(from), symbol!(symbols, to, read_write)))
            }
            Step::Copy(from, to) => r.copy(reads(from), symbol!(symbols, to, write)),
            Step::Fill(to, Some(value)) => r.fill(symbol!(symbols, to, write), value),
            Step::Fill(to, None) => r.fill(symbol!(symbols, to, write), k),
        })
    })
    .unwrap()
}

/// Does to plain arrays what a replay does.
fn apply(steps: &[Step], k: u32, arrays: &mut [Values; 6]) {
    let mut step = |from: Option<Part>, to: Part, value: &dyn Fn(u32, u32) -> u32| {
        let from = from.unwrap_or(to);
        let from = arrays[from.0].slice(from.slices()).to_owned();
        arrays[to.0].slice_mut(to.slices()).zip_mut_with(&from, |y, x| *y = value(*y, *x));
    };
    for recorded in steps {
        match *recorded {
            Step::Plus(from, to) => step(Some(from), to, &|_, x| x.wrapping_add(k)),
            Step::Accumulate(from, to) => step(Some(from), to, &|y, x| y.wrapping_add(x)),
            Step::Apply(from, to) => {
                step(Some(from), to, &|y, x| y.wrapping_mul(k).wrapping_add(x));
            }
            Step::Copy(from, to) => step(Some(from), to, &|_, x| x),
            Step::Fill(to, value) => step(None, to, &|_, _| value.unwrap_or(k)),
        }
    }
}

/// Where the parts lie that a replay gets: the rows and columns of each, of one shape.
fn draw_parts(random: &mut Random) -> ([(usize, usize); 4], (usize, usize)) {
    let shape = match random.below(4) {
        0 => (ROWS, COLUMNS),
        1 => (0, 3),
        _ => (1 + random.below(4), 1 + random.below(5)),
    };
    let at =
        [(); 4].map(|()| (random.below(ROWS + 1 - shape.0), random.below(COLUMNS + 1 - shape.1)));
    (at, shape)
}

fn numbered(table: usize) -> Values {
    Values::from_shape_fn((ROWS, COLUMNS), |(row, column)| {
        (1000 * table + COLUMNS * row + column) as u32
    })
}

fn drawn_chains(device: &Device, seed: u64) {
    let (kernels, mut random) = (kernels(), Random::new(seed));
    let streams = [device.stream(), device.new_stream().unwrap(), device.new_stream().unwrap()];
    let mut values: [Values; 4] = std::array::from_fn(numbered);
    let mut tables: [Table; 4] = std::array::from_fn(|index| Table::from(values[index].clone()));
    let mut draw_chain = || {
        let steps = draw(&mut random);
        (record(&kernels, &steps), steps)
    };
    let chains = [(); 3].map(|()| draw_chain());
    for _ in 0..sampled(25, 100) {
        let (at, (rows, columns)) = draw_parts(&mut random);
        let part = |(row, column): (usize, usize)| s![row..row + rows, column..column + columns];
        let (chain, steps) = &chains[random.below(chains.len())];
        let (count, k) = (random.below(3) as u64, random.below(4) as u32);
        let stream = &streams[random.below(streams.len())];
        let scratch = Temp::shape((rows, columns));
        let [a, b, c, d] = &mut tables;
        let arguments = (
            k,
            &a.slice(part(at[0])),
            &mut b.slice_mut(part(at[1])),
            &mut c.slice_mut(part(at[2])),
            &mut d.slice_mut(part(at[3])),
            scratch,
            scratch,
        );
        chain.repeat_on(stream, count, arguments).unwrap();
        let mut arrays: [Values; 6] = std::array::from_fn(|index| match values.get(index) {
            Some(values) => values.slice(part(at[index])).to_owned(),
            None => Values::zeros((rows, columns)),
        });
        (0..count).for_each(|_| apply(steps, k, &mut arrays));
        for ((values, at), changed) in values.iter_mut().zip(at).zip(&arrays) {
            values.slice_mut(part(at)).assign(changed);
        }
        let index = random.below(4);
        match random.below(6) {
            0 => assert_eq!(*tables[index].host().unwrap(), values[index], "{seed}: {steps:?}"),
            1 => {
                tables[index].host_mut().unwrap()[[1, 1]] = 5;
                values[index][[1, 1]] = 5;
            }
            2 => {
                let add = &kernels.accumulate;
                let [a, b, ..] = &mut tables;
                add.launch_on(&streams[random.below(3)], 1, (&*b, &mut *a)).unwrap();
                let from = values[1].clone();
                values[0].zip_mut_with(&from, |y, x| *y = y.wrapping_add(*x));
            }
            3 => tables[index] = Table::from(values[index].clone()),
            _ => {}
        }
    }
    for (table, values) in tables.iter().zip(&values) {
        assert_eq!(*table.host().unwrap(), *values, "{seed}");
    }
    assert_no_hazards(device);
}

#[test]
fn drawn_chains_compute_as_plain_arrays() {
    for seed in 0..sampled(6, 200) as u64 {
        for device in devices() {
            drawn_chains(&device, seed);
        }
        let bytes = (4 * ROWS * COLUMNS) as u64;
        let emulations = [
            Emulation::new().seed(seed),
            Emulation::new().memory(7 * bytes),
            Emulation::new().seed(seed).memory(7 * bytes).page_bytes(16),
        ];
        for emulation in emulations {
            drawn_chains(&Device::emulated(emulation), seed);
        }
    }
}
