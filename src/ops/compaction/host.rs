//! Bodies in Rust that choose elements and count indices.

use std::sync::{Mutex, PoisonError};

use ndarray::{Array1, ArrayViewD, ArrayViewMut1, ArrayViewMutD, Ix1};

use crate::ops::arithmetic::{Index, Number, Word};
use crate::ops::parallel::{PARALLEL_LEN_MIN, TASK_LEN, each_piece};

/// The elements whose mask is not 0, in order.
pub(super) fn choose<W: Word>(
    a: ArrayViewD<'_, W>,
    mask: ArrayViewD<'_, u8>,
    out: ArrayViewMutD<'_, W>,
) {
    let chosen = a.into_iter().zip(mask).filter(|(_, mask)| **mask != 0);
    out.into_iter().zip(chosen).for_each(|(out, (element, _))| *out = *element);
}

/// Masks the elements that differ from the one before. All NaNs are one.
pub(super) fn changes<T: Number>(a: ArrayViewD<'_, T>, mut mask: ArrayViewMutD<'_, u8>) {
    let mut before = None;
    for (mask, element) in mask.iter_mut().zip(&a) {
        let is_same = |before: T| before == *element || (before.is_nan() && element.is_nan());
        *mask = u8::from(!before.is_some_and(is_same));
        before = Some(*element);
    }
}

/// Counts how often each index occurs. Each task counts for itself, if the counts are few.
pub(super) fn count<I: Index, C: Index>(index: ArrayViewD<'_, I>, counts: ArrayViewMutD<'_, C>) {
    let Ok(mut counts) = counts.into_dimensionality::<Ix1>() else { unreachable!("a line") };
    counts.fill(C::ZERO);
    let is_shared = index.len() >= PARALLEL_LEN_MIN && counts.len() <= TASK_LEN / 8;
    match index.as_slice() {
        Some(index) if is_shared => {
            let (len, counts) = (counts.len(), Mutex::new(counts));
            each_piece(index.chunks(TASK_LEN).collect(), |part| {
                let mut own = Array1::from_elem(len, C::ZERO);
                add(own.view_mut(), part);
                let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                counts.zip_mut_with(&own, |count, own| *count = count.plus(*own));
            });
        }
        Some(index) => add(counts.view_mut(), index),
        None => add(counts, &index),
    }
}

fn add<'i, I: Index, C: Index>(
    mut counts: ArrayViewMut1<'_, C>,
    index: impl IntoIterator<Item = &'i I>,
) {
    for place in index {
        let count = &mut counts[place.to_u64() as usize];
        *count = count.plus(C::from_u8(1));
    }
}
