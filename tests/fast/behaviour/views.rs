//! What views refuse, and the methods that move between arrays and Rust's own collections.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Mutex;
use support::prelude::*;

/// The line of this file at which the last panic of a checked call was.
static LINE: Mutex<Option<u32>> = Mutex::new(None);

fn table() -> SmartArray<i32, Ix2> {
    SmartArray::from(array![[1, 2, 3], [4, 5, 6]]).named("table")
}

type Table = SmartArray<i32, Ix2>;

/// Asserts that a call panics in its own line of this file, with the array's name and a text.
#[track_caller]
fn assert_out_of_range(call: impl Fn(&mut Table) -> usize, text: &str) {
    let line = Location::caller().line();
    let mut table = table();
    let outcome = catch_unwind(AssertUnwindSafe(|| call(&mut table)));
    let payload = outcome.expect_err(text);
    let message = payload.downcast_ref::<String>().expect("a formatted text");
    assert!(message.contains("\"table\"") && message.contains(text), "{message}");
    let seen = LINE.lock().expect("no panic holds it").take();
    assert_eq!(seen, Some(line), "{message}");
}

#[test]
#[ignore = "changes the panic hook: run in processes of its own by the test below"]
fn out_of_range() {
    std::panic::set_hook(Box::new(|info| {
        let here = info.location().filter(|at| at.file() == file!());
        *LINE.lock().expect("no panic holds it") = here.map(Location::line);
        eprintln!("{info}");
    }));
    assert_out_of_range(|t| t.slice(s![.., 2..9]).len(), "slice 2..9 of axis 1, whose length is 3");
    assert_out_of_range(|t| t.slice_mut(s![7, ..]).len(), "slice 7 of axis 0, whose length is 2");
    assert_out_of_range(|t| t.view().slice_move(s![-3, ..]).len(), "slice -3 of axis 0");
    assert_out_of_range(|t| t.multi_slice_mut((s![9, ..],)).0.len(), "slice 9 of axis 0");
    assert_out_of_range(|t| t.row(2).len(), "index 2 of axis 0, whose length is 2");
    assert_out_of_range(|t| t.column_mut(3).len(), "index 3 of axis 1, whose length is 3");
    assert_out_of_range(|t| t.index_axis(Axis(2), 0).len(), "no axis 2 of 2");
    assert_out_of_range(|t| t.axis_iter(Axis(5)).len(), "no axis 5 of 2");
    assert_out_of_range(|t| t.slice_axis(Axis(2), (..).into()).len(), "no axis 2 of 2");
    assert_out_of_range(|t| t.slice_axis_mut(Axis(1), (2..5).into()).len(), "slice 2..5 of axis 1");
    assert_out_of_range(|t| t.slice_each_axis(|_| (3..).into()).len(), "slice 3.. of axis 0");
    assert_out_of_range(|t| t.slice_each_axis_mut(|_| (..3).into()).len(), "slice ..3 of axis 0");
    assert_out_of_range(|t| t.axis_chunks_iter(Axis(0), 0).len(), "chunks of 0");
    assert_out_of_range(|t| t.permuted_axes([1, 1]).len(), "axes [1, 1]");
    assert_out_of_range(|t| t.insert_axis(Axis(3)).len(), "no axis 3 can be inserted into 2");
    assert_out_of_range(|t| t.split_at_mut(Axis(0), 3).0.len(), "a split at 3 of axis 0");
    assert_out_of_range(|t| t.slice(s![..0, ..]).remove_axis(Axis(0)).len(), "index 0 of axis 0");
}

#[test]
fn what_is_out_of_range_panics_at_the_users_line_and_names_the_array() {
    let output = own_process::run(test_name!(out_of_range), &[]);
    assert_success(&output, "out_of_range");
}

#[test]
fn shapes_that_do_not_fit_are_errors_that_name_both() {
    let mut table = table();
    let shown = |error: Error| {
        assert!(matches!(error, Error::Shape { .. }), "{error}");
        error.to_string()
    };
    let text = shown(table.reshape(7).unwrap_err());
    assert!(text.contains("\"table\"") && text.contains("6 elements"), "{text}");
    let text = shown(table.slice(s![.., ..2]).reshape(4).unwrap_err());
    assert!(text.contains("strides [3, 1]"), "{text}");
    assert!(text.contains("reshape the copy that `to_contiguous()` makes"), "{text}");
    let text = shown(table.broadcast((3, 3)).unwrap_err());
    assert!(text.contains("[3, 3]") && text.contains("[2, 3]"), "{text}");
    let text = shown(table.copy_from_slice(&[1, 2]).unwrap_err());
    assert!(text.contains("6 elements") && text.contains("views.rs"), "{text}");
    assert_eq!(*table.host().expect("there"), array![[1, 2, 3], [4, 5, 6]]);
    assert!(table.reshape(usize::MAX).is_err() && table.reshape((usize::MAX, 2)).is_err());
    // Products that overflow, to a small number or to 0.
    let bytes = SmartArray::from(vec![1_u8; 4]);
    assert!(bytes.broadcast(((1_usize << 62) + 1, 4)).is_err());
    assert!(bytes.broadcast((usize::MAX, 4)).is_err());
    let empty = SmartArray::<f32, _>::zeros(0);
    assert!(empty.reshape((0, 1_usize << 40, 1_usize << 40)).is_err());
    assert!(empty.reshape((3, 0)).is_ok());
}

