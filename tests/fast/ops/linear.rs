//! Matrix products give what ndarray gives.

use ndarray::{Array2, ShapeBuilder, s};
use resident::{Result, SmartArray, ops};

use crate::{cuda, devices, rust};

fn table(rows: usize, columns: usize, seed: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| ((i * 31 + j * 17 + seed * 7) % 23) as f64)
}

/// The products of these small whole numbers are exact, whatever the order of the sums.
#[test]
fn products_of_all_layouts_are_exact() -> Result<()> {
    for (_, _here) in devices() {
        for (n, k, m) in [(1, 1, 1), (3, 5, 2), (33, 65, 31), (64, 32, 96), (7, 1, 130)] {
            let (a, b) = (table(n, k, 1), table(k, m, 2));
            let expected = a.dot(&b);
            let (ours_a, ours_b) = (SmartArray::from(a.clone()), SmartArray::from(b.clone()));
            let mut c = SmartArray::<f64, _>::uninit((n, m));
            ops::matmul(&ours_a, &ours_b, &mut c)?;
            assert_eq!(c.host()?.view(), expected);
            let turned = SmartArray::from(a.t().as_standard_layout().into_owned());
            let mut columns = SmartArray::<f64, _>::uninit((n, m).f());
            ops::matmul(&turned.t(), &ours_b, &mut columns)?;
            assert_eq!(columns.host()?.view(), expected);
            let backwards = ours_b.slice(s![..;-1, ..]);
            ops::matmul(&ours_a.slice(s![.., ..;-1]), &backwards, &mut c)?;
            assert_eq!(c.host()?.view(), expected);
        }
    }
    Ok(())
}

#[test]
fn products_of_every_type() -> Result<()> {
    macro_rules! check {
        ($($type:ty),+) => {
            $({
                let (a, b) = (table(9, 20, 3), table(20, 11, 4));
                let expected = a.dot(&b).mapv(|x| x as u64 as $type);
                let (a, b) = (a.mapv(|x| x as $type), b.mapv(|x| x as $type));
                let mut c = SmartArray::<$type, _>::uninit((9, 11));
                ops::matmul(&SmartArray::from(a), &SmartArray::from(b), &mut c)?;
                assert_eq!(c.host()?.view(), expected, stringify!($type));
            })+
        };
    }
    {
        let _here = rust().enter();
        check!(f32, f64, i32, i64, u32, u64);
    }
    if let Some(device) = cuda() {
        let _here = device.enter();
        check!(f32, i32);
    }
    Ok(())
}

/// Products and sums of bytes wrap around.
#[test]
fn products_of_bytes_wrap_around() -> Result<()> {
    for (_, _here) in devices() {
        let a = SmartArray::<u8, _>::full((2, 40), 20);
        let mut c = SmartArray::<u8, _>::uninit((2, 2));
        ops::matmul(&a, &a.t(), &mut c)?;
        assert_eq!(c.to_vec()?, [(40 * 400 % 256) as u8; 4]);
    }
    Ok(())
}

#[test]
fn a_line_is_a_row_on_the_left_and_a_column_on_the_right() -> Result<()> {
    for (_, _here) in devices() {
        let (a, line) = (table(6, 4, 1), table(1, 4, 9).row(0).to_owned());
        let ours = SmartArray::from(a.clone());
        let mut by_column = SmartArray::<f64, _>::uninit(6);
        ops::matmul(&ours, &SmartArray::from(line.clone()), &mut by_column)?;
        assert_eq!(by_column.host()?.view(), a.dot(&line));
        let mut by_row = SmartArray::<f64, _>::uninit(6);
        ops::matmul(&SmartArray::from(line.clone()), &ours.t(), &mut by_row)?;
        assert_eq!(by_row.host()?.view(), line.dot(&a.t()));
    }
    Ok(())
}

#[test]
fn large_products_use_all_cores() -> Result<()> {
    let _here = rust().enter();
    let (a, b) = (table(300, 30, 5), table(30, 700, 6));
    let mut c = SmartArray::<f64, _>::uninit((300, 700));
    ops::matmul(&SmartArray::from(a.clone()), &SmartArray::from(b.clone()), &mut c)?;
    assert_eq!(c.host()?.view(), a.dot(&b));
    Ok(())
}

#[test]
fn empty_products_are_zero() -> Result<()> {
    for (_, _here) in devices() {
        let (a, b) = (SmartArray::<f32, _>::zeros((2, 0)), SmartArray::<f32, _>::zeros((0, 3)));
        let mut c = SmartArray::<f32, _>::uninit((2, 3));
        ops::matmul(&a, &b, &mut c)?;
        assert_eq!(c.to_vec()?, [0.0; 6]);
        let mut none = SmartArray::<f32, _>::uninit((0, 0));
        ops::matmul(&b.slice(s![.., ..0]), &a.slice(s![..0, ..]), &mut none)?;
    }
    Ok(())
}
