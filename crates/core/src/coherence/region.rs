//! Boxes in an index space: one span per axis.

use super::span::Span;

/// The largest number of axes. Callers treat arrays with more axes as one-dimensional.
pub const AXES_MAX: usize = 6;

/// A box in an index space: one [`Span`] for each of its 0 to 6 axes. A box without axes is one
/// element, as in 0-d arrays.
///
/// Operations on two regions expect the same number of axes, which debug builds check. Regions with
/// different numbers of axes have no common elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// The number of axes, at most [`AXES_MAX`].
    axes: u8,
    /// Spans past the first `axes` are empty, so that the derived equality is right.
    spans: [Span; AXES_MAX],
}

impl Region {
    /// The box with these spans: at most six, as debug builds check; release builds ignore others.
    #[must_use]
    pub fn new(spans: &[Span]) -> Self {
        debug_assert!(
            spans.len() <= AXES_MAX,
            "a region has at most {AXES_MAX} axes, not {}",
            spans.len()
        );
        let axes = spans.len().min(AXES_MAX);
        let mut all = [Span::EMPTY; AXES_MAX];
        all[..axes].copy_from_slice(&spans[..axes]);
        Self { axes: axes as u8, spans: all }
    }

    /// The box with the first `axes` of these spans, of at most six. The others are empty.
    #[must_use]
    #[inline]
    pub fn of_spans(axes: usize, spans: [Span; AXES_MAX]) -> Self {
        debug_assert!(spans.iter().skip(axes).all(Span::is_empty) && axes <= AXES_MAX);
        Self { axes: axes as u8, spans }
    }

    /// All of an array with this shape, of at most six axes (as in [`Region::new`]).
    #[must_use]
    #[inline]
    pub fn whole(shape: &[u64]) -> Self {
        debug_assert!(
            shape.len() <= AXES_MAX,
            "a region has at most {AXES_MAX} axes, not {}",
            shape.len()
        );
        let axes = shape.len().min(AXES_MAX);
        let mut spans = [Span::EMPTY; AXES_MAX];
        for (span, extent) in spans.iter_mut().zip(&shape[..axes]) {
            *span = Span::full(*extent);
        }
        Self { axes: axes as u8, spans }
    }

    /// The number of axes.
    #[must_use]
    #[inline]
    pub const fn axes(&self) -> usize {
        self.axes as usize
    }

    /// The span along `axis`; empty beyond the last axis.
    #[must_use]
    #[inline]
    pub fn span(&self, axis: usize) -> Span {
        self.spans.get(axis).copied().unwrap_or(Span::EMPTY)
    }

    /// The spans of all axes.
    #[must_use]
    #[inline]
    pub fn spans(&self) -> &[Span] {
        &self.spans[..usize::from(self.axes)]
    }

    /// The box with another span along `axis`; unchanged if it has no such axis.
    #[must_use]
    #[inline]
    pub fn with_span(mut self, axis: usize, span: Span) -> Self {
        if axis < self.axes() {
            self.spans[axis] = span;
        }
        self
    }

    /// A hash of the spans, fast to compute: regions are well distributed without secrecy.
    #[must_use]
    #[inline]
    pub fn hash(&self) -> u64 {
        hash(self.spans())
    }

    /// The number of elements, or `u64::MAX` if it is larger.
    #[must_use]
    #[inline]
    pub fn len(&self) -> u64 {
        elements(self.spans())
    }

    /// Whether this is all of an array with this shape.
    #[must_use]
    #[inline]
    pub fn is_whole(&self, shape: &[u64]) -> bool {
        let is_full = |(span, extent): (&Span, &u64)| {
            *extent == 0 || span.start() == 0 && span.step() == 1 && span.end() >= *extent
        };
        self.axes() == shape.len() && self.spans().iter().zip(shape).all(is_full)
    }

