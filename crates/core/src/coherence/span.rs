//! Indices along one axis, as an arithmetic progression, with exact set operations.
//!
//! The intersection of two progressions is a progression: its step is the least common multiple of
//! their steps, and its first index follows from the Chinese remainder theorem. A difference can be
//! split into spans in three ways; the one with the fewest spans is used. Arithmetic that could
//! overflow 64 bits uses 128 bits.

/// Indices `start, start + step, ... < end` along one axis.
///
/// The form is canonical, so equal sets of indices are equal values: `end` is the last index plus
/// one, `step` is 1 if there are fewer than two indices, and the empty span is `0..0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// The first index.
    start: u64,
    /// The last index plus one.
    end: u64,
    /// The distance between two indices.
    step: u64,
}

impl Span {
    /// The empty span.
    pub const EMPTY: Self = Self { start: 0, end: 0, step: 1 };

    /// The indices `start, start + step, ...` below `end`. A step of zero counts as one.
    #[must_use]
    #[inline]
    pub const fn new(start: u64, end: u64, step: u64) -> Self {
        if start >= end {
            return Self::EMPTY;
        }
        if step <= 1 {
            return Self { start, end, step: 1 };
        }
        let last = end - 1 - (end - 1 - start) % step;
        let step = if last == start { 1 } else { step };
        Self { start, end: last + 1, step }
    }

    /// The indices `0..len`.
    #[must_use]
    #[inline]
    pub const fn full(len: u64) -> Self {
        Self::new(0, len, 1)
    }

    /// One index. The index `u64::MAX` gives the empty span, since its end would overflow; no axis
    /// is that long.
    #[must_use]
    #[inline]
    pub const fn single(index: u64) -> Self {
        Self::new(index, index.saturating_add(1), 1)
    }

    /// The first index.
    #[must_use]
    #[inline]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// The last index plus one.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// The distance between two indices.
    #[must_use]
    #[inline]
    pub const fn step(&self) -> u64 {
        self.step
    }

    /// The first `count` indices, or all of them if there are fewer.
    #[must_use]
    #[inline]
    pub const fn first(&self, count: u64) -> Self {
        if count >= self.len() {
            *self
        } else {
            Self::new(self.start, self.start + count * self.step, self.step)
        }
    }

    /// Some of these indices, which `inner` counts from the first.
    #[must_use]
    pub(crate) fn section(&self, inner: &Self) -> Self {
        let end = self.start + inner.end * self.step;
        Self::new(self.start + inner.start * self.step, end, self.step * inner.step)
    }

    /// These indices counted from the other end of an axis with `len` indices.
    #[must_use]
    pub(crate) fn mirrored(&self, len: u64) -> Self {
        Self::new(len - self.end, len - self.start, self.step)
    }

    /// These indices as numbers of places that are `step` apart, the first at `start`. Each index
    /// is such a place.
    #[must_use]
    pub(crate) fn divided(&self, start: u64, step: u64) -> Self {
        if self.is_empty() {
            return Self::EMPTY;
        }
        let number = |index: u64| (index - start) / step;
        Self::new(number(self.start), number(self.end - 1) + 1, self.step / step)
    }

    /// The number of indices.
    #[must_use]
    #[inline]
    pub const fn len(&self) -> u64 {
        if self.step == 1 {
            self.end - self.start
        } else {
            (self.end - self.start - 1) / self.step + 1
        }
    }

    /// Whether there is no index.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether `index` is one of the indices.
    #[must_use]
    #[inline]
    pub const fn contains(&self, index: u64) -> bool {
        index >= self.start
            && index < self.end
            && (self.step == 1 || (index - self.start).is_multiple_of(self.step))
    }

    /// Whether every index of `other` is one of the indices.
    #[must_use]
    #[inline]
    pub const fn contains_span(&self, other: &Self) -> bool {
        if self.step == 1 || other.is_empty() {
            return other.is_empty() || self.start <= other.start && other.end <= self.end;
        }
        let same_phase = other.step.is_multiple_of(self.step) || other.end - other.start == 1;
        other.end <= self.end && same_phase && self.contains(other.start)
    }

