//! The memory of an area's cells. Launches of the same size follow each other, and pages that are
//! new cost more than the checks of the accesses to them, so that some memory is kept.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use super::shadow::{Cell, UNTOUCHED};

/// The bytes of memory that is kept. Less comes from the allocator without new pages, and of more
/// a launch may touch only a part.
const KEPT_BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=16 << 20;

/// So many bytes are kept in all.
const ALL_KEPT_BYTES_MAX: usize = 64 << 20;

/// What is kept for later launches of the process.
static KEPT: Mutex<Vec<Vec<Cell>>> = Mutex::new(Vec::new());

/// The cells of an area.
#[derive(Debug)]
pub(super) struct Cells(Vec<Cell>);

impl Cells {
    /// So many, of units that no thread has accessed.
    pub(super) fn untouched(len: usize) -> Self {
        let kept = KEPT_BYTES.contains(&len_bytes(len)).then(|| take(len)).flatten();
        Self(match kept {
            Some(mut cells) => {
                cells.clear();
                cells.resize(len, UNTOUCHED);
                cells
            }
            None => vec![UNTOUCHED; len],
        })
    }

    /// Divides each cell into so many of the same contents.
    pub(super) fn divide(&mut self, by: usize) {
        let divided = self.iter().flat_map(|cell| std::iter::repeat_n(*cell, by)).collect();
        *self = Self(divided);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}

impl Deref for Cells {
    type Target = Vec<Cell>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Cells {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        let cells = std::mem::take(&mut self.0);
        let new_bytes = len_bytes(cells.capacity());
        if KEPT_BYTES.contains(&new_bytes) {
            let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            let kept_bytes: usize = kept.iter().map(|cells| len_bytes(cells.capacity())).sum();
            if kept_bytes + new_bytes <= ALL_KEPT_BYTES_MAX {
                kept.push(cells);
            }
        }
    }
}

/// The smallest kept memory for so many cells, unless it is that of many more.
fn take(len: usize) -> Option<Vec<Cell>> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = |cells: &Vec<Cell>| (len..=2 * len).contains(&cells.capacity());
    let fitting = kept.iter().enumerate().filter(|(_, cells)| fits(cells));
    let (index, _) = fitting.min_by_key(|(_, cells)| cells.capacity())?;
    Some(kept.swap_remove(index))
}

fn len_bytes(cells: usize) -> usize {
    cells * size_of::<Cell>()
}
