//! Whole numbers.

use crate::{check, result, s};

const M1: u64 = 0xffff_ffff;

#[test]
fn sums_and_differences_wrap_or_saturate() {
    check::<32>(&[
        ("add.u32", &[M1, 2], 1),
        ("add.s32", &[0x7fff_ffff, 1], 0x8000_0000),
        ("add.sat.s32", &[0x7fff_ffff, 1], 0x7fff_ffff),
        ("add.sat.s32", &[0x8000_0000, M1], 0x8000_0000),
        ("sub.u32", &[0, 1], M1),
        ("sub.sat.s32", &[0x8000_0000, 1], 0x8000_0000),
    ]);
    check::<16>(&[("add.u16", &[0xffff, 2], 1), ("sub.s16", &[0, 1], 0xffff)]);
    check::<64>(&[("add.u64", &[u64::MAX, 2], 1), ("sub.s64", &[1, 2], s(-1))]);
}

#[test]
fn carries_go_from_word_to_word() {
    let sum = |first: &str, second: &str, inputs: &[u64]| {
        result(&format!("{first} %d, %a, %b; {second} %d, %c, %e"), inputs).expect("it runs")
    };
    assert_eq!(sum("add.cc.u32", "addc.u32", &[M1, 1, 5, 6]), 12);
    assert_eq!(sum("add.cc.u32", "addc.u32", &[1, 1, 5, 6]), 11);
    assert_eq!(sum("sub.cc.u32", "subc.u32", &[0, 1, 5, 2]), 2);
    assert_eq!(sum("sub.cc.u32", "subc.u32", &[1, 1, 5, 2]), 3);
    assert_eq!(sum("add.cc.u64", "addc.u64", &[u64::MAX, 1, 0, 0]), 1);
    let chain = "add.cc.u32 %d, %a, %b; addc.cc.u32 %d, %a, %c; addc.u32 %d, %c, %c";
    assert_eq!(result(chain, &[M1, 1, 0]), Ok(1), "a carry passes through all ones");
    let product = "mad.lo.cc.u32 %d, %a, %b, %c; madc.hi.u32 %d, %a, %b, %e";
    let both = (0xffff_fff0_u64 * 0xffff_fff1) + M1;
    assert_eq!(result(product, &[0xffff_fff0, 0xffff_fff1, M1, 0]), Ok(both >> 32));
}

#[test]
fn products_have_two_halves() {
    check::<32>(&[
        ("mul.lo.u32", &[0x1_0001, 0x1_0001], 0x2_0001),
        ("mul.hi.u32", &[M1, M1], 0xffff_fffe),
        ("mul.hi.s32", &[M1, M1], 0),
        ("mul.hi.s32", &[M1, 5], M1),
        ("mul.wide.u16", &[0xffff, 0xffff], 0xfffe_0001),
        ("mul.wide.s16", &[0xffff, 2], 0xffff_fffe),
        ("mad.lo.s32", &[3, s(-4), 5], 0xffff_fff9),
        ("mad.hi.u32", &[M1, M1, 2], 0),
        ("mad.hi.sat.s32", &[0x4000_0000, 8, 0x7fff_fffe], 0x7fff_ffff),
        ("mul24.lo.u32", &[0x100_0003, 5], 15),
        ("mul24.lo.s32", &[0xff_ffff, 5], 0xffff_fffb),
        ("mul24.hi.u32", &[0xff_ffff, 0xff_ffff], 0xffff_fe00),
        ("mad24.lo.u32", &[0x100_0003, 5, 1], 16),
    ]);
    check::<64>(&[
        ("mul.wide.u32", &[M1, M1], 0xffff_fffe_0000_0001),
        ("mul.wide.s32", &[M1, 2], s(-2)),
        ("mad.wide.s32", &[M1, 2, 7], 5),
        ("mul.lo.u64", &[u64::MAX, 3], s(-3)),
        ("mul.hi.u64", &[u64::MAX, u64::MAX], u64::MAX - 1),
        ("mul.hi.s64", &[u64::MAX, 3], u64::MAX),
        ("mad.lo.u64", &[1 << 63, 2, 9], 9),
    ]);
}

#[test]
fn quotients_and_rests_are_those_of_c() {
    check::<32>(&[
        ("div.s32", &[s(-7), 2], s(-3) & M1),
        ("rem.s32", &[s(-7), 2], M1),
        ("div.u32", &[M1, 16], 0xfff_ffff),
        ("rem.u32", &[M1, 16], 15),
        ("rem.u32", &[100, 0], M1),
        ("div.u32", &[100, 0], M1),
        ("div.s32", &[0x8000_0000, M1], 0x8000_0000),
        ("div.u32", &[5, 0], M1),
    ]);
    check::<64>(&[("div.s64", &[1 << 63, u64::MAX], 1 << 63), ("rem.u64", &[u64::MAX, 10], 5)]);
}

#[test]
fn sizes_and_limits() {
    check::<32>(&[
        ("abs.s32", &[s(-5)], 5),
        ("abs.s32", &[0x8000_0000], 0x8000_0000),
        ("neg.s32", &[5], s(-5) & M1),
        ("min.s32", &[M1, 1], M1),
        ("min.u32", &[M1, 1], 1),
        ("max.s32", &[M1, 1], 1),
        ("max.u32", &[M1, 1], M1),
        ("max.s32.relu", &[s(-5), s(-3)], 0),
        ("sad.u32", &[3, 8, 10], 15),
        ("sad.s32", &[s(-3), 8, 10], 21),
    ]);
    check::<16>(&[("min.s16", &[0xffff, 1], 0xffff), ("neg.s16", &[1], 0xffff)]);
}

#[test]
fn dot_products_of_parts() {
    check::<32>(&[
        ("dp4a.u32.u32", &[0x0102_0304, 0x0101_0101, 7], 17),
        ("dp4a.s32.s32", &[0xffff_ffff, 0x0102_0304, 0], s(-10) & M1),
        ("dp4a.u32.s32", &[0xff, 0xff, 0], s(-255) & M1),
        ("dp2a.lo.u32.u32", &[0x0002_0003, 0x0908_0706, 1], 33),
        ("dp2a.hi.u32.u32", &[0x0002_0003, 0x0908_0706, 1], 43),
    ]);
}

#[test]
fn what_is_not_supported_is_named_with_its_line() {
    let unknown = result("tcgen05.alloc %d, %a", &[0]).expect_err("it is not known");
    assert!(unknown.starts_with("line 13: the instruction `tcgen05.alloc`"), "{unknown}");
    let modifier = result("add.strange.u32 %d, %a, %b", &[0]).expect_err("it is not known");
    assert!(modifier.contains("`.strange` of `add.strange.u32`"), "{modifier}");
    let mode = result("dp4a.f32 %d, %a, %b, %c", &[0]).expect_err("there is no such type");
    assert!(mode.contains("not supported: `dp4a.f32 %d, %a, %b, %c` (line 13)"), "{mode}");
    assert!(mode.contains("in block [0, 0, 0], thread [0, 0, 0]"), "{mode}");
}