    /// Whether the ranges from first to last index overlap: a cheap, necessary condition for a
    /// common index.
    #[must_use]
    #[inline]
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The common indices, or `None` if there are none.
    #[must_use]
    #[inline]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        if self.step == 1 && other.step == 1 {
            let (start, end) = (self.start.max(other.start), self.end.min(other.end));
            return (start < end).then_some(Self { start, end, step: 1 });
        }
        self.intersection_of_strided(other)
    }

    /// The number of common indices.
    #[inline]
    pub(super) fn common_len(&self, other: &Self) -> u64 {
        if self.step == 1 && other.step == 1 {
            return self.end.min(other.end).saturating_sub(self.start.max(other.start));
        }
        self.intersection_of_strided(other).map_or(0, |common| common.len())
    }

    /// The common indices, if at least one of the steps is not 1.
    fn intersection_of_strided(&self, other: &Self) -> Option<Self> {
        if !self.overlaps(other) {
            return None;
        }
        let low = self.start.max(other.start);
        let end = self.end.min(other.end);
        let (fine, coarse) = if self.step <= other.step { (self, other) } else { (other, self) };
        if coarse.step.is_multiple_of(fine.step) {
            // The usual case: all indices of the coarser progression are common ones, or none.
            let first = coarse.start + (low - coarse.start).next_multiple_of(coarse.step);
            let is_common = first < end && (first - fine.start).is_multiple_of(fine.step);
            return is_common.then(|| Self::new(first, end, coarse.step));
        }
        let (first, step) = self.common_progression(other, low)?;
        (first < end).then(|| Self::new(first, end, step))
    }

    /// The first common index that is at least `low`, and the step between common indices, of both
    /// progressions continued without end.
    ///
    /// `low` must not be below either start. Returns `None` if that first index exceeds 64 bits. A
    /// step that exceeds 64 bits is returned as `u64::MAX`: there is only one common index then.
    fn common_progression(&self, other: &Self, low: u64) -> Option<(u64, u64)> {
        let divisor = greatest_common_divisor(self.step, other.step);
        if !self.start.abs_diff(other.start).is_multiple_of(divisor) {
            return None;
        }
        let modulus = u128::from(other.step / divisor);
        let common = u128::from(self.step) * modulus;
        // self.start + self.step * turns = other.start (mod other.step), solved for `turns`.
        let distance = difference_modulo(other.start, self.start, other.step) / divisor;
        let turns = u128::from(distance)
            * u128::from(inverse(self.step / divisor, other.step / divisor))
            % modulus;
        let meeting = u128::from(self.start) + u128::from(self.step) * turns;
        let behind = u128::from(low).saturating_sub(meeting);
        let first = meeting + behind.div_ceil(common) * common;
        Some((u64::try_from(first).ok()?, u64::try_from(common).unwrap_or(u64::MAX)))
    }

    /// Calls `emit` with disjoint spans of the indices that are not in `part`, a non-empty subset
    /// of this span.
    #[inline]
    pub(crate) fn without(&self, part: &Self, mut emit: impl FnMut(Self)) {
        if self.step != 1 || part.step != 1 {
            return Exclusion::new(self, part).emit_rest(emit);
        }
        if self.start < part.start {
            emit(Self { start: self.start, end: part.start, step: 1 });
        }
        if part.end < self.end {
            emit(Self { start: part.end, end: self.end, step: 1 });
        }
    }

    /// The indices that are not in `part`, which has some of them, if both have steps of one and
    /// the rest is one span.
    #[inline]
    pub(super) fn without_end(&self, part: &Self) -> Option<Self> {
        if self.step != 1 || part.step != 1 {
            return None;
        }
        match (self.start < part.start, part.end < self.end) {
            (true, false) => Some(Self { start: self.start, end: part.start, step: 1 }),
            (false, true) => Some(Self { start: part.end, end: self.end, step: 1 }),
            _ => None,
        }
    }

    /// The union, if it is a span; `None` if it is two single indices with a gap between them.
    ///
    /// A map must not join such indices: the strided result matches no region that is written
    /// later, and its wide bounds slow searches down.
    #[must_use]
    pub fn union_without_gap(&self, other: &Self) -> Option<Self> {
        let has_gap = self.len() == 1 && other.len() == 1 && self.start.abs_diff(other.start) > 1;
        if has_gap { None } else { self.union(other) }
    }

    /// The union, if it is a span. The union of any two single indices is a span.
    #[must_use]
    pub fn union(&self, other: &Self) -> Option<Self> {
        if self.is_empty() || other.is_empty() {
            return Some(if self.is_empty() { *other } else { *self });
        }
        let steps = greatest_common_divisor(self.step_or_zero(), other.step_or_zero());
        let step = greatest_common_divisor(steps, self.start.abs_diff(other.start));
        let hull = Self::new(self.start.min(other.start), self.end.max(other.end), step);
        let common = self.intersection(other).map_or(0, |span| span.len());
        let union = u128::from(self.len()) + u128::from(other.len()) - u128::from(common);
        (u128::from(hull.len()) == union).then_some(hull)
    }

    /// The step; zero, the neutral element of the greatest common divisor, for a single index.
    const fn step_or_zero(&self) -> u64 {
        if self.end - self.start == 1 { 0 } else { self.step }
    }

    /// The indices at positions `from, from + stride, ... < to` of this span; `to` is at most its
    /// length.
    const fn positions(&self, from: u64, to: u64, stride: u64) -> Self {
        if from >= to {
            return Self::EMPTY;
        }
        Self::new(
            self.start + from * self.step,
            self.start + (to - 1) * self.step + 1,
            stride.saturating_mul(self.step),
        )
    }
}