    /// Whether there is no element.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans().iter().any(Span::is_empty)
    }

    /// Whether the element at `point` (one index per axis) is inside.
    #[allow(dead_code, reason = "tests call it, and the fuzz targets, which include this file")]
    #[must_use]
    pub fn contains_point(&self, point: &[u64]) -> bool {
        point.len() == self.axes()
            && self.spans().iter().zip(point).all(|(span, index)| span.contains(*index))
    }

    /// The common elements, or `None` if there are none.
    #[must_use]
    #[inline]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        self.check_axes(other);
        self.intersection_spans(other.spans())
    }

    /// As [`intersection`](Self::intersection), with the box that has these spans.
    #[must_use]
    pub(super) fn intersection_spans(&self, spans: &[Span]) -> Option<Self> {
        if spans.len() != self.axes() {
            return None;
        }
        let mut common = [Span::EMPTY; AXES_MAX];
        for ((common, own), other) in common.iter_mut().zip(self.spans()).zip(spans) {
            *common = own.intersection(other)?;
        }
        Some(Self { axes: self.axes, spans: common })
    }

    /// Calls `emit` with disjoint boxes of the elements that are not in `other`.
    pub fn difference(&self, other: &Self, mut emit: impl FnMut(&Self)) {
        self.check_axes(other);
        let Some(common) = self.intersection(other) else {
            if !self.is_empty() {
                emit(self);
            }
            return;
        };
        self.without(&common, emit);
    }

    /// Like [`difference`](Self::difference) for `part`, a non-empty subset of this box.
    ///
    /// First, the elements outside `part` along the first axis are split off, over the full extent
    /// of the other axes. The same follows for the second axis, and so on, until only `part`
    /// remains. Therefore the boxes are as long in memory as possible when the last axis is
    /// contiguous.
    #[inline]
    pub(super) fn without(mut self, part: &Self, mut emit: impl FnMut(&Self)) {
        for axis in 0..self.axes() {
            let span = self.spans[axis];
            // A `Region` has about 150 bytes. To avoid copies, `self` itself becomes each emitted
            // box in turn, and gets `part`'s span below.
            span.without(&part.spans[axis], |piece| {
                self.spans[axis] = piece;
                emit(&self);
            });
            self.spans[axis] = part.spans[axis];
        }
    }

    /// The union, if the boxes differ on only one axis and the union of the two spans there is a
    /// span.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Option<Self> {
        self.check_axes(other);
        if self.axes != other.axes {
            return None;
        }
        let (axis, span) = merged_spans(self.spans(), other.spans(), Span::union)?;
        Some(self.with_span(axis, span))
    }

    /// The part within an array of this shape, which has one extent per axis.
    #[must_use]
    pub(super) fn clipped(&self, shape: &[u64]) -> Self {
        let mut clipped = *self;
        for (span, extent) in clipped.spans.iter_mut().zip(shape) {
            if span.end() > *extent {
                *span = Span::new(span.start(), *extent, span.step());
            }
        }
        clipped
    }

    /// Checks in debug builds that the two regions have the same number of axes.
    fn check_axes(&self, other: &Self) {
        debug_assert!(
            self.axes == other.axes,
            "regions with {} and {} axes are compared",
            self.axes,
            other.axes
        );
    }
}

/// Multiplies by an odd number with random bits, as a fast hash of integers does. Both the highest
/// and the lowest bits of the result are mixed.
#[inline]
pub(super) fn hash(spans: &[Span]) -> u64 {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = spans.iter().fold(0_u64, |hash, span| {
        let low = (hash.rotate_left(29) ^ span.start()).wrapping_mul(MIX);
        (low.rotate_left(29) ^ span.end()).wrapping_mul(MIX)
    });
    mixed ^ mixed >> 32
}

/// The number of elements of the box with these spans, or `u64::MAX` if it is larger.
#[inline]
pub(super) fn elements(spans: &[Span]) -> u64 {
    spans.iter().fold(1, |product, span| product.saturating_mul(span.len()))
}

/// The number of elements that the boxes with these spans have in common, or `u64::MAX` if it is
/// larger.
#[inline]
pub(super) fn common_elements(a: &[Span], b: &[Span]) -> u64 {
    let mut product = 1_u64;
    for (own, other) in a.iter().zip(b) {
        product = product.saturating_mul(own.common_len(other));
        if product == 0 {
            break;
        }
    }
    product
}

/// If two boxes with these spans differ on only one axis, and `merge` makes one span of the two
/// spans on this axis: the axis, and the merged span.
pub(super) fn merged_spans(
    a: &[Span],
    b: &[Span],
    merge: impl Fn(&Span, &Span) -> Option<Span>,
) -> Option<(usize, Span)> {
    let mut differing = a.iter().zip(b).enumerate().filter(|(_, (own, other))| own != other);
    let (axis, (own, other)) = differing.next()?;
    if differing.next().is_some() {
        return None;
    }
    Some((axis, merge(own, other)?))
}
