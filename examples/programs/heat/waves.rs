//! Standing waves in the cube: the initial heat, and the exact heat after any number of steps.

use std::f64::consts::PI;

/// Grid points along each axis, walls included.
pub const POINTS: usize = 66;

/// The initial waves: the number of half waves along each axis, and the height.
pub const WAVES: [([usize; 3], f64); 3] = [([1, 1, 1], 1.0), ([2, 1, 3], 0.5), ([3, 5, 2], -0.25)];

/// The sum of the waves at a point. It is exactly zero on the walls.
pub fn heat(waves: &[([usize; 3], f64)], point: [usize; 3]) -> f64 {
    if point.iter().any(|&index| index == 0 || index == POINTS - 1) {
        return 0.0;
    }
    let along =
        |(index, count): (usize, usize)| (PI * (count * index) as f64 / (POINTS - 1) as f64).sin();
    waves
        .iter()
        .map(|(counts, height)| height * point.into_iter().zip(*counts).map(along).product::<f64>())
        .sum()
}

/// The factor by which one step shrinks a wave: the mean over a point's six neighbours is the
/// wave's value at the point times this factor.
pub fn decay(counts: [usize; 3]) -> f64 {
    counts.iter().map(|&count| (PI * count as f64 / (POINTS - 1) as f64).cos()).sum::<f64>() / 3.0
}
