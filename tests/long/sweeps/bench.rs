//! The arrays, devices and streams that the steps of the scenario work on.

use crate::model::{ARRAYS, COLUMNS, Model, ROWS};
use support::prelude::*;

/// The real arrays.
pub(crate) struct Bench {
    pub(crate) devices: [Device; 2],
    pub(crate) streams: Vec<Stream>,
    pub(crate) arrays: [SmartArray<u32, Ix2>; ARRAYS],
    pub(crate) clone: Option<SmartArray<u32, Ix2>>,
    pub(crate) pending: Option<Pending<Array2<u32>>>,
    /// The values that a step has read, to compare with the model.
    pub(crate) seen: Vec<u32>,
}

impl Bench {
    /// Two streams of the first device and one of the second, made by `new_stream`.
    pub(crate) fn new(devices: &[Device; 2], new_stream: impl FnMut(&Device) -> Stream) -> Self {
        let streams = [0, 0, 1].map(|device: usize| &devices[device]).map(new_stream).to_vec();
        let start = Model::new();
        let adopted = |array: usize| SmartArray::from(start.values[array].clone());
        let arrays = [
            adopted(0).named("a"),
            SmartArray::uninit((ROWS, COLUMNS)).named("b"),
            SmartArray::zeros((ROWS, COLUMNS)).named("c"),
            adopted(3).named("d"),
        ];
        Self {
            devices: devices.clone(),
            streams,
            arrays,
            clone: None,
            pending: None,
            seen: Vec::new(),
        }
    }

    /// Borrows one array to read and another to write.
    pub(crate) fn pair(
        &mut self,
        read: usize,
        written: usize,
    ) -> (&SmartArray<u32, Ix2>, &mut SmartArray<u32, Ix2>) {
        let [read, written] = self.arrays.get_disjoint_mut([read, written]).expect("two arrays");
        (read, written)
    }
}
