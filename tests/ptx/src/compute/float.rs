//! Arithmetic of floats and doubles.

use crate::Outcome;
use crate::module::Instruction;
use crate::rounding::{Approximation, Format, NAN_F64};
use crate::words::{Opcode, Rounding, Type};

pub(super) fn compute(instruction: &Instruction, operands: [u64; 4]) -> Outcome<u64> {
    if instruction.ty == Type::F32 {
        single(instruction, operands)
    } else {
        double(instruction, operands)
    }
}

/// The bits of a float; there is one NaN.
pub(crate) fn bits_of(value: f32) -> u64 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits().into() }
}

fn bits_of_double(value: f64) -> u64 {
    if value.is_nan() { NAN_F64 } else { value.to_bits() }
}

/// A float of bits, which is zero if it is subnormal and the instruction flushes those.
pub(crate) fn float(bits: u64, flushes: bool) -> f32 {
    flushed(f32::from_bits(bits as u32), flushes)
}

pub(super) fn flushed(value: f32, flushes: bool) -> f32 {
    if flushes && value.is_subnormal() { 0_f32.copysign(value) } else { value }
}

/// The range from 0 to 1, in which NaN is 0.
pub(super) fn saturated(value: f64) -> f64 {
    if value.is_nan() || value < 0.0 { 0.0 } else { value.min(1.0) }
}

fn single(instruction: &Instruction, operands: [u64; 4]) -> Outcome<u64> {
    let sign = 1 << 31;
    let raw = operands[0] & 0xffff_ffff;
    match instruction.opcode {
        Opcode::Abs if !instruction.flushes => return Ok(raw & !sign),
        Opcode::Neg if !instruction.flushes => return Ok(raw ^ sign),
        _ => {}
    }
    let [a, b, c, _] = operands.map(|bits| float(bits, instruction.flushes));
    let nearest = || -> Option<f32> {
        Some(match instruction.opcode {
            Opcode::Add => a + b,
            Opcode::Sub => a - b,
            Opcode::Mul => a * b,
            Opcode::Fma | Opcode::Mad => a.mul_add(b, c),
            Opcode::Div => a / b,
            Opcode::Rcp => 1.0 / a,
            Opcode::Sqrt => a.sqrt(),
            Opcode::Abs => a.abs(),
            Opcode::Neg => -a,
            _ => return None,
        })
    };
    let result = match (directed(instruction), nearest()) {
        (None, Some(result)) => result,
        (rounding, _) => {
            let rounding = rounding.unwrap_or(Rounding::Nearest);
            let [a, b, c] = [a, b, c].map(f64::from);
            let value = in_doubles(instruction, a, b, c)?;
            let format = Format::of(Type::F32).ok_or_else(|| instruction.not_supported())?;
            let zero = exact_zero(instruction, [a, b, c], value);
            f32::from_bits(format.bits(zero.unwrap_or(value), rounding) as u32)
        }
    };
    let mut result = flushed(result, instruction.flushes);
    if instruction.saturates {
        result = saturated(result.into()) as f32;
    }
    if instruction.relu && result < 0.0 {
        result = 0.0;
    }
    Ok(bits_of(result))
}

/// The direction, if it is not to the nearest.
fn directed(instruction: &Instruction) -> Option<Rounding> {
    instruction.rounding.filter(|rounding| *rounding != Rounding::Nearest)
}

/// The result for operands that are floats: a double, rounded to odd.
pub(super) fn in_doubles(instruction: &Instruction, a: f64, b: f64, c: f64) -> Outcome<f64> {
    Ok(match instruction.opcode {
        Opcode::Rsqrt => 1.0 / a.sqrt(),
        Opcode::Ex2 => a.exp2(),
        Opcode::Lg2 => a.log2(),
        Opcode::Sin => a.sin(),
        Opcode::Cos => a.cos(),
        Opcode::Tanh => a.tanh(),
        Opcode::Min => least(a, b, instruction.propagates_nan),
        Opcode::Max => -least(-a, -b, instruction.propagates_nan),
        _ => approximation(instruction, a, b, c)?.odd(),
    })
}

