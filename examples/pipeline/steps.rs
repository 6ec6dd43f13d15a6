//! The steps of the edge detector. Each makes an array, launches kernels that write it, and returns
//! it. There is no explicit copy.

use resident::ndarray::{Dimension, Ix2, Ix3};
use resident::{Element, Grid, Result, SmartArray, Stream};

use super::kernels::Kernels;
use super::progress::Progress;

/// Launches per photograph from `grey` to `overlay`.
pub const LAUNCHES: usize = 10;

/// Rows and columns of a block of threads.
pub const BLOCK: (u32, u32) = (8, 32);

/// A colour picture: rows, columns, three channels.
pub type Picture = SmartArray<u8, Ix3>;

/// One value per pixel.
pub type Plane<T> = SmartArray<T, Ix2>;

/// The kernels, and the stream on which they are queued.
pub struct Steps<'a> {
    pub kernels: &'a Kernels,
    pub stream: &'a Stream,
    pub progress: &'a Progress,
}

impl Steps<'_> {
    /// Brightness from 0 to 1. This uploads the photograph unless it was prefetched.
    pub fn grey(&self, photo: &Picture) -> Result<Plane<f32>> {
        let mut grey = SmartArray::uninit((photo.shape()[0], photo.shape()[1])).named("grey");
        self.kernels.grey.launch_on(self.stream, cover(photo), (photo, &mut grey))?;
        self.launched("grey")?;
        Ok(grey)
    }

    /// A Gaussian blur in two launches, one along each axis.
    pub fn blur(&self, sigma: f32, grey: &Plane<f32>) -> Result<Plane<f32>> {
        let mut half = SmartArray::uninit_like(grey).named("blurred along rows");
        self.kernels.blur_rows.launch_on(self.stream, cover(grey), (sigma, grey, &mut half))?;
        self.launched("blur along rows")?;
        let mut soft = SmartArray::uninit_like(grey).named("blurred");
        self.kernels.blur_columns.launch_on(self.stream, cover(grey), (sigma, &half, &mut soft))?;
        self.launched("blur along columns")?;
        Ok(soft)
    }

    /// Strength and direction of the gradient.
    pub fn gradient(&self, soft: &Plane<f32>) -> Result<(Plane<f32>, Plane<u8>)> {
        let mut strength = SmartArray::uninit_like(soft).named("gradient");
        let mut direction = SmartArray::uninit(soft.raw_dim()).named("direction");
        self.kernels.sobel.launch_on(
            self.stream,
            cover(soft),
            (soft, &mut strength, &mut direction),
        )?;
        self.launched("gradient")?;
        Ok((strength, direction))
    }

    /// Ridges one pixel wide.
    pub fn thin(&self, strength: &Plane<f32>, direction: &Plane<u8>) -> Result<Plane<f32>> {
        let mut ridges = SmartArray::uninit_like(strength).named("ridges");
        self.kernels.thin.launch_on(
            self.stream,
            cover(strength),
            (strength, direction, &mut ridges),
        )?;
        self.launched("thin")?;
        Ok(ridges)
    }

    /// Hysteresis: pixels above `low` that are connected to a pixel above `high`. Four launches
    /// suffice for any picture, because connected pixels are joined as trees. Spreading from pixel
    /// to pixel would take one launch and one download per round.
    pub fn connect(&self, low: f32, high: f32, ridges: &Plane<f32>) -> Result<Plane<u8>> {
        let mut labels = SmartArray::<u32, _>::uninit(ridges.raw_dim()).named("labels");
        self.kernels.candidates.launch_on(
            self.stream,
            cover(ridges),
            (low, ridges, &mut labels),
        )?;
        self.launched("candidates")?;
        self.kernels.unite.launch_on(self.stream, cover(ridges), (&mut labels,))?;
        self.launched("unite")?;
        let mut anchored = SmartArray::<u8, _>::zeros(ridges.raw_dim()).named("anchored");
        self.kernels.anchor.launch_on(
            self.stream,
            cover(ridges),
            (high, ridges, &labels, &mut anchored),
        )?;
        self.launched("anchor")?;
        let mut edges = SmartArray::uninit(ridges.raw_dim()).named("edges");
        self.kernels.keep.launch_on(
            self.stream,
            cover(ridges),
            (&labels, &anchored, &mut edges),
        )?;
        self.launched("keep")?;
        Ok(edges)
    }

    /// The edges drawn on the darkened photograph.
    pub fn overlay(&self, photo: &Picture, edges: &Plane<u8>) -> Result<Picture> {
        let mut overlay = SmartArray::uninit_like(photo).named("overlay");
        self.kernels.overlay.launch_on(self.stream, cover(photo), (photo, edges, &mut overlay))?;
        self.launched("overlay")?;
        Ok(overlay)
    }

    /// Advances the progress bar when the device has run the launch, not when the launch is queued.
    fn launched(&self, name: &'static str) -> Result<()> {
        self.progress.follow(name, self.stream)
    }
}

/// One thread per pixel.
pub fn cover<T: Element, D: Dimension>(picture: &SmartArray<T, D>) -> Grid {
    Grid::cover_2d((picture.shape()[0], picture.shape()[1]), BLOCK)
}
