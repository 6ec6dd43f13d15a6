//! The places where the library promises that work on borrowed or freed memory is over.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use resident::{Chain, DeviceKind, Temp};

use super::user_code::{Broken, Captured, waker};
use super::{KERNEL_TIME, Place, Scene, Table, add, one, start};
use support::prelude::*;

/// Tasks: on devices that run work also while no thread waits.
pub(crate) const TASKS: &[Place] = &[("tasks", tasks)];

pub(crate) const CALLS: &[Place] = &[
    ("the end of a loan of pinned memory", |scene| end_of_loan(scene, pinned)),
    ("the end of a loan of mapped memory", |scene| end_of_loan(scene, mapped)),
    ("a loan of pinned memory", |scene| loan(scene, pinned)),
    ("a loan of mapped memory", |scene| loan(scene, mapped)),
    ("a task in a loan of pinned memory", |scene| task_in_loan(scene, pinned)),
    ("a task in a loan of mapped memory", |scene| task_in_loan(scene, mapped)),
    ("copy_to_host_into", copy_to_host_into),
    ("copy_from_host", copy_from_host),
    ("copy_from_host, from pinned memory", copy_from_pinned_host),
    ("from_host_on", from_host_on),
    ("a launch", launch),
    ("replays of a chain", replays),
    ("an assignment", assign),
    ("the drop of a watched array", drop_watched),
    ("host", |scene| use_all_kinds(scene, |x, _| x.host().map(drop))),
    ("host_mut", |scene| use_all_kinds(scene, |x, _| x.host_mut().map(drop))),
    ("to_vec", |scene| use_all_kinds(scene, |x, _| x.to_vec().map(drop))),
    ("get", |scene| use_all_kinds(scene, |x, _| x.get((1, 1)).map(drop))),
    ("a snapshot", |scene| {
        use_all_kinds(scene, |x, _| x.snapshot_on(&Device::current()?.stream())?.wait().map(drop));
    }),
    ("prefetch_host", |scene| use_all_kinds(scene, |x, _| x.prefetch_host())),
    ("prefetch", |scene| use_all_kinds(scene, |x, other| x.prefetch(&other.stream()))),
    ("a guard on another device", |scene| {
        use_all_kinds(scene, |x, other| x.gpu_mut_on(&other.stream()).map(drop));
    }),
    ("release_on", |scene| use_all_kinds(scene, |x, _| x.release_on(&Device::current()?))),
    ("into_array", into_array),
    ("a drop", drop_busy),
    ("a full device", full_device),
    ("values captured by kernels", captured_by_kernels),
    ("values captured by host functions", captured_by_host_functions),
    #[cfg(feature = "dlpack")]
    ("DLPack tensors", tensors),
];

type Lent<'r, 'v> = &'r mut SmartViewMut<'v, u32, Ix2>;
type Lend = fn(&mut Array2<u32>, &mut dyn FnMut(Lent<'_, '_>) -> Result<()>) -> Result<()>;

fn pinned(array: &mut Array2<u32>, run: &mut dyn FnMut(Lent<'_, '_>) -> Result<()>) -> Result<()> {
    with_pinned(array, run)
}

fn mapped(array: &mut Array2<u32>, run: &mut dyn FnMut(Lent<'_, '_>) -> Result<()>) -> Result<()> {
    with_mapped(array, run)
}

/// Queues work on both halves of lent memory: on the first device, in place if the memory is
/// mapped, and on the other one, whose contents are downloaded at the end of the loan. Adds two to
/// the upper half, and one to the lower.
fn use_lent(scene: &Scene<'_>, lent: Lent<'_, '_>) -> Result<()> {
    let [here, own, other] = scene.streams();
    let mut there = DeviceArray::from_host_on(&here, &start())?;
    add().launch_on(&here, one(), (1, &mut there))?;
    let (mut upper, mut lower) = lent.multi_slice_mut((s![..4, ..], s![4.., ..]));
    add().launch_on(&other, one(), (1, &mut lower))?;
    there.slice(s![..4, ..]).copy_to_pinned_on(&here, &mut upper)?;
    add().launch_on(&own, one(), (1, &mut upper))
}

