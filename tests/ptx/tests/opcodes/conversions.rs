//! `cvt`.

use crate::{check, d, f, s};

#[test]
fn whole_numbers_are_cut_extended_or_saturated() {
    check::<64>(&[
        ("cvt.s64.s32", &[0xffff_fffe], s(-2)),
        ("cvt.u64.u32", &[0xffff_fffe], 0xffff_fffe),
        ("cvt.u64.s32", &[0xffff_fffe], s(-2)),
        ("cvt.s64.s8", &[0x80], s(-128)),
        ("cvt.u64.u8", &[0x180], 0x80),
    ]);
    check::<32>(&[
        ("cvt.u32.u64", &[0x1_2345_6789], 0x2345_6789),
        ("cvt.s32.s8", &[0xff], 0xffff_ffff),
        ("cvt.sat.s8.s32", &[300], 127),
        ("cvt.sat.u8.s32", &[s(-5)], 0),
        ("cvt.sat.u32.s32", &[s(-5)], 0),
        ("cvt.sat.s32.u32", &[0xffff_ffff], 0x7fff_ffff),
    ]);
    check::<16>(&[("cvt.u16.u32", &[0x1_2345], 0x2345)]);
}

#[test]
fn floats_become_whole_numbers_by_each_rounding_and_saturate() {
    check::<32>(&[
        ("cvt.rzi.s32.f32", &[f(-1.9)], s(-1) & 0xffff_ffff),
        ("cvt.rni.s32.f32", &[f(2.5)], 2),
        ("cvt.rni.s32.f32", &[f(3.5)], 4),
        ("cvt.rmi.s32.f32", &[f(-1.1)], s(-2) & 0xffff_ffff),
        ("cvt.rpi.s32.f32", &[f(1.1)], 2),
        ("cvt.rzi.s32.f32", &[f(1e20)], 0x7fff_ffff),
        ("cvt.rzi.s32.f32", &[f(-1e20)], 0x8000_0000),
        ("cvt.rzi.u32.f32", &[f(-1.0)], 0),
        ("cvt.rzi.u32.f32", &[f(f32::INFINITY)], 0xffff_ffff),
        ("cvt.rzi.s32.f32", &[f(f32::NAN)], 0),
        ("cvt.rzi.s32.f64", &[d(f64::NAN)], 0x8000_0000),
        ("cvt.rzi.u32.f64", &[d(4_294_967_295.5)], 0xffff_ffff),
    ]);
    check::<64>(&[
        ("cvt.rzi.s64.f32", &[f(1e30)], s(i64::MAX)),
        ("cvt.rzi.u64.f64", &[d(1.8e19)], 18_000_000_000_000_000_000),
        ("cvt.rzi.s64.f32", &[f(f32::NAN)], 1 << 63),
    ]);
    check::<8>(&[("cvt.rzi.u8.f32", &[f(300.0)], 255), ("cvt.rzi.s8.f32", &[f(-300.0)], 0x80)]);
}

#[test]
fn whole_numbers_become_floats_by_each_rounding() {
    check::<32>(&[
        ("cvt.rn.f32.s32", &[s(-3)], f(-3.0)),
        ("cvt.rn.f32.u32", &[0xffff_ffff], f(4_294_967_296.0)),
        ("cvt.rz.f32.u32", &[0xffff_ffff], f(4_294_967_040.0)),
        ("cvt.rn.f32.s32", &[16_777_217], f(16_777_216.0)),
        ("cvt.rp.f32.s32", &[16_777_217], f(16_777_218.0)),
        ("cvt.rm.f32.s32", &[s(-16_777_217)], f(-16_777_218.0)),
        ("cvt.rn.f32.u64", &[u64::MAX], f(18_446_744_073_709_551_616.0)),
        ("cvt.rn.f32.s64", &[(1 << 24 | 1) << 32 | 1], f(72_057_602_627_862_528.0)),
    ]);
    check::<64>(&[
        ("cvt.rn.f64.s32", &[s(-3)], d(-3.0)),
        ("cvt.rn.f64.u64", &[u64::MAX], d(18_446_744_073_709_551_616.0)),
        ("cvt.rz.f64.u64", &[u64::MAX], d(18_446_744_073_709_549_568.0)),
    ]);
    check::<16>(&[
        ("cvt.rn.f16.s32", &[2049], 0x6800),
        ("cvt.rn.f16.u32", &[70000], 0x7c00),
        ("cvt.rn.bf16.s32", &[257], 0x4380),
    ]);
}

#[test]
fn floats_become_narrower_and_wider() {
    check::<64>(&[
        ("cvt.f64.f32", &[f(0.1)], d(f64::from(0.1_f32))),
        ("cvt.f64.f16", &[0x3c01], d(1.0 + 1.0 / 1024.0)),
        ("cvt.rni.f64.f64", &[d(2.5)], d(2.0)),
    ]);
    check::<32>(&[
        ("cvt.rn.f32.f64", &[d(0.1)], f(0.1)),
        ("cvt.rz.f32.f64", &[d(0.1)], f(0.1) - 1),
        ("cvt.rm.f32.f64", &[d(-0.1)], f(-0.1)),
        ("cvt.f32.f16", &[0x0001], f(2_f32.powi(-24))),
        ("cvt.f32.bf16", &[0x3f81], 0x3f81_0000),
        ("cvt.rni.f32.f32", &[f(-0.4)], f(-0.0)),
        ("cvt.rmi.f32.f32", &[f(-0.4)], f(-1.0)),
        ("cvt.rpi.f32.f32", &[f(0.4)], f(1.0)),
        ("cvt.sat.f32.f32", &[f(1.5)], f(1.0)),
        ("cvt.rn.f16x2.f32", &[f(2.0), f(1.0)], 0x4000_3c00),
        ("cvt.rn.relu.f16x2.f32", &[f(-2.0), f(1.0)], 0x3c00),
        ("cvt.rn.bf16x2.f32", &[f(2.0), f(1.0)], 0x4000_3f80),
    ]);
    check::<16>(&[
        ("cvt.rn.f16.f32", &[f(65519.0)], 0x7bff),
        ("cvt.rn.f16.f32", &[f(65520.0)], 0x7c00),
        ("cvt.rz.f16.f32", &[f(65535.0)], 0x7bff),
        ("cvt.rn.f16.f64", &[d(1.0 + 1.0 / 2048.0 + 1e-12)], 0x3c01),
        ("cvt.rn.bf16.f32", &[0x3f80_8000], 0x3f80),
        ("cvt.rn.bf16.f32", &[0x3f81_8000], 0x3f82),
        ("cvt.rz.bf16.f32", &[0x3f81_ffff], 0x3f81),
        ("cvt.rn.f16.f32", &[f(f32::NAN)], 0x7fff),
    ]);
}
