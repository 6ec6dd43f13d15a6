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

#[test]
fn threads_that_return_before_the_barrier() {
    let body = r#"
        if (bad && threadIdx.x >= 50) return;
        __syncthreads(); // here
        out[i] = 1;
    "#;
    Case::new(body).finds(FindingKind::MissedBarrier);
}

#[test]
fn the_first_threads_return_before_the_barrier() {
    let body = r#"
        if (bad && threadIdx.x < 5) return;
        __syncthreads(); // here
        out[i] = 1;
    "#;
    Case::new(body).finds(FindingKind::MissedBarrier);
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