/// The loan ends while work uses the memory. Only afterwards is user code called.
fn end_of_loan(scene: &Scene<'_>, lend: Lend) {
    let _here = scene.devices[0].enter();
    let mut lent = start();
    scene.caught(|| {
        lend(&mut lent, &mut |lent| {
            use_lent(scene, lent)?;
            scene.arm();
            Ok(())
        })
    });
    let mut expected = start() + 1;
    expected.slice_mut(s![..4, ..]).mapv_inplace(|x| x + 1);
    assert_eq!(lent, expected, "the newest contents are there");
    scene.assert_still(&lent);
}

/// User code interrupts the loan anywhere.
fn loan(scene: &Scene<'_>, lend: Lend) {
    let _here = scene.devices[0].enter();
    let mut lent = start();
    scene.interrupted(|| lend(&mut lent, &mut |lent| use_lent(scene, lent)));
    scene.assert_still(&lent);
}

/// A task that waits for lent memory is polled once, with a waker that panics.
fn task_in_loan(scene: &Scene<'_>, lend: Lend) {
    let _here = scene.devices[0].enter();
    let mut lent = start();
    scene.caught(|| {
        lend(&mut lent, &mut |lent| {
            use_lent(scene, lent)?;
            let mut pending = pin!(lent.snapshot_on(&scene.devices[0].stream())?);
            scene.arm();
            let _polled = pending.as_mut().poll(&mut Context::from_waker(&waker(&scene.user_code)));
            Ok(())
        })
    });
    scene.assert_still(&lent);
}

/// An array of the first device, which a kernel changes to `start() + 1`.
fn busy(scene: &Scene<'_>) -> DeviceArray<u32, Ix2> {
    let stream = scene.devices[0].stream();
    let mut array = DeviceArray::from_host_on(&stream, &start()).expect("there is memory");
    add().launch_on(&stream, one(), (1, &mut array)).expect("it is launched");
    array
}

fn copy_to_host_into(scene: &Scene<'_>) {
    let [_, own, _] = scene.streams();
    for stream in [scene.devices[0].stream(), own] {
        let (_here, array, mut to) = (stream.enter(), busy(scene), start());
        scene.interrupted(|| array.copy_to_host_into(&mut to));
        assert_eq!(to, start() + 1, "the elements have arrived");
        scene.assert_still(&to);
    }
}

fn copy_from_host(scene: &Scene<'_>) {
    let (mut array, mut from) = (busy(scene), start() + 5);
    scene.interrupted(|| array.copy_from_host(&from));
    from.fill(77);
    assert_eq!(array.copy_to_host().expect("it is read"), start() + 5);
}

fn copy_from_pinned_host(scene: &Scene<'_>) {
    let _here = scene.devices[0].enter();
    let mut pinned = PinnedArray::from_array(start() + 5).expect("there is memory");
    let mut array = busy(scene);
    scene.interrupted(|| array.copy_from_host(&*pinned.host()?));
    pinned.host_mut().expect("no work uses it").fill(77);
    assert_eq!(array.copy_to_host().expect("it is read"), start() + 5);
}

fn from_host_on(scene: &Scene<'_>) {
    let [_, own, _] = scene.streams();
    let mut from = start();
    let array = scene.interrupted(|| DeviceArray::from_host_on(&own, &from));
    from.fill(77);
    if let Some(array) = array {
        assert_eq!(array.copy_to_host().expect("it is read"), start());
    }
}

/// The launch needs uploads. It is queued or not, and its arguments are as they were or changed.
fn launch(scene: &Scene<'_>) {
    let [here, _, other] = scene.streams();
    let mut array = Table::from(start());
    let launched = scene.interrupted(|| add().launch_on(&here, one(), (1, &mut array)));
    let launched_there = scene.interrupted(|| add().launch_on(&other, one(), (1, &mut array)));
    let seen = array.host().expect("it is read").to_owned();
    let sums = [start(), start() + 1, start() + 2];
    assert!(sums.contains(&seen), "{seen}");
    if (launched, launched_there) == (Some(()), Some(())) {
        assert_eq!(seen, sums[2]);
    }
    scene.assert_still(&array.into_array().expect("the host has it"));
}

