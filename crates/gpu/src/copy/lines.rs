//! Copies and fills as lines of bytes, for graphs, which have nodes for these. Arithmetic only.

use smallvec::SmallVec;

use super::fill::{SettablePattern, doublings};
use crate::driver::LineWork;
use resident_backend::{CopyBox, CopyWork, FillWork, Footprint, Memory};

/// The most rows of a copy or a fill that become lines. One call for a plane is faster than many
/// nodes one after another, and a graph cannot change the node of a plane.
const ROWS_MAX: usize = 8;

/// The most words of a pattern that is set word by word.
const WORDS_MAX: usize = 4;

/// The lines of a copy or a fill. Each follows the one before it.
pub(crate) type Lines = SmallVec<[LineWork; 2]>;

/// The lines of a copy within the device; `None` if it is another copy, or has many rows.
pub(crate) fn of_copy(work: &CopyWork) -> Option<Lines> {
    let (Memory::Device(source), Memory::Device(destination)) = (&work.source, &work.destination)
    else {
        return None;
    };
    let mut lines = Lines::new();
    let mut are_few = work.source_device.is_none();
    for part in &work.parts {
        part.for_each_run(&mut |from, to, len_bytes| {
            let (from, to) = (source.0 + from, destination.0 + to);
            are_few &= lines.len() < ROWS_MAX;
            if are_few {
                lines.push(LineWork::Copy { to, from, len_bytes });
            }
        });
    }
    are_few.then_some(lines)
}

/// The lines of a fill; `None` if it has many rows, or a pattern that takes host memory.
pub(crate) fn of_fill(work: &FillWork) -> Option<Lines> {
    let mut lines = Lines::new();
    let (address, pattern) = (work.address.0, work.pattern.as_slice());
    let fits = |part: &Footprint| {
        !pattern.is_empty() && part.run_bytes.is_multiple_of(pattern.len() as u64)
    };
    for part in &work.parts {
        let is_added = fits(part)
            && (add_set_runs(address, part, pattern, &mut lines)
                || add_doubled_run(address, part, pattern, &mut lines));
        if !is_added {
            return None;
        }
    }
    Some(lines)
}

/// Adds the runs of a fill with a pattern that the driver sets. Returns `false` if it cannot, or if
/// there are many.
fn add_set_runs(address: u64, part: &Footprint, pattern: &[u8], lines: &mut Lines) -> bool {
    let value = SettablePattern::new(pattern).filter(|value| value.is_aligned(address, part));
    let Some(value) = value else { return false };
    let (known, mut are_few) = (lines.len(), true);
    part.for_each_run(&mut |offset, len_bytes| {
        are_few &= lines.len() < ROWS_MAX;
        if are_few {
            lines.push(value.line(address + offset, len_bytes));
        }
    });
    if !are_few {
        lines.truncate(known);
    }
    are_few
}

/// Adds the one run of a fill with a longer pattern: its words, and copies that double the filled
/// part. Returns `false` if there are several runs, or the pattern is long.
fn add_doubled_run(address: u64, part: &Footprint, pattern: &[u8], lines: &mut Lines) -> bool {
    let (mut run, mut count) = (Footprint::empty(), 0);
    part.for_each_run(&mut |offset, len_bytes| {
        run = Footprint::run(offset, len_bytes);
        count += 1;
    });
    let word = |bytes: &[u8]| bytes.try_into().map(u32::from_ne_bytes).ok();
    let words: Option<SmallVec<[u32; WORDS_MAX]>> = pattern.chunks(4).map(word).collect();
    let is_aligned = SettablePattern::Four(0).is_aligned(address, &run);
    let Some(words) = words.filter(|words| words.len() <= WORDS_MAX && is_aligned && count <= 1)
    else {
        return false;
    };
    if count == 0 {
        return true;
    }
    let start = address + run.offset_bytes;
    let set = |(index, word): (u64, &u32)| SettablePattern::Four(*word).line(start + 4 * index, 4);
    lines.extend((0..).zip(&words).map(set));
    lines.extend(doublings(&run, pattern.len() as u64).iter().map(|copy: &CopyBox| {
        let (from, to) = (copy.source_offset_bytes, copy.destination_offset_bytes);
        LineWork::Copy { to: address + to, from: address + from, len_bytes: copy.run_bytes }
    }));
    true
}

impl SettablePattern {
    fn line(self, to: u64, len_bytes: u64) -> LineWork {
        let (value, element_bytes) = match self {
            Self::One(value) => (value.into(), 1),
            Self::Two(value) => (value.into(), 2),
            Self::Four(value) => (value, 4),
        };
        LineWork::Set { to, value, element_bytes, count: len_bytes / u64::from(element_bytes) }
    }
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::{LineWork, Lines, of_copy, of_fill};
    use resident_backend::{
        Address, CopyBox, CopyWork, FailureKind, FillWork, Footprint, Label, LabelText, Memory,
    };

