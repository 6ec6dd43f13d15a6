//! Every way to take a view out of a guard of the host's copy, beside a watch and a snapshot: while
//! the view may write, no state is shown, and what it wrote is in the next one.

use resident::ndarray::{ArrayViewMut1, Axis, IntoNdProducer, Ix1, Zip, s};
use resident::{Device, HostMut, Result, SmartArray, Watch};

type Guard<'a> = HostMut<'a, u32, Ix1>;

/// What is called between the moment a view was taken and the writes through it.
type Hidden<'h> = &'h dyn Fn();

const LEN: usize = 6;

/// A way to take a view, and to set each element to its argument.
struct Way {
    name: &'static str,
    /// Whether the guard is consumed, so that the write ends with the next use of the part.
    consumes: bool,
    write: fn(Guard<'_>, Hidden<'_>, u32),
}

const WAYS: &[Way] = &[
    Way {
        name: "into_view_mut",
        consumes: true,
        write: |guard, hidden, value| {
            let mut view = guard.into_view_mut();
            hidden();
            view.fill(value);
        },
    },
    Way {
        name: "into_view_mut, split",
        consumes: true,
        write: |guard, hidden, value| {
            let (mut low, mut high) = guard.into_view_mut().split_at(Axis(0), 2);
            hidden();
            low.fill(value);
            hidden();
            high.fill(value);
        },
    },
    Way {
        name: "into_iter",
        consumes: true,
        write: |guard, hidden, value| {
            let iterator = guard.into_iter();
            hidden();
            iterator.for_each(|x| *x = value);
        },
    },
    Way {
        name: "into_iter, elements that outlive it",
        consumes: true,
        write: |guard, hidden, value| {
            let elements: Vec<&mut u32> = guard.into_iter().collect();
            hidden();
            elements.into_iter().for_each(|x| *x = value);
        },
    },
    Way {
        name: "into_iter, zipped and mapped",
        consumes: true,
        write: |guard, hidden, value| {
            let pairs = guard.into_iter().map(|x| (x, value)).rev();
            hidden();
            pairs.for_each(|(x, value)| *x = value);
        },
    },
    Way {
        name: "iter_mut",
        consumes: false,
        write: |mut guard, hidden, value| {
            let iterator = guard.iter_mut();
            hidden();
            iterator.for_each(|x| *x = value);
        },
    },
    Way {
        name: "&mut guard in a loop",
        consumes: false,
        write: |mut guard, hidden, value| {
            for x in &mut guard {
                hidden();
                *x = value;
            }
        },
    },
    Way {
        name: "&mut guard in Zip",
        consumes: false,
        write: |mut guard, hidden, value| {
            let zip = Zip::from(&mut guard);
            hidden();
            zip.for_each(|x| *x = value);
        },
    },
    Way {
        name: "into_producer",
        consumes: false,
        write: |mut guard, hidden, value| {
            let mut view: ArrayViewMut1<'_, u32> = (&mut guard).into_producer();
            hidden();
            view.fill(value);
        },
    },
    Way {
        name: "view_mut, slice_mut, split_at",
        consumes: false,
        write: |mut guard, hidden, value| {
            let (mut low, mut high) = guard.slice_mut(s![..;-1]).split_at(Axis(0), 3);
            hidden();
            low.fill(value);
            high.fill(value);
        },
    },
    Way {
        name: "multi_slice_mut",
        consumes: false,
        write: |mut guard, hidden, value| {
            let (mut even, mut odd) = guard.multi_slice_mut((s![..;2], s![1..;2]));
            hidden();
            even.fill(value);
            odd.fill(value);
        },
    },
    Way {
        name: "map_inplace, par-like closures",
        consumes: false,
        write: |mut guard, hidden, value| {
            guard.map_inplace(|x| {
                hidden();
                *x = value;
            });
        },
    },
    Way {
        name: "IndexMut, borrowed",
        consumes: false,
        write: |mut guard, hidden, value| {
            for index in 0..LEN {
                let element = &mut guard[index];
                hidden();
                *element = value;
            }
        },
    },
    Way {
        name: "as_slice_mut",
        consumes: false,
        write: |mut guard, hidden, value| {
            let elements = guard.as_slice_mut().expect("it is contiguous");
            hidden();
            elements.fill(value);
        },
    },
    Way {
        name: "a raw pointer",
        consumes: false,
        write: |mut guard, hidden, value| {
            let pointer = guard.as_mut_ptr();
            hidden();
            for index in 0..LEN {
                // SAFETY: the guard lives until after this, and has `LEN` elements in order.
                unsafe { pointer.add(index).write(value) };
            }
            drop(guard);
        },
    },
    Way {
        name: "forgotten after its view was used",
        consumes: true,
        write: |mut guard, hidden, value| {
            let view = guard.view_mut();
            hidden();
            { view }.fill(value);
            std::mem::forget(guard);
        },
    },
];

