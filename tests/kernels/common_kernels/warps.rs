//! What the lanes of a warp do together, and atomic operations.

use resident::Grid;

use crate::{Case, case, case_with, floats, ints, words};

cases! {
    broadcast_and_rotation, transposes_of_four_by_four_within_a_warp, reductions_in_hardware,
    one_atomic_operation_for_the_lanes_that_are_active, votes_in_groups_of_lanes,
    lanes_with_equal_values_are_counted, sums_by_segment_with_heads,
    every_atomic_operation_on_words, product_by_compare_and_swap,
    sums_of_floats_and_doubles_by_atomics, a_queue_of_work_shared_by_blocks,
    lock_around_a_critical_section
}

fn broadcast_and_rotation() -> Case {
    let text = r#"
        int lane = threadIdx.x, x = in[lane];
        int first = __shfl_sync(0xffffffff, x, 0), next = __shfl_sync(0xffffffff, x, lane + 1);
        int of_eight = __shfl_sync(0xffffffff, x, 5, 8);
        double wide = __shfl_xor_sync(0xffffffff, x * 0.5, 3);
        out[lane] = first + 3 * next + 7 * of_eight + (int)(wide * 22);
    "#;
    let x = ints(32);
    let value = |i: usize| x[0] + 3 * x[(i + 1) % 32] + 7 * x[i / 8 * 8 + 5] + 11 * x[i ^ 3];
    case(text, Grid::new(1, 32), &x, (0..32).map(value))
}

fn transposes_of_four_by_four_within_a_warp() -> Case {
    let text = r#"
        int lane = threadIdx.x, a[4];
        for (int k = 0; k < 4; ++k) a[k] = in[4 * (lane % 4) + k + 16 * (lane / 4)];
        // Four lanes transpose 4 x 4.
        #pragma unroll
        for (int step = 1; step < 4; ++step) {
            int to = (lane % 4) ^ step;
            a[to] = __shfl_xor_sync(0xffffffff, a[to], step);
        }
        for (int k = 0; k < 4; ++k) out[4 * (lane % 4) + k + 16 * (lane / 4)] = a[k];
    "#;
    let x = ints(128);
    case(text, Grid::new(1, 32), &x, (0..128).map(|i| x[i / 16 * 16 + i % 4 * 4 + i / 4 % 4]))
}

fn reductions_in_hardware() -> Case {
    let text = r#"
        int lane = threadIdx.x, x = in[lane];
        unsigned all = 0xffffffff;
        int values[6] = {
            __reduce_add_sync(all, x), __reduce_min_sync(all, x), __reduce_max_sync(all, x),
            (int)__reduce_and_sync(all, (unsigned)x), (int)__reduce_or_sync(all, (unsigned)x),
            (int)__reduce_xor_sync(all, (unsigned)x)};
        if (lane < 6) out[lane] = values[lane];
    "#;
    let x = ints(32);
    let fold = |f: fn(i32, i32) -> i32| x.iter().copied().reduce(f).expect("some");
    let expected = [
        fold(|a, b| a + b),
        fold(i32::min),
        fold(i32::max),
        fold(|a, b| a & b),
        fold(|a, b| a | b),
        fold(|a, b| a ^ b),
    ];
    case(text, Grid::new(1, 32), &x, expected)
}

fn one_atomic_operation_for_the_lanes_that_are_active() -> Case {
    let text = r#"
        __device__ int add_one(int *counter) {
            unsigned active = __activemask(), lane = threadIdx.x & 31;
            int leader = __ffs(active) - 1, start;
            if (lane == leader) start = atomicAdd(counter, __popc(active));
            start = __shfl_sync(active, start, leader);
            return start + __popc(active & ((1u << lane) - 1));
        }
        extern "C" __global__ void run(const int *in, int *out, int n) {
            int i = threadIdx.x;
            if (in[i] > 0) out[1 + add_one(out)] = 1;
        }
    "#;
    let x = ints(64);
    let count = x.iter().filter(|x| **x > 0).count();
    let mut expected = [0; 65];
    expected[0] = count as i32;
    expected[1..=count].fill(1);
    case(text, Grid::new(1, 64), &x, expected)
}

fn votes_in_groups_of_lanes() -> Case {
    let text = r#"
        int lane = threadIdx.x & 31, group = lane / 8;
        unsigned mask = 0xffu << (8 * group);
        int x = in[threadIdx.x];
        bool all = __all_sync(mask, x > -90), any = __any_sync(mask, x > 90);
        unsigned votes = __ballot_sync(mask, x & 1) >> (8 * group);
        __syncwarp(mask);
        out[threadIdx.x] = all * 1000 + any * 2000 + votes;
    "#;
    let x = ints(96);
    let value = |i: usize| {
        let group = &x[i / 8 * 8..][..8];
        let votes = group.iter().enumerate().fold(0, |votes, (k, x)| votes | (x & 1) << k);
        let (all, any) = (group.iter().all(|x| *x > -90), group.iter().any(|x| *x > 90));
        i32::from(all) * 1000 + i32::from(any) * 2000 + votes
    };
    case(text, Grid::new(1, 96), &x, (0..96).map(value))
}

