//! The first principal component of a table of measurements, by operations alone: standardised
//! columns, their correlations, and a power iteration. No kernel is written, and what moves is the
//! table, up, and a number for each iteration, down.

use resident::ndarray::{Array2, Axis};
use resident::ops;
use resident::prelude::*;

/// Measurements that vary along one direction, and a little in all.
fn measurements(rows: usize, columns: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| {
        let noise = ((i * 7919 + j * 104_729) % 1000) as f64 / 1000.0 - 0.5;
        3.0 + 0.1 * j as f64 + (i as f64 * 0.37).sin() * (j as f64 * 0.2).cos() * 4.0 + noise
    })
}

fn main() -> Result<()> {
    let x = SmartArray::from(measurements(2000, 300)).named("table");
    let (rows, columns) = x.dim();
    let mut line = SmartArray::<f64, _>::uninit(columns);
    let mut centred = SmartArray::<f64, _>::uninit((rows, columns));
    let mut standard = SmartArray::<f64, _>::uninit((rows, columns));
    let mut correlations = SmartArray::<f64, _>::uninit((columns, columns));
    ops::mean_axis(&x, Axis(0), &mut line)?;
    ops::sub(&x, &line, &mut centred)?;
    ops::norm_l2_axis(&centred, Axis(0), &mut line)?;
    ops::div(&centred, &line, &mut standard)?;
    ops::matmul(&standard.t(), &standard, &mut correlations)?;
    let (mut component, mut next) = (SmartArray::<f64, _>::ones(columns), line);
    let (mut variance, mut iterations) = (0.0, 0);
    loop {
        ops::matmul(&correlations, &component, &mut next)?;
        let norm = next.norm_l2()?;
        ops::div(&next, &SmartArray::full(1, norm), &mut component)?;
        iterations += 1;
        if (norm - variance).abs() < 1e-12 * norm {
            break;
        }
        variance = norm;
    }
    println!("{iterations} iterations: {:.1} % of the variance", 100.0 * variance / columns as f64);
    println!("the component starts with {:.4}", component.slice(s![..4]).host()?);
    println!("the table: {}", x.traffic());
    Ok(())
}