fn assert_hidden(live: &Watch<u32, Ix1>, way: &str) {
    if let Some(state) = live.latest() {
        panic!("{way}: the state {state:?} is shown while a view may write");
    }
}

/// What the watch shows now.
fn shown(live: &Watch<u32, Ix1>) -> Option<Vec<u32>> {
    live.latest().map(|state| state.to_vec())
}

#[test]
fn no_state_is_shown_while_a_view_of_a_guard_may_write() -> Result<()> {
    for (number, way) in (1..).zip(WAYS) {
        let mut array = SmartArray::from(vec![0_u32; LEN]);
        let live = array.watch()?;
        (way.write)(array.host_mut()?, &|| assert_hidden(&live, way.name), number);
        if way.consumes {
            assert_hidden(&live, way.name);
            drop(array.host()?);
        }
        assert_eq!(shown(&live), Some(vec![number; LEN]), "{}", way.name);
    }
    Ok(())
}

/// Without a next use, the end of the array is one.
#[test]
fn the_last_state_has_what_a_view_of_a_guard_wrote() -> Result<()> {
    for (number, way) in (1..).zip(WAYS) {
        let mut array = SmartArray::from(vec![0_u32; LEN]);
        let live = array.watch()?;
        (way.write)(array.host_overwrite()?, &|| assert_hidden(&live, way.name), number);
        drop(array);
        let last = live.changed()?.map(|state| state.to_vec());
        assert_eq!(last, Some(vec![number; LEN]), "{}", way.name);
        assert!(live.changed()?.is_none(), "{}", way.name);
    }
    Ok(())
}

#[test]
fn a_part_whose_view_may_write_hides_what_other_parts_change() -> Result<()> {
    for (number, way) in (1..).zip(WAYS) {
        let mut array = SmartArray::from(vec![0_u32; 2 * LEN]);
        let live = array.watch()?;
        let (mut left, mut right) = array.multi_slice_mut((s![..LEN], s![LEN..]));
        let other = std::cell::RefCell::new(&mut right);
        let change = || {
            let mut other = other.borrow_mut();
            other.fill(number).expect("nothing fails");
            assert_hidden(&live, way.name);
        };
        (way.write)(left.host_mut()?, &change, number);
        drop(array.host()?);
        assert_eq!(shown(&live), Some(vec![number; 2 * LEN]), "{}", way.name);
    }
    Ok(())
}

#[test]
fn a_snapshot_has_what_a_view_of_a_guard_wrote() -> Result<()> {
    let stream = Device::cpu().stream();
    for is_watched in [false, true] {
        for (number, way) in (1..).zip(WAYS) {
            let mut array = SmartArray::from(vec![0_u32; LEN]);
            let live = is_watched.then(|| array.watch()).transpose()?;
            drop(array.gpu_on(&stream)?);
            (way.write)(array.host_mut()?, &|| {}, number);
            let snapshot = array.snapshot_on(&stream)?;
            assert_eq!(snapshot.wait()?.to_vec(), [number; LEN], "{}", way.name);
            drop(live);
        }
    }
    Ok(())
}