fn replays(scene: &Scene<'_>) {
    type Counting = Chain<(InOut<u32, Ix2>, Temp<u32, Ix2>, Temp<u32, Ix1>)>;
    let add = add();
    let chain = Counting::record("counting", |r, (a, tmp, go_on)| {
        r.copy(a.read(), tmp.write())?;
        r.launch(&add, one(), (1, tmp.read_write()))?;
        r.copy(tmp.slice(s![1.., ..]).read(), a.slice(s![1.., ..]).write())?;
        r.fill(go_on.write(), 1)?;
        r.repeat_while(go_on.read())
    });
    let (chain, [here, _, other]) = (chain.expect("it is recorded"), scene.streams());
    let (mut array, scratch) = (Table::from(start()), (Temp::shape((8, 8)), Temp::shape(1)));
    let mut count = |stream: &Stream, most| {
        let arguments = (&mut array, scratch.0, scratch.1);
        scene.interrupted(|| chain.repeat_while_on(stream, most, 1, arguments))
    };
    let ran = [count(&here, 1), count(&other, 2)];
    let seen = array.into_array().expect("it is read");
    let count = seen[[1, 0]] - start()[[1, 0]];
    let mut expected = start() + count;
    expected.row_mut(0).assign(&start().row(0));
    assert_eq!(seen, expected);
    let least = ran.iter().flatten().sum::<u64>() as u32;
    assert!((least..=3).contains(&count), "{ran:?}: {count}");
    scene.assert_still(&seen);
}

fn assign(scene: &Scene<'_>) {
    let [here, _, other] = scene.streams();
    let (mut source, mut to) = (Table::from(start() + 1), Table::from(start()));
    add().launch_on(&here, one(), (1, &mut source)).expect("it is launched");
    source.slice_mut(s![..2, ..]).host_mut().expect("it is read").fill(9);
    drop(to.gpu_mut_on(&other).expect("there is memory"));
    let assigned = scene.interrupted(|| to.assign(&source));
    let (seen, expected) = (to.host().expect("it is read"), source.host().expect("it is read"));
    assert!(*seen == *expected || assigned.is_none() && *seen == start(), "{seen}");
}

fn drop_watched(scene: &Scene<'_>) {
    let [here, _, other] = scene.streams();
    let mut array = Table::from(start());
    let watch = array.watch().expect("it is watched");
    scene.interrupted(|| {
        add().launch_on(&here, one(), (1, &mut array))?;
        add().launch_on(&other, one(), (1, &mut array))?;
        drop(array);
        Ok(())
    });
    // Not until the array is gone, without hanging.
    let mut last = None;
    while let Some(state) = watch.changed().expect("no work fails") {
        last = Some(state.to_owned());
    }
    let states = [start() + 1, start() + 2];
    assert!(last.is_none_or(|last| states.contains(&last)));
}

/// Arrays over each kind of host memory, which a kernel on the first device changes to
/// `start() + 1`.
fn kinds(scene: &Scene<'_>) -> Vec<Table> {
    let page_locked = Table::from(start());
    page_locked.page_lock().expect("it is pinned");
    let mut kinds = vec![
        Table::from(start()),
        page_locked,
        PinnedArray::from_array(start()).expect("there is memory").into(),
        MappedArray::from_array(start().view()).expect("there is memory").into(),
        ManagedArray::from_array(start().view()).expect("there is memory").into(),
    ];
    let stream = scene.devices[0].new_stream().expect("a stream");
    for array in &mut kinds {
        add().launch_on(&stream, one(), (1, array)).expect("it is launched");
    }
    kinds
}