/// A span, and positions in it to exclude: `first, first + stride, ... last`.
struct Exclusion<'a> {
    span: &'a Span,
    /// The number of positions in the span.
    len: u64,
    /// The first excluded position.
    first: u64,
    /// The last excluded position.
    last: u64,
    /// The distance between two excluded positions.
    stride: u64,
}

impl<'a> Exclusion<'a> {
    /// `excluded` is a non-empty subset of `span`.
    #[inline]
    const fn new(span: &'a Span, excluded: &Span) -> Self {
        let first = (excluded.start - span.start) / span.step;
        let last = (excluded.end - 1 - span.start) / span.step;
        let stride = if first == last { 1 } else { excluded.step / span.step };
        Self { span, len: span.len(), first, last, stride }
    }

    /// Calls `emit` with the remaining indices, as few spans as possible: one before and one after
    /// the excluded positions, and between these positions either one for each gap or one for each
    /// phase (the remainder of a position divided by `stride`).
    fn emit_rest(&self, mut emit: impl FnMut(Span)) {
        let mut emit = |span: Span| {
            if !span.is_empty() {
                emit(span);
            }
        };
        let ends = u64::from(self.first > 0) + u64::from(self.last + 1 < self.len);
        let gaps = if self.stride == 1 { 0 } else { (self.last - self.first) / self.stride };
        let phases = self.stride - 1;
        let long_ends =
            u64::from(self.first >= self.stride) + u64::from(self.len - self.last > self.stride);
        if ends + gaps <= (ends + phases).min(long_ends + phases) {
            self.emit_ends(1, &mut emit);
            self.emit_gaps(&mut emit);
        } else if ends <= long_ends {
            self.emit_ends(1, &mut emit);
            self.emit_phases(self.first, self.last, &mut emit);
        } else {
            self.emit_ends(self.stride, &mut emit);
            self.emit_phases(0, self.len, &mut emit);
        }
    }

    /// Emits every `stride`-th position before the first excluded position, and every `stride`-th
    /// after the last, counted from these two positions.
    fn emit_ends(&self, stride: u64, emit: &mut impl FnMut(Span)) {
        emit(self.span.positions(self.first % stride, self.first, stride));
        emit(self.span.positions(self.last.saturating_add(stride), self.len, stride));
    }

    /// Emits one span for each gap between two excluded positions.
    fn emit_gaps(&self, emit: &mut impl FnMut(Span)) {
        if self.stride == 1 {
            return;
        }
        let mut excluded = self.first;
        while excluded < self.last {
            emit(self.span.positions(excluded + 1, excluded + self.stride, 1));
            excluded += self.stride;
        }
    }

    /// Emits one span for each phase that is not excluded, within the positions `from..to`.
    fn emit_phases(&self, from: u64, to: u64, emit: &mut impl FnMut(Span)) {
        for phase in 0..self.stride {
            if (from + phase) % self.stride != self.first % self.stride {
                emit(self.span.positions(from + phase, to, self.stride));
            }
        }
    }
}

/// By Euclid's algorithm; zero is the neutral element.
const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// `a - b` modulo `modulus`.
const fn difference_modulo(a: u64, b: u64, modulus: u64) -> u64 {
    let (a, b) = (a % modulus, b % modulus);
    if a >= b { a - b } else { modulus - (b - a) }
}

/// The inverse of `value` modulo `modulus`, for coprime arguments, by the extended Euclidean
/// algorithm.
const fn inverse(value: u64, modulus: u64) -> u64 {
    let (mut rest, mut next_rest) = (modulus as i128, (value % modulus) as i128);
    let (mut factor, mut next_factor) = (0_i128, 1_i128);
    while next_rest != 0 {
        let quotient = rest / next_rest;
        (rest, next_rest) = (next_rest, rest - quotient * next_rest);
        (factor, next_factor) = (next_factor, factor - quotient * next_factor);
    }
    factor.rem_euclid(modulus as i128) as u64
}
