//! What the type system promises of the four kinds of views, and that all of them have the methods
//! that need no elements.

use resident::MultiSlice;
use resident::iter::{AxisChunksIter, AxisChunksIterMut, AxisIter, AxisIterMut};
use support::prelude::*;

/// Compiles only for a type that may take a shorter lifetime.
macro_rules! covariant {
    ($($view:ident),+) => {
        $({
            fn shorter<'s, 'l: 's, T: resident::Element>(
                long: $view<'l, T, Ix2>,
            ) -> $view<'s, T, Ix2> {
                long
            }
            let _compiles = shorter::<f32>;
        })+
    };
}

#[test]
fn lifetimes_of_views_and_iterators_can_shrink() {
    covariant!(SmartView, SmartViewMut, DeviceView, DeviceViewMut);
    covariant!(AxisIter, AxisIterMut, AxisChunksIter, AxisChunksIterMut);
}

#[test]
fn views_go_to_other_threads_and_shared_ones_are_copied() {
    fn shared<V: Copy + Send + Sync>() {}
    fn exclusive<V: Send + Sync>() {}
    fn cloned<V: Clone>() {}
    shared::<SmartView<'_, f32, Ix1>>();
    shared::<DeviceView<'_, f32, Ix1>>();
    exclusive::<SmartViewMut<'_, f32, Ix1>>();
    exclusive::<DeviceViewMut<'_, f32, Ix1>>();
    cloned::<SmartView<'_, f32, IxDyn>>();
    cloned::<DeviceView<'_, f32, IxDyn>>();
}

/// A program's own trait, for each kind.
trait Kind {
    fn kind(&self) -> &'static str;
}

impl<T, D> Kind for SmartView<'_, T, D> {
    fn kind(&self) -> &'static str {
        "coherent, shared"
    }
}

impl<T, D> Kind for SmartViewMut<'_, T, D> {
    fn kind(&self) -> &'static str {
        "coherent, exclusive"
    }
}

impl<T, D> Kind for DeviceView<'_, T, D> {
    fn kind(&self) -> &'static str {
        "on a device, shared"
    }
}

impl<T, D> Kind for DeviceViewMut<'_, T, D> {
    fn kind(&self) -> &'static str {
        "on a device, exclusive"
    }
}

#[test]
fn a_program_can_give_each_kind_a_trait_of_its_own() -> Result<()> {
    let mut array = SmartArray::<f32, _>::zeros((2, 3));
    let mut explicit = DeviceArray::<f32, _>::zeros_on(&Device::cpu().stream(), (2, 3))?;
    let kinds = [array.row(0).kind(), explicit.row(0).kind()];
    assert_eq!(kinds, ["coherent, shared", "on a device, shared"]);
    let kinds = [array.row_mut(0).kind(), explicit.row_mut(0).kind()];
    assert_eq!(kinds, ["coherent, exclusive", "on a device, exclusive"]);
    Ok(())
}

/// Parts with the lifetime of the view that is consumed.
fn halves<'a>(view: DeviceViewMut<'a, i32, Ix2>) -> [DeviceViewMut<'a, i32, Ix1>; 2] {
    let (first, second) = view.split_at(Axis(0), 1);
    [first.index_axis_move(Axis(0), 0), second.index_axis_move(Axis(0), 0)]
}

/// A shared part outlives the view that it was taken from.
fn first_row<'a>(view: &DeviceView<'a, i32, Ix2>) -> DeviceView<'a, i32, Ix1> {
    view.slice(s![.., ..2]).row(0)
}

fn parts<'m, M: MultiSlice<'m, i32, Ix2>>(
    array: &'m mut DeviceArray<i32, Ix2>,
    slices: M,
) -> M::DeviceOutput {
    array.multi_slice_mut(slices)
}

#[test]
fn parts_of_device_views_live_as_long_as_those_of_coherent_ones() -> Result<()> {
    let stream = Device::cpu().stream();
    let mut table = DeviceArray::from_host_on(&stream, &array![[1, 2, 3], [4, 5, 6]])?;
    let row = first_row(&table.view());
    assert_eq!(row.copy_to_host()?, array![1, 2]);
    let [mut one, two] = halves(table.view_mut());
    one.reborrow().copy_from_device(&two)?;
    let (head, mut tail) = parts(&mut table, (s![0, ..], s![1, ..]));
    tail.slice_mut(s![..2]).copy_from_device(&head.slice(s![1..]))?;
    assert_eq!(table.copy_to_host()?, array![[4, 5, 6], [5, 6, 6]]);
    let columns = table.view().reversed_axes();
    let line = columns.into_shape(6, Order::F)?.slice_move(s![1..;2]);
    assert_eq!(line.copy_to_host()?, array![5, 5, 6]);
    Ok(())
}

#[test]
fn iterators_over_parts_of_device_arrays_have_names() -> Result<()> {
    fn lens(parts: AxisChunksIter<'_, i32, Ix1, &Device>) -> Vec<usize> {
        parts.rev().map(|part| part.len()).collect()
    }
    let line = DeviceArray::<i32, _>::zeros_on(&Device::cpu().stream(), 10)?;
    assert_eq!(lens(line.axis_chunks_iter(Axis(0), 4)), [2, 4, 4]);
    Ok(())
}
