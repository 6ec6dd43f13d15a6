//! Indices along one axis: an arithmetic progression, and its exact algebra.
//!
//! Two progressions intersect in a progression: its step is the least common multiple of theirs,
//! and its first index follows from the Chinese remainder theorem. A difference is cut in one of
//! three ways, whichever gives the fewest pieces. All arithmetic that could leave 64 bits is done
//! in 128.

/// Indices `start, start + step, ... < end` along one axis.
///
/// Canonical, so equal sets of indices are equal values: `end` is the last index plus one, `step`
/// is 1 when there are fewer than two indices, and the empty span is `0..0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Span {
    /// The first index.
    start: u64,
    /// The last index plus one.
    end: u64,
    /// The distance between two indices.
    step: u64,
}

impl Span {
    /// The span without an index.
    pub(crate) const EMPTY: Self = Self { start: 0, end: 0, step: 1 };

    /// The indices `start, start + step, ...` below `end`. A step of zero counts as one.
    #[must_use]
    pub(crate) const fn new(start: u64, end: u64, step: u64) -> Self {
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
    pub(crate) const fn full(len: u64) -> Self {
        Self::new(0, len, 1)
    }

    /// One index. `u64::MAX` has no successor to serve as an end and gives the empty span; no axis
    /// is that long.
    #[must_use]
    pub(crate) const fn single(index: u64) -> Self {
        Self::new(index, index.saturating_add(1), 1)
    }

    /// The first index.
    #[must_use]
    pub(crate) const fn start(&self) -> u64 {
        self.start
    }

    /// The last index plus one.
    #[must_use]
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// The distance between two indices.
    #[must_use]
    pub(crate) const fn step(&self) -> u64 {
        self.step
    }

    /// The first `count` indices, or all of them if there are fewer.
    #[must_use]
    pub(crate) const fn first(&self, count: u64) -> Self {
        if count >= self.len() {
            *self
        } else {
            Self::new(self.start, self.start + count * self.step, self.step)
        }
    }

    /// The number of indices.
    #[must_use]
    pub(crate) const fn len(&self) -> u64 {
        if self.step == 1 {
            self.end - self.start
        } else {
            (self.end - self.start - 1) / self.step + 1
        }
    }

    /// True if there is no index.
    #[must_use]
    pub(crate) const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// True if `index` is among the indices.
    #[must_use]
    pub(crate) const fn contains(&self, index: u64) -> bool {
        index >= self.start
            && index < self.end
            && (self.step == 1 || (index - self.start).is_multiple_of(self.step))
    }

    /// True if every index of `other` is among the indices.
    #[must_use]
    pub(crate) const fn contains_span(&self, other: &Self) -> bool {
        if other.is_empty() {
            return true;
        }
        let same_lattice =
            self.step == 1 || other.step.is_multiple_of(self.step) || other.end - other.start == 1;
        other.end <= self.end && same_lattice && self.contains(other.start)
    }

    /// True if the ranges from first to last index overlap. Cheap, and necessary for a common
    /// index.
    #[must_use]
    pub(crate) const fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The common indices, or `None` if there are none.
    #[must_use]
    #[inline]
    pub(crate) fn intersection(&self, other: &Self) -> Option<Self> {
        if self.step == 1 && other.step == 1 {
            let (start, end) = (self.start.max(other.start), self.end.min(other.end));
            return (start < end).then_some(Self { start, end, step: 1 });
        }
        self.intersection_of_lattices(other)
    }

    /// The common indices of spans of which one has gaps.
    fn intersection_of_lattices(&self, other: &Self) -> Option<Self> {
        if !self.overlaps(other) {
            return None;
        }
        let low = self.start.max(other.start);
        let end = self.end.min(other.end);
        let (first, step) = self.common_lattice(other, low)?;
        (first < end).then(|| Self::new(first, end, step))
    }

    /// First index from `low` on of the two progressions continued for ever, and their common step.
    ///
    /// `low` is at least both starts. A first index beyond 64 bits is none, and a step beyond 64
    /// bits is never taken: it is cut to the largest number, which leaves one index all the same.
    fn common_lattice(&self, other: &Self, low: u64) -> Option<(u64, u64)> {
        let divisor = greatest_common_divisor(self.step, other.step);
        if !self.start.abs_diff(other.start).is_multiple_of(divisor) {
            return None;
        }
        let modulus = u128::from(other.step / divisor);
        let common = u128::from(self.step) * modulus;
        // self.start + self.step * turns = other.start (mod other.step), solved for turns.
        let distance = difference_modulo(other.start, self.start, other.step) / divisor;
        let turns = u128::from(distance)
            * u128::from(inverse(self.step / divisor, other.step / divisor))
            % modulus;
        let meeting = u128::from(self.start) + u128::from(self.step) * turns;
        let behind = u128::from(low).saturating_sub(meeting);
        let first = meeting + behind.div_ceil(common) * common;
        Some((u64::try_from(first).ok()?, u64::try_from(common).unwrap_or(u64::MAX)))
    }

    /// Emits the indices that `other` lacks, as disjoint spans.
    pub(crate) fn difference(&self, other: &Self, emit: impl FnMut(Self)) {
        match self.intersection(other) {
            Some(common) => self.without(&common, emit),
            None if self.is_empty() => {}
            None => std::iter::once(*self).for_each(emit),
        }
    }

    /// Emits the indices that are not in `part`, a non-empty subset of this span, as disjoint
    /// spans.
    #[inline]
    pub(super) fn without(&self, part: &Self, mut emit: impl FnMut(Self)) {
        if self.step != 1 || part.step != 1 {
            return Comb::new(self, part).emit_rest(emit);
        }
        if self.start < part.start {
            emit(Self { start: self.start, end: part.start, step: 1 });
        }
        if part.end < self.end {
            emit(Self { start: part.end, end: self.end, step: 1 });
        }
    }

    /// The union, if it is exactly a span.
    ///
    /// Two single indices that are not neighbours stay apart, although a step would join them: such
    /// spans match nothing that is written later and blur the bounds of a search. See
    /// [`union`](Self::union).
    #[must_use]
    pub(crate) fn merged(&self, other: &Self) -> Option<Self> {
        let far_singles =
            self.len() == 1 && other.len() == 1 && self.start.abs_diff(other.start) > 1;
        if far_singles { None } else { self.union(other) }
    }

    /// The union, if it is exactly a span; of any two indices, too.
    #[must_use]
    pub(crate) fn union(&self, other: &Self) -> Option<Self> {
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

    /// The step, or zero (which divides into everything) where a single index has none.
    const fn step_or_zero(&self) -> u64 {
        if self.end - self.start == 1 { 0 } else { self.step }
    }

    /// The indices at positions `from, from + stride, ... < to` of this span; `to` is at most the
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

/// A span and the positions in it that are to be left out: `first, first + stride, ... last`.
struct Comb<'a> {
    /// The span.
    span: &'a Span,
    /// The number of its positions.
    len: u64,
    /// The first position to be left out.
    first: u64,
    /// The last position to be left out.
    last: u64,
    /// The distance between two positions to be left out.
    stride: u64,
}

impl<'a> Comb<'a> {
    /// `teeth` is a non-empty subset of `span`.
    const fn new(span: &'a Span, teeth: &Span) -> Self {
        let first = (teeth.start - span.start) / span.step;
        let last = (teeth.end - 1 - span.start) / span.step;
        let stride = if first == last { 1 } else { teeth.step / span.step };
        Self { span, len: span.len(), first, last, stride }
    }

    /// Emits what lies around the teeth and between them, in the way that takes the fewest spans.
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

    /// What lies before the first tooth and behind the last, every `stride` positions counted from
    /// the teeth.
    fn emit_ends(&self, stride: u64, emit: &mut impl FnMut(Span)) {
        emit(self.span.positions(self.first % stride, self.first, stride));
        emit(self.span.positions(self.last.saturating_add(stride), self.len, stride));
    }

    /// One span for each gap between two teeth.
    fn emit_gaps(&self, emit: &mut impl FnMut(Span)) {
        if self.stride == 1 {
            return;
        }
        let mut tooth = self.first;
        while tooth < self.last {
            emit(self.span.positions(tooth + 1, tooth + self.stride, 1));
            tooth += self.stride;
        }
    }

    /// One span for each phase other than that of the teeth, within the positions `from..to`.
    fn emit_phases(&self, from: u64, to: u64, emit: &mut impl FnMut(Span)) {
        for phase in 0..self.stride {
            if (from + phase) % self.stride != self.first % self.stride {
                emit(self.span.positions(from + phase, to, self.stride));
            }
        }
    }
}

/// Euclid's algorithm; zero is neutral.
const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// `a - b` modulo `modulus`, as a number below it.
const fn difference_modulo(a: u64, b: u64, modulus: u64) -> u64 {
    let (a, b) = (a % modulus, b % modulus);
    if a >= b { a - b } else { modulus - (b - a) }
}

/// The number that times `value` is 1 modulo `modulus`, for coprime arguments, by the extended
/// Euclid's algorithm.
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
