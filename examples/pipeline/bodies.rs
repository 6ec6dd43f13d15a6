//! What the kernels compute, written on ndarray views: the host bodies of `kernels`.
//!
//! Each function is one launch. None keeps state, and each pixel's result depends on its neighbours
//! alone, `unite` aside, which joins trees of labels and gives the same trees' roots in whatever
//! order the pixels come; so each has a device body of the same shape.

use resident::ndarray::{
    ArrayBase, ArrayView1, ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis, Data, Ix2,
    Zip,
};

/// The label of a pixel that is no candidate for an edge.
pub const NO_LABEL: u32 = u32::MAX;

/// How much red, green and blue count in the brightness of a pixel (ITU-R BT.601).
const BRIGHTNESS: [f32; 3] = [0.299, 0.587, 0.114];

/// The tangent of 22.5 degrees: a gradient flatter than that runs along an axis, a steeper one
/// along a diagonal.
const HALF_DIAGONAL: f32 = 0.414_213_56;

/// Where the neighbour ahead lies, in rows and columns, for each of the four directions that
/// `sobel` tells apart.
const AHEAD: [(isize, isize); 4] = [(0, 1), (1, 1), (1, 0), (1, -1)];

/// Half of a pixel's eight neighbours. The other half finds this pixel among its own.
const LATER_NEIGHBOURS: [(isize, isize); 4] = [(0, 1), (1, -1), (1, 0), (1, 1)];

/// The colour of an edge in the overlay, and how far the photograph below it is darkened.
const EDGE_COLOUR: [u8; 3] = [255, 236, 92];
const DIMMED_TO_PERCENT: u16 = 45;

/// Brightness from 0 to 1.
pub fn grey(photo: ArrayView3<'_, u8>, grey: ArrayViewMut2<'_, f32>) {
    Zip::from(grey).and(photo.lanes(Axis(2))).for_each(|grey, pixel| {
        let [red, green, blue] = [f32::from(pixel[0]), f32::from(pixel[1]), f32::from(pixel[2])];
        *grey = (BRIGHTNESS[0] * red + BRIGHTNESS[1] * green + BRIGHTNESS[2] * blue) / 255.0;
    });
}

/// One half of a Gaussian blur, along the rows. Beyond the border the outermost pixel goes on.
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

/// The other half, along the columns: whole rows are added up, which is kind to the cache.
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

/// The gradient by Sobel's masks: its strength, 1 for a step from black to white, and the nearest
/// of four directions.
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

/// Non-maximum suppression: a pixel stays if it is the strongest along its gradient. Of two equal
/// ones the first in that direction stays.
pub fn thin(
    strength: ArrayView2<'_, f32>,
    direction: ArrayView2<'_, u8>,
    ridges: ArrayViewMut2<'_, f32>,
) {
    Zip::indexed(ridges).and(strength).and(direction).for_each(
        |place, ridge, &here, &direction| {
            let (rows, columns) = AHEAD[usize::from(direction & 3)];
            let beside =
                |step| neighbour(strength.dim(), place, step).map_or(0.0, |place| strength[place]);
            let is_ridge = here > beside((-rows, -columns)) && here >= beside((rows, columns));
            *ridge = if is_ridge { here } else { 0.0 };
        },
    );
}

/// First step of hysteresis: each pixel above the low threshold is a tree of its own, whose label
/// is its own index.
pub fn candidates(low: f32, ridges: ArrayView2<'_, f32>, labels: ArrayViewMut2<'_, u32>) {
    let columns = ridges.ncols();
    Zip::indexed(labels).and(ridges).for_each(|(row, column), label, &ridge| {
        *label = if ridge > low { (row * columns + column) as u32 } else { NO_LABEL };
    });
}

/// Second step: trees that touch become one, the smaller root winning. One launch does it, on a
/// device by an atomic minimum at the roots.
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

/// Third step: a pixel above the high threshold holds its whole tree.
pub fn anchor(
    high: f32,
    ridges: ArrayView2<'_, f32>,
    labels: ArrayView2<'_, u32>,
    mut anchored: ArrayViewMut2<'_, u8>,
) {
    for (place, &ridge) in ridges.indexed_iter() {
        if ridge > high
            && let Some(root) = root(&labels, labels[place])
        {
            anchored[position(root, labels.ncols())] = 1;
        }
    }
}

/// Last step: what stands on an anchored tree is an edge.
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

/// The weights of a Gaussian out to three sigma, which add up to 1; a sigma of 0 leaves things as
/// they are. The exponential is rounded once, from more digits than are kept: so every device comes
/// to the same, whatever its library's last digit is.
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

/// An index into `AHEAD`. Comparing with a tangent costs no arc tangent and is exact at the axes.
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

fn unite_with_neighbours(labels: &mut ArrayViewMut2<'_, u32>, place: (usize, usize)) {
    for step in LATER_NEIGHBOURS {
        let Some(beside) =
            neighbour(labels.dim(), place, step).filter(|&beside| labels[beside] != NO_LABEL)
        else {
            continue;
        };
        let (Some(one), Some(other)) =
            (shortened_root(labels, place), shortened_root(labels, beside))
        else {
            continue;
        };
        let columns = labels.ncols();
        labels[position(one.max(other), columns)] = one.min(other);
    }
}

/// The root above a pixel, as `root` finds it; on the way every second link is made to skip one, so
/// that chains stay short.
fn shortened_root(labels: &mut ArrayViewMut2<'_, u32>, place: (usize, usize)) -> Option<u32> {
    let columns = labels.ncols();
    let mut place = [place.0, place.1];
    loop {
        let label = labels[place];
        let above = *labels.get(position(label, columns))?;
        if above >= label {
            return Some(label);
        }
        labels[place] = above;
        place = position(above, columns);
    }
}

/// The root above a label, if that is one of a pixel: the pixel that carries its own index. Links
/// lead to smaller labels; any that does not ends the way, so that it ends whatever the array
/// holds.
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
