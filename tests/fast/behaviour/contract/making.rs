//! Making arrays, and converting them back to ndarray's own.

use resident::ndarray::{Array0, Array3, arr0};
use support::prelude::*;

#[test]
fn shapes_are_all_that_ndarray_takes() {
    assert_eq!(SmartArray::<f32, _>::zeros(5).shape(), [5]);
    assert_eq!(SmartArray::<f32, _>::zeros((2, 3)).shape(), [2, 3]);
    assert_eq!(SmartArray::<f32, _>::zeros([2, 3, 4]).shape(), [2, 3, 4]);
    assert_eq!(SmartArray::<f32, _>::zeros(()).shape(), [0_usize; 0]);
    assert_eq!(SmartArray::<f32, _>::zeros(IxDyn(&[2, 3])).shape(), [2, 3]);
    assert_eq!(SmartArray::<f32, _>::zeros(vec![2, 3]).shape(), [2, 3]);
    assert_eq!(
        SmartArray::<f32, _>::uninit(Array2::<f32>::zeros((4, 5)).raw_dim()).shape(),
        [4, 5]
    );
    let columns = SmartArray::<f32, _>::ones((2, 3).f());
    assert!(columns.is_f_contiguous() && !columns.is_c_contiguous());
    assert_eq!(columns.strides(), [1, 2]);
    assert!(SmartArray::<f32, _>::full((2, 3).set_f(false), 1.0).is_c_contiguous());
}

#[test]
fn making_an_array_talks_to_no_device_and_takes_no_memory() -> Result<()> {
    let device = lab();
    let _here = device.enter();
    let a = SmartArray::<f32, _>::zeros((1000, 1000));
    let b = SmartArray::<f32, _>::uninit_like(&a);
    let c = SmartArray::<u8, _>::zeros_like(&a);
    let d = SmartArray::<i64, _>::full(7, -3);
    for host in
        [a.residency().host(), b.residency().host(), c.residency().host(), d.residency().host()]
    {
        assert_eq!(host, Absent);
    }
    assert!(device.emulation().is_some_and(|log| log.calls().is_empty()));
    assert_eq!(d.host()?.to_vec(), [-3; 7]);
    Ok(())
}

#[test]
fn likes_have_shape_and_axis_order_of_their_model() -> Result<()> {
    let model = SmartArray::<f32, _>::ones((2, 3).f());
    let zeros = SmartArray::<u16, _>::zeros_like(&model);
    assert_eq!((zeros.shape(), zeros.strides()), (model.shape(), model.strides()));
    assert_eq!(zeros.host()?.sum(), 0);
    let mut made = SmartArray::<f32, _>::uninit_like(&model);
    assert_eq!(made.strides(), model.strides());
    made.host_overwrite()?.fill(2.0);
    assert_eq!(made.host()?.sum(), 12.0);
    Ok(())
}

#[test]
fn likes_are_made_of_parts_and_pointers_too() -> Result<()> {
    let mut model = SmartArray::<f32, _>::ones((4, 6).f());
    let columns = SmartArray::<u8, _>::uninit_like(&model.slice(s![.., ..;-1]).slice(s![.., 1..3]));
    assert_eq!((columns.shape(), columns.is_f_contiguous()), (&[4, 2][..], false), "stay reversed");
    let gaps = SmartArray::<u8, _>::zeros_like(&model.slice_mut(s![..;2, ..]));
    assert_eq!((gaps.shape(), gaps.strides()), (&[2, 6][..], &[6, 1][..]));
    assert_eq!(gaps.host()?.sum(), 0);
    let shared = std::sync::Arc::new(model);
    assert_eq!(SmartArray::<u64, _>::uninit_like(&shared).strides(), shared.strides());
    assert_eq!(SmartArray::<u64, _>::zeros_like(&&*shared).strides(), shared.strides());
    assert_eq!(SmartArray::<u64, _>::zeros_like(&shared.slice(s![2, 1..1])).len(), 0);
    Ok(())
}

