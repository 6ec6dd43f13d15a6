//! Arithmetic of whole numbers.

use crate::Outcome;
use crate::module::Instruction;
use crate::words::{Opcode, Type};

pub(super) fn compute(
    instruction: &Instruction,
    [a, b, c, _]: [u64; 4],
    carry: &mut bool,
) -> Outcome<u64> {
    let ty = instruction.ty;
    let (x, y) = (ty.number(a), ty.number(b));
    let z = || ty.number(c);
    let result = match instruction.opcode {
        Opcode::Add | Opcode::Addc | Opcode::Sub | Opcode::Subc => {
            return Ok(sum(instruction, a, b, carry));
        }
        Opcode::Mul | Opcode::Mad | Opcode::Madc => return product(instruction, a, b, c, carry),
        Opcode::Mul24 | Opcode::Mad24 => product_of_24_bits(instruction, a, b, c),
        Opcode::Sad => z() + (x - y).abs(),
        // All bits where there is no result, as in the machine code that NVRTC makes of it.
        Opcode::Div => x.checked_div(y).unwrap_or(-1),
        Opcode::Rem => x.checked_rem(y).unwrap_or(-1),
        Opcode::Abs => x.abs(),
        Opcode::Neg => -x,
        Opcode::Min => x.min(y),
        Opcode::Max => x.max(y),
        Opcode::Dp4a | Opcode::Dp2a => dot_product(instruction, a, b, c),
        _ => return Err(instruction.not_supported()),
    };
    let result = if instruction.relu { result.max(0) } else { result };
    Ok(result as u64 & ty.mask())
}

fn sum(instruction: &Instruction, a: u64, b: u64, carry: &mut bool) -> u64 {
    let ty = instruction.ty;
    let takes_carry = matches!(instruction.opcode, Opcode::Addc | Opcode::Subc);
    let before = i128::from(takes_carry && *carry);
    let is_sum = matches!(instruction.opcode, Opcode::Add | Opcode::Addc);
    let combine = |x: i128, y: i128| if is_sum { x + y + before } else { x - y - before };
    if instruction.carries {
        let wide = combine(i128::from(a & ty.mask()), i128::from(b & ty.mask()));
        *carry = wide < 0 || wide > i128::from(ty.mask());
    }
    let result = combine(ty.number(a), ty.number(b));
    saturated(instruction, result) as u64 & ty.mask()
}

fn saturated(instruction: &Instruction, value: i128) -> i128 {
    if !instruction.saturates {
        return value;
    }
    let limit = 1_i128 << (instruction.ty.bits() - 1);
    value.clamp(-limit, limit - 1)
}

fn product(instruction: &Instruction, a: u64, b: u64, c: u64, carry: &mut bool) -> Outcome<u64> {
    let ty = instruction.ty;
    // The product of two 64-bit numbers without sign may exceed `i128`, but keeps its bits.
    let product = ty.number(a).wrapping_mul(ty.number(b));
    let adds = instruction.opcode != Opcode::Mul;
    if instruction.wide {
        let wide = ty.twice().ok_or_else(|| instruction.not_supported())?;
        let added = if adds { wide.number(c) } else { 0 };
        return Ok((product + added) as u64 & wide.mask());
    }
    let part = match (instruction.hi, ty.is_signed()) {
        (false, _) => product,
        (true, true) => product >> ty.bits(),
        (true, false) => (product as u128 >> ty.bits()) as i128,
    };
    if !adds {
        return Ok(part as u64 & ty.mask());
    }
    let before = i128::from(instruction.opcode == Opcode::Madc && *carry);
    if instruction.carries {
        let wide = i128::from(part as u64 & ty.mask()) + i128::from(c & ty.mask()) + before;
        *carry = wide > i128::from(ty.mask());
        return Ok(wide as u64 & ty.mask());
    }
    let sum = part.wrapping_add(ty.number(c)).wrapping_add(before);
    Ok(saturated(instruction, sum) as u64 & ty.mask())
}

/// Of the lower 24 bits of each operand.
fn product_of_24_bits(instruction: &Instruction, a: u64, b: u64, c: u64) -> i128 {
    let low = |bits: u64| match instruction.ty {
        Type::S32 => i128::from(((bits as u32) << 8) as i32 >> 8),
        _ => i128::from(bits & 0xff_ffff),
    };
    let product = low(a) * low(b);
    let part = if instruction.hi { product >> 16 } else { product };
    if instruction.opcode == Opcode::Mad24 { part + instruction.ty.number(c) } else { part }
}

/// Of four bytes and four bytes, or of two bytes of `b` and two halves of `a`.
fn dot_product(instruction: &Instruction, a: u64, b: u64, c: u64) -> i128 {
    let is_dp4a = instruction.opcode == Opcode::Dp4a;
    let part = |bits: u64, at: u32, len: u32, is_signed: bool| {
        let shifted = bits >> (at * len);
        match (len, is_signed) {
            (8, true) => i128::from(shifted as i8),
            (8, false) => i128::from(shifted as u8),
            (_, true) => i128::from(shifted as i16),
            (_, false) => i128::from(shifted as u16),
        }
    };
    let (signed_a, signed_b) = (instruction.ty.is_signed(), instruction.from.is_signed());
    // The bytes of `b`: of `dp2a.hi` the upper two.
    let first = if !is_dp4a && instruction.hi { 2 } else { 0 };
    let (count, len) = if is_dp4a { (4, 8) } else { (2, 16) };
    let products =
        (0..count).map(|at| part(a, at, len, signed_a) * part(b, first + at, 8, signed_b));
    let is_signed = signed_a || signed_b;
    let added = if is_signed { i128::from(c as u32 as i32) } else { i128::from(c as u32) };
    products.sum::<i128>() + added
}
