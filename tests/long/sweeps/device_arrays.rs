//! Runs one program on device arrays of two devices: views, copies in every direction, and launches
//! on parts. In each run another call fails: when it is made, or when its work runs.

use resident::ndarray::Zip;

use crate::each_call::{Swept, add, again, counting, sweep};
use crate::seeds::{self, RUNS_LATE};
use support::prelude::*;

type Table = DeviceArray<u32, Ix2>;

fn start() -> Array2<u32> {
    counting(8, 6)
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
    /// Changes a table. If that is refused, each element has its value of before or, if a copy of
    /// several runs was refused in the middle, the one of after.
    fn write(
        &mut self,
        (table, model): (&mut Table, &mut Array2<u32>),
        mut call: impl FnMut(&mut Table) -> Result<()>,
        effect: impl FnOnce(&mut Array2<u32>),
    ) {
        let before = model.clone();
        effect(model);
        for attempt in 0.. {
            assert!(attempt < 4, "a call fails for ever");
            match call(table) {
                Ok(()) => break,
                Err(Error::Backend { .. } | Error::OutOfMemory { .. } | Error::Compile { .. }) => {
                    self.told += 1;
                    let seen = again(&mut self.told, || table.copy_to_host());
                    Zip::from(&seen).and(&before).and(&*model).for_each(|seen, before, after| {
                        assert!([before, after].contains(&seen), "{seen}, not {before} or {after}");
                    });
                }
                Err(other) => panic!("an unexpected kind of error: {other:?}"),
            }
        }
        self.expect(table, model);
    }

    /// Checks the contents; if work failed, they may be lost until they are overwritten.
    fn expect(&mut self, table: &mut Table, model: &Array2<u32>) {
        if self.is_late {
            for device in self.devices {
                self.told += usize::from(device.synchronize().is_err());
            }
        }
        if self.is_late && matches!(table.copy_to_host(), Err(Error::Lost { .. })) {
            again(&mut self.told, || table.copy_from_host(model));
        }
        assert_eq!(again(&mut self.told, || table.copy_to_host()), model);
    }

    fn go(&mut self) {
        let [here, there] = self.devices.each_ref().map(Device::stream);
        let own = again(&mut self.told, || self.devices[0].new_stream());
        let mut model = start();
        let mut table = again(&mut self.told, || DeviceArray::from_host_on(&own, &start()));
        self.expect(&mut table, &model);
        self.write_parts((&mut table, &mut model));
        self.read_views(&table, &model);
        let mut other = again(&mut self.told, || DeviceArray::from_host_on(&there, &start().t()));
        let mut other_model = start().reversed_axes();
        let turned = |other: &mut Table| other.copy_from_device_on(&there, &table.t());
        self.write((&mut other, &mut other_model), turned, |x| x.assign(&model.t()));
        let part = |x: &mut Table| {
            x.slice_mut(s![..6, ..])
                .copy_from_device_on(&here, &other.slice(s![.., ..;-1]).slice(s![.., 2..]))
        };
        let expected = other_model.slice(s![.., ..;-1]).slice_move(s![.., 2..]).to_owned();
        self.write((&mut table, &mut model), part, |x| x.slice_mut(s![..6, ..]).assign(&expected));
    }

    /// From the host, by a launch, within the device.
    fn write_parts(&mut self, (table, model): (&mut Table, &mut Array2<u32>)) {
        let (add, own) = (add(), table.device().stream());
        let part = s![1..;2, ..;-2];
        let values = Array2::from_shape_fn((3, 4), |(row, column)| 100 + (row * 4 + column) as u32);
        let upload = |x: &mut Table| x.slice_mut(part).copy_from_host(&values.t());
        self.write((table, model), upload, |x| x.slice_mut(part).assign(&values.t()));
        let launch = |x: &mut Table| {
            add.launch_on(
                &own,
                Grid::cover(1),
                (7, &mut x.view_mut().reversed_axes().slice_move(part)),
            )
        };
        let effect = |x: &mut Array2<u32>| {
            x.view_mut().reversed_axes().slice_move(part).mapv_inplace(|x| x + 7);
        };
        self.write((table, model), launch, effect);
        let within = |x: &mut Table| {
            let (mut above, below) = x.split_at_mut(Axis(0), 4);
            above.copy_from_device(&below.slice(s![..;-1, ..]))
        };
        self.write((table, model), within, |x| {
            let (mut above, below) = x.view_mut().split_at(Axis(0), 4);
            above.assign(&below.slice(s![..;-1, ..]));
        });
        let shift = |x: &mut Table| {
            let _here = own.enter();
            x.copy_within(s![..7, 1..], s![1.., ..5])
        };
        self.write((table, model), shift, |x| {
            let elements = x.slice(s![..7, 1..]).to_owned();
            x.slice_mut(s![1.., ..5]).assign(&elements);
        });
        let fill = |x: &mut Table| x.column_mut(2).fill_on(&own, 9);
        self.write((table, model), fill, |x| x.column_mut(2).fill(9));
        self.write((table, model), |x| x.set((7, 5), 1), |x| x[[7, 5]] = 1);
    }

    fn read_views(&mut self, table: &Table, model: &Array2<u32>) {
        let (told, own) = (&mut self.told, table.device().stream());
        let part = s![..;3, 1..5];
        assert_eq!(again(told, || table.slice(part).t().copy_to_host()), model.slice(part).t());
        let pending = || table.slice(part).copy_to_host_on(&own)?.wait();
        assert_eq!(again(told, pending), model.slice(part));
        let mut to = Array2::zeros((12, 8));
        again(told, || table.t().copy_to_host_into(&mut to.slice_mut(s![..;-2, ..])));
        assert_eq!(to.slice(s![..;-2, ..]), model.t());
        assert!(to.slice(s![..;2, ..]).iter().all(|value| *value == 0), "gaps");
        let columns =
            again(told, || table.to_contiguous_in(Order::F)?.ravel(Order::F)?.copy_to_host());
        assert!(columns.iter().eq(model.t().iter()));
        let repeated = || table.row(3).broadcast((2, 6))?.to_contiguous()?.copy_to_host();
        assert_eq!(again(told, repeated), model.row(3).broadcast((2, 6)).expect("it fits"));
        assert_eq!(again(told, || table.get((7, 5))), 1);
    }

    fn finish(mut self) -> usize {
        for device in self.devices {
            again(&mut self.told, || device.synchronize());
            again(&mut self.told, || device.trim());
            let in_use = [(); 2].map(|()| device.memory().in_use);
            assert_eq!(in_use[1], 0, "{device} leaks");
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
    let Swept { kinds, told, .. } = sweep(is_late, run);
    let is_none_of_its_own = |kind| matches!(kind, CallKind::Poison | CallKind::Chain);
    let is_met = |kind: &CallKind| kinds.contains(kind) || is_none_of_its_own(*kind);
    assert!(RUNS_LATE.iter().all(is_met), "{kinds:?}");
    assert!(told > kinds.len() / 4, "{told} errors in {} runs", kinds.len());
}

#[test]
fn each_refused_call_on_device_arrays_can_be_repeated() {
    sweep_emulated(false);
}

#[test]
fn work_on_device_arrays_that_fails_late_loses_only_what_it_was_to_write() {
    sweep_emulated(true);
}

#[test]
fn seeds_of_work_on_device_arrays_with_and_without_a_fault() {
    seeds::sweep(250, run);
}
