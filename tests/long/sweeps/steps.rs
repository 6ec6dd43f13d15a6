//! The steps of the scenario. A step consists of one call of the library, the rows that this call
//! reads and writes, and a function with the same effect on plain arrays.

use resident::ndarray::{Array2, ArrayView2, ArrayViewMut2, Ix2, s};
use resident::{Chain, Grid, In, InOut, Kernel, Out, Result, Signature, Temp};

use crate::bench::Bench;
use crate::model::{ARRAYS, Row};

/// Adds the device code of a kernel for which the stand-ins have a host function.
///
/// # Safety
///
/// As [`Kernel::cuda`]: the host function accesses only its arguments.
pub(crate) unsafe fn with_device_code<S: Signature>(kernel: Kernel<S>) -> Kernel<S> {
    #[cfg(all(target_os = "linux", feature = "cuda"))]
    let code = support::cuda::driver::code(kernel.name());
    #[cfg(all(target_os = "linux", feature = "cuda"))]
    // SAFETY: the caller's promise is passed on.
    let kernel = unsafe { kernel.cuda(code) };
    #[cfg(all(target_os = "linux", feature = "hip"))]
    let code = support::hip::driver::code(kernel.name());
    #[cfg(all(target_os = "linux", feature = "hip"))]
    // SAFETY: the caller's promise is passed on.
    let kernel = unsafe { kernel.hip(code) };
    kernel
}

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) reads: &'static [Row],
    /// The rows that the step writes. The step overwrites rows that are not in `reads` without
    /// reading them.
    pub(crate) writes: &'static [Row],
    /// Whether all queued work has run successfully after this step.
    pub(crate) settles: bool,
    pub(crate) run: fn(&mut Bench) -> Result<()>,
    /// Applies the step to plain arrays.
    pub(crate) effect: fn(&mut [Array2<u32>; ARRAYS]),
    /// The values that the step must read.
    pub(crate) sees: fn(&[Array2<u32>; ARRAYS]) -> Vec<u32>,
}

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;

const ALL_A: &[Row] = &[(A, 0), (A, 1), (A, 2), (A, 3)];
const ALL_B: &[Row] = &[(B, 0), (B, 1), (B, 2), (B, 3)];
const ALL_C: &[Row] = &[(C, 0), (C, 1), (C, 2), (C, 3)];
const ALL_D: &[Row] = &[(D, 0), (D, 1), (D, 2), (D, 3)];
const B_AND_D: &[Row] = &[(B, 0), (B, 1), (B, 2), (B, 3), (D, 0), (D, 1), (D, 2), (D, 3)];
const A_AND_D: &[Row] = &[(A, 0), (A, 1), (A, 2), (A, 3), (D, 0), (D, 1), (D, 2), (D, 3)];
const A_AND_C: &[Row] = &[(A, 0), (A, 1), (A, 2), (A, 3), (C, 0), (C, 1), (C, 2), (C, 3)];

fn plus() -> Kernel<(u32, Read, Write)> {
    let kernel = Kernel::new("plus")
        .host(|_, (k, x, mut y): (u32, ArrayView2<u32>, ArrayViewMut2<u32>)| y.assign(&(&x + k)));
    // SAFETY: the stand-in's host function accesses only the views' elements.
    unsafe { with_device_code(kernel) }
}

fn add() -> Kernel<(u32, Change)> {
    let kernel = Kernel::new("add").host(|_, (k, mut x): (u32, ArrayViewMut2<u32>)| x += k);
    // SAFETY: as for `plus`.
    unsafe { with_device_code(kernel) }
}

fn mix() -> Kernel<(Read, Change)> {
    let kernel =
        Kernel::new("mix").host(|_, (x, mut y): (ArrayView2<u32>, ArrayViewMut2<u32>)| y += &x);
    // SAFETY: as for `plus`.
    unsafe { with_device_code(kernel) }
}

fn grid() -> Grid {
    Grid::cover(1)
}

impl Bench {
    /// `to = from + k` on a stream.
    fn plus(&mut self, stream: usize, k: u32, from: usize, to: usize) -> Result<()> {
        let stream = self.streams[stream].clone();
        let (from, to) = self.pair(from, to);
        plus().launch_on(&stream, grid(), (k, from, to))
    }

    fn chain(&mut self) -> Result<()> {
        let (plus, mix) = (plus(), mix());
        type Steps = Chain<(u32, Read, Write, Change, Temp<u32, Ix2>)>;
        let chain = Steps::record("steps", |r, (k, a, b, d, tmp)| {
            r.launch(&plus, grid(), (1, a.read(), tmp.write()))?;
            r.launch(&plus, grid(), (2, tmp.read(), b.write()))?;
            r.launch(&mix, grid(), (b.read(), d.read_write()))?;
            r.fill(tmp.write(), k)?;
            r.launch(&mix, grid(), (tmp.read(), d.read_write()))
        })?;
        let [a, b, d] = self.arrays.get_disjoint_mut([A, B, D]).expect("three arrays");
        let scratch = Temp::like(&*a);
        chain.repeat_on(&self.streams[1], 2, (7, &*a, b, d, scratch))
    }

