//! Logic, shifts, and parts of words.

use crate::{check, s};

const M1: u64 = 0xffff_ffff;

#[test]
fn logic() {
    check::<32>(&[
        ("and.b32", &[0b1100, 0b1010], 0b1000),
        ("or.b32", &[0b1100, 0b1010], 0b1110),
        ("xor.b32", &[0b1100, 0b1010], 0b0110),
        ("not.b32", &[1], 0xffff_fffe),
        ("cnot.b32", &[0], 1),
        ("cnot.b32", &[9], 0),
        ("and.pred", &[1, 1], 1),
        ("not.pred", &[1], 0),
    ]);
    check::<64>(&[("xor.b64", &[u64::MAX, 1], u64::MAX - 1), ("not.b64", &[0], u64::MAX)]);
}

#[test]
fn tables_of_three_operands() {
    let (a, b, c) = (0b1111_0000, 0b1100_1100, 0b1010_1010);
    for table in [0x80, 0xfe, 0x96, 0xe8, 0x1a, 0x00, 0xff] {
        check::<8>(&[("lop3.b32", &[a, b, c, table], table)]);
    }
}

#[test]
fn shifts_beyond_the_width_leave_nothing_but_the_sign() {
    check::<32>(&[
        ("shl.b32", &[1, 31], 1 << 31),
        ("shl.b32", &[1, 32], 0),
        ("shl.b32", &[1, M1], 0),
        ("shr.u32", &[M1, 31], 1),
        ("shr.u32", &[M1, 32], 0),
        ("shr.s32", &[1 << 31, 4], 0xf800_0000),
        ("shr.s32", &[1 << 31, 40], M1),
    ]);
    check::<64>(&[
        ("shl.b64", &[1, 63], 1 << 63),
        ("shl.b64", &[1, 64], 0),
        ("shr.s64", &[1 << 63, 200], u64::MAX),
        ("shr.u64", &[u64::MAX, 64], 0),
    ]);
    check::<16>(&[("shr.s16", &[0x8000, 3], 0xf000), ("shl.b16", &[0xffff, 8], 0xff00)]);
}

#[test]
fn funnel_shifts_wrap_or_clamp() {
    let (low, high) = (0x89ab_cdef, 0x0123_4567);
    check::<32>(&[
        ("shf.l.wrap.b32", &[low, high, 8], 0x2345_6789),
        ("shf.r.wrap.b32", &[low, high, 8], 0x6789_abcd),
        ("shf.l.wrap.b32", &[low, high, 32], high),
        ("shf.r.wrap.b32", &[low, high, 32], low),
        ("shf.l.clamp.b32", &[low, high, 40], low),
        ("shf.r.clamp.b32", &[low, high, 40], high),
    ]);
}

#[test]
fn fields() {
    check::<32>(&[
        ("bfe.u32", &[0x1234_5678, 8, 8], 0x56),
        ("bfe.s32", &[0x0000_f000, 12, 4], M1),
        ("bfe.s32", &[0x8000_0000, 28, 16], 0xffff_fff8),
        ("bfe.u32", &[M1, 28, 16], 0xf),
        ("bfe.u32", &[M1, 4, 0], 0),
        ("bfe.u32", &[M1, 40, 4], 0),
        ("bfi.b32", &[0xab, 0x1111_1111, 8, 8], 0x1111_ab11),
        ("bfi.b32", &[0xff, 0, 28, 8], 0xf000_0000),
        ("bfi.b32", &[0xff, 7, 40, 8], 7),
        ("bmsk.clamp.b32", &[4, 8], 0xff0),
        ("bmsk.wrap.b32", &[36, 8], 0xff0),
        ("bmsk.clamp.b32", &[36, 8], 0),
        ("szext.wrap.s32", &[0x8, 4], 0xffff_fff8),
        ("szext.wrap.u32", &[0x18, 4], 8),
        ("szext.clamp.u32", &[0x18, 40], 0x18),
    ]);
    check::<64>(&[
        ("bfe.u64", &[u64::MAX, 60, 8], 0xf),
        ("bfe.s64", &[1 << 63, 60, 4], s(-8)),
        ("bfi.b64", &[0xff, 0, 32, 8], 0xff_0000_0000),
    ]);
}

#[test]
fn bits_are_counted_and_found() {
    check::<32>(&[
        ("popc.b32", &[0xf0f0], 8),
        ("popc.b64", &[u64::MAX], 64),
        ("clz.b32", &[1], 31),
        ("clz.b32", &[0], 32),
        ("clz.b64", &[0], 64),
        ("bfind.u32", &[0x8000], 15),
        ("bfind.u32", &[0], M1),
        ("bfind.s32", &[0xffff_fff0], 3),
        ("bfind.s32", &[M1], M1),
        ("bfind.shiftamt.u32", &[0x8000], 16),
        ("brev.b32", &[1], 1 << 31),
        ("fns.b32", &[0b1011_0100, 0, 2], 4),
        ("fns.b32", &[0b1011_0100, 7, s(-2)], 5),
        ("fns.b32", &[0b1011_0100, 0, 9], M1),
        ("fns.b32", &[0b1011_0100, 4, 0], 4),
    ]);
    check::<64>(&[("brev.b64", &[1], 1 << 63)]);
}

#[test]
fn bytes_are_permuted() {
    let (low, high) = (0x3322_1100, 0x7766_5584);
    check::<32>(&[
        ("prmt.b32", &[low, high, 0x3210], low),
        ("prmt.b32", &[low, high, 0x7654], high),
        ("prmt.b32", &[low, high, 0x0123], 0x0011_2233),
        ("prmt.b32", &[low, high, 0xc0c0], 0xff00_ff00),
        ("prmt.b32.f4e", &[low, high, 1], 0x8433_2211),
        ("prmt.b32.b4e", &[low, high, 1], 0x6677_0011),
        ("prmt.b32.rc8", &[low, high, 2], 0x2222_2222),
        ("prmt.b32.ecl", &[low, high, 2], 0x3322_2222),
        ("prmt.b32.ecr", &[low, high, 2], 0x2222_1100),
        ("prmt.b32.rc16", &[low, high, 1], 0x3322_3322),
    ]);
}
