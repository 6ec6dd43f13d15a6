//! The same steps with plain ndarray: where the kernels read single pixels, it shifts whole arrays
//! against each other; where they join trees, it uses a flood fill. It shares formulas with the
//! kernels but no code. On a device that rounds as the host does, the results agree bit for bit.

use resident::ndarray::{
    Array1, Array2, Array3, ArrayView2, ArrayView3, Axis, NewAxis, Zip, concatenate, s,
};

use resident_example_pipeline::arguments::Settings;
use resident_example_pipeline::sheet::{GAP, GAP_COLOUR, STRENGTH_GAIN};

/// The expected results of the pipeline.
pub(crate) struct Expected {
    pub(crate) sheet: Array3<u8>,
    pub(crate) bins: Vec<u32>,
}

/// The direction of a gradient.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Right,
    LowerRight,
    Down,
    LowerLeft,
}

pub(crate) fn expected(photo: ArrayView3<'_, u8>, settings: Settings) -> Expected {
    let grey = grey(photo);
    let along_rows = blurred(grey.view(), settings.sigma);
    let soft = blurred(along_rows.t(), settings.sigma).reversed_axes();
    let (strength, direction) = gradient(soft.view());
    let ridges = ridges(strength.view(), direction.view());
    let edges = connected(ridges.view(), settings.low, settings.high);
    let overlay = overlay(photo, edges.view());
    Expected { sheet: sheet(photo, strength.view(), overlay.view()), bins: counted(grey.view()) }
}

fn grey(photo: ArrayView3<'_, u8>) -> Array2<f32> {
    let channel = |index| photo.index_axis(Axis(2), index).mapv(f32::from);
    (channel(0) * 0.299 + channel(1) * 0.587 + channel(2) * 0.114) / 255.0
}

fn counted(grey: ArrayView2<'_, f32>) -> Vec<u32> {
    grey.fold(vec![0; 256], |mut bins, value| {
        bins[((value * 256.0) as usize).min(255)] += 1;
        bins
    })
}

/// Blurs along the last axis. Beyond the ends the outermost values are repeated.
fn blurred(source: ArrayView2<'_, f32>, sigma: f32) -> Array2<f32> {
    let radius = (3.0 * sigma).ceil() as usize;
    let distances = Array1::range(-(radius as f32), radius as f32 + 0.5, 1.0);
    let exponents = distances.mapv(|distance: f32| -(distance * distance) / (2.0 * sigma * sigma));
    let weights = Zip::from(&distances).and(&exponents).map_collect(|&distance, &exponent| {
        if distance == 0.0 { 1.0 } else { f64::from(exponent).exp() as f32 }
    });
    let sum = weights.iter().fold(0.0, |sum, weight| sum + weight);
    let padded = padded_columns(source, radius);
    let mut result = Array2::zeros(source.raw_dim());
    for (shift, weight) in weights.iter().enumerate() {
        result += &(&padded.slice(s![.., shift..shift + source.ncols()]) * (weight / sum));
    }
    result
}

fn padded_columns(source: ArrayView2<'_, f32>, width: usize) -> Array2<f32> {
    let last = source.ncols() - 1;
    Array2::from_shape_fn((source.nrows(), source.ncols() + 2 * width), |(row, column)| {
        source[[row, column.saturating_sub(width).min(last)]]
    })
}

/// Sobel's masks as the product of smoothing and difference.
fn gradient(soft: ArrayView2<'_, f32>) -> (Array2<f32>, Array2<Direction>) {
    let across = smoothed_difference(soft);
    let down = smoothed_difference(soft.t()).reversed_axes();
    let strength = Zip::from(&across)
        .and(&down)
        .map_collect(|&across, &down| f32::sqrt(across * across + down * down) / 4.0);
    let direction =
        Zip::from(&across).and(&down).map_collect(|&across, &down| direction(across, down));
    (strength, direction)
}

