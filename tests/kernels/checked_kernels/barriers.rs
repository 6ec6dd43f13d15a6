//! Barriers that some threads of a block miss.

use resident::emulation::FindingKind;

use crate::Case;

#[test]
fn a_barrier_for_half_of_the_block() {
    let body = r#"
        if (!bad || threadIdx.x < 32) __syncthreads(); // here
    "#;
    Case::new(body).finds(FindingKind::MissedBarrier);
}

/// As on GPUs since Volta; a strict device reports it, as older ones wait for ever.
#[test]
fn threads_that_return_before_the_barrier_do_not_count() {
    for leave in ["threadIdx.x >= 50", "threadIdx.x < 5", "i % 2"] {
        let body = format!(
            "if (bad && ({leave})) return;
            io[i] = 0;
            __syncthreads(); // here
            out[i] = io[i - i % 64 + 6 * (bad || !bad)];"
        );
        let body: &'static str = body.leak();
        let findings = Case::new(body).run(true).unwrap_or_default();
        let errors: Vec<_> = findings.iter().filter(|one| one.kind.is_error()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        Case::new(body).strict().finds(FindingKind::MissedBarrier);
    }
}

#[test]
fn threads_that_return_by_a_macro_do_not_count() {
    let before = r#"
        #define LEAVE_IF(so) \
            if (so) return;
    "#;
    let body = "LEAVE_IF(bad && threadIdx.x == 9) __syncthreads(); // here";
    let findings = Case::new(body).after(before).run(true).unwrap_or_default();
    assert!(findings.iter().all(|finding| !finding.kind.is_error()), "{findings:?}");
    Case::new(body).after(before).strict().finds(FindingKind::MissedBarrier);
}

#[test]
fn barriers_in_loops_of_different_lengths() {
    let body = r#"
        int steps = bad ? 2 + threadIdx.x / 32 : 3;
        for (int step = 0; step < steps; ++step) __syncthreads(); // here
    "#;
    Case::new(body).finds(FindingKind::MissedBarrier);
}

#[test]
fn barriers_in_two_branches() {
    let body = r#"
        if (threadIdx.x < 32 || !bad)
            __syncthreads(); // here
        else
            __syncthreads();
    "#;
    Case::new(body).finds(FindingKind::MissedBarrier);
}

#[test]
fn a_counting_barrier_for_half_of_the_block() {
    let body = r#"
        int count = 0;
        if (!bad || threadIdx.x % 2 == 0) count = __syncthreads_count(1); // here
        out[i] = count;
    "#;
    Case::new(body).finds(FindingKind::MissedBarrier);
}

#[test]
fn an_iteration_that_is_skipped() {
    let body = r#"
        for (int step = 0; step < 3; ++step) {
            if (bad && step == 1 && threadIdx.x == 9) continue;
            __syncthreads(); // here
        }
    "#;
    Case::new(body).finds(FindingKind::MissedBarrier);
}

#[test]
fn a_barrier_in_a_function() {
    let body = r#"
        if (!bad || threadIdx.x < 32) meet();
        out[i] = 1;
    "#;
    let before = r#"
        __device__ void meet() {
            __syncthreads(); // here
        }
    "#;
    Case::new(body).after(before).finds(FindingKind::MissedBarrier);
}

#[test]
fn a_warp_barrier_in_a_branch() {
    let body = r#"
        if (threadIdx.x % 2 == 0 || !bad)
            __syncwarp(); // here
        io[i] = 1;
    "#;
    Case::new(body).finds(FindingKind::MissedBarrier);
}

#[test]
fn a_warp_barrier_in_a_branch_before_a_barrier_for_all() {
    let body = r#"
        if (threadIdx.x % 2 == 0 || !bad)
            __syncwarp(); // here
        __syncthreads();
        io[i] = 1;
    "#;
    Case::new(body).finds(FindingKind::MissedBarrier);
}

#[test]
fn a_shuffle_in_a_branch_whose_mask_names_all_lanes() {
    let body = r#"
        float sum = in[i];
        if (threadIdx.x % 32 < 16)
            sum += __shfl_down_sync(bad ? 0xffffffffu : 0xffffu, sum, 8); // here
        out[i] = sum;
    "#;
    Case::new(body).finds(FindingKind::MissedBarrier);
}

#[test]
fn lanes_that_have_returned_need_not_come() {
    let body = r#"
        if (threadIdx.x >= 40) return;
        __syncwarp();
        out[i] = __shfl_xor_sync(0xffffffffu, in[i], 1);
        if (bad && threadIdx.x % 2 == 0)
            __syncwarp(); // here
        io[i] = 1;
    "#;
    Case::new(body).finds(FindingKind::MissedBarrier);
}
