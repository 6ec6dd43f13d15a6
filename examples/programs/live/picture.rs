//! Pictures of heights: as text for a terminal with 24-bit colours, and as PNG files.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use resident::ndarray::{ArrayRef, Ix2};

/// A colour: red, green, blue.
pub type Colour = [u8; 3];

/// Blue below the surface, white at it, red above.
pub fn colour(height: f32) -> Colour {
    let strength = (height.clamp(-0.25, 0.25) * 4.0).abs().sqrt();
    let faded = (255.0 * (1.0 - strength)) as u8;
    if height < 0.0 { [faded, faded, 255] } else { [255, faded, faded] }
}

/// The picture in half blocks: each character shows two points, one above the other. At most
/// `columns` by `2 * rows` points are shown.
pub fn text(heights: &ArrayRef<f32, Ix2>, columns: usize, rows: usize) -> String {
    let (height, width) = heights.dim();
    let side = columns.min(2 * rows).min(height).min(width) / 2 * 2;
    let mut text = String::new();
    for line in (0..side).step_by(2) {
        for column in 0..side {
            let point = |row: usize| colour(heights[[row * height / side, column * width / side]]);
            let ([r, g, b], [red, green, blue]) = (point(line), point(line + 1));
            let _infallible = write!(text, "\x1b[38;2;{r};{g};{b};48;2;{red};{green};{blue}m▀");
        }
        text.push_str("\x1b[0m\n");
    }
    text
}

/// Writes the picture as a PNG file, one pixel for each point.
pub fn write_png(heights: &ArrayRef<f32, Ix2>, path: &Path) -> io::Result<()> {
    let (height, width) = heights.dim();
    let size = |len: usize| u32::try_from(len).map_err(io::Error::other);
    let file = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(file, size(width)?, size(height)?);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Fast);
    let pixels: Vec<u8> = heights.iter().flat_map(|height| colour(*height)).collect();
    let mut writer = encoder.write_header().map_err(io::Error::other)?;
    writer.write_image_data(&pixels).map_err(io::Error::other)?;
    writer.finish().map_err(io::Error::other)
}
