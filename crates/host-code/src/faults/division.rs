//! Integer division by zero, which the processor refuses: the kernel goes on with the value that a
//! GPU gives.
//!
//! PTX leaves that value open. The machine code that NVRTC 13.5 makes for `sm_90` ends a division
//! with the complement of the divisor where that is zero, so that quotient and rest have all bits
//! set; one of 64 bits whose upper halves are zero is done by 32 bits, and so has 32 bits set. The
//! smallest number divided by -1 is itself, with the rest 0.

use libc::{
    REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RAX, REG_RBP,
    REG_RBX, REG_RCX, REG_RDI, REG_RDX, REG_RIP, REG_RSI, REG_RSP,
};

use super::code;

/// The registers by the numbers that instructions have for them.
const REGISTERS: [i32; 16] = [
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9,
    REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
];

/// The longest instruction of this processor, in bytes.
const INSTRUCTION_BYTES_MAX: usize = 15;

/// A division, as its instruction says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Division {
    /// Of the divisor, the quotient and the rest.
    bits: u32,
    len_bytes: usize,
    operand: Operand,
}

/// Where the divisor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operand {
    /// In a register, by its number; the second byte of one where `high`.
    Register { number: usize, high: bool },
    /// In memory: at a register, or at the next instruction where there is none, at a multiple of
    /// another, and so many bytes further.
    Memory { base: Option<usize>, index: Option<(usize, u32)>, offset: i64, is_relative: bool },
}

/// Lets the division at which the processor stopped have its result, and goes on behind it.
/// Returns whether it is one.
///
/// # Safety
///
/// The registers are those of code that the processor has just refused to divide.
pub(super) unsafe fn finish(registers: &mut [i64]) -> bool {
    let at = registers[REG_RIP as usize] as usize;
    let mut bytes = [0; INSTRUCTION_BYTES_MAX];
    let first: *const u8 = std::ptr::with_exposed_provenance(at);
    // The instruction may end with the page, behind which nothing may be readable.
    let has_more = code::kernel_at(at + INSTRUCTION_BYTES_MAX).is_some();
    let readable =
        if has_more { INSTRUCTION_BYTES_MAX } else { INSTRUCTION_BYTES_MAX.min(4096 - at % 4096) };
    // SAFETY: the processor has read the instruction there, whose page so can be read, and so can
    // what is code of a library.
    unsafe { std::ptr::copy_nonoverlapping(first, bytes.as_mut_ptr(), readable) };
    let Some(division) = decode(&bytes) else { return false };
    let next = at + division.len_bytes;
    // SAFETY: the instruction has read its operand.
    let divisor = unsafe { value_of(division, registers, next) };
    let is_zero = divisor == 0;
    let mask = u64::MAX >> (64 - division.bits);
    let smallest = 1 << (division.bits - 1);
    let is_small = division.bits == 64 && registers[REG_RAX as usize] as u64 >> 32 == 0;
    let ones = if is_small { mask >> 32 } else { mask };
    let (quotient, rest) = if is_zero { (ones, ones) } else { (smallest, 0) };
    if division.bits == 8 {
        let kept = registers[REG_RAX as usize] as u64 & !0xffff;
        registers[REG_RAX as usize] = (kept | rest << 8 | quotient) as i64;
    } else {
        set(&mut registers[REG_RAX as usize], quotient, division.bits);
        set(&mut registers[REG_RDX as usize], rest, division.bits);
    }
    registers[REG_RIP as usize] = next as i64;
    true
}

/// Sets the lower bits of a register. An operation of 32 bits clears the upper ones.
fn set(register: &mut i64, value: u64, bits: u32) {
    let kept = if bits == 16 { *register as u64 & !0xffff } else { 0 };
    *register = (kept | value) as i64;
}

/// The divisor.
///
/// # Safety
///
/// An operand in memory can be read.
unsafe fn value_of(division: Division, registers: &[i64], next: usize) -> u64 {
    let of = |number: usize| registers[REGISTERS[number] as usize] as u64;
    let mask = u64::MAX >> (64 - division.bits);
    match division.operand {
        Operand::Register { number, high } => of(number) >> (8 * u32::from(high)) & mask,
        Operand::Memory { base, index, offset, is_relative } => {
            let start = if is_relative { next as u64 } else { base.map_or(0, of) };
            let scaled = index.map_or(0, |(number, shift)| of(number) << shift);
            let address = start.wrapping_add(scaled).wrapping_add(offset as u64);
            let mut bytes = [0; 8];
            let from: *const u8 = std::ptr::with_exposed_provenance(address as usize);
            // SAFETY: the caller promises that so many bytes can be read.
            unsafe {
                std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), division.bits as usize / 8);
            }
            u64::from_le_bytes(bytes)
        }
    }
}

