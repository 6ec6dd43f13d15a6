//! The host bodies of `kernels`, written with ndarray views.
//!
//! Each function is the body of one launch, and keeps no state. Except in `unite`, the result at a
//! pixel depends only on the pixel and its neighbours. `unite` joins trees of labels, and the roots
//! do not depend on the order of the pixels. So each function has a CUDA body with the same
//! structure.

use resident::ndarray::{
    ArrayBase, ArrayView1, ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis, Data, Ix2,
    Zip,
};

/// The label of a pixel that is not a candidate for an edge.
pub const NO_LABEL: u32 = u32::MAX;

/// The weights of red, green and blue in the brightness of a pixel (ITU-R BT.601).
const BRIGHTNESS: [f32; 3] = [0.299, 0.587, 0.114];

/// The tangent of 22.5 degrees: the boundary between gradients along an axis and gradients along a
/// diagonal.
const HALF_DIAGONAL: f32 = 0.414_213_56;

/// The offset of the neighbour ahead, in rows and columns, for each of the four directions of
/// `sobel`.
const AHEAD: [(isize, isize); 4] = [(0, 1), (1, 1), (1, 0), (1, -1)];

/// The offsets of half of a pixel's eight neighbours. The other pairs are handled from the
/// neighbour's side.
const LATER_NEIGHBOURS: [(isize, isize); 4] = [(0, 1), (1, -1), (1, 0), (1, 1)];

/// The colour of an edge in the overlay, and the brightness of the photograph below it.
const EDGE_COLOUR: [u8; 3] = [255, 236, 92];
const DIMMED_TO_PERCENT: u16 = 45;

/// Brightness from 0 to 1.
pub fn grey(photo: ArrayView3<'_, u8>, grey: ArrayViewMut2<'_, f32>) {
    Zip::from(grey).and(photo.lanes(Axis(2))).for_each(|grey, pixel| {
        let [red, green, blue] = [f32::from(pixel[0]), f32::from(pixel[1]), f32::from(pixel[2])];
        *grey = (BRIGHTNESS[0] * red + BRIGHTNESS[1] * green + BRIGHTNESS[2] * blue) / 255.0;
    });
}

/// First half of a Gaussian blur, along the rows. Beyond the border the outermost pixel is
/// repeated.
pub fn blur_rows(sigma: f32, source: ArrayView2<'_, f32>, mut target: ArrayViewMut2<'_, f32>) {
    let weights = gaussian(sigma);
    let mut padded = Vec::with_capacity(source.ncols() + weights.len());
    for (source, mut target) in source.rows().into_iter().zip(target.rows_mut()) {
        extend_beyond_border(&mut padded, source, weights.len() / 2);
        for (value, window) in target.iter_mut().zip(padded.windows(weights.len())) {
            *value =
                window.iter().zip(&weights).fold(0.0, |sum, (pixel, weight)| sum + weight * pixel);
        }
    }
}

/// Second half, along the columns. It adds whole rows, which suits the cache.
pub fn blur_columns(sigma: f32, source: ArrayView2<'_, f32>, mut target: ArrayViewMut2<'_, f32>) {
    let weights = gaussian(sigma);
    let radius = weights.len() / 2;
    for (row, mut target) in target.rows_mut().into_iter().enumerate() {
        target.fill(0.0);
        for (step, &weight) in weights.iter().enumerate() {
            let nearest = (row + step).saturating_sub(radius).min(source.nrows() - 1);
            target.scaled_add(weight, &source.row(nearest));
        }
    }
}

