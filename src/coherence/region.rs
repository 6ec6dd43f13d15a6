//! Boxes in an index space: one span per axis.

use super::span::Span;

/// The largest number of axes; the shell flattens arrays with more.
pub(crate) const AXES_MAX: usize = 6;

/// A box in an index space: one [`Span`] per axis, 0 to 6 axes. Without an axis it is one element
/// (0-d arrays).
///
/// Operations on two regions take two with the same number of axes, which debug builds check.
/// Regions with different numbers of axes have nothing in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Region {
    /// The number of axes, at most [`AXES_MAX`].
    axes: u8,
    /// Spans beyond `axes` are empty, so that equality may look at all of them.
    spans: [Span; AXES_MAX],
}

impl Region {
    /// The box with these spans, at most six: debug builds check, release builds leave out the
    /// rest.
    #[must_use]
    pub(crate) fn new(spans: &[Span]) -> Self {
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

    /// All of an array with this shape, which has at most six axes (as in [`Region::new`]).
    #[must_use]
    pub(crate) fn whole(shape: &[u64]) -> Self {
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
    pub(crate) const fn axes(&self) -> usize {
        self.axes as usize
    }

    /// The span along `axis`; empty beyond the last axis.
    #[must_use]
    pub(crate) fn span(&self, axis: usize) -> Span {
        self.spans.get(axis).copied().unwrap_or(Span::EMPTY)
    }

    /// The spans of all axes.
    #[must_use]
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans[..usize::from(self.axes)]
    }

    /// The same box with another span along `axis`; the same box if it has no such axis.
    #[must_use]
    pub(crate) fn with_span(mut self, axis: usize, span: Span) -> Self {
        if axis < self.axes() {
            self.spans[axis] = span;
        }
        self
    }

    /// The number of elements, or `u64::MAX` if it is larger.
    #[must_use]
    pub(crate) fn len(&self) -> u64 {
        elements(self.spans())
    }

    /// True if there is no element.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.spans().iter().any(Span::is_empty)
    }

    /// True if the element at `point` (one index per axis) is inside.
    #[must_use]
    pub(crate) fn contains_point(&self, point: &[u64]) -> bool {
        point.len() == self.axes()
            && self.spans().iter().zip(point).all(|(span, index)| span.contains(*index))
    }

    /// True if every element of `other` is inside.
    #[must_use]
    pub(crate) fn contains(&self, other: &Self) -> bool {
        self.check_axes(other);
        other.is_empty()
            || self.axes == other.axes
                && self
                    .spans()
                    .iter()
                    .zip(other.spans())
                    .all(|(own, others)| own.contains_span(others))
    }

    /// The common elements, or `None` if there are none.
    #[must_use]
    pub(crate) fn intersection(&self, other: &Self) -> Option<Self> {
        self.check_axes(other);
        self.intersection_spans(other.spans())
    }

    /// The elements in common with the box that has these spans, or `None` if there are none.
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

    /// Adds the elements that `other` lacks to `out`, as disjoint boxes.
    pub(crate) fn difference(&self, other: &Self, out: &mut Vec<Self>) {
        self.difference_each(other, |piece| out.push(*piece));
    }

    /// Emits the elements that `other` lacks, as disjoint boxes.
    ///
    /// What `other` lacks along the first axis is peeled off over the full breadth of the others,
    /// then the second axis, and so on: the rest shrinks to the intersection. So the pieces are as
    /// long in memory as they can be when the last axis is contiguous.
    pub(super) fn difference_each(&self, other: &Self, mut emit: impl FnMut(&Self)) {
        self.check_axes(other);
        let Some(common) = self.intersection(other) else {
            if !self.is_empty() {
                emit(self);
            }
            return;
        };
        self.without_each(&common, emit);
    }

    /// As [`difference_each`](Self::difference_each), where `common` is known to lie within and not
    /// to be empty.
    pub(super) fn without_each(&self, common: &Self, mut emit: impl FnMut(&Self)) {
        let mut rest = *self;
        for axis in 0..self.axes() {
            let span = rest.spans[axis];
            // Boxes are large: the rest itself is shown as each piece in turn, and put right below.
            span.without(&common.spans[axis], |piece| {
                rest.spans[axis] = piece;
                emit(&rest);
            });
            rest.spans[axis] = common.spans[axis];
        }
    }

    /// The union, if it is exactly a box: one contains the other, or all spans but one are equal
    /// and those merge.
    #[must_use]
    pub(crate) fn merged(&self, other: &Self) -> Option<Self> {
        self.merged_with(other, Span::merged)
    }

    /// As [`merged`](Self::merged), and single indices however far apart make a span with a step.
    #[must_use]
    pub(super) fn merged_strided(&self, other: &Self) -> Option<Self> {
        self.merged_with(other, Span::union)
    }

    /// The union, if it is a box; `merge` joins the spans of the one axis on which both differ.
    fn merged_with(
        &self,
        other: &Self,
        merge: impl Fn(&Span, &Span) -> Option<Span>,
    ) -> Option<Self> {
        self.check_axes(other);
        if self.axes != other.axes {
            return None;
        }
        if let Some((axis, span)) = merged_spans(self.spans(), other.spans(), merge) {
            return Some(self.with_span(axis, span));
        }
        match (self.contains(other), other.contains(self)) {
            (true, _) => Some(*self),
            (_, true) => Some(*other),
            _ => None,
        }
    }

    /// The part below the extents in `shape`, which has one extent per axis.
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

    /// Checks in debug builds that both have the same number of axes.
    fn check_axes(&self, other: &Self) {
        debug_assert!(
            self.axes == other.axes,
            "regions with {} and {} axes are compared",
            self.axes,
            other.axes
        );
    }
}

/// The number of elements of the box with these spans, or `u64::MAX` if it is larger.
pub(super) fn elements(spans: &[Span]) -> u64 {
    if spans.iter().any(Span::is_empty) {
        return 0;
    }
    spans.iter().fold(1, |product, span| product.saturating_mul(span.len()))
}

/// The one axis on which these spans of two boxes differ, and the union there, if that is a span.
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