    /// `to += from` on a stream.
    fn mix(&mut self, stream: usize, from: usize, to: usize) -> Result<()> {
        let stream = self.streams[stream].clone();
        let (from, to) = self.pair(from, to);
        mix().launch_on(&stream, grid(), (from, to))
    }
}

/// The parameter of a kernel: an array that is read, read and written, or overwritten.
type Read = In<u32, Ix2>;
type Change = InOut<u32, Ix2>;
type Write = Out<u32, Ix2>;

const NOTHING: Step = Step {
    name: "",
    reads: &[],
    writes: &[],
    settles: false,
    run: |_| Ok(()),
    effect: |_| (),
    sees: |_| Vec::new(),
};

pub(crate) fn steps() -> Vec<Step> {
    [launches(), parts(), elements(), snapshots(), host_reads(), writes(), guards(), overwrites()]
        .into_iter()
        .flatten()
        .collect()
}

fn launches() -> Vec<Step> {
    vec![
        Step {
            name: "prefetch a",
            reads: ALL_A,
            run: |bench| bench.arrays[A].prefetch(&bench.streams[0]),
            ..NOTHING
        },
        Step {
            name: "b = a + 1",
            reads: ALL_A,
            writes: ALL_B,
            run: |bench| bench.plus(0, 1, A, B),
            effect: |values| values[B] = &values[A] + 1,
            ..NOTHING
        },
        Step {
            name: "d += 10",
            reads: ALL_D,
            writes: ALL_D,
            run: |bench| add().launch_on(&bench.streams[1], grid(), (10, &mut bench.arrays[D])),
            effect: |values| values[D] += 10,
            ..NOTHING
        },
        Step {
            name: "d += b on the other device",
            reads: B_AND_D,
            writes: ALL_D,
            run: |bench| bench.mix(2, B, D),
            effect: |values| values[D] = &values[D] + &values[B],
            ..NOTHING
        },
        Step {
            name: "twice, by a chain: b = a + 3, d += b + 7",
            reads: A_AND_D,
            writes: B_AND_D,
            run: Bench::chain,
            effect: |values| {
                values[B] = &values[A] + 3;
                values[D] = &values[D] + 2 * (&values[B] + 7);
            },
            ..NOTHING
        },
    ]
}

fn parts() -> Vec<Step> {
    vec![
        Step {
            name: "c[1..3] += 5",
            reads: &[(C, 1), (C, 2)],
            writes: &[(C, 1), (C, 2)],
            run: |bench| {
                add().launch_on(
                    &bench.streams[1],
                    grid(),
                    (5, &mut bench.arrays[C].slice_mut(s![1..3, ..])),
                )
            },
            effect: |values| values[C].slice_mut(s![1..3, ..]).map_inplace(|value| *value += 5),
            ..NOTHING
        },
        Step {
            name: "c[2..4] = d[0..2], between devices",
            reads: &[(D, 0), (D, 1)],
            writes: &[(C, 2), (C, 3)],
            run: |bench| {
                let stream = bench.streams[0].clone();
                let (d, c) = bench.pair(D, C);
                c.slice_mut(s![2..4, ..]).assign_on(&stream, &d.slice(s![0..2, ..]))
            },
            effect: |values| {
                let rows = values[D].slice(s![0..2, ..]).to_owned();
                values[C].slice_mut(s![2..4, ..]).assign(&rows);
            },
            ..NOTHING
        },
        Step {
            name: "b[3] filled with 7 on the other device",
            writes: &[(B, 3)],
            run: |bench| bench.arrays[B].slice_mut(s![3, ..]).fill_on(&bench.streams[2], 7),
            effect: |values| values[B].row_mut(3).fill(7),
            ..NOTHING
        },
    ]
}

fn elements() -> Vec<Step> {
    vec![
        Step {
            name: "a[0, 1] = 99",
            reads: &[(A, 0)],
            writes: &[(A, 0)],
            run: |bench| bench.arrays[A].set((0, 1), 99),
            effect: |values| values[A][[0, 1]] = 99,
            ..NOTHING
        },
        Step {
            name: "d[3, 2] = 77",
            reads: &[(D, 3)],
            writes: &[(D, 3)],
            run: |bench| bench.arrays[D].set((3, 2), 77),
            effect: |values| values[D][[3, 2]] = 77,
            ..NOTHING
        },
        Step {
            name: "b[0] = c[3], within the device",
            reads: &[(C, 3)],
            writes: &[(B, 0)],
            run: |bench| {
                let (c, b) = bench.pair(C, B);
                b.slice_mut(s![0, ..]).assign(&c.slice(s![3, ..]))
            },
            effect: |values| {
                let row = values[C].row(3).to_owned();
                values[B].row_mut(0).assign(&row);
            },
            ..NOTHING
        },
    ]
}

