//! Reads PNG and JPEG files into arrays of rows, columns and three channels, and writes PNG files.

use std::error::Error;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use resident::ndarray::{Array3, ArrayView3};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::failure::Failure;
use super::orientation;

/// The built-in photograph; `examples/data/README.md` gives its source.
const ASTRONAUT: &[u8] = include_bytes!("../data/astronaut.png");

/// The first bytes of every file of the format.
const PNG_START: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG_START: &[u8] = b"\xff\xd8\xff";

/// The largest file, and the largest picture in memory: a small file can declare a large picture.
const BYTES_MAX: usize = 512 << 20;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A picture as its file stores it.
struct Stored {
    height: usize,
    width: usize,
    /// Bytes of a pixel: grey or three colours, and opacity with 2 or 4.
    channels: usize,
    samples: Vec<u8>,
    exif: Vec<u8>,
}

/// Reads a PNG or JPEG file and applies the orientation in its metadata. The format is detected
/// from the content, not from the file name.
pub fn read(path: &Path) -> Result<Array3<u8>, Failure> {
    let name = path.display();
    let file = File::open(path)
        .map_err(|error| Failure::input(format_args!("cannot open {name}: {error}")))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX as u64)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::input(format_args!("cannot read {name}: {error}")))?;
    decode(&bytes, &name.to_string())
}

/// The built-in photograph.
pub fn built_in() -> Result<Array3<u8>, Failure> {
    decode(ASTRONAUT, "the built-in photograph")
}

/// Decodes the content of a PNG or JPEG file, as [`read`] does.
pub fn decode(bytes: &[u8], name: &str) -> Result<Array3<u8>, Failure> {
    let stored = if bytes.starts_with(PNG_START) {
        decode_png(bytes)
    } else if bytes.starts_with(JPEG_START) {
        decode_jpeg(bytes)
    } else {
        return Err(Failure::input(format_args!("{name} is neither a PNG nor a JPEG picture")));
    };
    stored
        .and_then(Stored::into_array)
        .map_err(|error| Failure::input(format_args!("cannot read {name}: {error}")))
}

/// Writes a picture as PNG.
pub fn write(path: &Path, picture: ArrayView3<'_, u8>) -> Result<(), Failure> {
    encode(picture)
        .and_then(|bytes| Ok(std::fs::write(path, bytes)?))
        .map_err(|error| Failure::input(format_args!("cannot write {}: {error}", path.display())))
}

fn decode_png(bytes: &[u8]) -> Outcome<Stored> {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info()?;
    let mut samples = zeros(reader.output_buffer_size())?;
    let frame = reader.next_frame(&mut samples)?;
    samples.truncate(frame.buffer_size());
    Ok(Stored {
        height: frame.height as usize,
        width: frame.width as usize,
        channels: frame.color_type.samples(),
        samples,
        exif: reader.info().exif_metadata.as_deref().unwrap_or_default().to_vec(),
    })
}

/// A JPEG of any kind comes as three colours.
fn decode_jpeg(bytes: &[u8]) -> Outcome<Stored> {
    let options = DecoderOptions::default().set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers()?;
    let (width, height) = decoder.dimensions().ok_or("it has no size")?;
    let mut samples = zeros(decoder.output_buffer_size())?;
    decoder.decode_into(&mut samples)?;
    let exif = decoder.exif().cloned().unwrap_or_default();
    Ok(Stored { height, width, channels: 3, samples, exif })
}

/// Memory for the samples of a picture, if it is not too large.
fn zeros(bytes: Option<usize>) -> Outcome<Vec<u8>> {
    match bytes {
        Some(bytes) if bytes <= BYTES_MAX => Ok(vec![0; bytes]),
        _ => Err(format!("it would take more than {} MiB of memory", BYTES_MAX >> 20).into()),
    }
}

impl Stored {
    fn into_array(self) -> Outcome<Array3<u8>> {
        let pixels = self.samples.chunks_exact(self.channels);
        let colours = match self.channels {
            1 | 2 => pixels.flat_map(|pixel| [pixel[0]; 3]).collect(),
            4 => pixels.flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect(),
            _ => self.samples,
        };
        let picture = Array3::from_shape_vec((self.height, self.width, 3), colours)?;
        Ok(match orientation::find(&self.exif) {
            Some(orientation) => orientation::upright(picture, orientation),
            None => picture,
        })
    }
}

fn encode(picture: ArrayView3<'_, u8>) -> Outcome<Vec<u8>> {
    let (rows, columns, _) = picture.dim();
    let pixels: Vec<u8> = picture.iter().copied().collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, columns.try_into()?, rows.try_into()?);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    encoder.set_filter(png::Filter::Adaptive);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(bytes)
}