fn approximation(instruction: &Instruction, a: f64, b: f64, c: f64) -> Outcome<Approximation> {
    Ok(match instruction.opcode {
        Opcode::Add => Approximation::sum(a, b),
        Opcode::Sub => Approximation::sum(a, -b),
        Opcode::Mul => Approximation::product(a, b),
        Opcode::Fma | Opcode::Mad => Approximation::fused(a, b, c),
        Opcode::Div => Approximation::quotient(a, b),
        Opcode::Rcp => Approximation::quotient(1.0, a),
        Opcode::Sqrt => Approximation::root(a),
        _ => return Err(instruction.not_supported()),
    })
}

/// The smaller of two numbers, -0 being smaller than 0.
fn least(a: f64, b: f64, propagates_nan: bool) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (false, false) if a == b && a.is_sign_negative() => a,
        (false, false) if a == b => b,
        (false, false) => a.min(b),
        _ if propagates_nan => f64::NAN,
        (true, _) => b,
        (_, true) => a,
    }
}

/// A sum of opposite numbers is -0 if it is rounded down.
fn exact_zero(instruction: &Instruction, [a, b, c]: [f64; 3], value: f64) -> Option<f64> {
    let (x, y) = match instruction.opcode {
        Opcode::Add => (a, b),
        Opcode::Sub => (a, -b),
        Opcode::Fma => (a * b, c),
        _ => return None,
    };
    let differ = x.is_sign_negative() != y.is_sign_negative();
    (value == 0.0 && differ && instruction.rounding == Some(Rounding::Down)).then_some(-0.0)
}

fn double(instruction: &Instruction, operands: [u64; 4]) -> Outcome<u64> {
    let [a, b, c, _] = operands.map(f64::from_bits);
    let sign = 1 << 63;
    let result = match instruction.opcode {
        Opcode::Abs => return Ok(operands[0] & !sign),
        Opcode::Neg => return Ok(operands[0] ^ sign),
        Opcode::Min => least(a, b, instruction.propagates_nan),
        Opcode::Max => -least(-a, -b, instruction.propagates_nan),
        // The hardware's result has the upper word only.
        Opcode::Rcp if instruction.is_approximate => {
            return Ok(bits_of_double(1.0 / a) & 0xffff_ffff_0000_0000);
        }
        Opcode::Rsqrt => 1.0 / a.sqrt(),
        _ => {
            let approximation = of_doubles(instruction, a, b, c)?;
            let rounding = directed(instruction).unwrap_or(Rounding::Nearest);
            let nearest = approximation.nearest;
            let zero = exact_zero(instruction, [a, b, c], nearest);
            let is_tiny = nearest != 0.0 && nearest.abs() < 1e-270;
            let has_rest = !matches!(instruction.opcode, Opcode::Add | Opcode::Sub);
            let is_out = nearest.is_infinite() && [a, b, c].iter().all(|x| x.is_finite());
            if rounding != Rounding::Nearest && (is_tiny && has_rest || is_out) {
                return Err(instruction.fault("this rounding of a result without a normal rest"));
            }
            zero.unwrap_or_else(|| approximation.rounded(rounding))
        }
    };
    Ok(bits_of_double(result))
}

fn of_doubles(instruction: &Instruction, a: f64, b: f64, c: f64) -> Outcome<Approximation> {
    if directed(instruction).is_none() {
        let nearest = match instruction.opcode {
            Opcode::Add => a + b,
            Opcode::Sub => a - b,
            Opcode::Mul => a * b,
            Opcode::Fma | Opcode::Mad => a.mul_add(b, c),
            Opcode::Div => a / b,
            Opcode::Rcp => 1.0 / a,
            Opcode::Sqrt => a.sqrt(),
            _ => return Err(instruction.not_supported()),
        };
        return Ok(Approximation::exact(nearest));
    }
    approximation(instruction, a, b, c)
}