fn lanes_with_equal_values_are_counted() -> Case {
    let text = r#"
        int lane = threadIdx.x, x = in[lane] & 7, all_equal;
        unsigned same = __match_any_sync(0xffffffff, x);
        unsigned all = __match_all_sync(0xffffffff, x >> 3, &all_equal);
        out[lane] = __popc(same) + 100 * (__ffs(same) - 1) + 10000 * all_equal * (all == ~0u);
    "#;
    let x = ints(32);
    let value = |i: usize| {
        let same = || (0..32).filter(|k| x[*k] & 7 == x[i] & 7);
        same().count() + 100 * same().next().expect("itself") + 10000
    };
    case(text, Grid::new(1, 32), &x, (0..32).map(|i| value(i) as i32))
}

fn sums_by_segment_with_heads() -> Case {
    let text = r#"
        int lane = threadIdx.x, x = in[lane];
        unsigned heads = __ballot_sync(0xffffffff, lane == 0 || x % 5 == 0);
        int first = 31 - __clz(heads & (unsigned)((2ull << lane) - 1));
        for (int d = 1; d < 32; d <<= 1) {
            int y = __shfl_up_sync(0xffffffff, x, d);
            if (lane - d >= first) x += y;
        }
        out[lane] = x;
    "#;
    let x = ints(32);
    let mut sum = 0;
    let mut next = |x: &i32| {
        sum = if x % 5 == 0 { *x } else { sum + x };
        sum
    };
    case(text, Grid::new(1, 32), &x, x.iter().map(&mut next))
}

fn every_atomic_operation_on_words() -> Case {
    let text = r#"
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        int x = in[i];
        unsigned *u = (unsigned *)out;
        atomicAdd(&out[0], x);
        atomicSub(&out[1], x);
        atomicMin(&out[2], x);
        atomicMax(&out[3], x);
        atomicAnd(&u[4], (unsigned)x | 0xff0000);
        atomicOr(&u[5], (unsigned)x & 0xff);
        atomicXor(&u[6], (unsigned)x);
        atomicInc(&u[7], 6);
        atomicDec(&u[8], 6);
        atomicMax(&u[9], (unsigned)x);
        atomicAdd((unsigned long long *)&out[10], (unsigned long long)(long long)x << 8);
        atomicExch(&out[12], 77);
    "#;
    let x = ints(100);
    let mut expected = [0, 0, 1000, -1000, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    for x in &x {
        expected[0] += x;
        expected[1] -= x;
        expected[2] = expected[2].min(*x);
        expected[3] = expected[3].max(*x);
        expected[4] &= x | 0xff_0000;
        expected[5] |= x & 0xff;
        expected[6] ^= x;
        expected[9] = (expected[9] as u32).max(*x as u32) as i32;
    }
    // They count modulo 7.
    expected[7] = 2;
    expected[8] = 5;
    let wide = x.iter().map(|x| i64::from(*x) << 8).sum::<i64>();
    (expected[10], expected[11], expected[12]) = (wide as i32, (wide >> 32) as i32, 77);
    let before = [0, 0, 1000, -1000, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    case_with(text, Grid::new(4, 32), &x, &before, expected)
}

fn product_by_compare_and_swap() -> Case {
    let text = r#"
        unsigned factor = in[threadIdx.x] | 1, old = atomicAdd(out, 0u), assumed;
        do {
            assumed = old;
            old = atomicCAS(out, assumed, assumed * factor);
        } while (assumed != old);
    "#;
    let x = words(50);
    let product = x.iter().fold(1_u32, |product, x| product.wrapping_mul(x | 1));
    case_with(text, Grid::new(1, 50), &x, &[1_u32], [product])
}

fn sums_of_floats_and_doubles_by_atomics() -> Case {
    let text = r#"
        __shared__ float part;
        if (threadIdx.x == 0) part = 0;
        __syncthreads();
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) atomicAdd(&part, in[i]);
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd(out, (double)part);
    "#;
    let x = floats(150);
    let sum = x.iter().map(|x| f64::from(*x)).sum::<f64>();
    case(text, Grid::new(5, 32), &x, [sum])
}

fn a_queue_of_work_shared_by_blocks() -> Case {
    let text = r#"
        __shared__ int task;
        while (true) {
            if (threadIdx.x == 0) task = atomicAdd(&out[n], 1);
            __syncthreads();
            int own = task;
            __syncthreads();
            if (own >= n) break;
            int sum = in[own];
            for (int s = 16; s > 0; s >>= 1) sum += __shfl_down_sync(0xffffffff, sum, s);
            if (threadIdx.x == 0) out[own] = sum;
        }
    "#;
    let x = ints(20);
    let mut expected: Vec<i32> = x.iter().map(|x| 32 * x).collect();
    expected.push(23);
    case(text, Grid::new(3, 32), &x, expected)
}

fn lock_around_a_critical_section() -> Case {
    let text = r#"
        __device__ int lock = 0;
        extern "C" __global__ void run(const int *in, int *out, int n) {
            if (threadIdx.x == 0) {
                while (atomicCAS(&lock, 0, 1) != 0) { }
                __threadfence();
                atomicExch(&out[0], atomicAdd(&out[0], 0) + in[blockIdx.x]);
                __threadfence();
                atomicExch(&lock, 0);
            }
        }
    "#;
    let x = ints(12);
    let sum = x.iter().sum::<i32>();
    case(text, Grid::new(12, 32), &x, [sum])
}
