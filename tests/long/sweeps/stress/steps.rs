//! The steps that a thread takes on a part of an array, and on its model.

use std::thread;
use std::time::Duration;

use resident::ndarray::{ArrayView2, ArrayViewMut2, Axis, Ix1, Ix2, s};
use resident::{
    Chain, DeviceArray, Grid, In, InOut, Kernel, Out, Result, SmartArray, SmartViewMut, Temp,
};

use super::Promised;
use super::worker::Worker;

/// A part of an array, and what it must contain.
pub(super) struct Target<'a> {
    pub(super) part: SmartViewMut<'a, u32, Ix2>,
    pub(super) model: ArrayViewMut2<'a, u32>,
}

type Step = fn(&mut Worker<'_>, Target<'_>) -> Result<()>;

pub(super) const STEPS: [Step; 18] = [
    read_on_host,
    change_on_host,
    overwrite_on_host,
    add_on_device,
    add_to_halves,
    replay_a_chain,
    add_on_another_thread,
    read_on_two_threads,
    fill_on_device,
    fill_everywhere,
    set_one_element,
    assign_another_array,
    copy_out_later,
    copy_from_host_memory,
    copy_to_host_memory,
    prefetch,
    hand_out_to_other_code,
    clone_it,
];

/// What is added, whether it goes on, and the array.
type Adding = Chain<(u32, u32, InOut<u32, Ix2>, Temp<u32, Ix2>, Temp<u32, Ix1>)>;

pub(super) struct Kernels {
    /// Adds to all elements, and once more to those of every second row.
    pub(super) adding: Adding,
    pub(super) add: Kernel<(u32, InOut<u32, Ix2>)>,
    pub(super) add_table: Kernel<(In<u32, Ix2>, InOut<u32, Ix2>)>,
    pub(super) copy: Kernel<(In<u32, Ix2>, Out<u32, Ix2>)>,
}

