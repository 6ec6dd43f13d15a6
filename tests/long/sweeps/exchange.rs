//! Runs one program that exchanges device arrays with other code by DLPack. In each run another
//! call fails: when it is made, or when its work runs.

use std::sync::Arc;

use resident::dlpark::versioned::Dlpack;
use support::foreign::{ForeignMemory, Form};

use crate::each_call::{Swept, add, again, sweep};
use crate::seeds;
use support::prelude::*;

type Table = DeviceArray<u32, Ix2>;

const SHAPE: (usize, usize) = (4, 6);

/// Elements of other code, 0, 1, ...
fn memory(device: &Device) -> Arc<ForeignMemory> {
    let elements: Vec<u32> = (0..24).collect();
    ForeignMemory::of(device, &elements)
}

/// One run of the program, on the first device.
struct Run<'d> {
    device: &'d Device,
    memory: &'d Arc<ForeignMemory>,
    /// Whether work may fail when it runs. Then each step is settled before the next.
    is_late: bool,
    /// The calls that returned an error.
    told: usize,
    /// What the memory contains once all work has run.
    model: Array2<u32>,
}

impl Run<'_> {
    /// Waits for all work, so that what is dropped is gone.
    fn settle(&mut self) {
        again(&mut self.told, || self.device.synchronize());
    }

    fn expect_handles(&mut self, count: usize) {
        self.settle();
        assert_eq!(Arc::strong_count(self.memory), count, "handles of the memory");
    }

    /// The memory as an array. If that is refused, the tensor is dropped.
    fn import(&mut self, stream: &Stream) -> Table {
        let (memory, told) = (self.memory, &mut self.told);
        let table = again(told, || {
            assert_eq!(Arc::strong_count(memory), 1, "a refused tensor is freed");
            let tensor = Form::rows([4, 6]).tensor(memory);
            // SAFETY: nothing else uses the memory until the tensor's deleter is called.
            unsafe { DeviceArray::from_dlpack_on(stream, tensor) }
        });
        assert_eq!((Arc::strong_count(memory), self.device.memory().in_use), (2, 96));
        table
    }

    /// Changes the array, and checks the contents if work may have failed: they are those of the
    /// model, or lost until they are overwritten.
    fn step(
        &mut self,
        table: &mut Table,
        mut call: impl FnMut(&mut Table) -> Result<()>,
        effect: impl FnOnce(&mut Array2<u32>),
    ) {
        again(&mut self.told, || call(table));
        effect(&mut self.model);
        if self.is_late {
            self.settle();
            let seen = table.copy_to_host();
            if matches!(seen, Err(Error::Lost { .. })) {
                self.told += 1;
                again(&mut self.told, || table.copy_from_host(&self.model));
                self.settle();
            }
        }
        let seen = again(&mut self.told, || table.copy_to_host());
        assert_eq!(seen, self.model);
    }

    /// Hands the array out; if that is refused, the array is dropped, and its memory is free.
    fn export(
        &mut self,
        table: Table,
        stream: &Stream,
        out: impl Fn(Table) -> Result<Dlpack>,
    ) -> Dlpack {
        let mut table = Some(table);
        loop {
            let table = table.take().unwrap_or_else(|| self.import(stream));
            match out(table) {
                Ok(tensor) => return tensor,
                Err(Error::Backend { .. } | Error::OutOfMemory { .. }) => self.told += 1,
                Err(other) => panic!("an unexpected kind of error: {other:?}"),
            }
            self.expect_handles(1);
            assert!(self.told < 4, "a call fails for ever");
            // SAFETY: no array uses the memory.
            let elements = unsafe { self.memory.elements() };
            assert_eq!(elements, self.model.as_slice().expect("row-major"));
        }
    }

    fn go(&mut self) {
        let add = add();
        let (here, grid) = (self.device.stream(), Grid::cover(1));
        let other = again(&mut self.told, || self.device.new_stream());
        let mut table = self.import(&other);
        self.step(&mut table, |x| add.launch_on(&here, grid, (5, x)), |x| *x += 5);
        let tensor = self.export(table, &here, |table| table.into_dlpack_on(&other));
        drop(tensor);
        self.expect_handles(1);
        let mut table = self.import(&here);
        let part = |x: &mut Table| x.slice_mut(s![1..3, ..]).fill_on(&other, 9);
        self.step(&mut table, part, |x| x.slice_mut(s![1..3, ..]).fill(9));
        let tensor = self.export(table, &other, DeviceArray::into_dlpack);
        // SAFETY: the call has waited, and the tensor's owner writes nothing.
        let elements = unsafe { self.memory.elements() };
        assert_eq!(elements, self.model.as_slice().expect("row-major"));
        drop(tensor);
        self.expect_handles(1);
        self.export_own(&other);
    }

    /// The library's own memory is freed by the tensor's deleter, or if the call is refused.
    fn export_own(&mut self, stream: &Stream) {
        let tensor = again(&mut self.told, || -> Result<Dlpack> {
            DeviceArray::<u32, _>::full_on(stream, SHAPE, 3)?.into_dlpack()
        });
        assert_eq!(self.device.memory().in_use, 96);
        drop(tensor);
        self.settle();
    }

    fn finish(mut self) -> usize {
        self.settle();
        again(&mut self.told, || self.device.trim());
        assert_eq!(self.device.memory().in_use, 0, "{} leaks", self.device);
        self.told
    }
}

/// Runs the program, and returns the number of calls that returned an error.
fn run(device: &Device, memory: &Arc<ForeignMemory>, is_late: bool) -> usize {
    let elements = (0..24).collect();
    let model = Array2::from_shape_vec(SHAPE, elements).expect("as many");
    let mut run = Run { device, memory, is_late, told: 0, model };
    run.go();
    run.finish()
}

pub(crate) fn run_on([device]: &[Device; 1], is_late: bool) -> usize {
    let memory = memory(device);
    let told = run(device, &memory, is_late);
    assert_eq!(Arc::strong_count(&memory), 1, "the memory is free");
    told
}

fn sweep_emulated(is_late: bool) {
    let Swept { runs, told, .. } = sweep(is_late, run_on);
    assert!(runs > if is_late { 5 } else { 15 } && told > 3, "{told} errors in {runs} runs");
}

#[test]
fn each_refused_call_of_an_exchange_can_be_repeated() {
    sweep_emulated(false);
}

#[test]
fn work_on_exchanged_memory_that_fails_late_loses_only_what_it_was_to_write() {
    sweep_emulated(true);
}

#[test]
fn seeds_of_an_exchange_with_and_without_a_fault() {
    seeds::sweep(1_000, run_on);
}
