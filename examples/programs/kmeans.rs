//! k-means by `ops` alone: points and centres stay on the device, and the program has no kernel.

use resident::ndarray::{Array2, Axis, Ix2, s};
use resident::{Device, Result, SmartArray, audit, ops};

const CLUSTERS: usize = 8;
const FEATURES: usize = 16;

/// Moves the centres of the clusters; returns them, and the cluster of each point.
fn fit(
    points: &SmartArray<f32, Ix2>,
    steps: usize,
) -> Result<(SmartArray<f32, Ix2>, SmartArray<u64, Ix2>)> {
    let (n, k) = (points.shape()[0], CLUSTERS);
    let mut centres = SmartArray::<f32, _>::uninit((k, FEATURES)).named("centres");
    centres.assign(&points.slice(s![..k, ..]))?;
    let numbers = SmartArray::from((0..k as u64).collect::<Vec<_>>());
    let (mut squares, mut lengths) = (SmartArray::uninit_like(&centres), SmartArray::uninit(k));
    let (mut products, mut distances) = (SmartArray::uninit((n, k)), SmartArray::uninit((n, k)));
    let mut labels = SmartArray::uninit((n, 1)).named("labels");
    let (mut is_in, mut weights) = (SmartArray::uninit((n, k)), SmartArray::uninit((n, k)));
    let (mut sums, mut counts) = (SmartArray::uninit_like(&centres), SmartArray::uninit((k, 1)));
    for _ in 0..steps {
        // |p - c|² = |p|² - 2 p·c + |c|², of which the first does not matter.
        ops::mul(&centres, &centres, &mut squares)?;
        ops::sum_axis(&squares, Axis(1), &mut lengths)?;
        ops::matmul(points, &centres.t(), &mut products)?;
        ops::copy(&lengths, &mut distances)?;
        ops::scaled_add(-2.0, &products, &mut distances)?;
        ops::argmin_axis(&distances, Axis(1), &mut labels.slice_mut(s![.., 0]))?;
        // The new centres are the means of their points.
        ops::equal(&labels, &numbers, &mut is_in)?;
        ops::cast(&is_in, &mut weights)?;
        ops::matmul(&weights.t(), points, &mut sums)?;
        ops::sum_axis(&weights, Axis(0), &mut counts.slice_mut(s![.., 0]))?;
        ops::div(&sums, &counts, &mut centres)?;
    }
    Ok((centres, labels))
}

fn main() -> Result<()> {
    let _here = Device::cpu().enter(); // delete this line where there is a GPU
    let n = std::env::args().nth(1).and_then(|it| it.parse().ok()).unwrap_or(20_000);
    let mut noise = SmartArray::<f32, _>::uninit((n, FEATURES));
    ops::random_normal(1, &mut noise)?;
    let grid = Array2::from_shape_fn((n, FEATURES), |(i, j)| (i % CLUSTERS * (j + 3) % 8) as f32);
    let mut points = SmartArray::from(grid).named("points");
    ops::scaled_add(0.1, &noise, &mut points)?;
    let (found, report) = audit::capture(|| fit(&points, 10));
    let (centres, labels) = found?;
    let labels = labels.to_vec()?;
    let is_right = |i: usize| labels[i] == labels[i % CLUSTERS];
    println!(
        "{} of {n} points are in the cluster that made them",
        (0..n).filter(|i| is_right(*i)).count()
    );
    println!("the first centre is {:.2}", centres.row(0).host()?.view());
    println!("{report}");
    assert!((0..n).all(is_right), "the clusters lie apart");
    Ok(())
}
