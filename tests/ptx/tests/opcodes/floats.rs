//! Numbers with a fraction.

use crate::{check, d, f, result};

const NAN: u64 = 0x7fff_ffff;

#[test]
fn floats_are_rounded_as_the_instruction_says() {
    let (one, tiny) = (f(1.0), f(1e-30));
    check::<32>(&[
        ("add.f32", &[one, tiny], one),
        ("add.rn.f32", &[one, tiny], one),
        ("add.rp.f32", &[one, tiny], one + 1),
        ("add.rm.f32", &[one, f(-1e-30)], one - 1),
        ("add.rz.f32", &[one, f(-1e-30)], one - 1),
        ("add.rm.f32", &[one, f(-1.0)], f(-0.0)),
        ("sub.rp.f32", &[one, f(-1e-30)], one + 1),
        ("mul.rz.f32", &[f(0.1), f(0.1)], f(0.01)),
        ("mul.rp.f32", &[f(0.1), f(0.1)], f(0.1 * 0.1)),
        ("div.rn.f32", &[one, f(3.0)], 0x3eaa_aaab),
        ("div.rz.f32", &[one, f(3.0)], 0x3eaa_aaaa),
        ("div.rm.f32", &[one, f(-3.0)], 0xbeaa_aaab),
        ("rcp.rp.f32", &[f(3.0)], 0x3eaa_aaab),
        ("sqrt.rz.f32", &[f(2.0)], 0x3fb5_04f3),
        ("sqrt.rp.f32", &[f(2.0)], 0x3fb5_04f4),
        ("add.rz.f32", &[f(f32::MAX), f(f32::MAX)], f(f32::MAX)),
        ("add.f32", &[f(f32::INFINITY), f(f32::NEG_INFINITY)], NAN),
    ]);
}

#[test]
fn fused_products_are_rounded_once() {
    let (x, low) = (f(1.0 + f32::EPSILON), f(-(1.0 + 2.0 * f32::EPSILON)));
    check::<32>(&[
        ("fma.rn.f32", &[x, x, low], f(f32::EPSILON * f32::EPSILON)),
        ("fma.rz.f32", &[f(1.0), f(1.0), f(-1e-30)], f(1.0) - 1),
        ("fma.rp.f32", &[f(1.0), f(1.0), f(1e-30)], f(1.0) + 1),
    ]);
    let (y, below) = (d(1.0 + f64::EPSILON), d(-(1.0 + 2.0 * f64::EPSILON)));
    check::<64>(&[
        ("fma.rn.f64", &[y, y, below], d(f64::EPSILON * f64::EPSILON)),
        ("fma.rm.f64", &[d(1.0), d(1.0), d(-1e-40)], d(1.0) - 1),
    ]);
}

#[test]
fn doubles_are_rounded_as_the_instruction_says() {
    check::<64>(&[
        ("add.f64", &[d(0.1), d(0.2)], d(0.1 + 0.2)),
        ("add.rz.f64", &[d(1.0), d(-1e-30)], d(1.0) - 1),
        ("mul.rp.f64", &[d(0.1), d(0.1)], d(0.1 * 0.1)),
        ("mul.rm.f64", &[d(0.1), d(0.1)], d(0.1 * 0.1) - 1),
        ("div.rn.f64", &[d(1.0), d(3.0)], d(1.0 / 3.0)),
        ("div.rp.f64", &[d(1.0), d(3.0)], d(1.0 / 3.0) + 1),
        ("sqrt.rn.f64", &[d(2.0)], d(2_f64.sqrt())),
        ("rcp.approx.ftz.f64", &[d(3.0)], d(1.0 / 3.0) & 0xffff_ffff_0000_0000),
        ("neg.f64", &[d(-1.5)], d(1.5)),
        ("abs.f64", &[d(-1.5)], d(1.5)),
    ]);
    let refused = result("mul.rz.f64 %d, %a, %b", &[d(1e-200), d(1e-100)]);
    assert!(refused.is_err_and(|fault| fault.contains("a normal rest")));
}

#[test]
fn subnormal_numbers_are_flushed_and_results_saturate() {
    let subnormal = f(1e-40);
    check::<32>(&[
        ("add.f32", &[subnormal, 0], subnormal),
        ("add.ftz.f32", &[subnormal, 0], 0),
        ("mul.ftz.f32", &[f(1e-20), f(-1e-20)], f(-0.0)),
        ("neg.ftz.f32", &[subnormal], f(-0.0)),
        ("add.sat.f32", &[f(0.75), f(0.75)], f(1.0)),
        ("add.sat.f32", &[f(0.75), f(-2.0)], 0),
        ("add.sat.f32", &[f(f32::NAN), f(1.0)], 0),
    ]);
}