/// The gradient by Sobel's masks: its strength, which is 1 for a step from black to white, and the
/// nearest of four directions.
pub fn sobel(
    soft: ArrayView2<'_, f32>,
    strength: ArrayViewMut2<'_, f32>,
    direction: ArrayViewMut2<'_, u8>,
) {
    let (rows, columns) = soft.dim();
    Zip::indexed(strength).and(direction).for_each(|(row, column), strength, direction| {
        let (above, below) = (row.saturating_sub(1), (row + 1).min(rows - 1));
        let (left, right) = (column.saturating_sub(1), (column + 1).min(columns - 1));
        let beside =
            |column| soft[[above, column]] + 2.0 * soft[[row, column]] + soft[[below, column]];
        let along = |row| soft[[row, left]] + 2.0 * soft[[row, column]] + soft[[row, right]];
        let (across, down) = (beside(right) - beside(left), along(below) - along(above));
        *strength = (across * across + down * down).sqrt() / 4.0;
        *direction = nearest_direction(across, down);
    });
}

/// Non-maximum suppression: a pixel is kept if it is the strongest along its gradient. Of two equal
/// pixels the first along the gradient is kept.
pub fn thin(
    strength: ArrayView2<'_, f32>,
    direction: ArrayView2<'_, u8>,
    ridges: ArrayViewMut2<'_, f32>,
) {
    Zip::indexed(ridges).and(strength).and(direction).for_each(
        |pixel_index, ridge, &here, &direction| {
            let (rows, columns) = AHEAD[usize::from(direction & 3)];
            let beside = |step| {
                neighbour(strength.dim(), pixel_index, step)
                    .map_or(0.0, |pixel_index| strength[pixel_index])
            };
            let is_ridge = here > beside((-rows, -columns)) && here >= beside((rows, columns));
            *ridge = if is_ridge { here } else { 0.0 };
        },
    );
}

/// First step of hysteresis: each pixel above the low threshold becomes a tree whose label is the
/// pixel's index.
pub fn candidates(low: f32, ridges: ArrayView2<'_, f32>, labels: ArrayViewMut2<'_, u32>) {
    let columns = ridges.ncols();
    Zip::indexed(labels).and(ridges).for_each(|(row, column), label, &ridge| {
        *label = if ridge > low { (row * columns + column) as u32 } else { NO_LABEL };
    });
}

/// Second step: adjacent trees are joined under the smaller root. One launch suffices; the CUDA
/// body uses an atomic minimum at the roots.
pub fn unite(mut labels: ArrayViewMut2<'_, u32>) {
    let (rows, columns) = labels.dim();
    for row in 0..rows {
        for column in 0..columns {
            if labels[[row, column]] != NO_LABEL {
                unite_with_neighbours(&mut labels, (row, column));
            }
        }
    }
}

/// Third step: a pixel above the high threshold anchors its whole tree.
pub fn anchor(
    high: f32,
    ridges: ArrayView2<'_, f32>,
    labels: ArrayView2<'_, u32>,
    mut anchored: ArrayViewMut2<'_, u8>,
) {
    for (pixel_index, &ridge) in ridges.indexed_iter() {
        if ridge > high
            && let Some(root) = root(&labels, labels[pixel_index])
        {
            anchored[position(root, labels.ncols())] = 1;
        }
    }
}

/// Last step: a pixel of an anchored tree is an edge.
pub fn keep(
    labels: ArrayView2<'_, u32>,
    anchored: ArrayView2<'_, u8>,
    edges: ArrayViewMut2<'_, u8>,
) {
    Zip::from(edges).and(labels).for_each(|edge, &label| {
        let is_edge =
            root(&labels, label).is_some_and(|root| anchored[position(root, labels.ncols())] != 0);
        *edge = if is_edge { u8::MAX } else { 0 };
    });
}

/// The edges on the darkened photograph.
pub fn overlay(
    photo: ArrayView3<'_, u8>,
    edges: ArrayView2<'_, u8>,
    mut overlay: ArrayViewMut3<'_, u8>,
) {
    Zip::from(overlay.lanes_mut(Axis(2))).and(photo.lanes(Axis(2))).and(edges).for_each(
        |mut pixel, below, &edge| {
            for channel in 0..3 {
                let dimmed = (u16::from(below[channel]) * DIMMED_TO_PERCENT / 100) as u8;
                pixel[channel] = if edge == 0 { dimmed } else { EDGE_COLOUR[channel] };
            }
        },
    );
}