fn smoothed_difference(soft: ArrayView2<'_, f32>) -> Array2<f32> {
    let wide = padded_columns(soft, 1);
    let tall = padded_columns(wide.t(), 1).reversed_axes();
    let rows = soft.nrows();
    let smooth = &tall.slice(s![..rows, ..])
        + &(&tall.slice(s![1..=rows, ..]) * 2.0)
        + tall.slice(s![2.., ..]);
    &smooth.slice(s![.., 2..]) - &smooth.slice(s![.., ..soft.ncols()])
}

fn direction(across: f32, down: f32) -> Direction {
    const TANGENT: f32 = 0.414_213_56;
    match (across.abs(), down.abs()) {
        (width, height) if height <= width * TANGENT => Direction::Right,
        (width, height) if width <= height * TANGENT => Direction::Down,
        _ if across.is_sign_positive() == down.is_sign_positive() => Direction::LowerRight,
        _ => Direction::LowerLeft,
    }
}

/// Compares all pixels with their neighbours in one direction at a time. The gradient outside the
/// picture is zero.
fn ridges(strength: ArrayView2<'_, f32>, direction: ArrayView2<'_, Direction>) -> Array2<f32> {
    let (rows, columns) = strength.dim();
    let mut framed = Array2::zeros((rows + 2, columns + 2));
    framed.slice_mut(s![1..=rows, 1..=columns]).assign(&strength);
    let mut ridges = Array2::zeros((rows, columns));
    for (which, row, column) in [
        (Direction::Right, 1, 2),
        (Direction::LowerRight, 2, 2),
        (Direction::Down, 2, 1),
        (Direction::LowerLeft, 2, 0),
    ] {
        let ahead = framed.slice(s![row..row + rows, column..column + columns]);
        let behind = framed.slice(s![2 - row..2 - row + rows, 2 - column..2 - column + columns]);
        Zip::from(&mut ridges).and(strength).and(direction).and(ahead).and(behind).for_each(
            |ridge, &here, &direction, &ahead, &behind| {
                if direction == which && here > behind && here >= ahead {
                    *ridge = here;
                }
            },
        );
    }
    ridges
}

/// Flood fill: marks the strong pixels and all weak pixels connected to them.
fn connected(ridges: ArrayView2<'_, f32>, low: f32, high: f32) -> Array2<bool> {
    let mut edges = ridges.mapv(|ridge| ridge > low && ridge > high);
    let mut pending: Vec<(usize, usize)> =
        edges.indexed_iter().filter_map(|(index, &edge)| edge.then_some(index)).collect();
    while let Some((row, column)) = pending.pop() {
        let around = s![
            row.saturating_sub(1)..(row + 2).min(ridges.nrows()),
            column.saturating_sub(1)..(column + 2).min(ridges.ncols())
        ];
        for ((down, right), edge) in edges.slice_mut(around).indexed_iter_mut() {
            let index = (row.saturating_sub(1) + down, column.saturating_sub(1) + right);
            if !*edge && ridges[index] > low {
                *edge = true;
                pending.push(index);
            }
        }
    }
    edges
}

fn overlay(photo: ArrayView3<'_, u8>, edges: ArrayView2<'_, bool>) -> Array3<u8> {
    let mut overlay = photo.mapv(|value| (u32::from(value) * 45 / 100) as u8);
    for (mut channel, colour) in overlay.axis_iter_mut(Axis(2)).zip([255, 236, 92]) {
        channel.zip_mut_with(&edges, |value, &edge| *value = if edge { colour } else { *value });
    }
    overlay
}

fn sheet(
    photo: ArrayView3<'_, u8>,
    strength: ArrayView2<'_, f32>,
    overlay: ArrayView3<'_, u8>,
) -> Array3<u8> {
    let shades = strength.mapv(|strength| (strength * STRENGTH_GAIN * 255.0).min(255.0) as u8);
    let gap = Array3::from_elem((photo.dim().0, GAP, 3), GAP_COLOUR);
    let middle = shades.slice(s![.., .., NewAxis]);
    let middle = middle
        .broadcast(photo.raw_dim())
        .map_or_else(|| photo.to_owned(), |middle| middle.to_owned());
    let parts = [photo, gap.view(), middle.view(), gap.view(), overlay];
    concatenate(Axis(1), &parts).unwrap_or_default()
}
