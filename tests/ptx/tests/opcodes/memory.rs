//! Loads, stores and atomic operations.

use crate::{ARRAY, Order, d, f, launch, launch_module, result};

#[test]
fn numbers_fill_their_registers() {
    let words = [0x8182_8384_8586_8788_u64, 0];
    for (load, expected) in [
        ("ld.global.u8 %d, [%array+1]", 0x87),
        ("ld.global.s8 %d, [%array+1]", 0xffff_ffff_ffff_ff87),
        ("ld.global.u16 %d, [%array+2]", 0x8586),
        ("ld.global.s16 %d, [%array+2]", 0xffff_ffff_ffff_8586),
        ("ld.global.nc.u32 %d, [%array+4]", 0x8182_8384),
        ("ld.volatile.global.s32 %d, [%array+4]", 0xffff_ffff_8182_8384),
        ("ld.relaxed.gpu.global.L1::no_allocate.b64 %d, [%array]", 0x8182_8384_8586_8788),
    ] {
        let body = format!(".reg .b64 %d; {load}; st.global.u64 [%array+8], %d; ret;");
        assert_eq!(launch(&body, 1, &words), Ok(vec![words[0], expected]), "{load}");
    }
    let body = ".reg .b64 %d; mov.u64 %d, 0x1122334455667788; st.global.u8 [%array+8], %d; \
                st.global.u16 [%array+10], %d; st.global.b32 [%array+12], %d; ret;";
    assert_eq!(launch(body, 1, &[0, 0]), Ok(vec![0, 0x5566_7788_7788_0088]));
}

#[test]
fn vectors_are_several_elements() {
    let body = ".reg .b64 %x<9>; ld.global.v4.u16 {%x1, %x2, %x3, %x4}, [%array]; \
                st.global.v2.u32 [%array+8], {%x4, %x1}; \
                ld.global.v4.f32 {%x1, %x2, %x3, _}, [%array]; \
                st.global.v2.u64 [%array+16], {%x3, %x2}; ret;";
    let words = [0x0004_0003_0002_0001, 0, 0, 0];
    let expected = vec![words[0], 0x0000_0001_0000_0004, 4, 0x0004_0003];
    assert_eq!(launch(body, 1, &words), Ok(expected));
}

#[test]
fn words_are_joined_and_divided() {
    let joined = ".reg .b32 %x, %y; cvt.u32.u64 %x, %a; cvt.u32.u64 %y, %b; mov.b64 %d, {%x, %y}";
    assert_eq!(result(joined, &[1, 2]), Ok(0x2_0000_0001));
    let divided = ".reg .b32 %x, %y; mov.b64 {%x, %y}, %a; mov.b64 %d, {%y, %x}";
    assert_eq!(result(divided, &[0x2_0000_0001]), Ok(0x1_0000_0002));
    let half = ".reg.b16 %x, %y; mov.b32 {_, %y}, %a; mov.b32 %d, {%y, %y}";
    assert_eq!(result(half, &[0x1234_5678]), Ok(0x1234_1234));
}

#[test]
fn accesses_outside_or_not_aligned_are_faults() {
    for (access, what) in [
        ("ld.global.u32 %d, [%array+40]", "no 4 bytes at"),
        ("ld.global.u32 %d, [%array+-4]", "no 4 bytes at"),
        ("ld.global.u32 %d, [%array+2]", "not aligned to 4 bytes"),
        ("ld.global.v2.u32 %d, [%array+4]", "not aligned to 8 bytes"),
        ("ld.u32 %d, [0]", "no 4 bytes at 0x0"),
        ("ld.shared.u32 %d, [%array]", "in Shared memory"),
        ("ld.global.u32 %d, [0x1000000]", "in Global memory"),
        ("st.u32 [0x200000000], %d", "a write to constant memory"),
        ("atom.global.add.u32 %d, [%array+41], 1", "not aligned"),
        ("ld.shared.u32 %d, [0x1000040]", "no 4 bytes at 0x1000040"),
    ] {
        let fault = result(access, &[0]).expect_err(access);
        assert!(fault.contains(what) && fault.contains("(line 13)"), "{access}: {fault}");
    }
}

