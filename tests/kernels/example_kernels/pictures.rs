//! The pictures that `pipeline` and `photos` read and write.

use resident::ndarray::{Array3, Axis, array, s};
use resident_example_pipeline::{orientation, picture};

/// Exif data with one entry, in big-endian byte order.
fn exif(tag: u16, kind: u16, value: u16) -> Vec<u8> {
    let numbers = [tag, kind, 0, 1, value, 0].map(u16::to_be_bytes);
    [b"MM\0*\0\0\0\x08\0\x01", numbers.as_flattened()].concat()
}

/// A grey JPEG of 8 rows and 16 columns, its left half light and its right half dark, that is to
/// be turned by a quarter, clockwise.
fn jpeg() -> Vec<u8> {
    let quantisation: &[u8] = b"\xff\xdb\0\x43\0";
    let frame: &[u8] = b"\xff\xc0\0\x0b\x08\0\x08\0\x10\x01\x01\x11\0";
    let constant_codes: &[u8] = b"\xff\xc4\0\x15\0\x01\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\x03";
    let other_codes: &[u8] = b"\xff\xc4\0\x14\x10\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let scan: &[u8] = b"\xff\xda\0\x08\x01\x01\0\0\x3f\0\x48\xbf\xff\xd9";
    let start: &[u8] = b"\xff\xd8\xff\xe1\0\x1eExif\0\0";
    let exif: &[u8] = &exif(0x0112, 3, 6);
    [start, exif, quantisation, &[0xff; 64], frame, constant_codes, other_codes, scan].concat()
}

/// A PNG with three colours, and what it shows.
fn png(name: &str) -> (Vec<u8>, Array3<u8>) {
    let shown = Array3::from_shape_fn((5, 7, 3), |(row, column, channel)| {
        (40 * row + 5 * column + 60 * channel) as u8
    });
    let path = std::env::temp_dir().join(format!("resident-{name}-{}.png", std::process::id()));
    picture::write(&path, shown.view()).expect("the folder can be written");
    let read = picture::read(&path).expect("it was just written");
    assert_eq!(read, shown);
    let bytes = std::fs::read(&path).expect("it was just read");
    std::fs::remove_file(&path).expect("it was just read");
    (bytes, shown)
}

/// The reason for which a picture is refused.
fn refusal(bytes: &[u8]) -> String {
    format!("{:?}", picture::decode(bytes, "the file").expect_err("it is no whole picture"))
}

#[test]
fn orientations_are_found_in_both_byte_orders() {
    let little = |value: u8| {
        let header: &[u8] = b"II*\0\x08\0\0\0\x02\0";
        let maker: &[u8] = b"\x0f\x01\x02\0\x02\0\0\0A\0\0\0";
        [header, maker, &[0x12, 0x01, 3, 0, 1, 0, 0, 0, value, 0, 0, 0]].concat()
    };
    for value in 0..=9 {
        let expected = (1..=8).contains(&value).then_some(u16::from(value));
        assert_eq!(orientation::find(&exif(0x0112, 3, value.into())), expected);
        assert_eq!(orientation::find(&little(value)), expected);
    }
}

#[test]
fn wrong_exif_data_has_no_orientation() {
    let valid = exif(0x0112, 3, 6);
    for len in 0..valid.len() {
        assert_eq!(orientation::find(&valid[..len]), None, "the first {len} bytes");
    }
    // Another tag, a number of four bytes, and a list far behind the end.
    let far = [b"MM\0*\xff\xff\xff\xff", &valid[8..]].concat();
    for wrong in [exif(0x0113, 3, 6), exif(0x0112, 4, 6), far] {
        assert_eq!(orientation::find(&wrong), None, "{wrong:?}");
    }
}

#[test]
fn pictures_are_turned_upright() {
    let stored = array![[1, 2, 3], [4, 5, 6]];
    let upright = [
        array![[1, 2, 3], [4, 5, 6]],
        array![[3, 2, 1], [6, 5, 4]],
        array![[6, 5, 4], [3, 2, 1]],
        array![[4, 5, 6], [1, 2, 3]],
        array![[1, 4], [2, 5], [3, 6]],
        array![[4, 1], [5, 2], [6, 3]],
        array![[6, 3], [5, 2], [4, 1]],
        array![[3, 6], [2, 5], [1, 4]],
    ];
    for (orientation, expected) in (1..).zip(upright) {
        let turned = orientation::upright(stored.clone().insert_axis(Axis(2)), orientation);
        assert!(turned.is_standard_layout());
        assert_eq!(turned.remove_axis(Axis(2)), expected, "orientation {orientation}");
    }
}

#[test]
fn a_jpeg_is_three_colours_and_upright() {
    let read = picture::decode(&jpeg(), "a JPEG").expect("it is whole");
    assert_eq!(read.dim(), (16, 8, 3));
    assert!(read.slice(s![..8, .., ..]).iter().all(|value| *value > 180), "{read}");
    assert!(read.slice(s![8.., .., ..]).iter().all(|value| *value < 20), "{read}");
}

#[test]
fn pictures_that_are_cut_off_are_refused_or_read_in_part() {
    let (png, shown) = png("cut");
    for len in 0..png.len() {
        if let Ok(read) = picture::decode(&png[..len], "a part") {
            assert_eq!(read, shown, "the first {len} bytes");
        }
    }
    assert!(refusal(&png[..7]).contains("the file is neither a PNG nor a JPEG"));
    assert!(refusal(&png[..png.len() / 2]).contains("cannot read the file"));
    let jpeg = jpeg();
    for len in 0..jpeg.len() {
        if let Ok(read) = picture::decode(&jpeg[..len], "a part") {
            assert_eq!(read.dim(), (16, 8, 3), "the first {len} bytes");
        }
    }
}

#[test]
fn pictures_without_pixels_or_far_too_large_are_refused() {
    let sized = |height: [u8; 2], width: [u8; 2]| {
        let mut bytes = jpeg();
        let at = bytes.windows(2).position(|pair| pair == b"\xff\xc0").expect("a frame") + 5;
        bytes[at..at + 4].copy_from_slice([height, width].as_flattened());
        bytes
    };
    assert!(refusal(&sized([0; 2], [0, 16])).contains("cannot read the file"));
    assert!(refusal(&sized([0xff; 2], [0xff; 2])).contains("more than 512 MiB"));
}