/// User code interrupts a call that does not change the contents.
fn use_all_kinds(scene: &Scene<'_>, call: fn(&mut Table, &Device) -> Result<()>) {
    let _here = scene.devices[0].enter();
    for mut array in kinds(scene) {
        scene.interrupted(|| call(&mut array, &scene.devices[1]));
        let host = array.host().expect("it is read");
        assert_eq!(*host, start() + 1);
        scene.settle();
        assert_eq!(*host, start() + 1, "the guard shows what is written meanwhile");
    }
    for mut array in kinds(scene) {
        // Its memory is freed while work uses it.
        scene.interrupted(|| call(&mut array, &scene.devices[1]));
    }
}

fn into_array(scene: &Scene<'_>) {
    let _here = scene.devices[0].enter();
    for array in kinds(scene) {
        if let Some(array) = scene.interrupted(|| array.into_array()) {
            assert_eq!(array, start() + 1);
            scene.assert_still(&array);
        }
    }
}

/// Arrays are dropped while work uses them, and while a panic unwinds.
fn drop_busy(scene: &Scene<'_>) {
    let _here = scene.devices[0].enter();
    let [_, own, other] = scene.streams();
    scene.interrupted(|| {
        for mut array in kinds(scene) {
            let _watch = array.watch()?;
            add().launch_on(&own, one(), (1, &mut array))?;
            let mut copy = array.try_clone()?;
            add().launch_on(&other, one(), (1, &mut copy))?;
            copy.prefetch_host()?;
        }
        Ok(())
    });
}

/// Arrays are evicted, whose newest contents are written back.
fn full_device(scene: &Scene<'_>) {
    let [here, own, _] = scene.streams();
    let device = &scene.devices[0];
    let mut arrays = [(); 4].map(|()| Table::from(start()));
    device.set_memory_limit(Some(2 * 256)).expect("nothing is in use");
    let launched = arrays.each_mut().map(|array| {
        add().launch_on(&own, one(), (1, &mut *array)).expect("two fit");
        scene.interrupted(|| add().launch_on(&here, one(), (1, &mut *array)))
    });
    let evicted = scene.interrupted(|| device.set_memory_limit(Some(0)));
    let released = scene.interrupted(|| arrays[0].release_on(device));
    device.set_memory_limit(None).expect("there is no limit");
    for (array, launched) in arrays.iter().zip(launched) {
        let seen = array.host().expect("nothing is lost").to_owned();
        assert!(seen == start() + 2 || launched.is_none() && seen == start() + 1, "{seen}");
    }
    let is_absent = evicted.is_some() && released.is_some();
    assert!(!is_absent || arrays[0].residency().on(device) == Absent);
}

/// Polls a future with a waker that panics, until it is ready.
fn poll_until_ready<F: Future>(scene: &Scene<'_>, future: F) -> F::Output {
    let mut future = pin!(future);
    scene.arm();
    let output = loop {
        let waker = waker(&scene.user_code);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            future.as_mut().poll(&mut Context::from_waker(&waker))
        }));
        let _dropped = catch_unwind(AssertUnwindSafe(|| drop(waker)));
        match polled {
            Ok(Poll::Ready(output)) => break output,
            Ok(Poll::Pending) => thread::sleep(Duration::from_micros(50)),
            Err(panic) if panic.is::<Broken>() => {}
            Err(panic) => resume_unwind(panic),
        }
    };
    scene.has_panicked.set(scene.has_panicked.get() | scene.user_code.disarm());
    output
}

/// Tasks whose wakers panic, beside others that wait for the same work and are woken.
fn tasks(scene: &Scene<'_>) {
    let [here, own, _] = scene.streams();
    let array = busy(scene);
    let copies = [&here, &own].map(|stream| array.copy_to_host_on(stream).expect("it is queued"));
    let [broken, good] = copies;
    assert_eq!(poll_until_ready(scene, broken).expect("it arrives"), start() + 1);
    assert_eq!(block_on(good).expect("it arrives"), start() + 1);
    let array = busy(scene);
    let (broken, good) = (here.done(), here.done());
    poll_until_ready(scene, broken).expect("the work is over");
    block_on(good).expect("the work is over");
    drop(array);
    let functions = [3, 4].map(|n| here.launch_host_function(move || n).expect("it is queued"));
    let [broken, good] = functions;
    assert_eq!(poll_until_ready(scene, broken).expect("it returns"), 3);
    assert_eq!(block_on(good).expect("it returns"), 4);
    let mut array = Table::from(start());
    let (broken, good) = (array.watch().expect("a watch"), array.watch().expect("a watch"));
    add().launch_on(&own, one(), (1, &mut array)).expect("it is launched");
    let state = poll_until_ready(scene, broken.when_changed()).expect("no work fails");
    assert_eq!(*state.expect("a state"), start() + 1);
    assert_eq!(
        *block_on(good.when_changed()).expect("no work fails").expect("a state"),
        start() + 1
    );
}