#[test]
fn limits_choose_numbers_and_negative_zero() {
    let nan = f(f32::NAN);
    check::<32>(&[
        ("min.f32", &[nan, f(2.0)], f(2.0)),
        ("max.f32", &[f(2.0), nan], f(2.0)),
        ("min.NaN.f32", &[nan, f(2.0)], NAN),
        ("max.f32", &[nan, nan], NAN),
        ("min.f32", &[0, f(-0.0)], f(-0.0)),
        ("max.f32", &[f(-0.0), 0], 0),
        ("min.f32", &[f(-3.0), f(2.0)], f(-3.0)),
        ("copysign.f32", &[f(-1.0), f(2.0)], f(-2.0)),
    ]);
    check::<64>(&[
        ("max.f64", &[d(f64::NAN), d(2.0)], d(2.0)),
        ("copysign.f64", &[d(-1.0), d(2.0)], d(-2.0)),
    ]);
}

#[test]
fn approximate_functions_are_exact_here() {
    check::<32>(&[
        ("ex2.approx.f32", &[f(3.0)], f(8.0)),
        ("lg2.approx.f32", &[f(8.0)], f(3.0)),
        ("sin.approx.f32", &[f(1.0)], f(1f64.sin() as f32)),
        ("cos.approx.f32", &[f(1.0)], f(1f64.cos() as f32)),
        ("tanh.approx.f32", &[f(0.5)], f(0.5f64.tanh() as f32)),
        ("rsqrt.approx.f32", &[f(16.0)], f(0.25)),
        ("sqrt.approx.f32", &[f(16.0)], f(4.0)),
        ("rcp.approx.ftz.f32", &[f(4.0)], f(0.25)),
        ("div.approx.f32", &[f(1.0), f(4.0)], f(0.25)),
        ("div.full.f32", &[f(1.0), f(4.0)], f(0.25)),
    ]);
    check::<64>(&[("rsqrt.approx.f64", &[d(16.0)], d(0.25))]);
}

/// 1.0, and the next number, of each kind of two bytes.
const ONE: u64 = 0x3c00;
const BRAIN_ONE: u64 = 0x3f80;

#[test]
fn halves_are_rounded_once() {
    let smallest = 1;
    check::<16>(&[
        ("add.f16", &[ONE, ONE], 0x4000),
        ("add.f16", &[ONE, smallest], ONE),
        ("sub.f16", &[ONE, 0x3c01], 0x9400),
        ("mul.f16", &[0x3c01, 0x3c01], 0x3c02),
        ("fma.rn.f16", &[ONE, 0x7bff, smallest], 0x7bff),
        ("fma.rn.f16", &[0x3c01, 0x3c01, 0xbc02], 0x0010),
        ("fma.rn.relu.f16", &[ONE, 0xbc00, 0], 0),
        ("add.sat.f16", &[ONE, ONE], ONE),
        ("neg.f16", &[ONE], 0xbc00),
        ("abs.f16", &[0xbc00], ONE),
        ("min.f16", &[ONE, 0x7e00], ONE),
        ("max.NaN.f16", &[ONE, 0x7e00], 0x7fff),
        ("ex2.approx.f16", &[0x4000], 0x4400),
        ("tanh.approx.f16", &[0], 0),
        ("add.rn.bf16", &[BRAIN_ONE, BRAIN_ONE], 0x4000),
        ("mul.bf16", &[0x3f81, 0x3f81], 0x3f82),
        ("fma.rn.bf16", &[0x3f81, 0x3f81, 0xbf82], 0x3880),
        ("neg.bf16", &[BRAIN_ONE], 0xbf80),
    ]);
}

#[test]
fn pairs_are_two_numbers() {
    check::<32>(&[
        ("add.f16x2", &[0x3c00_4000, 0x3c00_3c00], 0x4000_4200),
        ("fma.rn.f16x2", &[0x3c00_4000, 0x4000_4000, 0x3c00_0000], 0x4200_4400),
        ("add.rn.bf16x2", &[0x3f80_4000, 0x3f80_3f80], 0x4000_4040),
        ("neg.f16x2", &[0x3c00_4000], 0xbc00_c000),
        ("min.bf16x2", &[0x3f80_4000, 0x4000_3f80], 0x3f80_3f80),
    ]);
}