fn snapshots() -> Vec<Step> {
    vec![
        Step {
            name: "get d[2, 2]",
            reads: &[(D, 2)],
            run: |bench| bench.arrays[D].get((2, 2)).map(|value| bench.seen.push(value)),
            sees: |values| vec![values[D][[2, 2]]],
            ..NOTHING
        },
        Step {
            name: "take a snapshot of b",
            reads: ALL_B,
            run: |bench| {
                bench.arrays[B]
                    .snapshot_on(&bench.streams[0])
                    .map(|pending| bench.pending = Some(pending))
            },
            ..NOTHING
        },
        Step {
            name: "wait for the snapshot, or for one more",
            reads: ALL_B,
            run: |bench| {
                let pending = match bench.pending.take() {
                    Some(pending) => pending,
                    None => bench.arrays[B].snapshot_on(&bench.streams[0])?,
                };
                pending.wait().map(|array| bench.seen.extend(&array))
            },
            sees: |values| values[B].iter().copied().collect(),
            ..NOTHING
        },
    ]
}

fn host_reads() -> Vec<Step> {
    vec![
        Step {
            name: "prefetch d to the host",
            reads: ALL_D,
            run: |bench| bench.arrays[D].prefetch_host(),
            ..NOTHING
        },
        Step {
            name: "look at d",
            reads: ALL_D,
            run: |bench| bench.arrays[D].host().map(|host| bench.seen.extend(host.iter())),
            sees: |values| values[D].iter().copied().collect(),
            ..NOTHING
        },
        Step {
            name: "clone c",
            reads: ALL_C,
            run: |bench| bench.arrays[C].try_clone().map(|clone| bench.clone = Some(clone)),
            ..NOTHING
        },
        Step {
            name: "look at the clone, or at one more",
            reads: ALL_C,
            run: |bench| {
                let clone = bench.clone.take().map_or_else(|| bench.arrays[C].try_clone(), Ok)?;
                clone.host().map(|host| bench.seen.extend(host.iter()))
            },
            sees: |values| values[C].iter().copied().collect(),
            ..NOTHING
        },
        Step {
            name: "synchronise",
            settles: true,
            run: |bench| bench.devices.iter().try_for_each(|device| device.synchronize()),
            ..NOTHING
        },
    ]
}

fn writes() -> Vec<Step> {
    vec![
        Step {
            name: "a[1] *= 2 on the host",
            reads: &[(A, 1)],
            writes: &[(A, 1)],
            run: |bench| {
                bench.arrays[A]
                    .slice_mut(s![1, ..])
                    .host_mut()
                    .map(|mut host| host.map_inplace(|value| *value *= 2))
            },
            effect: |values| values[A].row_mut(1).map_inplace(|value| *value *= 2),
            ..NOTHING
        },
        Step {
            name: "c += a on the other device",
            reads: A_AND_C,
            writes: ALL_C,
            run: |bench| bench.mix(2, A, C),
            effect: |values| values[C] = &values[C] + &values[A],
            ..NOTHING
        },
    ]
}

fn guards() -> Vec<Step> {
    vec![
        Step {
            name: "a guard of d, dropped",
            reads: ALL_D,
            writes: ALL_D,
            run: |bench| bench.arrays[D].gpu_mut_on(&bench.streams[1]).map(drop),
            ..NOTHING
        },
        Step {
            name: "a guard of b, forgotten",
            reads: ALL_B,
            writes: ALL_B,
            run: |bench| bench.arrays[B].gpu_mut_on(&bench.streams[2]).map(std::mem::forget),
            ..NOTHING
        },
        Step {
            name: "a read guard of c",
            reads: ALL_C,
            run: |bench| bench.arrays[C].gpu_on(&bench.streams[0]).map(drop),
            ..NOTHING
        },
        Step {
            name: "d += 3 behind the guard",
            reads: ALL_D,
            writes: ALL_D,
            run: |bench| add().launch_on(&bench.streams[0], grid(), (3, &mut bench.arrays[D])),
            effect: |values| values[D] += 3,
            ..NOTHING
        },
    ]
}

fn overwrites() -> Vec<Step> {
    vec![
        Step {
            name: "a[2] rewritten on the host",
            writes: &[(A, 2)],
            run: |bench| {
                bench.arrays[A].slice_mut(s![2, ..]).host_overwrite().map(|mut host| host.fill(5))
            },
            effect: |values| values[A].row_mut(2).fill(5),
            ..NOTHING
        },
        Step {
            name: "c = a + 2, over all of it",
            reads: ALL_A,
            writes: ALL_C,
            run: |bench| bench.plus(1, 2, A, C),
            effect: |values| values[C] = &values[A] + 2,
            ..NOTHING
        },
    ]
}
