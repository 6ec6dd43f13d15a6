//! Runs one program on memory that host and device both access. In each run another call fails:
//! when it is made, or when its work runs.

use resident::{Advice, MemoryLocation};

use crate::each_call::{add, again, counting, sweep};
use crate::seeds;
use support::prelude::*;

type Table = SmartArray<u32, Ix2>;

fn start() -> Array2<u32> {
    counting(8, 8)
}

/// One run of the program.
struct Run<'d> {
    devices: &'d [Device; 2],
    /// Whether work may fail when it runs. Then each step is settled before the next.
    is_late: bool,
    /// The calls that returned an error.
    told: usize,
}

impl Run<'_> {
    /// Makes a step, and checks the contents if work may have failed: they are those of the model,
    /// or lost until they are overwritten.
    fn step(
        &mut self,
        array: &mut Table,
        model: &mut Array2<u32>,
        mut call: impl FnMut(&mut Table) -> Result<()>,
        effect: impl FnOnce(&mut Array2<u32>),
    ) {
        again(&mut self.told, || call(array));
        effect(model);
        if !self.is_late {
            return;
        }
        for device in self.devices {
            self.told += usize::from(device.synchronize().is_err());
        }
        // The next read repeats a copy that failed.
        let seen = array.host().map(|host| host.to_owned());
        let is_copy = matches!(seen, Err(Error::Backend { .. }));
        match if is_copy { array.host().map(|host| host.to_owned()) } else { seen } {
            Ok(seen) => assert_eq!(seen, *model),
            Err(Error::Lost { .. }) => {
                self.told += 1;
                again(&mut self.told, || array.host_overwrite().map(|mut host| host.assign(model)));
            }
            Err(other) => panic!("an unexpected kind of error: {other:?}"),
        }
    }

    fn use_everywhere(&mut self, mut array: Table) {
        let add = add();
        let [here, other] = self.devices.each_ref().map(Device::stream);
        let own = again(&mut self.told, || self.devices[0].new_stream());
        let mut model = start();
        let (grid, rows) = (Grid::cover(1), s![2..5, ..]);
        let all = &mut array;
        self.step(all, &mut model, |x| add.launch_on(&here, grid, (1, x)), |x| *x += 1);
        self.step(all, &mut model, |x| add.launch_on(&own, grid, (2, x)), |x| *x += 2);
        let part = |x: &mut Table| add.launch_on(&other, grid, (5, &mut x.slice_mut(rows)));
        self.step(all, &mut model, part, |x| x.slice_mut(rows).mapv_inplace(|x| x + 5));
        self.step(all, &mut model, |x| x.prefetch_host(), |_| ());
        self.step(all, &mut model, |x| add.launch_on(&here, grid, (3, x)), |x| *x += 3);
        self.step(all, &mut model, |x| x.set((1, 1), 9), |x| x[[1, 1]] = 9);
        let fill = |x: &mut Table| x.slice_mut(rows).fill_on(&own, 7);
        self.step(all, &mut model, fill, |x| x.slice_mut(rows).fill(7));
        let fill = |x: &mut Table| x.slice_mut(s![..2, ..]).fill(6);
        self.step(all, &mut model, fill, |x| x.slice_mut(s![..2, ..]).fill(6));
        self.step(all, &mut model, |x| x.prefetch(&other), |_| ());
        self.step(all, &mut model, |x| add.launch_on(&own, grid, (1, x)), |x| *x += 1);
        let cloned = || array.try_clone()?.host().map(|clone| clone.to_owned());
        assert_eq!(again(&mut self.told, cloned), model);
        assert_eq!(*again(&mut self.told, || array.host()), model);
    }

    fn go(&mut self) {
        let _here = self.devices[0].enter();
        let managed = again(&mut self.told, || ManagedArray::from_array(start().view()));
        let stream = self.devices[0].stream();
        again(&mut self.told, || managed.prefetch(&stream));
        again(&mut self.told, || managed.prefetch_host_on(&stream));
        again(&mut self.told, || managed.advise(&Advice::PreferredLocation(MemoryLocation::Host)));
        self.use_everywhere(managed.into());
        let mapped = again(&mut self.told, || MappedArray::from_array(start().view()));
        self.use_everywhere(mapped.into());
        let pinned = again(&mut self.told, || PinnedArray::from_array(start()));
        let mut there = again(&mut self.told, || DeviceArray::<u32, _>::zeros((8, 8)));
        let copied = again(&mut self.told, || {
            there.copy_from_pinned_on(&stream, &pinned)?;
            there.copy_to_host()
        });
        assert_eq!(copied, start());
        let copied = again(&mut self.told, || {
            there.copy_from_host(&*pinned.host()?)?;
            there.copy_to_host()
        });
        assert_eq!(copied, start());
        self.copy_device_arrays(&there);
        let mut lent = start();
        let add = add();
        // A repeated loan repeats all of this.
        let mut overwrite = |mapped: &mut SmartViewMut<'_, u32, Ix2>| -> Result<()> {
            mapped.fill_on(&stream, 3)?;
            add.launch_on(&stream, Grid::cover(1), (4, &mut *mapped))
        };
        again(&mut self.told, || with_mapped(&mut lent, &mut overwrite));
        assert!(lent.iter().all(|value| *value == 7), "{lent}");
    }

    /// To pinned memory, to a pending array, and repeated and turned on the device.
    fn copy_device_arrays(&mut self, there: &DeviceArray<u32, Ix2>) {
        let stream = self.devices[0].stream();
        let mut pinned = again(&mut self.told, || PinnedArray::<u32, _>::zeros((10, 8)));
        let copied = again(&mut self.told, || {
            there.copy_to_pinned_on(&stream, &mut pinned.slice_mut(s![1..9, ..]))?;
            pinned.host().map(|host| host.to_owned())
        });
        assert_eq!(copied.slice(s![1..9, ..]), start());
        let pending = || there.copy_to_host_on(&stream)?.wait();
        assert_eq!(again(&mut self.told, pending), start());
        let mut expected = start().reversed_axes();
        expected.slice_mut(s![..5, ..]).assign(&start().row(7));
        let turned = again(&mut self.told, || {
            let mut turned = there.t().to_contiguous()?;
            let repeated = there.row(7);
            turned.slice_mut(s![..5, ..]).copy_from_device(&repeated.broadcast((5, 8))?)?;
            turned.copy_to_host()
        });
        assert_eq!(turned, expected);
    }

    fn finish(mut self) -> usize {
        for device in self.devices {
            again(&mut self.told, || device.synchronize());
            again(&mut self.told, || device.trim());
            let _here = device.enter();
            for _ in 0..3 {
                if device.memory().pinned > 0 {
                    // If the driver refused to unregister memory, the next call that pins some
                    // tries again.
                    again(&mut self.told, || with_mapped(&mut start(), |_mapped| Ok(())));
                }
            }
            let memory = device.memory();
            assert_eq!((memory.in_use, memory.pinned), (0, 0), "{device} leaks");
        }
        self.told
    }
}

/// Runs the program, and returns the number of calls that returned an error.
pub(crate) fn run(devices: &[Device; 2], is_late: bool) -> usize {
    let mut run = Run { devices, is_late, told: 0 };
    run.go();
    run.finish()
}

fn sweep_emulated(is_late: bool) {
    let swept = sweep(is_late, run);
    for kind in [CallKind::AllocateManaged, CallKind::Prefetch, CallKind::Advise] {
        assert!(swept.kinds.contains(&kind), "{kind}");
    }
}

#[test]
fn each_refused_call_on_memory_in_place_can_be_repeated() {
    sweep_emulated(false);
}

#[test]
fn work_on_memory_in_place_that_fails_late_loses_only_what_it_was_to_write() {
    sweep_emulated(true);
}

#[test]
fn seeds_of_work_on_memory_in_place_with_and_without_a_fault() {
    seeds::sweep(250, run);
}