impl Kernels {
    pub(super) fn new() -> Self {
        let add = |by: u32, mut x: ArrayViewMut2<'_, u32>| {
            take_a_while(by);
            x += by;
        };
        let add = Kernel::new("add").host(move |_, (by, x)| add(by, x));
        let adding = Adding::record("adding", |r, (by, go_on, a, tmp, flag)| {
            r.copy(a.read(), tmp.write())?;
            r.launch(&add, Grid::cover(1), (by, tmp.read_write()))?;
            r.fill(flag.write(), go_on)?;
            r.copy(tmp.read(), a.write())?;
            r.launch(&add, Grid::cover(1), (by, a.slice(s![..;2, ..]).read_write()))?;
            r.repeat_while(flag.read())
        });
        Self {
            adding: adding.expect("it is recorded"),
            add,
            add_table: Kernel::new("add_table")
                .host(|_, (from, mut to): (ArrayView2<'_, u32>, _)| to += &from),
            copy: Kernel::new("copy").host(
                |_, (from, mut to): (ArrayView2<'_, u32>, ArrayViewMut2<'_, u32>)| {
                    to.assign(&from);
                },
            ),
        }
    }
}

/// Sleeps if the number is one of some: then what is queued behind waits.
fn take_a_while(by: u32) {
    match by % 15 {
        0 => thread::sleep(Duration::from_micros(u64::from(by))),
        5 | 10 => thread::yield_now(),
        _ => (),
    }
}

fn read_on_host(_: &mut Worker<'_>, Target { part, model }: Target<'_>) -> Result<()> {
    assert_eq!(part.host()?.view(), model);
    Ok(())
}

fn change_on_host(worker: &mut Worker<'_>, mut target: Target<'_>) -> Result<()> {
    let by = worker.random.value();
    *target.part.host_mut()? += by;
    target.model += by;
    Ok(())
}

fn overwrite_on_host(worker: &mut Worker<'_>, mut target: Target<'_>) -> Result<()> {
    let value = worker.random.value();
    target.part.host_overwrite()?.fill(value);
    target.model.fill(value);
    Ok(())
}

fn add_on_device(worker: &mut Worker<'_>, mut target: Target<'_>) -> Result<()> {
    let by = worker.random.value();
    let stream = worker.stream();
    worker.lab.kernels.add.launch_on(stream, Grid::cover(1), (by, &mut target.part))?;
    target.model += by;
    Ok(())
}

/// Each half by another stream, and then the one half to the other if they have one shape.
fn add_to_halves(worker: &mut Worker<'_>, Target { part, model }: Target<'_>) -> Result<()> {
    let at = worker.random.below(model.len_of(Axis(1)) + 1);
    let (mut left, mut right) = part.split_at(Axis(1), at);
    let (mut left_model, mut right_model) = model.split_at(Axis(1), at);
    let kernels = &worker.lab.kernels;
    for (half, model) in [(&mut left, &mut left_model), (&mut right, &mut right_model)] {
        let by = worker.random.value();
        kernels.add.launch_on(worker.stream(), Grid::cover(1), (by, half))?;
        *model += by;
    }
    if left_model.dim() == right_model.dim() {
        let stream = worker.stream();
        kernels.add_table.launch_on(stream, Grid::cover(1), (&left, &mut right))?;
        right_model += &left_model;
    }
    Ok(())
}

/// All threads have one chain.
fn replay_a_chain(worker: &mut Worker<'_>, mut target: Target<'_>) -> Result<()> {
    let (by, count) = (worker.random.value(), 1 + worker.random.below(3) as u64);
    let (chain, stream) = (&worker.lab.kernels.adding, worker.stream());
    let go_on = worker.random.below(3) as u32;
    let scratch = (Temp::like(&target.part), Temp::shape(1));
    let arguments = (by, go_on, &mut target.part, scratch.0, scratch.1);
    let ran = if worker.random.happens_once_in(2) {
        chain.repeat_while_on(stream, count, 1, arguments)?
    } else {
        chain.repeat_on(stream, count, arguments).map(|()| count)?
    };
    for _ in 0..ran {
        target.model += by;
        target.model.slice_mut(s![..;2, ..]).mapv_inplace(|x| x + by);
    }
    Ok(())
}

/// Another thread launches, and this one asks whether the work is complete.
fn add_on_another_thread(worker: &mut Worker<'_>, mut target: Target<'_>) -> Result<()> {
    let (by, stream) = (worker.random.value(), worker.stream());
    let (add, part) = (&worker.lab.kernels.add, &mut target.part);
    let event = thread::scope(|scope| {
        let launching = scope.spawn(move || {
            add.launch_on(stream, Grid::cover(1), (by, part))?;
            stream.record()
        });
        launching.join().expect("it does not panic")
    })?;
    target.model += by;
    match worker.random.below(4) {
        0 => event.is_complete().map(drop),
        1 => stream.is_idle().map(drop),
        2 => event.synchronize(),
        _ => worker.stream().wait(&event),
    }
}

fn read_on_two_threads(worker: &mut Worker<'_>, Target { part, model }: Target<'_>) -> Result<()> {
    let (part, model) = (part.view(), model.view());
    let stream = worker.stream();
    thread::scope(|scope| {
        scope.spawn(move || assert_eq!(part.host().expect("nothing fails").view(), model));
        part.prefetch(stream)?;
        assert_eq!(part.host()?.view(), model);
        Ok(())
    })
}

fn fill_on_device(worker: &mut Worker<'_>, mut target: Target<'_>) -> Result<()> {
    let value = worker.random.value();
    target.part.fill_on(worker.stream(), value)?;
    target.model.fill(value);
    Ok(())
}

fn fill_everywhere(worker: &mut Worker<'_>, mut target: Target<'_>) -> Result<()> {
    let value = worker.random.value();
    target.part.fill(value)?;
    target.model.fill(value);
    Ok(())
}

fn set_one_element(worker: &mut Worker<'_>, mut target: Target<'_>) -> Result<()> {
    let (rows, columns) = target.model.dim();
    let index = (worker.random.below(rows), worker.random.below(columns));
    assert_eq!(target.part.get(index)?, target.model[index]);
    let value = worker.random.value();
    target.part.set(index, value)?;
    target.model[index] = value;
    Ok(())
}

fn assign_another_array(worker: &mut Worker<'_>, mut target: Target<'_>) -> Result<()> {
    let values = target.model.mapv(|value| value.wrapping_mul(3) % 1000);
    let other = SmartArray::from(values.clone());
    if worker.random.happens_once_in(2) {
        other.prefetch(worker.stream())?;
    }
    target.part.assign_on(worker.stream(), &other)?;
    target.model.assign(&values);
    Ok(())
}

fn copy_out_later(worker: &mut Worker<'_>, Target { part, model }: Target<'_>) -> Result<()> {
    let pending = part.snapshot_on(worker.stream())?;
    worker.promise(Promised { pending, model: model.to_owned() });
    Ok(())
}

/// A device reads the host's memory in place, and keeps a copy.
fn copy_from_host_memory(
    worker: &mut Worker<'_>,
    Target { part, model }: Target<'_>,
) -> Result<()> {
    let stream = worker.stream();
    let mut there = DeviceArray::uninit_on(stream, model.raw_dim())?;
    there.copy_from_pinned_on(worker.stream_beside(stream), &part)?;
    let pending = there.copy_to_host_on(worker.stream_beside(stream))?;
    worker.promise(Promised { pending, model: model.to_owned() });
    Ok(())
}

/// A device writes the host's memory in place.
fn copy_to_host_memory(worker: &mut Worker<'_>, mut target: Target<'_>) -> Result<()> {
    let values = target.model.mapv(|value| value / 2);
    let stream = worker.stream();
    let there = DeviceArray::from_host_on(stream, &values)?;
    there.copy_to_pinned_on(worker.stream_beside(stream), &mut target.part)?;
    target.model.assign(&values);
    Ok(())
}

fn prefetch(worker: &mut Worker<'_>, Target { part, .. }: Target<'_>) -> Result<()> {
    if worker.random.happens_once_in(2) {
        part.prefetch_host()
    } else {
        part.prefetch(worker.stream())
    }
}

/// Guards of which other code has queued nothing. One that reads lives while others read.
fn hand_out_to_other_code(
    worker: &mut Worker<'_>,
    Target { mut part, model }: Target<'_>,
) -> Result<()> {
    let stream = worker.stream();
    match worker.random.below(4) {
        0 => part.gpu_mut_on(stream).map(drop),
        1 => part.gpu_on(stream).map(drop),
        _ => {
            let reading = part.gpu_on(stream)?;
            part.prefetch(worker.stream())?;
            assert_eq!(part.host()?.view(), model);
            drop(reading);
            Ok(())
        }
    }
}

fn clone_it(_: &mut Worker<'_>, Target { part, model }: Target<'_>) -> Result<()> {
    assert_eq!(part.try_clone()?.into_array()?, model);
    Ok(())
}
