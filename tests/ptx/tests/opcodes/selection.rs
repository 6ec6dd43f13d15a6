//! Comparisons, predicates and selections.

use crate::{check, d, f, result, s};

/// Whether a comparison holds for the registers `%a` and `%b`.
#[track_caller]
fn holds(comparison: &str, a: u64, b: u64) -> bool {
    let body = format!(".reg .pred %p; setp.{comparison} %p, %a, %b; selp.u32 %d, 1, 0, %p");
    result(&body, &[a, b]).unwrap_or_else(|fault| panic!("{fault}")) == 1
}

#[test]
fn whole_numbers_are_compared_with_and_without_sign() {
    let minus = 0xffff_ffff;
    for (comparison, expected) in [
        ("lt.s32", true),
        ("lt.u32", false),
        ("le.s32", true),
        ("gt.u32", true),
        ("ge.s32", false),
        ("eq.b32", false),
        ("ne.s32", true),
        ("lo.u32", false),
        ("ls.u32", false),
        ("hi.u32", true),
        ("hs.u32", true),
    ] {
        assert_eq!(holds(comparison, minus, 1), expected, "{comparison}");
    }
    assert!(holds("lt.s16", 0xffff, 1) && holds("lt.s64", s(-1), 1));
}

#[test]
fn nan_is_unordered() {
    let nan = f(f32::NAN);
    for (comparison, of_nan, of_less) in [
        ("eq", false, false),
        ("ne", false, true),
        ("lt", false, true),
        ("le", false, true),
        ("gt", false, false),
        ("ge", false, false),
        ("equ", true, false),
        ("neu", true, true),
        ("ltu", true, true),
        ("leu", true, true),
        ("gtu", true, false),
        ("geu", true, false),
        ("num", false, true),
        ("nan", true, false),
    ] {
        let comparison = format!("{comparison}.f32");
        assert_eq!(holds(&comparison, nan, f(1.0)), of_nan, "{comparison}");
        assert_eq!(holds(&comparison, f(-1.0), f(1.0)), of_less, "{comparison}");
    }
    assert!(holds("eq.f64", d(0.0), d(-0.0)) && holds("lt.f16", 0x3c00, 0x4000));
    assert!(holds("eq.ftz.f32", f(1e-40), 0) && !holds("eq.f32", f(1e-40), 0));
}

#[test]
fn comparisons_are_combined_with_predicates() {
    for (operation, expected) in [("and", [0, 1]), ("or", [1, 1]), ("xor", [1, 0])] {
        for (other, expected) in expected.into_iter().enumerate() {
            let body = format!(
                ".reg .pred %p, %q; setp.ne.u32 %q, %b, 0; \
                 setp.lt.{operation}.u32 %p, %a, 5, %q; selp.u32 %d, 1, 0, %p"
            );
            assert_eq!(result(&body, &[3, other as u64]), Ok(expected), "{operation} {other}");
        }
    }
    let both = ".reg .pred %p, %q; setp.lt.u32 %p|%q, %a, 5; selp.u32 %d, 1, 0, %q";
    assert_eq!(result(both, &[3]), Ok(0));
    let negated = ".reg .pred %p, %q; setp.lt.u32 %q, %a, 5; setp.eq.and.u32 %p, 0, 0, !%q; \
                   selp.u32 %d, 1, 0, %p";
    assert_eq!(result(negated, &[3]), Ok(0));
    let pair = ".reg .pred %p, %q; setp.lt.f16x2 %p|%q, %a, %b; selp.u32 %d, 1, 0, %q";
    assert_eq!(result(pair, &[0x3c00_4000, 0x4000_3c00]), Ok(1));
}

#[test]
fn sets_are_all_ones_or_one() {
    check::<32>(&[
        ("set.lt.u32.s32", &[s(-1), 1], 0xffff_ffff),
        ("set.gt.u32.s32", &[s(-1), 1], 0),
        ("set.lt.f32.f32", &[f(1.0), f(2.0)], f(1.0)),
        ("set.lt.f16x2.f16x2", &[0x3c00_4000, 0x4000_3c00], 0x3c00_0000),
        ("set.gtu.u32.f16x2", &[0x3c00_4000, 0x4000_3c00], 0x0000_ffff),
        ("set.eq.bf16.bf16", &[0x3f80, 0x3f80], 0x3f80),
    ]);
}

#[test]
fn selections() {
    check::<32>(&[
        ("selp.b32", &[7, 9, 1], 7),
        ("selp.b32", &[7, 9, 0], 9),
        ("slct.u32.s32", &[7, 9, 0], 7),
        ("slct.u32.s32", &[7, 9, s(-1)], 9),
        ("slct.u32.f32", &[7, 9, f(-0.0)], 7),
        ("slct.u32.f32", &[7, 9, f(f32::NAN)], 9),
    ]);
}

#[test]
fn classes_of_numbers() {
    let numbers = [f(1.0), f(1e-40), f(f32::INFINITY), f(f32::NAN), 0];
    for (class, expected) in [
        ("finite", [1, 1, 0, 0, 1]),
        ("infinite", [0, 0, 1, 0, 0]),
        ("number", [1, 1, 1, 0, 1]),
        ("notanumber", [0, 0, 0, 1, 0]),
        ("normal", [1, 0, 0, 0, 0]),
        ("subnormal", [0, 1, 0, 0, 0]),
    ] {
        for (number, expected) in numbers.into_iter().zip(expected) {
            check::<1>(&[(&format!("testp.{class}.f32"), &[number], expected)]);
        }
    }
}
