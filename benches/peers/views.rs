//! The cost of making and dropping a view, by kind.

use std::hint::black_box;

use resident::ndarray::{Array4, Axis, Order, s};
use resident::{Device, DeviceArray, SmartArray};

use crate::measure::{Row, single};
use crate::operations::Operation;

/// A row for each view: its name, and how it is made of an array.
macro_rules! rows {
    ($array:expr; $($name:literal: |$from:ident| $view:expr),+ $(,)?) => {
        &[$(($name, || -> Row {
            let mut array = $array;
            single(10, || {
                #[allow(unused_mut, reason = "most views are shared")]
                let mut $from = black_box(&mut array);
                let _view = black_box($view);
            })
        })),+]
    };
}

/// Of a coherent array with four axes.
pub const COHERENT: &[(&str, Operation)] = rows! {
    SmartArray::<f32, _>::zeros((4, 6, 5, 3));
    "view()": |a| a.view(),
    "view_mut()": |a| a.view_mut(),
    "slice() of a range of each axis": |a| a.slice(black_box(s![1..3, 2.., ..;2, ..])),
    "slice_mut() of these": |a| a.slice_mut(black_box(s![1..3, 2.., ..;2, ..])),
    "t()": |a| a.t(),
    "permuted_axes()": |a| a.permuted_axes(black_box([3, 1, 0, 2])),
    "index_axis()": |a| a.index_axis(black_box(Axis(1)), black_box(3)),
    "axis_iter(), the first of it": |a| a.axis_iter(black_box(Axis(1))).next(),
    "axis_chunks_iter(), the first of it": |a| a.axis_chunks_iter(black_box(Axis(1)), 2).next(),
    "insert_axis()": |a| a.insert_axis(black_box(Axis(2))),
    "remove_axis()": |a| a.remove_axis(black_box(Axis(2))),
    "broadcast() to five axes": |a| a.broadcast(black_box((7, 4, 6, 5, 3))),
    "reshape() to two axes": |a| a.reshape(black_box((24, 15))),
    "view().into_dyn()": |a| a.view().into_dyn(),
};

/// Of an array of ndarray, for comparison.
pub const NDARRAY: &[(&str, Operation)] = rows! {
    Array4::<f32>::zeros((4, 6, 5, 3));
    "ndarray: slice() of a range of each axis":
        |a| a.slice(black_box(s![1..3, 2.., ..;2, ..])),
    "ndarray: permuted_axes()": |a| a.view().permuted_axes(black_box([3, 1, 0, 2])),
    "ndarray: broadcast() to five axes": |a| a.broadcast(black_box((7, 4, 6, 5, 3))),
    "ndarray: into_shape_with_order() to two axes":
        |a| a.view().into_shape_with_order(black_box((24, 15))),
    "ndarray: view().into_dyn()": |a| a.view().into_dyn(),
};

/// Of a coherent array with two axes.
pub const TABLE: &[(&str, Operation)] = rows! {
    SmartArray::<f32, _>::zeros((64, 48));
    "row()": |a| a.row(black_box(5)),
    "column()": |a| a.column(black_box(5)),
};

/// Of a device array with four axes.
pub const EXPLICIT: &[(&str, Operation)] = rows! {
    DeviceArray::<f32, _>::zeros_on(&Device::cpu().stream(), (4, 6, 5, 3)).expect("memory");
    "device array: view()": |a| a.view(),
    "device array: slice() of a range of each axis":
        |a| a.slice(black_box(s![1..3, 2.., ..;2, ..])),
    "device array: slice_mut() of these":
        |a| a.slice_mut(black_box(s![1..3, 2.., ..;2, ..])),
    "device array: permuted_axes()": |a| a.permuted_axes(black_box([3, 1, 0, 2])),
    "device array: reshape() to two axes": |a| a.reshape(black_box((24, 15)), Order::C),
};
