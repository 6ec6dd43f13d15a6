//! Copies to a GPU from pageable memory, which a thread of the host packs into staging memory.

use std::collections::BTreeMap;

use super::history::{Copied, History, copied, total_ns};
use crate::document::Finding;

/// Fewer copies are left alone: page-locking takes longer than a few of them.
const COUNT_MIN: usize = 4;

/// Fewer bytes in all are left alone.
const BYTES_MIN: u64 = 16 << 20;

pub(super) fn find(history: &History<'_>) -> Vec<Finding> {
    let mut pageable: BTreeMap<(&str, &str), Vec<Copied<'_>>> = BTreeMap::new();
    for copy in history.records().filter_map(copied) {
        if copy.is_pageable && copy.direction == "to_device" {
            pageable.entry((copy.name, copy.site)).or_default().push(copy);
        }
    }
    pageable.into_iter().filter_map(|((name, site), copies)| finding(name, site, &copies)).collect()
}

/// From page-locked memory the copies would be queued at once.
fn finding(name: &str, site: &str, copies: &[Copied<'_>]) -> Option<Finding> {
    let bytes: u64 = copies.iter().map(|copy| copy.bytes).sum();
    (copies.len() >= COUNT_MIN && bytes >= BYTES_MIN).then(|| Finding {
        kind: "pageable_copies".to_owned(),
        message: format!(
            "{bytes} bytes of \"{name}\" are copied from pageable memory, in {} copies, which the \
             calling thread packs into staging memory",
            copies.len()
        ),
        change: "Page-lock the memory once, by `page_lock()`, or make a `PinnedArray`: then such \
                 calls return at once."
            .to_owned(),
        sites: vec![site.to_owned()],
        array: Some(name.to_owned()),
        count: 0,
        bytes: 0,
        nanoseconds: total_ns(copies.iter().map(|copy| copy.host_ns)),
    })
}
