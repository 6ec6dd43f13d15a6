//! Bodies in Rust of random numbers. They compute what `kernel.cu` computes, operation by
//! operation.

use ndarray::{ArrayViewMutD, Axis};

use crate::ops::parallel::{Halves, PARALLEL_LEN_MIN, TASK_LEN, each_piece, pieces_of};

/// Philox4x32-10 of Random123.
fn philox(seed: u64, counter: [u32; 4]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let (mut k0, mut k1) = (seed as u32, (seed >> 32) as u32);
    for _ in 0..10 {
        let (one, two) = (u64::from(a) * 0xD251_1F53, u64::from(c) * 0xCD9E_8D57);
        a = (two >> 32) as u32 ^ b ^ k0;
        c = (one >> 32) as u32 ^ d ^ k1;
        b = two as u32;
        d = one as u32;
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    [a, b, c, d]
}

/// The counter of the n-th block.
fn counter(number: u64, third: u32, fourth: u32) -> [u32; 4] {
    [number as u32, (number >> 32) as u32, third, fourth]
}

/// A number from 0 to 1, which it never is, of 53 bits.
fn of_words(low: u32, high: u32) -> f64 {
    let bits = u64::from(high) << 32 | u64::from(low);
    (bits >> 11) as f64 * f64::EPSILON / 2.0
}

/// The uniform numbers of four elements that follow each other.
pub(in crate::ops) fn uniform_f32(seed: u64, block: u64) -> [f32; 4] {
    philox(seed, counter(block, 0, 0)).map(|word| (word >> 8) as f32 * (f32::EPSILON / 2.0))
}

/// The uniform numbers of two elements that follow each other.
pub(in crate::ops) fn uniform_f64(seed: u64, block: u64) -> [f64; 2] {
    let [a, b, c, d] = philox(seed, counter(block, 0, 0));
    [of_words(a, b), of_words(c, d)]
}

/// The natural logarithm of a normal positive number.
fn log_of(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = f64::from((bits >> 52) as i32 - 1023);
    let mut m = f64::from_bits(bits & 0xF_FFFF_FFFF_FFFF | 0x3FF0_0000_0000_0000);
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1.0;
    }
    let f = (m - 1.0) / (m + 1.0);
    let s = f * f;
    let sum = (0..10).rev().fold(1.0 / 21.0, |sum, n| sum * s + 1.0 / f64::from(2 * n + 1));
    exponent * std::f64::consts::LN_2 + 2.0 * f * sum
}

/// The normal number of an element: Marsaglia's polar method.
pub(super) fn normal(seed: u64, number: u64) -> f64 {
    let mut attempt = 0_u32;
    loop {
        let [a, b, c, d] = philox(seed, counter(number, attempt, 1));
        let (x, y) = (of_words(a, b) * 2.0 - 1.0, of_words(c, d) * 2.0 - 1.0);
        let s = x * x + y * y;
        if s < 1.0 && s > 0.0 {
            return x * (-2.0 * log_of(s) / s).sqrt();
        }
        attempt = attempt.wrapping_add(1);
    }
}

/// Gives each element the value of its number in row-major order. `blocks` gives those of `N`
/// elements, from a multiple of `N` on.
pub(in crate::ops) fn fill<T: Send + Copy, const N: usize>(
    out: ArrayViewMutD<'_, T>,
    blocks: &(impl Fn(u64) -> [T; N] + Sync),
) {
    if out.len() < PARALLEL_LEN_MIN {
        return fill_piece((0, out), blocks);
    }
    each_piece(pieces_of((0, out), &halves), |piece| fill_piece(piece, blocks));
}

/// Elements in row-major order, and the number of the first.
type Piece<'a, T> = (u64, ArrayViewMutD<'a, T>);

fn halves<T>((first, out): Piece<'_, T>) -> Halves<Piece<'_, T>> {
    let outer = (0..out.ndim()).find(|axis| out.shape()[*axis] > 1);
    let Some(axis) = outer.filter(|_| out.len() > TASK_LEN) else { return ((first, out), None) };
    let middle = out.shape()[axis] / 2;
    let (one, other) = out.split_at(Axis(axis), middle);
    let next = first + one.len() as u64;
    ((first, one), Some((next, other)))
}

fn fill_piece<T: Copy, const N: usize>(
    (first, mut out): Piece<'_, T>,
    blocks: &impl Fn(u64) -> [T; N],
) {
    let mut block = blocks(first / N as u64);
    for (number, out) in (first as usize..).zip(&mut out) {
        if number.is_multiple_of(N) {
            block = blocks((number / N) as u64);
        }
        *out = block[number % N];
    }
}

#[cfg(test)]
mod tests {
    use super::{log_of, philox};

    /// The known answers of Random123.
    #[test]
    fn philox_is_that_of_random123() {
        let key = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let zeros = philox(0, [0; 4]);
        assert_eq!(zeros, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = philox(u64::MAX, [u32::MAX; 4]);
        assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let counter = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let digits_of_pi = philox(key(0xa409_3822, 0x299f_31d0), counter);
        assert_eq!(digits_of_pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn logarithms_are_right_to_a_few_units_of_the_last_place() {
        for n in 1..10_000 {
            let x = f64::from(n) * f64::from(n) * 1e-8;
            let (seen, expected) = (log_of(x), x.ln());
            assert!((seen - expected).abs() <= 4e-16 * expected.abs().max(1.0), "{x}");
        }
    }
}
