//! Whether machine code that a user gave is all there: the driver gets a pointer and no length, and
//! would read on behind a file that was cut off.

/// The first bytes of a cubin: an ELF file of 64 bits, little-endian.
const ELF: [u8; 6] = [0x7F, b'E', b'L', b'F', 2, 1];

/// The first bytes of a fatbin.
const FATBIN: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();

/// A section that takes no room in the file.
const NO_BITS: u64 = 8;

/// Says what is wrong with it, if anything.
pub(super) fn check(image: &[u8]) -> Result<(), String> {
    let end_bytes = if image.starts_with(&ELF) {
        elf_end_bytes(image)
    } else if image.starts_with(&FATBIN) {
        fatbin_end_bytes(image)
    } else {
        return Err(format!(
            "its {} bytes are neither a cubin nor a fatbin, by how they begin; PTX text goes to `CudaSource::ptx`",
            image.len()
        ));
    };
    match end_bytes {
        Some(end_bytes) if end_bytes <= image.len() as u64 => Ok(()),
        Some(end_bytes) => Err(format!(
            "it is cut off: it has {} bytes, and speaks of {end_bytes}; make it again",
            image.len()
        )),
        None => {
            Err(format!("its headers do not fit into its {} bytes; make it again", image.len()))
        }
    }
}

/// A little-endian number of so many bytes.
fn number(image: &[u8], at_bytes: u64, len_bytes: usize) -> Option<u64> {
    let start = usize::try_from(at_bytes).ok()?;
    let bytes = image.get(start..start.checked_add(len_bytes)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Where the last section, segment or table of them ends.
fn elf_end_bytes(image: &[u8]) -> Option<u64> {
    let table = |at: u64, size: u64, count: u64| {
        Some((number(image, at, 8)?, number(image, size, 2)?, number(image, count, 2)?))
    };
    let (segments, segment_bytes, segment_count) = table(32, 54, 56)?;
    let (sections, section_bytes, section_count) = table(40, 58, 60)?;
    let mut end_bytes = 0;
    for index in 0..segment_count {
        let header = segments.checked_add(index * segment_bytes)?;
        end_bytes =
            end_bytes.max(number(image, header.checked_add(8)?, 8)?.checked_add(number(
                image,
                header.checked_add(32)?,
                8,
            )?)?);
    }
    for index in 0..section_count {
        let header = sections.checked_add(index * section_bytes)?;
        let len_bytes = if number(image, header.checked_add(4)?, 4)? == NO_BITS {
            0
        } else {
            number(image, header.checked_add(32)?, 8)?
        };
        end_bytes =
            end_bytes.max(number(image, header.checked_add(24)?, 8)?.checked_add(len_bytes)?);
    }
    let tables = [
        segments.checked_add(segment_count * segment_bytes)?,
        sections.checked_add(section_count * section_bytes)?,
    ];
    Some(tables.into_iter().fold(end_bytes, u64::max))
}

/// The header says how long it is, and how much follows it.
fn fatbin_end_bytes(image: &[u8]) -> Option<u64> {
    number(image, 6, 2)?.checked_add(number(image, 8, 8)?)
}

#[cfg(test)]
mod tests {
    use super::check;

    /// One section of 4 bytes at 64, one without bits, the table of both at 72.
    fn elf() -> Vec<u8> {
        let mut image = vec![0; 200];
        image[..6].copy_from_slice(&super::ELF);
        let mut put = |at: usize, value: u64, len: usize| {
            image[at..at + len].copy_from_slice(&value.to_le_bytes()[..len])
        };
        put(40, 72, 8);
        put(54, 56, 2);
        put(58, 64, 2);
        put(60, 2, 2);
        put(72 + 24, 64, 8);
        put(72 + 32, 4, 8);
        put(136 + 4, super::NO_BITS, 4);
        put(136 + 24, 68, 8);
        put(136 + 32, 1 << 40, 8);
        image
    }

    #[test]
    fn a_whole_image_passes_and_every_shorter_one_is_refused() {
        assert_eq!(check(&elf()), Ok(()));
        for len in 0..elf().len() {
            assert!(check(&elf()[..len]).is_err(), "cut off at {len}");
        }
        let fatbin = [&super::FATBIN[..], &[1, 0, 16, 0], &4_u64.to_le_bytes(), b"code"].concat();
        assert_eq!(check(&fatbin), Ok(()));
        for len in 0..fatbin.len() {
            assert!(check(&fatbin[..len]).is_err(), "cut off at {len}");
        }
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        for at in [32, 40, 72 + 24, 72 + 32] {
            let mut image = elf();
            image[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            image[56] = 1;
            assert!(check(&image).is_err(), "at {at}");
        }
        assert!(
            check(b".version 9.0\n.target sm_90\n").expect_err("text").contains("CudaSource::ptx")
        );
    }
}
