//! Reads PNG and JPEG files into arrays of rows, columns and three channels, and writes PNG files.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Seek};
use std::path::Path;

use image::metadata::Orientation;
use image::{DynamicImage, ExtendedColorType, ImageDecoder, ImageFormat, ImageReader};
use resident::ndarray::{Array3, ArrayView3};

use super::failure::Failure;

/// The built-in photograph; `examples/data/README.md` gives its source.
const ASTRONAUT: &[u8] = include_bytes!("../data/astronaut.png");

/// Reads a PNG or JPEG file and applies the orientation in its metadata. The format is detected
/// from the content, not from the file name.
pub fn read(path: &Path) -> Result<Array3<u8>, Failure> {
    let name = path.display();
    let file = File::open(path)
        .map_err(|error| Failure::input(format_args!("cannot open {name}: {error}")))?;
    decode(BufReader::new(file), &name.to_string())
}

/// The built-in photograph.
pub fn built_in() -> Result<Array3<u8>, Failure> {
    decode(Cursor::new(ASTRONAUT), "the built-in photograph")
}

/// Writes a picture as PNG.
pub fn write(path: &Path, picture: ArrayView3<'_, u8>) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::input(format_args!("cannot write {}: {error}", path.display()))
    };
    let (rows, columns, _) = picture.dim();
    let height = u32::try_from(rows).map_err(|error| failed(&error))?;
    let width = u32::try_from(columns).map_err(|error| failed(&error))?;
    let pixels: Vec<u8> = picture.iter().copied().collect();
    image::save_buffer_with_format(
        path,
        &pixels,
        width,
        height,
        ExtendedColorType::Rgb8,
        ImageFormat::Png,
    )
    .map_err(|error| failed(&error))
}

fn decode(source: impl BufRead + Seek, name: &str) -> Result<Array3<u8>, Failure> {
    let unreadable =
        |error: &dyn std::fmt::Display| Failure::input(format_args!("cannot read {name}: {error}"));
    let reader =
        ImageReader::new(source).with_guessed_format().map_err(|error| unreadable(&error))?;
    if !matches!(reader.format(), Some(ImageFormat::Png | ImageFormat::Jpeg)) {
        return Err(Failure::input(format_args!("{name} is neither a PNG nor a JPEG picture")));
    }
    let mut decoder = reader.into_decoder().map_err(|error| unreadable(&error))?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| unreadable(&error))?;
    picture.apply_orientation(orientation);
    into_array(picture, name)
}

fn into_array(picture: DynamicImage, name: &str) -> Result<Array3<u8>, Failure> {
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    if width == 0 || height == 0 {
        return Err(Failure::input(format_args!(
            "{name} has {width} x {height} pixels; a picture needs at least one"
        )));
    }
    Array3::from_shape_vec((height, width, 3), picture.into_rgb8().into_raw())
        .map_err(|error| Failure::input(format_args!("{name}: {error}")))
}
