//! What compiled code says that a kernel needs, without a device: cubins in their sections, AMD's
//! code objects in their descriptions.

use object::{Object, ObjectSection, ObjectSymbol};

use super::compile::Compiled;
use resident_backend::KernelAttributes;
use resident_code::code_object;

/// The most threads of a block of a kernel without launch bounds.
const BLOCK_THREADS_MAX: u32 = 1024;

/// From `sm_90` on the start of a block's shared memory is the driver's.
const RESERVED_SHARED_BYTES: u64 = 1024;

/// The attributes of the kernel with this name in the code. PTX, whose registers a driver assigns,
/// tells none.
pub(super) fn of(code: &Compiled, name: &str) -> KernelAttributes {
    let mut attributes = KernelAttributes::default();
    attributes.block_threads_max = BLOCK_THREADS_MAX;
    if code.ptx.is_empty() {
        if let Ok(Some(kernels)) = code_object::kernels(&code.machine_code)
            && let Some(kernel) = kernels.iter().find(|kernel| kernel.name == name)
        {
            attributes.registers = kernel.registers;
            attributes.shared_bytes = kernel.shared_bytes;
            attributes.local_bytes = kernel.local_bytes;
            attributes.block_threads_max = kernel.threads_max;
        }
    } else if let Ok(cubin) = object::File::parse(&*code.machine_code) {
        read_cubin(&cubin, name, &mut attributes);
    }
    attributes
}

fn read_cubin(cubin: &object::File<'_>, name: &str, attributes: &mut KernelAttributes) {
    const REGISTERS: u8 = 0x2f;
    const FRAME_BYTES: u8 = 0x11;
    const THREADS_MAX: u8 = 0x05;

    let data = |section: &str| {
        let section = cubin.section_by_name(section)?;
        Some(section.data().unwrap_or_default())
    };
    let symbol = cubin.symbols().find(|symbol| symbol.name() == Ok(name));
    let symbol = symbol.map(|symbol| symbol.index().0 as u32);
    for (kind, words) in entries(data(".nv.info").unwrap_or_default()) {
        match (kind, &words[..]) {
            (REGISTERS, &[of, count]) if Some(of) == symbol => attributes.registers = count,
            (FRAME_BYTES, &[of, bytes]) if Some(of) == symbol => attributes.local_bytes = bytes,
            _ => {}
        }
    }
    for (kind, words) in entries(data(&format!(".nv.info.{name}")).unwrap_or_default()) {
        if let (THREADS_MAX, &[x, y, z]) = (kind, &words[..]) {
            attributes.block_threads_max = x.saturating_mul(y).saturating_mul(z);
        }
    }
    if let Some(shared) = cubin.section_by_name(&format!(".nv.shared.{name}")) {
        let has_reserved = cubin.section_by_name(".nv.shared.reserved.0").is_some();
        let reserved = if has_reserved { RESERVED_SHARED_BYTES } else { 0 };
        attributes.shared_bytes = shared.size().saturating_sub(reserved) as u32;
    }
}

/// The entries of a section of information that have words: their kinds, and the words.
fn entries(mut data: &[u8]) -> Vec<(u8, Vec<u32>)> {
    const HAS_BYTES: u8 = 4;
    let mut found = Vec::new();
    while let Some((&[form, kind, low, high], rest)) = data.split_first_chunk::<4>() {
        let len = if form == HAS_BYTES { usize::from(u16::from_le_bytes([low, high])) } else { 0 };
        let Some((bytes, behind)) = rest.split_at_checked(len) else { break };
        let words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        found.push((kind, words.collect()));
        data = behind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::entries;

    #[test]
    fn entries_with_and_without_words_are_told_apart() {
        let data = [3, 0x1b, 255, 0, 4, 0x2f, 8, 0, 11, 0, 0, 0, 24, 0, 0, 0, 4, 5, 200, 0];
        assert_eq!(entries(&data), [(0x1b, vec![]), (0x2f, vec![11, 24])]);
    }
}