#[test]
fn each_memory_has_its_place() {
    let declarations = "
.global .align 8 .u64 counter = 5;
.const .align 4 .u32 table[4] = {10, 20, 30, 40};
.global .align 8 .u64 pointer[2] = {generic(counter), table+8};
.shared .align 8 .b8 tile[16];
.extern .shared .align 16 .b8 dynamic[];";
    let body = "
.local .align 8 .b8 own[8];
.reg .b64 %x, %y;
ld.global.u64 %x, [counter];
add.u64 %x, %x, 1;
st.global.u64 [counter], %x;
ld.global.u64 %y, [pointer];
ld.u64 %x, [%y];
st.global.u64 [%array], %x;
ld.global.u64 %y, [pointer+8];
ld.u32 %x, [%y];
st.global.u64 [%array+8], %x;
st.shared.u64 [tile+8], 77;
mov.u64 %y, tile;
cvta.shared.u64 %y, %y;
ld.u64 %x, [%y+8];
st.global.u64 [%array+16], %x;
mov.u64 %y, own;
st.local.u64 [%y], 88;
cvta.local.u64 %y, %y;
ld.u64 %x, [%y];
st.global.u64 [%array+24], %x;
mov.u64 %y, dynamic;
mov.u64 %x, tile;
sub.u64 %x, %y, %x;
st.global.u64 [%array+32], %x;
ret;";
    let found = launch_module(declarations, body, 1, &[0; 5], Order::Ascending);
    assert_eq!(found, Ok(vec![6, 30, 77, 88, 16]));
    for (space, address, expected) in [
        ("shared", 0x0100_0000, 1),
        ("local", 0x1_0000_0000, 1),
        ("global", ARRAY, 1),
        ("local", ARRAY, 0),
    ] {
        let body = format!(".reg .pred %p; isspacep.{space} %p, %a; selp.u32 %d, 1, 0, %p");
        assert_eq!(result(&body, &[address]), Ok(expected), "{space}");
    }
}

#[test]
fn atomic_operations_return_what_was_there() {
    for (operation, old, value, new) in [
        ("add.u32", 0xffff_ffff, 2, 1),
        ("add.u64", u64::MAX, 2, 1),
        ("add.f32", f(1.5), f(2.0), f(3.5)),
        ("add.f64", d(1.5), d(2.0), d(3.5)),
        ("add.noftz.f16x2", 0x3c00_4000, 0x3c00_3c00, 0x4000_4200),
        ("add.noftz.bf16", 0x3f80, 0x3f80, 0x4000),
        ("min.s32", 5, 0xffff_ffff, 0xffff_ffff),
        ("min.u32", 5, 0xffff_ffff, 5),
        ("max.s64", 5, u64::MAX, 5),
        ("max.u64", 5, u64::MAX, u64::MAX),
        ("and.b32", 12, 10, 8),
        ("or.b64", 12, 10, 14),
        ("xor.b32", 12, 10, 6),
        ("exch.b32", 12, 10, 10),
        ("inc.u32", 5, 5, 0),
        ("inc.u32", 4, 5, 5),
        ("dec.u32", 0, 9, 9),
        ("dec.u32", 11, 9, 9),
        ("dec.u32", 3, 9, 2),
    ] {
        let body = format!(
            ".reg .b64 %v, %d; ld.global.u64 %v, [%array+8]; \
             atom.global.{operation} %d, [%array], %v; st.global.u64 [%array+16], %d; ret;"
        );
        let found = launch(&body, 1, &[old, value, 0]);
        assert_eq!(found, Ok(vec![new, value, old]), "{operation}");
        let body = body
            .replace("atom.global", "red.relaxed.gpu.global")
            .replace("%d, [%array], %v", "[%array], %v");
        if operation.starts_with("exch") {
            continue;
        }
        assert_eq!(launch(&body, 1, &[old, value, 0]), Ok(vec![new, value, 0]), "red {operation}");
    }
    let swap =
        ".reg .b64 %d; atom.global.cas.b32 %d, [%array], 5, 9; st.global.u64 [%array+8], %d; ret;";
    assert_eq!(launch(swap, 1, &[5, 0]), Ok(vec![9, 5]));
    assert_eq!(launch(swap, 1, &[6, 0]), Ok(vec![6, 6]));
}
