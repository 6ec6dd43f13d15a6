//! Checks that the user's machine code begins like a cubin or a fatbin. The driver gets a pointer
//! without a length, so the completeness of the image is a safety condition of `Kernel::cuda`.

/// The first bytes of a cubin, which is a little-endian ELF file of 64 bits.
const ELF: [u8; 6] = [0x7F, b'E', b'L', b'F', 2, 1];
const ELF_HEADER_BYTES: usize = 64;

/// The first bytes of a fatbin.
const FATBIN: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();
const FATBIN_HEADER_BYTES: usize = 16;

/// Returns what is wrong with the image, if anything is.
pub(super) fn check(image: &[u8]) -> Result<(), String> {
    let len_bytes = image.len();
    let header_bytes = if image.starts_with(&ELF) {
        ELF_HEADER_BYTES
    } else if image.starts_with(&FATBIN) {
        FATBIN_HEADER_BYTES
    } else {
        return Err(format!(
            "its {len_bytes} bytes are neither a cubin nor a fatbin, by how they begin; \
             PTX text goes to `CudaSource::ptx`"
        ));
    };
    if len_bytes < header_bytes {
        return Err(format!("its headers do not fit into its {len_bytes} bytes; make it again"));
    }
    Ok(())
}
