//! Every way to take a view out of a guard of the host's copy, beside a watch and a snapshot: while
//! the view may write, no state is shown, and what it wrote is in the next one.

use resident::ndarray::{ArrayViewMut1, IntoNdProducer, Zip};
use resident::{HostMut, Watch};
use support::prelude::*;

type Guard<'a> = HostMut<'a, u32, Ix1>;

/// What is called between the moment a view was taken and the writes through it.
type Hidden<'h> = &'h dyn Fn();

const LEN: usize = 6;

/// A way to take a view, and to set each element to its argument.
type Way = fn(Guard<'_>, Hidden<'_>, u32);

/// Ways that consume the guard, so that the write ends with the next use of the part.
const CONSUMING: &[(&str, Way)] = &[
    ("into_view_mut", |guard, hidden, value| {
        let mut view = guard.into_view_mut();
        hidden();
        view.fill(value);
    }),
    ("into_view_mut, split", |guard, hidden, value| {
        let (mut low, mut high) = guard.into_view_mut().split_at(Axis(0), 2);
        hidden();
        low.fill(value);
        hidden();
        high.fill(value);
    }),
    ("into_iter", |guard, hidden, value| {
        let iterator = guard.into_iter();
        hidden();
        iterator.for_each(|x| *x = value);
    }),
    ("into_iter, elements that outlive it", |guard, hidden, value| {
        let elements: Vec<&mut u32> = guard.into_iter().collect();
        hidden();
        elements.into_iter().for_each(|x| *x = value);
    }),
    ("into_iter, zipped and mapped", |guard, hidden, value| {
        let pairs = guard.into_iter().map(|x| (x, value)).rev();
        hidden();
        pairs.for_each(|(x, value)| *x = value);
    }),
    ("forgotten after its view was used", |mut guard, hidden, value| {
        let view = guard.view_mut();
        hidden();
        { view }.fill(value);
        std::mem::forget(guard);
    }),
];

/// Ways that borrow from the guard.
const BORROWING: &[(&str, Way)] = &[
    ("iter_mut", |mut guard, hidden, value| {
        let iterator = guard.iter_mut();
        hidden();
        iterator.for_each(|x| *x = value);
    }),
    ("&mut guard in a loop", |mut guard, hidden, value| {
        for x in &mut guard {
            hidden();
            *x = value;
        }
    }),
    ("&mut guard in Zip", |mut guard, hidden, value| {
        let zip = Zip::from(&mut guard);
        hidden();
        zip.for_each(|x| *x = value);
    }),
    ("into_producer", |mut guard, hidden, value| {
        let mut view: ArrayViewMut1<'_, u32> = (&mut guard).into_producer();
        hidden();
        view.fill(value);
    }),
    ("view_mut, slice_mut, split_at", |mut guard, hidden, value| {
        let (mut low, mut high) = guard.slice_mut(s![..;-1]).split_at(Axis(0), 3);
        hidden();
        low.fill(value);
        high.fill(value);
    }),
    ("multi_slice_mut", |mut guard, hidden, value| {
        let (mut even, mut odd) = guard.multi_slice_mut((s![..;2], s![1..;2]));
        hidden();
        even.fill(value);
        odd.fill(value);
    }),
    ("map_inplace, par-like closures", |mut guard, hidden, value| {
        guard.map_inplace(|x| {
            hidden();
            *x = value;
        });
    }),
    ("IndexMut, borrowed", |mut guard, hidden, value| {
        for index in 0..LEN {
            let element = &mut guard[index];
            hidden();
            *element = value;
        }
    }),
    ("as_slice_mut", |mut guard, hidden, value| {
        let elements = guard.as_slice_mut().expect("it is contiguous");
        hidden();
        elements.fill(value);
    }),
    ("a raw pointer", |mut guard, hidden, value| {
        let pointer = guard.as_mut_ptr();
        hidden();
        for index in 0..LEN {
            let element = pointer.wrapping_add(index);
            // SAFETY: the guard lives until after this, and has `LEN` elements in order.
            unsafe { element.write(value) };
        }
        drop(guard);
    }),
];

const VALUE: u32 = 7;

/// Runs all ways. `check` also gets whether the way consumes its guard.
fn each_way(check: impl Fn(Way, bool) -> Result<()>) {
    for (ways, consumes) in [(CONSUMING, true), (BORROWING, false)] {
        run_cases(ways, |way| check(*way, consumes).unwrap_or_else(|error| panic!("{error}")));
    }
}

fn assert_hidden(live: &Watch<u32, Ix1>) {
    if let Some(state) = live.latest() {
        panic!("the state {state:?} is shown while a view may write");
    }
}

/// What the watch shows now.
fn shown(live: &Watch<u32, Ix1>) -> Option<Vec<u32>> {
    live.latest().map(|state| state.to_vec())
}

#[test]
fn no_state_is_shown_while_a_view_of_a_guard_may_write() {
    each_way(|way, consumes| {
        let mut array = SmartArray::from(vec![0_u32; LEN]);
        let live = array.watch()?;
        way(array.host_mut()?, &|| assert_hidden(&live), VALUE);
        if consumes {
            assert_hidden(&live);
            drop(array.host()?);
        }
        assert_eq!(shown(&live), Some(vec![VALUE; LEN]));
        Ok(())
    });
}

/// Without a next use, the end of the array is one.
#[test]
fn the_last_state_has_what_a_view_of_a_guard_wrote() {
    each_way(|way, _| {
        let mut array = SmartArray::from(vec![0_u32; LEN]);
        let live = array.watch()?;
        way(array.host_overwrite()?, &|| assert_hidden(&live), VALUE);
        drop(array);
        assert_eq!(live.changed()?.map(|state| state.to_vec()), Some(vec![VALUE; LEN]));
        assert!(live.changed()?.is_none());
        Ok(())
    });
}

#[test]
fn a_part_whose_view_may_write_hides_what_other_parts_change() {
    each_way(|way, _| {
        let mut array = SmartArray::from(vec![0_u32; 2 * LEN]);
        let live = array.watch()?;
        let (mut left, mut right) = array.multi_slice_mut((s![..LEN], s![LEN..]));
        let other = std::cell::RefCell::new(&mut right);
        let change = || {
            other.borrow_mut().fill(VALUE).expect("nothing fails");
            assert_hidden(&live);
        };
        way(left.host_mut()?, &change, VALUE);
        drop(array.host()?);
        assert_eq!(shown(&live), Some(vec![VALUE; 2 * LEN]));
        Ok(())
    });
}

#[test]
fn a_snapshot_has_what_a_view_of_a_guard_wrote() {
    let stream = Device::cpu().stream();
    for is_watched in [false, true] {
        each_way(|way, _| {
            let mut array = SmartArray::from(vec![0_u32; LEN]);
            let live = is_watched.then(|| array.watch()).transpose()?;
            drop(array.gpu_on(&stream)?);
            way(array.host_mut()?, &|| {}, VALUE);
            assert_eq!(array.snapshot_on(&stream)?.wait()?.to_vec(), [VALUE; LEN]);
            drop(live);
            Ok(())
        });
    }
}
