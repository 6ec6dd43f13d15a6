//! Special registers, barriers, and what lanes do together.

use crate::{Order, launch, launch_module};

/// Stores `%v` of each thread at its place.
const STORE: &str = "mov.u32 %t, %tid.x; mad.wide.u32 %at, %t, 8, %array; \
                     st.global.u64 [%at], %v; ret;";
const REGISTERS: &str = ".reg .b64 %at, %v, %w, %m; .reg .b32 %t; .reg .pred %p; \
                         mov.u32 %t, %tid.x; mov.u64 %v, 0;";

/// What each thread has in `%v` in the end.
#[track_caller]
fn each(threads: u32, body: &str) -> Vec<u64> {
    let text = format!("{REGISTERS}\n{body};\n{STORE}");
    launch(&text, threads, &vec![0; threads as usize]).unwrap_or_else(|fault| panic!("{fault}"))
}

#[test]
fn special_registers_say_who_a_thread_is() {
    assert_eq!(each(3, "cvt.u64.u32 %v, %tid.x"), [0, 1, 2]);
    assert_eq!(each(2, "cvt.u64.u32 %v, %ntid.x"), [2, 2]);
    assert_eq!(each(34, "cvt.u64.u32 %v, %laneid")[31..], [31, 0, 1]);
    assert_eq!(each(34, "cvt.u64.u32 %v, %warpid")[31..], [0, 1, 1]);
    assert_eq!(each(3, "cvt.u64.u32 %v, %lanemask_lt"), [0, 1, 3]);
    assert_eq!(each(3, "cvt.u64.u32 %v, %lanemask_le"), [1, 3, 7]);
    assert_eq!(each(2, "cvt.u64.u32 %v, %lanemask_gt"), [0xffff_fffe, 0xffff_fffc]);
    assert_eq!(each(2, "cvt.u64.u32 %v, %lanemask_ge"), [0xffff_ffff, 0xffff_fffe]);
    assert_eq!(each(2, "cvt.u64.u32 %v, %lanemask_eq"), [1, 2]);
    assert_eq!(each(1, "cvt.u64.u32 %v, %dynamic_smem_size"), [64]);
}

#[test]
fn barriers_wait_for_all_in_each_order() {
    let declarations = ".shared .align 4 .b8 tile[256];";
    let body = format!(
        "{REGISTERS} .reg .b32 %s, %u; shl.b32 %s, %t, 2; mov.u32 %u, tile; add.u32 %s, %s, %u; \
         st.shared.u32 [%s], %t; bar.sync 0; \
         xor.b32 %s, %t, 63; shl.b32 %s, %s, 2; add.u32 %s, %s, %u; ld.shared.u32 %v, [%s]; {STORE}"
    );
    let expected: Vec<u64> = (0..64).rev().collect();
    for order in [Order::Ascending, Order::Descending] {
        let found = launch_module(declarations, &body, 64, &[0; 64], order);
        assert_eq!(found, Ok(expected.clone()), "{order:?}");
    }
}

#[test]
fn barriers_count_predicates() {
    for (reduction, expected) in [("popc.u32", 5), ("and.pred", 0), ("or.pred", 1)] {
        let (to, select) = match reduction {
            "popc.u32" => ("%v", ""),
            _ => ("%p", "selp.u64 %v, 1, 0, %p"),
        };
        let body = format!(
            ".reg .pred %q; setp.lt.u32 %q, %t, 5; bar.red.{reduction} {to}, 0, %q; {select}"
        );
        assert_eq!(each(40, &body), [expected; 40], "{reduction}");
    }
}

#[test]
fn a_barrier_waits_for_no_thread_that_has_ended() {
    let body = "setp.ge.u32 %p, %t, 2; @%p exit; barrier.sync 0; mov.u64 %v, 1";
    assert_eq!(each(4, body), [1, 1, 0, 0]);
}

#[test]
fn threads_that_wait_for_each_other_are_a_deadlock() {
    let body = format!(
        "{REGISTERS} setp.eq.u32 %p, %t, 0; @%p bra $x; bar.sync 1; bra $y; \
         $x: bar.sync 2; $y: {STORE}"
    );
    let fault = launch(&body, 2, &[0, 0]).expect_err("they wait at two barriers");
    assert!(
        fault.contains("deadlock: `bar.sync 2`") && fault.contains("2 threads wait"),
        "{fault}"
    );
    let lane = format!("{REGISTERS} bar.warp.sync 2; {STORE}");
    let fault = launch(&lane, 2, &[0, 0]).expect_err("lane 0 is not in the mask");
    assert!(fault.contains("the mask does not have the lane"), "{fault}");
}