/// The division that an instruction is, if it is one.
fn decode(code: &[u8; INSTRUCTION_BYTES_MAX]) -> Option<Division> {
    let (mut at, mut extension, mut is_short) = (0, 0, false);
    loop {
        match *code.get(at)? {
            0x66 => is_short = true,
            // Segments, which compilers name for padding, and repetitions.
            0x26 | 0x2e | 0x36 | 0x3e | 0xf2 | 0xf3 => {}
            byte @ 0x40..=0x4f => extension = byte,
            _ => break,
        }
        at += 1;
    }
    let bits = match (code[at], extension & 8 != 0, is_short) {
        (0xf6, ..) => 8,
        (0xf7, true, _) => 64,
        (0xf7, false, true) => 16,
        (0xf7, false, false) => 32,
        _ => return None,
    };
    let mode = *code.get(at + 1)?;
    if !matches!(mode >> 3 & 7, 6 | 7) {
        return None;
    }
    let (operand, len) = operand(code.get(at + 1..)?, extension, bits)?;
    Some(Division { bits, len_bytes: at + 1 + len, operand })
}

/// The operand that the bytes behind an instruction's number say, and how many these are.
fn operand(bytes: &[u8], extension: u8, bits: u32) -> Option<(Operand, usize)> {
    let number = |low: u8, extended: u8| usize::from(low & 7) + 8 * usize::from(extended & 1);
    let (mode, low) = (bytes[0] >> 6, bytes[0] & 7);
    if mode == 3 {
        // Without an extension the last four are the second bytes of the first four.
        let high = bits == 8 && extension == 0 && low >= 4;
        let number = if high { usize::from(low - 4) } else { number(low, extension) };
        return Some((Operand::Register { number, high }, 1));
    }
    let (mut len, mut index, mut base) = (1, None, Some(number(low, extension)));
    let mut has_no_base = mode == 0 && low == 5;
    let is_relative = has_no_base;
    if low == 4 {
        let scaled = *bytes.get(1)?;
        len = 2;
        let index_number = number(scaled >> 3, extension >> 1);
        // The stack pointer is no index.
        index = (index_number != 4).then_some((index_number, u32::from(scaled >> 6)));
        base = Some(number(scaled, extension));
        has_no_base = mode == 0 && scaled & 7 == 5;
    }
    let offset_bytes = match mode {
        1 => 1,
        2 => 4,
        _ if has_no_base => 4,
        _ => 0,
    };
    let offset = match offset_bytes {
        1 => i64::from(*bytes.get(len)? as i8),
        4 => i64::from(i32::from_le_bytes(bytes.get(len..len + 4)?.try_into().ok()?)),
        _ => 0,
    };
    let base = base.filter(|_| !has_no_base);
    Some((Operand::Memory { base, index, offset, is_relative }, len + offset_bytes))
}

#[cfg(test)]
mod tests {
    use super::{Division, Operand, decode};

    fn decoded(bytes: &[u8]) -> Option<Division> {
        let mut code = [0x90; 15];
        code[..bytes.len()].copy_from_slice(bytes);
        decode(&code)
    }

    #[test]
    fn divisions_are_read_with_their_length() {
        let register = |number| Operand::Register { number, high: false };
        let memory =
            |base, index, offset| Operand::Memory { base, index, offset, is_relative: false };
        let relative = Operand::Memory { base: None, index: None, offset: 16, is_relative: true };
        let cases: [(&[u8], u32, Operand); 10] = [
            (&[0xf7, 0xf9], 32, register(1)),
            (&[0x41, 0xf7, 0xf0], 32, register(8)),
            (&[0x49, 0xf7, 0xff], 64, register(15)),
            (&[0x66, 0xf7, 0xf1], 16, register(1)),
            (&[0xf6, 0xf1], 8, register(1)),
            (&[0xf6, 0xf5], 8, Operand::Register { number: 1, high: true }),
            (&[0xf7, 0x3c, 0x24], 32, memory(Some(4), None, 0)),
            (&[0xf7, 0x7c, 0x8f, 0xfc], 32, memory(Some(7), Some((1, 2)), -4)),
            (&[0x4b, 0xf7, 0xb4, 0xc8, 0, 1, 0, 0], 64, memory(Some(8), Some((9, 3)), 256)),
            (&[0xf7, 0x3d, 16, 0, 0, 0], 32, relative),
        ];
        for (bytes, bits, operand) in cases {
            let expected = Division { bits, len_bytes: bytes.len(), operand };
            assert_eq!(decoded(bytes), Some(expected), "{bytes:x?}");
        }
        for other in [&[0xf7, 0xd8][..], &[0x0f, 0x0b], &[0xf7, 0xe1], &[0x66, 0x66]] {
            assert_eq!(decoded(other), None, "{other:x?}");
        }
    }
}
