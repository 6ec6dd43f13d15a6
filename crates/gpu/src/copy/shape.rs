//! Splits a box of bytes into lines, planes and volumes within the pitch limit. Arithmetic only.

use crate::driver::{Extents, Pitch};
use resident_backend::CopyBox;
use resident_core::layout::for_each_start;

/// The copy of one driver call. Offsets are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(super) source: u64,
    pub(super) destination: u64,
    pub(super) extents: Extents,
}

impl Shape {
    pub(super) fn is_line(&self) -> bool {
        self.line_count() == 1
    }

    pub(super) fn len_bytes(&self) -> u64 {
        self.extents.width_bytes * self.line_count()
    }

    pub(super) fn line_count(&self) -> u64 {
        self.extents.height * self.extents.depth
    }

    /// Calls `visit` with the offsets of each line at both ends.
    pub(super) fn for_each_line(&self, visit: &mut impl FnMut(u64, u64)) {
        let extents = &self.extents;
        for plane in 0..extents.depth {
            for line in 0..extents.height {
                let at = |pitch: Pitch| (plane * pitch.plane_lines + line) * pitch.line_bytes;
                visit(
                    self.source + at(extents.source_pitch),
                    self.destination + at(extents.destination_pitch),
                );
            }
        }
    }
}

fn line(width_bytes: u64) -> Extents {
    let pitch = Pitch { line_bytes: width_bytes, plane_lines: 1 };
    Extents { width_bytes, height: 1, depth: 1, source_pitch: pitch, destination_pitch: pitch }
}

/// A plane of `height` such lines, whose distances at the source and at the destination are given,
/// if the driver accepts these as pitches.
fn plane(line: Extents, height: u64, strides: [u64; 2], pitch_bytes_max: u64) -> Option<Extents> {
    let fits = |stride: &u64| (line.width_bytes..=pitch_bytes_max).contains(stride);
    let [source_pitch, destination_pitch] =
        strides.map(|line_bytes| Pitch { line_bytes, plane_lines: height });
    let plane = Extents { height, source_pitch, destination_pitch, ..line };
    strides.iter().all(fits).then_some(plane)
}

/// A volume of `depth` such planes, if at both ends the distance between planes is a whole number
/// of lines.
fn volume(plane: Extents, depth: u64, [source, destination]: [u64; 2]) -> Option<Extents> {
    let pitch = |stride: u64, pitch: Pitch| {
        let plane_lines = stride / pitch.line_bytes;
        (stride.is_multiple_of(pitch.line_bytes) && plane_lines >= plane.height)
            .then_some(Pitch { plane_lines, ..pitch })
    };
    let source_pitch = pitch(source, plane.source_pitch)?;
    let destination_pitch = pitch(destination, plane.destination_pitch)?;
    Some(Extents { depth, source_pitch, destination_pitch, ..plane })
}

/// Splits a part into shapes, and calls `visit` with each. A part with up to two axes is one shape
/// if the pitch limit allows it.
pub(crate) fn for_each(part: &CopyBox, pitch_bytes_max: u64, visit: &mut impl FnMut(Shape)) {
    if part.run_bytes == 0 {
        return;
    }
    let (extents, folded) = largest(part, pitch_bytes_max);
    let outer = &part.axes[..part.axes.len() - folded];
    let source = part.source_offset_bytes;
    let destination = part.destination_offset_bytes;
    for_each_start(outer, source, destination, &mut |source, destination| {
        visit(Shape { source, destination, extents });
    });
}

/// The extents of the largest shape that the innermost axes form, and the number of these axes.
fn largest(part: &CopyBox, pitch_bytes_max: u64) -> (Extents, usize) {
    let line = line(part.run_bytes);
    let Some(((height, source, destination), outer)) = part.axes.split_last() else {
        return (line, 0);
    };
    let Some(plane) = plane(line, *height, [*source, *destination], pitch_bytes_max) else {
        return (line, 0);
    };
    let volume = outer
        .last()
        .and_then(|(depth, source, destination)| volume(plane, *depth, [*source, *destination]));
    volume.map_or((plane, 1), |volume| (volume, 2))
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::{Shape, for_each};
    use resident_backend::CopyBox;

    const PITCH_MAX: u64 = 1 << 20;

    fn part(run_bytes: u64, axes: &[(u64, u64, u64)]) -> CopyBox {
        CopyBox {
            run_bytes,
            source_offset_bytes: 1000,
            destination_offset_bytes: 5000,
            axes: SmallVec::from_slice(axes),
        }
    }

    fn shapes(part: &CopyBox) -> Vec<Shape> {
        let mut shapes = Vec::new();
        for_each(part, PITCH_MAX, &mut |shape| shapes.push(shape));
        shapes
    }

    /// Every byte that is copied, as (from, to).
    fn bytes_of_shapes(shapes: &[Shape]) -> Vec<(u64, u64)> {
        let mut bytes = Vec::new();
        for shape in shapes {
            shape.for_each_line(&mut |from, to| {
                bytes.extend((0..shape.extents.width_bytes).map(|byte| (from + byte, to + byte)));
            });
        }
        bytes.sort_unstable();
        bytes
    }

    fn bytes_of_part(part: &CopyBox) -> Vec<(u64, u64)> {
        let mut bytes = Vec::new();
        part.for_each_run(&mut |from, to, len| {
            bytes.extend((0..len).map(|byte| (from + byte, to + byte)));
        });
        bytes.sort_unstable();
        bytes
    }

    #[test]
    fn a_box_with_up_to_two_axes_is_one_call() {
        assert_eq!(shapes(&part(64, &[])).len(), 1);
        assert_eq!(shapes(&part(64, &[(5, 128, 64)])).len(), 1);
        let volume = shapes(&part(64, &[(3, 1280, 640), (5, 128, 64)]));
        let extents = volume[0].extents;
        assert_eq!((volume.len(), extents.depth, extents.source_pitch.plane_lines), (1, 3, 10));
    }

    #[test]
    fn other_boxes_take_several_calls_that_copy_the_same_bytes() {
        let parts = [
            part(4, &[(2, 900, 700), (3, 128, 64), (2, 12, 8)]),
            part(8, &[(3, 1281, 640), (5, 128, 64)]),
            part(8, &[(3, 8, 4096), (5, 4096, 8)]),
            part(8, &[(2, PITCH_MAX + 8, 64)]),
            part(16, &[(4, 8, 32)]),
            part(2, &[(2, 64, 48), (2, 32, 24), (2, 16, 8), (3, 4, 2)]),
        ];
        for part in &parts {
            assert_eq!(bytes_of_shapes(&shapes(part)), bytes_of_part(part), "{part:?}");
        }
        assert_eq!(
            shapes(&parts[1]).len(),
            3,
            "the distance of the planes is not a whole number of lines"
        );
        assert_eq!(shapes(&parts[3]).len(), 2, "a pitch beyond the driver's limit");
        assert_eq!(shapes(&part(0, &[(4, 8, 8)])).len(), 0);
    }
}