#[test]
fn threads_wait_in_loops_for_others() {
    let body = format!(
        "{REGISTERS} setp.ne.u32 %p, %t, 0; @%p bra $set; \
         $wait: ld.volatile.global.u64 %w, [%array+8]; setp.eq.u64 %p, %w, 0; @%p bra $wait; \
         mov.u64 %v, %w; st.global.u64 [%array], %v; ret; \
         $set: st.global.u64 [%array+8], 7; ret;"
    );
    assert_eq!(launch(&body, 2, &[0, 0]), Ok(vec![7, 7]));
}

#[test]
fn shuffles_pass_values_within_segments() {
    let all = "0xffffffff";
    let shuffled = |mode: &str, by: &str, clamp: u32| {
        each(32, &format!("shfl.sync.{mode}.b32 %v|%p, %t, {by}, {clamp}, {all}"))
    };
    let expected = |from: &dyn Fn(u64) -> u64| (0..32).map(from).collect::<Vec<_>>();
    assert_eq!(shuffled("up", "1", 0), expected(&|lane| lane.saturating_sub(1)));
    assert_eq!(
        shuffled("down", "2", 31),
        expected(&|lane| if lane < 30 { lane + 2 } else { lane })
    );
    assert_eq!(shuffled("bfly", "5", 31), expected(&|lane| lane ^ 5));
    assert_eq!(shuffled("idx", "3", 31), [3; 32]);
    // Segments of eight lanes.
    assert_eq!(shuffled("idx", "3", 0x181f), expected(&|lane| lane & !7 | 3));
    assert_eq!(
        shuffled("down", "1", 0x181f),
        expected(&|lane| if lane & 7 == 7 { lane } else { lane + 1 })
    );
    let within =
        each(32, &format!("shfl.sync.up.b32 %w|%p, %t, 4, 0, {all}; selp.u64 %v, 1, 0, %p"));
    assert_eq!(within, expected(&|lane| u64::from(lane >= 4)));
}

#[test]
fn votes_matches_and_reductions() {
    let all = "0xffffffff";
    let vote = |mode: &str| {
        let select = if mode.starts_with("ballot") { "" } else { "selp.u64 %v, 1, 0, %p" };
        let to = if mode.starts_with("ballot") { "%v" } else { "%p" };
        let body = format!(
            ".reg .pred %q; setp.lt.u32 %q, %t, 3; vote.sync.{mode} {to}, %q, {all}; {select}"
        );
        each(32, &body)[0]
    };
    assert_eq!(vote("ballot.b32"), 7);
    assert_eq!([vote("all.pred"), vote("any.pred"), vote("uni.pred")], [0, 1, 0]);
    let same = each(
        32,
        &format!("shr.u32 %t, %t, 4; match.any.sync.b32 %v, %t, {all}; mov.u32 %t, %tid.x"),
    );
    assert_eq!([same[0], same[31]], [0xffff, 0xffff_0000]);
    let equal = each(32, &format!("match.all.sync.b32 %v|%p, 5, {all}"));
    assert_eq!(equal, [0xffff_ffff; 32]);
    for (reduction, expected) in [
        ("add.u32", 496),
        ("min.s32", 0),
        ("max.u32", 31),
        ("and.b32", 0),
        ("or.b32", 31),
        ("xor.b32", 0),
    ] {
        let found = each(32, &format!("redux.sync.{reduction} %v, %t, {all}"));
        assert_eq!(found, [expected; 32], "{reduction}");
    }
}

#[test]
fn lanes_of_a_mask_and_active_lanes() {
    let body = "setp.ge.u32 %p, %t, 4; @%p bra $end; shfl.sync.idx.b32 %v, %t, 2, 31, 15; $end:";
    let found = each(8, &body.replace("$end:", "$end: mov.u32 %t, %tid.x"));
    assert_eq!(found, [2, 2, 2, 2, 0, 0, 0, 0]);
    let active =
        each(8, "setp.ge.u32 %p, %t, 3; @%p bra $end; activemask.b32 %v; $end: mov.u32 %t, %tid.x");
    assert_eq!(active, [7, 7, 7, 0, 0, 0, 0, 0]);
}