/// The weights of a Gaussian out to three sigma. They add up to 1; with a sigma of 0 the blur
/// changes nothing. The exponential is computed in `f64` and rounded once, so that every device
/// gets the same weights even if the last digits of its math library differ.
fn gaussian(sigma: f32) -> Vec<f32> {
    let radius = (3.0 * sigma).ceil() as i32;
    let exponent = |distance: i32| -((distance * distance) as f32) / (2.0 * sigma * sigma);
    let bell = |distance: i32| {
        if distance == 0 { 1.0 } else { f64::from(exponent(distance)).exp() as f32 }
    };
    let weights: Vec<f32> = (-radius..=radius).map(bell).collect();
    let sum: f32 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

fn extend_beyond_border(padded: &mut Vec<f32>, row: ArrayView1<'_, f32>, radius: usize) {
    padded.clear();
    let (first, last) = (row.first().copied().unwrap_or(0.0), row.last().copied().unwrap_or(0.0));
    padded.extend(std::iter::repeat_n(first, radius));
    padded.extend(row);
    padded.extend(std::iter::repeat_n(last, radius));
}

/// An index into `AHEAD`. The comparison with a tangent avoids an arc tangent and is exact at the
/// axes.
fn nearest_direction(across: f32, down: f32) -> u8 {
    if down.abs() <= HALF_DIAGONAL * across.abs() {
        0
    } else if across.abs() <= HALF_DIAGONAL * down.abs() {
        2
    } else if (across > 0.0) == (down > 0.0) {
        1
    } else {
        3
    }
}

fn neighbour(
    (rows, columns): (usize, usize),
    (row, column): (usize, usize),
    step: (isize, isize),
) -> Option<(usize, usize)> {
    let (row, column) = (row.checked_add_signed(step.0)?, column.checked_add_signed(step.1)?);
    (row < rows && column < columns).then_some((row, column))
}

fn unite_with_neighbours(labels: &mut ArrayViewMut2<'_, u32>, pixel_index: (usize, usize)) {
    for step in LATER_NEIGHBOURS {
        let Some(beside) =
            neighbour(labels.dim(), pixel_index, step).filter(|&beside| labels[beside] != NO_LABEL)
        else {
            continue;
        };
        let (Some(one), Some(other)) =
            (shortened_root(labels, pixel_index), shortened_root(labels, beside))
        else {
            continue;
        };
        let columns = labels.ncols();
        labels[position(one.max(other), columns)] = one.min(other);
    }
}

/// The root of a pixel's tree, like `root`. It also redirects every second link to the next pixel
/// but one, which keeps chains short.
fn shortened_root(labels: &mut ArrayViewMut2<'_, u32>, pixel_index: (usize, usize)) -> Option<u32> {
    let columns = labels.ncols();
    let mut pixel_index = [pixel_index.0, pixel_index.1];
    loop {
        let label = labels[pixel_index];
        let above = *labels.get(position(label, columns))?;
        if above >= label {
            return Some(label);
        }
        labels[pixel_index] = above;
        pixel_index = position(above, columns);
    }
}

/// The root of a label's tree: the pixel whose label is its own index. Links lead to smaller
/// labels. The search stops at the first link to a label that is not smaller, so it terminates for
/// any contents of the array. Returns `None` if a label is not an index.
fn root(labels: &ArrayBase<impl Data<Elem = u32>, Ix2>, mut label: u32) -> Option<u32> {
    loop {
        let above = *labels.get(position(label, labels.ncols()))?;
        if above >= label {
            return Some(label);
        }
        label = above;
    }
}

fn position(label: u32, columns: usize) -> [usize; 2] {
    [label as usize / columns, label as usize % columns]
}
