//! Branches, guards, calls and loops.

use crate::{Order, launch_module, result};

#[test]
fn loops_and_guards() {
    let body = ".reg .pred %p; mov.u64 %d, 0; $again: add.u64 %d, %d, %a; sub.u64 %a, %a, 1; \
                setp.ne.u64 %p, %a, 0; @%p bra $again; @!%p add.u64 %d, %d, 1000; @%p trap";
    assert_eq!(result(body, &[10]), Ok(1055));
    let stops = result("trap", &[]).expect_err("it stops");
    assert!(stops.contains("the kernel stops here: `trap`"), "{stops}");
}

#[test]
fn branches_by_index() {
    let body = "brx.idx %a, $list; trap; $list: .branchtargets $x, $y; \
                $x: mov.u64 %d, 7; bra.uni $end; $y: mov.u64 %d, 9; $end: add.u64 %d, %d, 1";
    assert_eq!(result(body, &[0]), Ok(8));
    assert_eq!(result(body, &[1]), Ok(10));
    let beyond = result(body, &[2]).expect_err("there are two");
    assert!(beyond.contains("no target has this index"), "{beyond}");
}

#[test]
fn loops_without_end_are_ended() {
    let endless = result("$again: bra $again", &[]).expect_err("it does not end");
    assert!(endless.contains("more than 1000000 instructions"), "{endless}");
}

/// The factorial by recursion, and a function with a variable of its own and a structure.
const FUNCTIONS: &str = "
.func (.param .b64 r) factorial(.param .b64 n) {
    .reg .pred %p; .reg .b64 %x, %y;
    ld.param.b64 %x, [n];
    setp.le.u64 %p, %x, 1;
    mov.u64 %y, 1;
    @%p bra $end;
    sub.u64 %y, %x, 1;
    { .param .b64 param0; st.param.b64 [param0], %y; .param .b64 retval0;
      call.uni (retval0), factorial, (param0); ld.param.b64 %y, [retval0]; }
    mul.lo.u64 %y, %y, %x;
$end:
    st.param.b64 [r], %y;
    ret;
}
.func (.param .align 8 .b8 r[16]) swapped(.param .align 8 .b8 pair[16]) {
    .local .align 8 .b8 depot[16];
    .reg .b64 %x, %y, %at;
    mov.u64 %at, depot;
    ld.param.v2.b64 {%x, %y}, [pair];
    st.local.v2.b64 [%at], {%y, %x};
    cvta.local.u64 %at, %at;
    ld.b64 %x, [%at];
    ld.b64 %y, [%at+8];
    st.param.v2.b64 [r], {%x, %y};
    ret;
}";

#[test]
fn functions_call_themselves_and_pass_structures() {
    let body = "
.reg .b64 %x, %y, %f;
ld.global.u64 %x, [%array];
{ .param .b64 param0; st.param.b64 [param0], %x; .param .b64 retval0;
  call.uni (retval0), factorial, (param0); ld.param.b64 %y, [retval0]; }
st.global.u64 [%array], %y;
mov.u64 %f, swapped;
{ .param .align 8 .b8 param0[16]; st.param.v2.b64 [param0], {%x, %y};
  .param .align 8 .b8 retval0[16];
  call (retval0), %f, (param0), prototype_0;
  ld.param.v2.b64 {%x, %y}, [retval0]; }
st.global.v2.u64 [%array+16], {%x, %y};
ret;";
    let found = launch_module(FUNCTIONS, body, 1, &[10, 0, 0, 0], Order::Ascending);
    assert_eq!(found, Ok(vec![3_628_800, 0, 3_628_800, 10]));
}

#[test]
fn calls_of_what_is_not_there_are_named() {
    let external = ".extern .func (.param .b32 r) elsewhere ();";
    let body = "{ .param .b32 retval0; call (retval0), elsewhere, (); } ret;";
    let fault = launch_module(external, body, 1, &[0], Order::Ascending).expect_err("outside");
    assert!(fault.contains("a function outside the module"), "{fault}");
    let fault = launch_module("", "call nothing; ret;", 1, &[0], Order::Ascending);
    assert!(fault.is_err_and(|fault| fault.contains("there is no nothing")));
    let fault = launch_module("", "bra $nowhere; ret;", 1, &[0], Order::Ascending);
    assert!(fault.is_err_and(|fault| fault.contains("no label $nowhere")));
}
