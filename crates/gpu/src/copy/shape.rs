//! Splits a box of bytes into lines, planes and volumes within the pitch limit. Arithmetic only.

use resident_backend::CopyBox;
use resident_core::layout::for_each_start;

/// The copy of one driver call: `depth` planes of `height` lines of `width_bytes` bytes. Offsets
/// are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(super) source: u64,
    pub(super) destination: u64,
    pub(super) width_bytes: u64,
    pub(super) height: u64,
    pub(super) depth: u64,
    pub(super) source_pitch: Pitch,
    pub(super) destination_pitch: Pitch,
}

/// The distances between lines, and between planes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pitch {
    pub(super) line_bytes: u64,
    /// The distance between planes, in lines.
    pub(super) plane_lines: u64,
}

impl Shape {
    fn line(part: &CopyBox) -> Self {
        let pitch = Pitch { line_bytes: part.run_bytes, plane_lines: 1 };
        Self {
            source: part.source_offset_bytes,
            destination: part.destination_offset_bytes,
            width_bytes: part.run_bytes,
            height: 1,
            depth: 1,
            source_pitch: pitch,
            destination_pitch: pitch,
        }
    }

    /// A plane of `count` lines, if the driver accepts the pitches.
    fn plane(
        part: &CopyBox,
        (count, source, destination): (u64, u64, u64),
        pitch_bytes_max: u64,
    ) -> Option<Self> {
        let fits = |stride| stride >= part.run_bytes && stride <= pitch_bytes_max;
        let pitch = |line_bytes| Pitch { line_bytes, plane_lines: count };
        (fits(source) && fits(destination)).then(|| Self {
            height: count,
            source_pitch: pitch(source),
            destination_pitch: pitch(destination),
            ..Self::line(part)
        })
    }

    /// A volume of `count` planes, if at both ends the distance between planes is a whole number of
    /// lines.
    fn volume(self, (count, source, destination): (u64, u64, u64)) -> Option<Self> {
        let lines = |stride: u64, pitch: Pitch| {
            let lines = stride / pitch.line_bytes;
            (stride.is_multiple_of(pitch.line_bytes) && lines >= self.height)
                .then_some(Pitch { plane_lines: lines, ..pitch })
        };
        Some(Self {
            depth: count,
            source_pitch: lines(source, self.source_pitch)?,
            destination_pitch: lines(destination, self.destination_pitch)?,
            ..self
        })
    }

    pub(super) fn is_line(&self) -> bool {
        self.height == 1 && self.depth == 1
    }

    pub(super) fn line_count(&self) -> u64 {
        self.height * self.depth
    }

    /// Calls `visit` with the offsets of each line at both ends.
    pub(super) fn for_each_line(&self, visit: &mut impl FnMut(u64, u64)) {
        for plane in 0..self.depth {
            for line in 0..self.height {
                let at = |pitch: Pitch| (plane * pitch.plane_lines + line) * pitch.line_bytes;
                visit(
                    self.source + at(self.source_pitch),
                    self.destination + at(self.destination_pitch),
                );
            }
        }
    }

    fn shifted(self, source: u64, destination: u64) -> Self {
        Self { source: self.source + source, destination: self.destination + destination, ..self }
    }
}

/// Splits a part into shapes, and calls `visit` with each. A part with up to two axes is one shape
/// if the pitch limit allows it.
pub(crate) fn for_each(part: &CopyBox, pitch_bytes_max: u64, visit: &mut impl FnMut(Shape)) {
    if part.run_bytes == 0 {
        return;
    }
    let (shape, folded) = largest(part, pitch_bytes_max);
    let outer = &part.axes[..part.axes.len() - folded];
    for_each_start(outer, 0, 0, &mut |source, target| visit(shape.shifted(source, target)));
}

/// The largest shape that the innermost axes form, and the number of these axes.
fn largest(part: &CopyBox, pitch_bytes_max: u64) -> (Shape, usize) {
    let Some((inner, outer)) = part.axes.split_last() else { return (Shape::line(part), 0) };
    let Some(plane) = Shape::plane(part, *inner, pitch_bytes_max) else {
        return (Shape::line(part), 0);
    };
    match outer.last().and_then(|next| plane.volume(*next)) {
        Some(volume) => (volume, 2),
        None => (plane, 1),
    }
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
                bytes.extend((0..shape.width_bytes).map(|byte| (from + byte, to + byte)));
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
        assert_eq!((volume.len(), volume[0].depth, volume[0].source_pitch.plane_lines), (1, 3, 10));
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
