//! The host's guards as ndarray views.

use resident::ndarray::{Array1, Array2, ArrayView1, ArrayViewMut1, Ix1, Ix2, Zip, array, s};
use resident::{Result, SmartArray};

#[test]
fn guards_compare_with_arrays_and_each_other_on_either_side() -> Result<()> {
    let (mut one, other) =
        (SmartArray::from(array![[1, 2], [3, 4]]), SmartArray::from(array![[1, 2], [3, 4]]));
    let model = array![[1, 2], [3, 4]];
    assert_eq!(one.host()?, model);
    assert_eq!(model, one.host()?);
    assert_eq!(one.host()?, &model);
    assert_eq!(&model, one.host()?);
    assert_eq!(one.host()?, model.view());
    assert_eq!(one.host()?, *other.host()?);
    assert_eq!(*other.host()?, one.host()?);
    assert_eq!(one.host()?, other.host()?);
    assert_eq!(one.host_mut()?, other.host()?);
    assert_eq!(other.host()?, one.host_mut()?);
    assert_eq!(one.host_mut()?, model.to_shared());
    assert_eq!(one.slice(s![0, ..]).host()?, array![1, 2]);
    assert_ne!(one.host()?, array![[1, 2], [3, 5]]);
    assert_ne!(one.slice(s![.., ..1]).host()?, model, "shapes differ");
    Ok(())
}

#[test]
fn guards_are_walked_through() -> Result<()> {
    let mut array = SmartArray::from(vec![1, 2, 3]);
    let mut seen = Vec::new();
    for x in &array.host()? {
        seen.push(*x);
    }
    for x in array.host()? {
        seen.push(10 * x);
    }
    let mut host = array.host_mut()?;
    for x in &mut host {
        *x += 1;
    }
    for x in &host {
        seen.push(*x);
    }
    for x in host {
        *x *= 2;
    }
    assert_eq!(seen, [1, 2, 3, 10, 20, 30, 2, 3, 4]);
    assert_eq!(array.host()?, array![4, 6, 8]);
    Ok(())
}

#[test]
fn guards_go_into_zips() -> Result<()> {
    let (x, mut y) =
        (SmartArray::from(array![[1, 2], [3, 4]]), SmartArray::<i32, Ix2>::ones((2, 2)));
    let mut host = y.host_mut()?;
    Zip::from(&mut host).and(&x.host()?).for_each(|y, x| *y += x);
    assert_eq!(
        Zip::from(&host).and(&x.host()?).map_collect(|y, x| y - x),
        Array2::<i32>::ones((2, 2))
    );
    assert_eq!(Zip::from(x.slice(s![0, ..]).host()?.view()).map_collect(|x| x * 2), array![2, 4]);
    Ok(())
}

#[test]
fn guards_turn_into_views_that_live_as_long() -> Result<()> {
    fn head(array: &SmartArray<i32, Ix1>) -> Result<ArrayView1<'_, i32>> {
        Ok(array.slice(s![..2]).host()?.into_view())
    }
    fn tail(array: &mut SmartArray<i32, Ix1>) -> Result<ArrayViewMut1<'_, i32>> {
        Ok(array.slice_mut(s![1..]).into_host_mut()?.into_view_mut())
    }
    let mut array = SmartArray::from(vec![1, 2, 3]);
    assert_eq!(head(&array)?, array![1, 2]);
    tail(&mut array)?.fill(7);
    assert_eq!(array.host()?, Array1::from(vec![1, 7, 7]));
    assert_eq!(&array.host()?.view() + 1, array![2, 8, 8]);
    Ok(())
}
