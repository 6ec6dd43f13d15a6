//! Logic, shifts, and parts of words.

use crate::Outcome;
use crate::module::Instruction;
use crate::words::{Mode, Opcode};

pub(super) fn logic(instruction: &Instruction, [a, b, ..]: [u64; 4]) -> Outcome<u64> {
    let result = match instruction.opcode {
        Opcode::And => a & b,
        Opcode::Or => a | b,
        Opcode::Xor => a ^ b,
        Opcode::Cnot => u64::from(a & instruction.ty.mask() == 0),
        _ => !a,
    };
    Ok(result & instruction.ty.mask())
}

/// `None` for other instructions.
pub(super) fn compute(instruction: &Instruction, [a, b, c, d]: [u64; 4]) -> Option<u64> {
    let ty = instruction.ty;
    let bits = ty.bits();
    let own = a & ty.mask();
    Some(match instruction.opcode {
        Opcode::Shl if b as u32 >= bits => 0,
        Opcode::Shl => a << b as u32 & ty.mask(),
        Opcode::Shr => (ty.number(a) >> (b as u32).min(127)) as u64 & ty.mask(),
        Opcode::Shf => funnel_shift(instruction, a, b, c as u32),
        Opcode::Popc => own.count_ones().into(),
        Opcode::Clz => u64::from(own.leading_zeros() - (64 - bits)),
        Opcode::Brev => own.reverse_bits() >> (64 - bits),
        Opcode::Bfind => highest_bit(instruction, own),
        Opcode::Bfe => extract(instruction, own, b as u32 & 0xff, c as u32 & 0xff),
        Opcode::Bfi => {
            let mask = field(c as u32 & 0xff, d as u32 & 0xff) & ty.mask();
            (b & !mask | shifted(a, c as u32 & 0xff) & mask) & ty.mask()
        }
        Opcode::Bmsk if instruction.mode == Some(Mode::Clamp) => {
            field(a as u32, b as u32) & 0xffff_ffff
        }
        Opcode::Bmsk => field(a as u32 & 31, b as u32 & 31) & 0xffff_ffff,
        Opcode::Szext => extend(instruction, a, b as u32),
        Opcode::Lop3 => by_table(a, b, c, d) & ty.mask(),
        Opcode::Prmt => permute(instruction, b << 32 | a & 0xffff_ffff, c as u32),
        Opcode::Fns => nth_set_bit(a as u32, b as u32, c as i32),
        _ => return None,
    })
}

/// The ones of a field, as far as it is within 64 bits.
fn field(start: u32, len: u32) -> u64 {
    let ones = if len >= 64 { u64::MAX } else { (1 << len) - 1 };
    shifted(ones, start)
}

fn shifted(bits: u64, by: u32) -> u64 {
    bits.checked_shl(by).unwrap_or(0)
}

fn funnel_shift(instruction: &Instruction, low: u64, high: u64, by: u32) -> u64 {
    let clamps = Some(Mode::Clamp) == instruction.second_mode;
    let by = if clamps { by.min(32) } else { by & 31 };
    let both = high << 32 | low & 0xffff_ffff;
    let result = match instruction.mode {
        Some(Mode::Left) => shifted(both, by) >> 32,
        _ => both >> by,
    };
    result & 0xffff_ffff
}

fn highest_bit(instruction: &Instruction, own: u64) -> u64 {
    let ty = instruction.ty;
    let is_negative = ty.is_signed() && own >> (ty.bits() - 1) == 1;
    let own = if is_negative { !own & ty.mask() } else { own };
    match own.checked_ilog2() {
        None => 0xffff_ffff,
        Some(at) if instruction.mode == Some(Mode::ShiftAmount) => (ty.bits() - 1 - at).into(),
        Some(at) => at.into(),
    }
}

/// `bfe`: the field, with the sign's bit above it where the type has a sign.
fn extract(instruction: &Instruction, own: u64, start: u32, len: u32) -> u64 {
    let ty = instruction.ty;
    let last = ty.bits() - 1;
    let taken = own.checked_shr(start).unwrap_or(0) & field(0, len);
    let sign_at = (start + len).saturating_sub(1).min(last);
    let is_negative = ty.is_signed() && len > 0 && own >> sign_at & 1 == 1;
    // Bits beyond the word are the sign's.
    let known = len.min((last + 1).saturating_sub(start));
    let above = if is_negative { !field(0, known) } else { 0 };
    (taken | above) & ty.mask()
}

fn extend(instruction: &Instruction, a: u64, len: u32) -> u64 {
    let len = if instruction.mode == Some(Mode::Clamp) { len.min(32) } else { len & 31 };
    if len == 0 {
        return 0;
    }
    let moved = (a as u32) << (32 - len);
    let extended = if instruction.ty.is_signed() {
        (moved as i32 >> (32 - len)) as u32
    } else {
        moved >> (32 - len)
    };
    extended.into()
}

/// Each bit of the result is that of the table at the bits of the three operands.
fn by_table(a: u64, b: u64, c: u64, table: u64) -> u64 {
    (0..8).filter(|row| table >> row & 1 == 1).fold(0, |result, row| {
        let with = |bits: u64, at: u32| if row >> at & 1 == 1 { bits } else { !bits };
        result | with(a, 2) & with(b, 1) & with(c, 0)
    })
}

/// Four bytes of eight.
fn permute(instruction: &Instruction, bytes: u64, selection: u32) -> u64 {
    let byte = |at: u32, selected: u32| {
        let byte = (bytes >> (8 * (selected & 7))) as u8;
        let is_sign = selected & 8 != 0;
        let byte = if is_sign { (byte as i8 >> 7) as u8 } else { byte };
        u64::from(byte) << (8 * at)
    };
    let s = selection & 3;
    let selected = |at: u32| match instruction.mode {
        Some(Mode::F4e) => s + at,
        Some(Mode::B4e) => s.wrapping_sub(at) & 7,
        Some(Mode::Rc8) => s,
        Some(Mode::Ecl) => at.max(s),
        Some(Mode::Ecr) => at.min(s),
        Some(Mode::Rc16) => 2 * (s & 1) + (at & 1),
        _ => selection >> (4 * at) & 15,
    };
    (0..4).fold(0, |result, at| result | byte(at, selected(at)))
}

/// `fns`: the position of the n-th set bit from a start, upwards or downwards.
fn nth_set_bit(mask: u32, start: u32, count: i32) -> u64 {
    let is_set = |at: &u32| mask >> at & 1 == 1;
    let nth = count.unsigned_abs().saturating_sub(1) as usize;
    let found = match count {
        0 => Some(start).filter(is_set),
        1.. => (start..32).filter(is_set).nth(nth),
        _ => (0..=start.min(31)).rev().filter(is_set).nth(nth),
    };
    found.map_or(0xffff_ffff, u64::from)
}
