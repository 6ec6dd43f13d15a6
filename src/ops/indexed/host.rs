//! Bodies in Rust of reads and writes of elements whose places are given.

use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::{ArrayViewD, ArrayViewMutD};
use smallvec::SmallVec;

use crate::element::Element;
use crate::ops::arithmetic::Index;
use crate::ops::elementwise::host::each_of_one;
use crate::ops::parallel::{PARALLEL_LEN_MIN, TASK_LEN, each_piece};

/// The number of the first index that is not below `len`.
pub(super) fn first_beyond<I: Index>(len: u64, index: ArrayViewD<'_, I>) -> Option<u64> {
    let Some(index) = index.as_slice() else {
        return index.iter().position(|index| index.to_u64() >= len).map(|number| number as u64);
    };
    if index.len() < PARALLEL_LEN_MIN {
        return first_beyond_in(len, index).map(|number| number as u64);
    }
    let first = AtomicU64::new(u64::MAX);
    each_piece(index.chunks(TASK_LEN).enumerate().collect(), |(piece, index)| {
        if let Some(number) = first_beyond_in(len, index) {
            first.fetch_min((piece * TASK_LEN + number) as u64, Ordering::Relaxed);
        }
    });
    Some(first.into_inner()).filter(|first| *first != u64::MAX)
}

/// As [`first_beyond`], of a slice. Chunks without a bad index are passed over by instructions on
/// several indices at once, which comparisons of `u64` are not.
pub(in crate::ops) fn first_beyond_in<I: Index>(len: u64, index: &[I]) -> Option<usize> {
    const CHUNK_LEN: usize = 1024;
    // No array has 2⁶³ elements, so the difference is negative for good indices only.
    let sign = |index: &I| index.to_u64() | !index.to_u64().wrapping_sub(len);
    let has_bad = |chunk: &[I]| chunk.iter().map(sign).fold(0, |all, one| all | one) >> 63 != 0;
    let (number, chunk) = index.chunks(CHUNK_LEN).enumerate().find(|(_, chunk)| has_bad(chunk))?;
    let place = chunk.iter().position(|index| index.to_u64() >= len)?;
    Some(number * CHUNK_LEN + place)
}

/// `out[i] = a[index[i]]`.
pub(super) fn gather<W: Element>(
    a: ArrayViewD<'_, W>,
    index: ArrayViewD<'_, u64>,
    out: ArrayViewMutD<'_, W>,
) {
    match a.as_slice() {
        Some(a) => each_of_one(index, out, move |place, out| *out = a[place as usize]),
        None => each_of_one(index, out, |place, out| {
            *out = a[&place_in(a.shape(), place as usize)[..]];
        }),
    }
}

/// The index of the n-th element in row-major order.
fn place_in(shape: &[usize], mut n: usize) -> SmallVec<[usize; 6]> {
    let mut place = SmallVec::from_elem(0, shape.len());
    for (index, len) in place.iter_mut().zip(shape).rev() {
        *index = n % len;
        n /= len;
    }
    place
}

/// `out[index[i]] = a[i]`, one index after the other, so that the last of several wins.
pub(super) fn scatter<W: Element>(
    a: ArrayViewD<'_, W>,
    index: ArrayViewD<'_, u64>,
    mut out: ArrayViewMutD<'_, W>,
) {
    if let (Some(a), Some(index), Some(out)) = (a.as_slice(), index.as_slice(), out.as_slice_mut())
    {
        return index.iter().zip(a).for_each(|(place, element)| out[*place as usize] = *element);
    }
    index.iter().zip(&a).for_each(|(place, element)| {
        let place = place_in(out.shape(), *place as usize);
        out[&place[..]] = *element;
    });
}

#[cfg(test)]
mod tests {
    use super::first_beyond_in;

    #[test]
    fn the_first_bad_index_is_found_wherever_it_is() {
        for len in [0, 1, 7, 1 << 40, (1 << 63) - 1] {
            for bad in [len, len + 1, 1 << 63, u64::MAX - 1, u64::MAX] {
                let good = len.saturating_sub(1);
                for place in [0, 1, 1023, 1024, 2500] {
                    let mut index = vec![if len == 0 { bad } else { good }; place];
                    index.extend([bad, 0, bad]);
                    let first = if len == 0 { 0 } else { place };
                    assert_eq!(first_beyond_in(len, &index), Some(first), "{bad} of {len}");
                }
            }
        }
        assert_eq!(first_beyond_in(3, &[0_u64, 2].repeat(1500)), None);
        assert_eq!(first_beyond_in::<u32>(1 << 32, &[u32::MAX; 1025]), None);
        assert_eq!(first_beyond_in::<u64>(0, &[]), None);
    }
}