#[test]
fn arrays_are_made_of_what_rust_and_ndarray_have() -> Result<()> {
    let numbers = [1_i32, 2, 3, 4];
    let (of_array, of_slice) = (SmartArray::from(numbers), SmartArray::from(&numbers[..]));
    let collected: SmartArray<i32, _> = numbers.into_iter().collect();
    let model = Array2::from_shape_fn((3, 4), |(i, j)| (i * 4 + j) as i32).reversed_axes();
    let of_view = SmartArray::from(model.view());
    assert_eq!(of_view.strides(), model.strides(), "in its own axis order");
    assert_eq!(of_view.host()?, model);
    assert_eq!(SmartArray::from(model.slice(s![..;2, 1])).host()?.to_vec(), [4, 6]);
    for array in [of_array, of_slice, collected] {
        assert_eq!(array.host()?.to_vec(), numbers);
    }
    let nothing = (SmartArray::<f32, Ix2>::default(), SmartArray::<u8, Ix1>::default());
    assert_eq!((nothing.0.shape(), nothing.1.host()?.len()), (&[0, 0][..], 0));
    assert!(of_view.name().contains(file!()), "called after this line: {}", of_view.name());
    Ok(())
}

/// Asserts that an array returns with the same memory, shape, strides and contents, even after a
/// device has written it.
fn comes_back<D: Dimension>(array: Array<i32, D>) -> Result<()> {
    let (expected, address, strides) = (array.clone(), array.as_ptr(), array.strides().to_vec());
    let mut smart = SmartArray::from(array);
    assert_eq!(smart.strides(), strides);
    assert_eq!(*smart.host()?, *expected);
    drop(smart.gpu_mut_on(&lab().stream())?);
    assert_eq!(*smart.host()?, *expected);
    let back = smart.into_array()?;
    assert_eq!((back.as_ptr(), back.strides()), (address, &strides[..]));
    assert_eq!(back, expected);
    Ok(())
}

#[test]
fn an_unbroken_array_is_adopted_in_any_axis_order_and_given_back_as_it_was() -> Result<()> {
    let numbers = |shape: (usize, usize, usize)| {
        Array3::from_shape_fn(shape, |(i, j, k)| (i * 100 + j * 10 + k) as i32)
    };
    comes_back(numbers((2, 3, 4)))?;
    comes_back(numbers((2, 3, 4)).reversed_axes())?;
    comes_back(numbers((2, 3, 4)).permuted_axes([1, 2, 0]))?;
    let mut reversed = numbers((2, 3, 4));
    reversed.invert_axis(Axis(1));
    comes_back(reversed)?;
    let mut both = numbers((2, 3, 4)).permuted_axes([2, 0, 1]);
    both.invert_axis(Axis(0));
    both.invert_axis(Axis(2));
    comes_back(both)?;
    comes_back(Array2::from_shape_fn((3, 4).f(), |(i, j)| (i * 10 + j) as i32))?;
    comes_back(arr0(5))?;
    comes_back(ArrayD::from_shape_fn(IxDyn(&[2, 1, 3]), |index| {
        (index[0] * 10 + index[2]) as i32
    }))?;
    comes_back(Array::from_shape_fn((2, 1, 2, 1, 2, 1, 2, 3).into_shape_dyn(), |index| {
        index[7] as i32
    }))
}

/// ndarray has no tuple type for eight axes.
trait IntoShapeDyn {
    fn into_shape_dyn(self) -> IxDyn;
}

impl IntoShapeDyn for (usize, usize, usize, usize, usize, usize, usize, usize) {
    fn into_shape_dyn(self) -> IxDyn {
        IxDyn(&[self.0, self.1, self.2, self.3, self.4, self.5, self.6, self.7])
    }
}