/// A kernel whose captured value is dropped by the thread that runs it.
fn capturing(scene: &Scene<'_>) -> Kernel<(InOut<u32, Ix2>,)> {
    let captured = Captured(Arc::clone(&scene.user_code));
    Kernel::new("capturing").host(move |_, (mut x,)| {
        let _captured = &captured;
        thread::sleep(KERNEL_TIME);
        x += 1;
    })
}

fn captured_by_kernels(scene: &Scene<'_>) {
    let [here, _, other] = scene.streams();
    let _here = scene.devices[0].enter();
    if scene.devices[0].kind() != DeviceKind::Cpu {
        // Only the embedded device runs functions of Rust.
        scene.has_panicked.set(scene.nth == 1);
        return;
    }
    for lend in [pinned as Lend, mapped] {
        let mut lent = start();
        scene.interrupted(|| {
            let lent_outcome = lend(&mut lent, &mut |lent| {
                let (mut upper, mut lower) = lent.multi_slice_mut((s![..4, ..], s![4.., ..]));
                capturing(scene).launch_on(&other, one(), (&mut lower,))?;
                capturing(scene).launch_on(&here, one(), (&mut upper,))
            });
            match lent_outcome {
                Err(Error::Lost { .. }) => Ok(()),
                outcome => outcome,
            }
        });
        let before = lent.clone();
        for device in scene.devices {
            // A panic of a destructor is a failure of the kernel's work.
            let _failed = device.synchronize();
        }
        assert_eq!(lent, before, "the memory was written after it was returned");
    }
}

fn captured_by_host_functions(scene: &Scene<'_>) {
    let [here, ..] = scene.streams();
    let array = busy(scene);
    scene.interrupted(|| {
        let [captured, returned] = [(); 2].map(|()| Captured(Arc::clone(&scene.user_code)));
        let function = here.launch_host_function(move || {
            drop(captured);
            returned
        })?;
        // The function's thread drops the result, or this one.
        drop(function);
        match here.launch_host_function(|| 3)?.wait() {
            Err(Error::Backend { .. }) => Ok(()),
            outcome => outcome.map(drop),
        }
    });
    assert_eq!(here.launch_host_function(|| 3).expect("it is queued").wait().expect("it runs"), 3);
    assert_eq!(array.copy_to_host().expect("it is read"), start() + 1);
}

#[cfg(feature = "dlpack")]
fn tensors(scene: &Scene<'_>) {
    use resident::dlpark::versioned::Dlpack;
    use support::foreign::{ForeignMemory, Form};

    let device = &scene.devices[0];
    let [here, own, _] = scene.streams();
    let array = busy(scene);
    scene.interrupted(|| array.into_dlpack_on(&here).map(|tensor: Dlpack| drop(tensor)));
    let elements: Vec<u32> = (0..64).collect();
    let memory = ForeignMemory::of(device, &elements);
    scene.interrupted(|| {
        let tensor = Form::rows([8, 8]).tensor(&memory);
        // SAFETY: nothing else uses the memory until the tensor's deleter is called.
        let mut array = unsafe { DeviceArray::<u32, Ix2>::from_dlpack_on(&here, tensor) }?;
        array.copy_from_host_on(&own, &start())?;
        add().launch_on(&own, one(), (1, &mut array))?;
        array.copy_to_host().map(drop)
    });
    scene.settle();
    assert_eq!(Arc::strong_count(&memory), 1, "the tensor's deleter was called");
}