/// What the error of a reshape says to do helps, for either order of the elements.
#[test]
fn a_copy_of_which_a_shape_has_strides_is_made_as_the_error_says() -> Result<()> {
    let (device, table) = (Device::cpu(), table());
    let turned = [table.view(), table.t()];
    for (view, order) in turned.into_iter().zip([Order::F, Order::C]) {
        let seen = view.host()?.to_owned();
        let expected = seen.to_shape((6, order)).expect("six elements");
        let there = DeviceArray::from_host_on(&device.stream(), &seen.view())?;
        let advice = match order {
            Order::RowMajor => "to_contiguous()",
            _ => "to_contiguous_in(Order::F)",
        };
        for refused in [view.reshape((6, order)).map(drop), there.ravel(order).map(drop)] {
            let Err(error @ Error::Shape { .. }) = refused else { panic!("{refused:?}") };
            assert!(error.to_string().contains(advice), "{error}");
        }
        let copy = view.to_contiguous_in(order)?;
        assert_eq!(copy.reshape((6, order))?.host()?, expected.view());
        assert_eq!((copy.traffic().to_host.count, &*copy.name()), (0, "table"));
        assert_eq!(there.to_contiguous_in(order)?.ravel(order)?.copy_to_host()?, expected.view());
    }
    assert_eq!(table.t().to_contiguous()?.strides(), [2, 1]);
    assert_eq!(
        table.row(1).broadcast((2, 3))?.to_contiguous()?.host()?,
        array![[4, 5, 6], [4, 5, 6]]
    );
    let mut unwritten = SmartArray::<f32, _>::uninit((2, 2));
    unwritten.slice_mut(s![0, ..]).fill(1.0)?;
    let copy = unwritten.t().to_contiguous()?;
    assert_eq!((copy.get((1, 0))?, copy.get((1, 1)).is_err()), (1.0, true));
    Ok(())
}

#[test]
fn slices_are_copied_in_row_major_order_whatever_the_strides() {
    let mut table = table();
    table.view_mut().reversed_axes().copy_from_slice(&[1, 2, 3, 4, 5, 6]).expect("six");
    assert_eq!(*table.host().expect("there"), array![[1, 3, 5], [2, 4, 6]]);
    table.slice_mut(s![.., ..;-2]).copy_from_slice(&[7, 8, 9, 10]).expect("four");
    assert_eq!(table.to_vec().expect("there"), [8, 3, 7, 10, 4, 9]);
}

#[test]
fn clones_keep_the_name_that_the_program_gave() {
    let mut table = table();
    assert_eq!(&*table.try_clone().expect("copied").name(), "table");
    assert_eq!(&*table.row(0).try_clone().expect("copied").name(), "table");
    table.set_name("other");
    assert_eq!(&*table.try_clone().expect("copied").name(), "other");
    let unnamed = SmartArray::<i32, _>::zeros(3).try_clone().expect("copied");
    assert!(unnamed.name().contains("made at") && unnamed.name().contains("views.rs"));
}

/// A whole array in any axis order is an `&Array` over the same memory.
#[test]
fn whole_arrays_are_seen_as_owned_arrays() {
    let device = Device::cpu();
    let mut table = table();
    drop(table.gpu_mut_on(&device.stream()).expect("room"));
    let host = table.host().expect("copied");
    let owned: &Array2<i32> = host.as_array().expect("the whole array");
    assert_eq!((owned, owned.as_ptr()), (&array![[1, 2, 3], [4, 5, 6]], host.as_ptr()));
    assert!(std::ptr::eq(owned, host.as_array().expect("again")));
    let turned = table.t();
    let turned = turned.slice(s![..;-1, ..]).host().expect("there");
    assert_eq!(turned.as_array(), Some(&array![[3, 6], [2, 5], [1, 4]]));
    assert_eq!(turned.as_array().map(|array| array.as_ptr()), Some(turned.as_ptr()));
    let line = table.reshape(6).expect("no gaps");
    assert_eq!(line.host().expect("there").as_array(), Some(&array![1, 2, 3, 4, 5, 6]));
    assert!(table.row(0).host().expect("there").as_array().is_none());
    let dynamic = SmartArray::<i32, _>::ones((1, 2, 1, 2, 1)).into_dyn();
    assert_eq!(dynamic.host().expect("there").as_array().map(|array| array.sum()), Some(4));
    assert!(
        table.broadcast((4, 2, 3)).expect("it fits").host().expect("there").as_array().is_none()
    );
    let empty = SmartArray::<i32, _>::zeros((0, 4));
    assert_eq!(empty.host().expect("there").as_array().map(|array| array.dim()), Some((0, 4)));
    // An array that starts within its vector.
    let part = Array2::from_shape_vec((4, 3), (0..12).collect()).expect("twelve");
    let smart = SmartArray::from(part.slice_move(s![1..3, ..]));
    let host = smart.host().expect("there");
    assert_eq!(host.as_array(), Some(&array![[3, 4, 5], [6, 7, 8]]));
    drop(host);
    assert_eq!(smart.into_array().expect("there"), array![[3, 4, 5], [6, 7, 8]]);
}

#[cfg(feature = "serde")]
#[test]
fn views_of_guards_serialise_as_ndarrays_do() {
    let table = table();
    let host = table.host().expect("there");
    let bytes = postcard::to_stdvec(&host.view()).expect("it has a fixed length");
    let array: Array2<i32> = postcard::from_bytes(&bytes).expect("the same array");
    assert_eq!(array, array![[1, 2, 3], [4, 5, 6]]);
}

/// ndarray accepts any step; the product of step and stride overflows here.
#[test]
fn a_slice_with_a_huge_step_has_one_index() {
    let table = SmartArray::<f32, _>::zeros((4, 4));
    assert_eq!(table.slice(s![..;isize::MAX, ..]).shape(), [1, 4]);
}
