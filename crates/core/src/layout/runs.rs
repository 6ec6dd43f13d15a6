//! Iteration over nested runs.

use super::{CopyBox, Footprint};

/// Count, source stride and destination stride of one axis of a copy, in bytes.
type CopyAxis = (u64, u64, u64);

impl CopyBox {
    /// Calls `visit` with the source offset, destination offset and length of each run (range of
    /// bytes). The fastest axes that have no gaps in the source and in the destination are first
    /// merged into the run. All offsets must fit 64 bits.
    pub fn for_each_run(&self, visit: &mut impl FnMut(u64, u64, u64)) {
        let mut run_bytes = self.run_bytes;
        let mut axes = self.axes.as_slice();
        while let Some((&(count, source, destination), slower)) = axes.split_last() {
            if count != 1 && (source, destination) != (run_bytes, run_bytes) {
                break;
            }
            run_bytes *= count;
            axes = slower;
        }
        if run_bytes > 0 {
            let (source, destination) = (self.source_offset_bytes, self.destination_offset_bytes);
            for_each_start(axes, source, destination, &mut |source, destination| {
                visit(source, destination, run_bytes);
            });
        }
    }
}

impl Footprint {
    /// Calls `visit` with the offset and length of each run, as [`CopyBox::for_each_run`] does.
    pub fn for_each_run(&self, visit: &mut impl FnMut(u64, u64)) {
        self.copy_to_same_offsets().for_each_run(&mut |offset, _, run_bytes| {
            visit(offset, run_bytes);
        });
    }
}

/// Calls `visit` with the source and destination offsets of each repetition along `axes`.
pub fn for_each_start(
    axes: &[CopyAxis],
    source: u64,
    destination: u64,
    visit: &mut impl FnMut(u64, u64),
) {
    let Some((&(count, source_stride, destination_stride), faster)) = axes.split_first() else {
        return visit(source, destination);
    };
    for index in 0..count {
        let source = source + index * source_stride;
        let destination = destination + index * destination_stride;
        if faster.is_empty() {
            visit(source, destination);
        } else {
            for_each_start(faster, source, destination, visit);
        }
    }
}
