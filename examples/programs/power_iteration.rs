//! The largest eigenvalue of a sparse matrix by power iteration, with `ops` alone.

use std::f64::consts::PI;

use resident::{Device, Result, SmartArray, ops};

const N: usize = 50;

fn main() -> Result<()> {
    let _here = Device::cpu().enter(); // delete this line where there is a GPU
    // The discrete Laplace operator in one dimension, in compressed rows: -1 2 -1.
    let (mut row_starts, mut columns, mut values) = (vec![0_u32], vec![], vec![]);
    for row in 0..N {
        for column in row.saturating_sub(1)..(row + 2).min(N) {
            columns.push(column as u32);
            values.push(if column == row { 2.0_f64 } else { -1.0 });
        }
        row_starts.push(columns.len() as u32);
    }
    let (row_starts, columns) = (SmartArray::from(row_starts), SmartArray::from(columns));
    let values = SmartArray::from(values);

    let (mut x, mut y) = (SmartArray::<f64, _>::uninit(N), SmartArray::<f64, _>::uninit(N));
    let mut length = SmartArray::<f64, _>::uninit(1);
    ops::random_uniform(1, &mut x)?;
    for _ in 0..5000 {
        ops::csr_matvec(&row_starts, &columns, &values, &x, &mut y)?;
        ops::norm_l2(&y, &mut length)?;
        ops::div(&y, &length, &mut x)?;
    }
    ops::csr_matvec(&row_starts, &columns, &values, &x, &mut y)?;
    let (found, exact) = (x.dot(&y)?, 2.0 + 2.0 * (PI / (N as f64 + 1.0)).cos());
    println!("the largest eigenvalue is {found:.9}, and exactly {exact:.9}");
    println!("moved to the device: {}", x.traffic().to_device.bytes);
    assert!((found - exact).abs() < 1e-6);
    Ok(())
}
