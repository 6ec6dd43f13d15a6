//! Checks that the user's machine code begins like a cubin, a fatbin, or an AMD code object. The
//! driver gets a pointer without a length, so a complete image is a safety condition of
//! `Kernel::cuda`.

/// The first bytes of a cubin and of a code object, which are little-endian ELF files of 64 bits.
const ELF: [u8; 6] = [0x7F, b'E', b'L', b'F', 2, 1];
const ELF_HEADER_BYTES: usize = 64;

/// The first bytes of a fatbin.
const FATBIN: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();
const FATBIN_HEADER_BYTES: usize = 16;

/// The first bytes of a bundle of code objects.
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// The first bytes of a compressed bundle.
const COMPRESSED: &[u8] = b"CCOB";

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
             PTX text goes to `GpuSource::ptx`"
        ));
    };
    expect_headers(len_bytes, header_bytes)
}

/// As [`check`], for an AMD code object, or a bundle of several, as `hipcc --genco` writes it.
pub(super) fn check_code_object(image: &[u8]) -> Result<(), String> {
    let len_bytes = image.len();
    if image.starts_with(BUNDLE) {
        return Ok(());
    }
    if image.starts_with(COMPRESSED) {
        return Err(String::from(
            "it is a compressed bundle of code objects, which tells no sizes of parameters; make \
             it with `--no-offload-compress`",
        ));
    }
    if !image.starts_with(&ELF) {
        return Err(format!(
            "its {len_bytes} bytes are neither an AMD code object nor a bundle of them, by how \
             they begin; make it by `hipcc --genco` or `clang --offload-arch`"
        ));
    }
    expect_headers(len_bytes, ELF_HEADER_BYTES)
}

fn expect_headers(len_bytes: usize, header_bytes: usize) -> Result<(), String> {
    if len_bytes < header_bytes {
        return Err(format!("its headers do not fit into its {len_bytes} bytes; make it again"));
    }
    Ok(())
}
