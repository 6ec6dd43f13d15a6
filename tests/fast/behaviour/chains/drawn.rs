//! Chains of drawn steps, over drawn arrays and parts, between other uses of these arrays, beside
//! plain arrays.

use super::{assert_no_hazards, devices};
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

/// What a step does with arrays of the chain, by their numbers: 0 is the input, 3 the output, and 4
/// and 5 are the temporaries.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// `to = from + k`.
    Plus(usize, usize),
    /// `to += from`.
    Accumulate(usize, usize),
    Copy(usize, usize),
    Fill(usize, Option<u32>),
}

struct Kernels {
    plus: Plus,
    accumulate: Kernel<(In<u32, Ix2>, InOut<u32, Ix2>)>,
}

fn kernels() -> Kernels {
    Kernels {
        plus: Kernel::<(u32, In<u32, Ix2>, Out<u32, Ix2>)>::new("plus")
            .host(|_, (k, x, mut y)| y.assign(&x.mapv(|x| x.wrapping_add(k)))),
        accumulate: Kernel::<(In<u32, Ix2>, InOut<u32, Ix2>)>::new("accumulate")
            .host(|_, (x, mut y)| y.zip_mut_with(&x, |y, x| *y = y.wrapping_add(*x))),
    }
}

/// Draws steps that read nothing before it is written.
fn draw(random: &mut Random) -> Vec<Step> {
    let mut has_contents = [true, true, true, false, false, false];
    let mut steps = Vec::new();
    for _ in 0..1 + random.below(8) {
        let to = 1 + random.below(5);
        let known: Vec<usize> = (0..6).filter(|at| has_contents[*at] && *at != to).collect();
        let from = known[random.below(known.len())];
        let step = match random.below(4) {
            0 => Step::Plus(from, to),
            1 if has_contents[to] => Step::Accumulate(from, to),
            2 => Step::Copy(from, to),
            3 => Step::Fill(to, (random.below(2) == 0).then_some(7)),
            _ => continue,
        };
        has_contents[to] = true;
        steps.push(step);
    }
    if !has_contents[3] {
        steps.push(Step::Fill(3, None));
    }
    steps
}

/// Calls a method of the symbol with a number.
macro_rules! symbol {
    ($symbols:ident, $at:expr, $method:ident) => {
        match $at {
            1 => $symbols.1.$method(),
            2 => $symbols.2.$method(),
            3 => $symbols.3.$method(),
            4 => $symbols.4.$method(),
            _ => $symbols.5.$method(),
        }
    };
}

fn record(kernels: &Kernels, steps: &[Step]) -> Drawn {
    Drawn::record("drawn", |r, (k, a, b, c, d, e, f)| {
        let symbols = (a, b, c, d, e, f);
        let reads = |at| if at == 0 { a.read() } else { symbol!(symbols, at, read) };
        steps.iter().try_for_each(|step| match *step {
            Step::Plus(from, to) => {
                r.launch(&kernels.plus, 1, (k, reads(from), symbol!(symbols, to, write)))
            }
            Step::Accumulate(from, to) => {
                let to = symbol!(symbols, to, read_write);
                r.launch(&kernels.accumulate, 1, (reads(from), to))
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
    for step in steps {
        match *step {
            Step::Plus(from, to) => arrays[to] = arrays[from].mapv(|x| x.wrapping_add(k)),
            Step::Accumulate(from, to) => {
                let from = arrays[from].clone();
                arrays[to].zip_mut_with(&from, |y, x| *y = y.wrapping_add(*x));
            }
            Step::Copy(from, to) => arrays[to] = arrays[from].clone(),
            Step::Fill(to, value) => arrays[to].fill(value.unwrap_or(k)),
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