#[test]
fn a_vector_keeps_its_capacity_and_a_sliced_array_its_allocation() -> Result<()> {
    let mut vector = Vec::with_capacity(100);
    vector.extend(0..10_u16);
    let address = vector.as_ptr();
    let back = SmartArray::from(vector).into_array()?.into_raw_vec_and_offset().0;
    assert_eq!((back.as_ptr(), back.capacity()), (address, 100));
    // Neither begins where its vector does, and the elements of one lie in it the other way round.
    let all = Array2::from_shape_fn((6, 4), |(i, j)| (i * 4 + j) as u16);
    for rows in [all.clone().slice_move(s![2..5, ..]), all.slice_move(s![2..5;-1, ..])] {
        let (first, expected) = (rows.as_ptr(), rows.clone());
        let back = SmartArray::from(rows).into_array()?;
        assert_eq!(back.as_ptr(), first);
        assert_eq!(back, expected);
    }
    Ok(())
}

#[test]
fn an_array_with_gaps_is_packed_once_and_keeps_its_elements() -> Result<()> {
    let gaps =
        Array2::from_shape_fn((6, 6), |(i, j)| (i * 6 + j) as i32).slice_move(s![..;2, 1..;-2]);
    let smart = SmartArray::from(gaps.clone());
    assert!(smart.is_c_contiguous());
    drop(smart.gpu_on(&lab().stream())?);
    assert_eq!(moves(smart.traffic()), [(1, gaps.len() as u64 * 4), (0, 0), (0, 0)]);
    assert_eq!(smart.into_array()?, gaps);
    Ok(())
}

#[test]
fn a_broadcast_array_is_packed() -> Result<()> {
    let row = array![1, 2, 3];
    let broadcast = row.broadcast((4, 3)).expect("three columns").to_owned();
    assert_eq!(SmartArray::from(broadcast.clone()).into_array()?, broadcast);
    Ok(())
}

#[test]
fn arrays_without_elements_are_arrays() -> Result<()> {
    let device = lab();
    let mut none = SmartArray::from(Array2::<f32>::zeros((0, 5)));
    assert_eq!((none.is_empty(), none.len()), (true, 0));
    assert_eq!(
        (none.host()?.shape(), none.gpu_on(&device.stream())?.shape()),
        (&[0, 5][..], &[0, 5][..])
    );
    none.host_mut()?.fill(1.0);
    drop(none.gpu_mut_on(&device.stream())?);
    assert_eq!(SmartArray::<f32, _>::uninit((3, 0)).host()?.len(), 0, "there is nothing to read");
    assert_eq!(moves(none.traffic()), NOTHING);
    assert_eq!(none.into_array()?.shape(), [0, 5]);
    Ok(())
}

#[test]
fn arrays_of_no_dimension_hold_one_element() -> Result<()> {
    let _here = Device::cpu().enter();
    let mut one: SmartArray<f64, _> = SmartArray::from(Array0::from_elem((), 2.5));
    assert_eq!((one.len(), one.shape().len()), (1, 0));
    one.set((), 3.5)?;
    assert_eq!(one.get(())?, 3.5);
    assert_eq!(one.host()?[()], 3.5);
    drop(one.gpu_mut()?);
    assert_eq!(one.into_array()?, arr0(3.5));
    assert_eq!(SmartArray::<f64, _>::zeros(()).into_array()?, arr0(0.0));
    Ok(())
}

#[test]
fn constants_and_device_contents_come_out_as_arrays() -> Result<()> {
    assert_eq!(SmartArray::<i32, _>::full((2, 2), 5).into_array()?, Array2::from_elem((2, 2), 5));
    let mut array = SmartArray::<i32, _>::zeros(4);
    drop(array.gpu_mut_on(&lab().stream())?);
    assert_eq!(array.into_array()?, Array1::<i32>::zeros(4));
    Ok(())
}

#[test]
#[should_panic(expected = "overflows isize")]
fn a_shape_beyond_all_memory_panics_as_ndarrays_does() {
    let _ = SmartArray::<f32, _>::uninit((usize::MAX / 2, 8));
}