    const LEN: usize = 4096;

    fn label() -> Label {
        Label { text: LabelText::Text("x".into()), site: None }
    }

    fn lines_of_fill(pattern: &[u8], part: &Footprint) -> Option<Lines> {
        of_fill(&FillWork {
            address: Address(64),
            parts: SmallVec::from_elem(part.clone(), 1),
            pattern: SmallVec::from_slice(pattern),
            loss: FailureKind::Contents,
            depends: SmallVec::new(),
            label: label(),
        })
    }

    fn lines_of_copy(part: &CopyBox, source: Address) -> Option<Lines> {
        of_copy(&CopyWork {
            source: Memory::Device(source),
            destination: Memory::Device(Address(2048)),
            source_device: None,
            parts: SmallVec::from_elem(part.clone(), 1),
            may_read_between: false,
            loss: FailureKind::Contents,
            depends: SmallVec::new(),
            label: label(),
        })
    }

    fn run(memory: &mut [u8], lines: &Lines) {
        for line in lines {
            match *line {
                LineWork::Copy { to, from, len_bytes } => {
                    assert!(len_bytes > 0 && from.abs_diff(to) >= len_bytes, "{line:?}");
                    memory.copy_within(from as usize..(from + len_bytes) as usize, to as usize);
                }
                LineWork::Set { to, value, element_bytes, count } => {
                    assert!(count > 0 && to.is_multiple_of(element_bytes.into()), "{line:?}");
                    let value = &value.to_ne_bytes()[..element_bytes as usize];
                    let end = (to + count * u64::from(element_bytes)) as usize;
                    memory[to as usize..end].copy_from_slice(&value.repeat(count as usize));
                }
            }
        }
    }

    fn rows(run_bytes: u64, axes: &[(u64, u64)]) -> Footprint {
        Footprint { offset_bytes: 8, run_bytes, axes: SmallVec::from_slice(axes) }
    }

    #[test]
    fn lines_fill_every_run_and_nothing_else() {
        let pattern: Vec<u8> = (1..=16).collect();
        let cases = [
            (1, rows(100, &[])),
            (1, rows(3, &[(8, 5)])),
            (2, rows(30, &[(4, 64)])),
            (4, rows(40, &[(2, 400), (3, 100)])),
            (8, rows(8, &[])),
            (8, rows(1000, &[])),
            (8, rows(64, &[(3, 64)])),
            (12, rows(120, &[(1, 500)])),
            (16, rows(1600, &[])),
            (16, rows(16, &[(0, 64)])),
        ];
        for (len, part) in cases {
            let (mut memory, mut expected) = (vec![0_u8; LEN], vec![0_u8; LEN]);
            let lines = lines_of_fill(&pattern[..len], &part);
            run(&mut memory, &lines.unwrap_or_else(|| panic!("{len} bytes: {part:?}")));
            part.for_each_run(&mut |offset, run_bytes| {
                let run = &mut expected[64 + offset as usize..][..run_bytes as usize];
                let bytes = pattern[..len].iter().cycle();
                run.iter_mut().zip(bytes).for_each(|(byte, value)| *byte = *value);
            });
            assert_eq!(memory, expected, "{len} bytes: {part:?}");
        }
    }

    #[test]
    fn other_fills_are_no_lines() {
        let pattern: Vec<u8> = (1..=20).collect();
        let unaligned = Footprint { offset_bytes: 6, ..rows(80, &[]) };
        for (len, part) in [
            (0, rows(80, &[])),
            (1, rows(1, &[(9, 5)])),
            (3, rows(30, &[])),
            (8, rows(8, &[(2, 64)])),
            (8, rows(12, &[])),
            (8, unaligned.clone()),
            (4, unaligned),
            (20, rows(80, &[])),
        ] {
            assert!(lines_of_fill(&pattern[..len], &part).is_none(), "{len} bytes: {part:?}");
        }
    }

    #[test]
    fn copies_of_few_rows_are_lines() {
        let part = |count| CopyBox {
            run_bytes: 24,
            source_offset_bytes: 3,
            destination_offset_bytes: 5,
            axes: SmallVec::from_slice(&[(count, 60, 30)]),
        };
        let mut memory: Vec<u8> = (0..LEN).map(|index| (index % 251) as u8).collect();
        let mut expected = memory.clone();
        part(8).for_each_run(&mut |from, to, len| {
            expected
                .copy_within(100 + from as usize..(100 + from + len) as usize, 2048 + to as usize);
        });
        run(&mut memory, &lines_of_copy(&part(8), Address(100)).expect("few rows"));
        assert_eq!(memory, expected);
        assert!(lines_of_copy(&part(9), Address(100)).is_none());
        assert_eq!(lines_of_copy(&part(0), Address(100)).map(|lines| lines.len()), Some(0));
    }
}
