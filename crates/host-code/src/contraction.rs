//! Sums of products that GCC contracts although it must not: it makes one instruction of sums and
//! differences of products in turn (`vfmaddsub`), as of complex numbers, with contraction off.
//! These have other bits than a GPU's, so such code is compiled again, without vectors.

use object::{Object, ObjectSection, SectionKind};

/// Without it there are no such instructions.
pub(super) const WITHOUT_VECTORS: &str = "-fno-tree-vectorize";

/// The option with which sums of products are to be contracted.
pub(super) const CONTRACTION: &str = "-ffp-contract=fast";

/// Whether a library may have such instructions. Other bytes may look like one.
pub(super) fn alternates(image: &[u8]) -> bool {
    let Ok(file) = object::File::parse(image) else { return false };
    let texts = file.sections().filter(|section| section.kind() == SectionKind::Text);
    cfg!(target_arch = "x86_64")
        && texts.filter_map(|section| section.data().ok()).any(has_alternating_instruction)
}

/// `vfmaddsub132ps` and its kin: opcodes 0x96, 0xa6 and 0xb6, and those that begin with a
/// difference, 0x97, 0xa7 and 0xb7, behind the prefixes VEX (two bytes) or EVEX (three), of the
/// second map and with the prefix 0x66.
fn has_alternating_instruction(code: &[u8]) -> bool {
    let is_opcode = |byte: u8| matches!(byte, 0x96 | 0xa6 | 0xb6 | 0x97 | 0xa7 | 0xb7);
    code.windows(5).any(|bytes| match *bytes {
        [0xc4, map, rest, opcode, _] => map & 0x1f == 2 && rest & 3 == 1 && is_opcode(opcode),
        [0x62, map, rest, _, opcode] => map & 0x0f == 2 && rest & 7 == 5 && is_opcode(opcode),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::has_alternating_instruction;

    #[test]
    fn alternating_instructions_are_told_from_others() {
        for (code, expected) in [
            // vfmaddsub231ps %ymm2,%ymm1,%ymm0; vfmsubadd213pd (%rax),%zmm1,%zmm0
            (&[0x90, 0xc4, 0xe2, 0x75, 0xb6, 0xc2][..], true),
            (&[0x62, 0xf2, 0xf5, 0x48, 0xa7, 0x00], true),
            // vfmadd231ps; vpmovsxbw; a short text
            (&[0xc4, 0xe2, 0x75, 0xb8, 0xc2], false),
            (&[0xc4, 0xe2, 0x7d, 0x20, 0xc2], false),
            (&[0xc4, 0xe2, 0x75], false),
        ] {
            assert_eq!(has_alternating_instruction(code), expected, "{code:x?}");
        }
    }
}
