//! The orientation of a photograph: how a camera was held, as the photograph's Exif data tells it.

use resident::ndarray::{Array3, Axis};

/// The tag of the orientation, and the type of its value: a number of two bytes.
const ORIENTATION: u16 = 0x0112;
const SHORT: u16 = 3;

/// The orientation in Exif data, 1 to 8; none if the data has no valid one.
pub fn find(exif: &[u8]) -> Option<u16> {
    let value = match exif.first_chunk()? {
        b"II*\0" => first_value(exif, u16::from_le_bytes, u32::from_le_bytes),
        b"MM\0*" => first_value(exif, u16::from_be_bytes, u32::from_be_bytes),
        _ => None,
    };
    value.filter(|value| (1..=8).contains(value))
}

/// The value of the first entry with the tag. Behind the byte order, the data has the offset of a
/// list of entries; an entry is 12 bytes of tag, type, count and value.
fn first_value(exif: &[u8], short: fn([u8; 2]) -> u16, long: fn([u8; 4]) -> u32) -> Option<u16> {
    let offset = long(*exif.get(4..)?.first_chunk()?);
    let list = exif.get(usize::try_from(offset).ok()?..)?;
    let (count, entries) = list.split_first_chunk()?;
    let (entries, _) = entries.as_chunks();
    entries.iter().take(short(*count).into()).find_map(|entry: &[u8; 12]| {
        let [t0, t1, k0, k1, _, _, _, _, v0, v1, _, _] = *entry;
        (short([t0, t1]) == ORIENTATION && short([k0, k1]) == SHORT).then(|| short([v0, v1]))
    })
}

/// Turns a stored picture of rows, columns and channels upright: 1 is upright already, 2 to 4 are
/// mirrored or upside down, and 5 to 8 have rows and columns exchanged.
pub fn upright(mut picture: Array3<u8>, orientation: u16) -> Array3<u8> {
    if orientation >= 5 {
        picture.swap_axes(0, 1);
    }
    if matches!(orientation, 3 | 4 | 7 | 8) {
        picture.invert_axis(Axis(0));
    }
    if matches!(orientation, 2 | 3 | 6 | 7) {
        picture.invert_axis(Axis(1));
    }
    if picture.is_standard_layout() { picture } else { picture.as_standard_layout().into_owned() }
}
