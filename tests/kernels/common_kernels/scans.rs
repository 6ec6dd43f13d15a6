//! Running sums, and what is made of them.

use resident::Grid;

use crate::{Case, case, case_with, floats, ints, words};

cases! {
    inclusive_scan_by_doubling_strides, exclusive_scan_up_and_down_a_tree,
    scan_by_shuffles_with_warp_totals, running_maximum, compaction_by_ballots_and_a_block_offset,
    stable_partition_by_a_predicate, run_lengths, linear_recurrence_as_a_scan_of_pairs
}

fn running(x: &[i32]) -> Vec<i32> {
    x.iter()
        .scan(0, |sum, x| {
            *sum += x;
            Some(*sum)
        })
        .collect()
}

fn inclusive_scan_by_doubling_strides() -> Case {
    let text = r#"
        __shared__ int a[2][128];
        int t = threadIdx.x, from = 0;
        a[0][t] = in[t];
        __syncthreads();
        for (int offset = 1; offset < n; offset <<= 1) {
            a[1 - from][t] = t >= offset ? a[from][t] + a[from][t - offset] : a[from][t];
            from = 1 - from;
            __syncthreads();
        }
        out[t] = a[from][t];
    "#;
    let x = ints(128);
    case(text, Grid::new(1, 128), &x, running(&x))
}

fn exclusive_scan_up_and_down_a_tree() -> Case {
    let text = r#"
        #define BANK(i) ((i) + ((i) >> 5))
        extern __shared__ int temp[];
        int t = threadIdx.x, offset = 1;
        temp[BANK(2 * t)] = in[2 * t];
        temp[BANK(2 * t + 1)] = in[2 * t + 1];
        for (int d = n >> 1; d > 0; d >>= 1) {
            __syncthreads();
            if (t < d)
                temp[BANK(offset * (2 * t + 2) - 1)] += temp[BANK(offset * (2 * t + 1) - 1)];
            offset *= 2;
        }
        if (t == 0) temp[BANK(n - 1)] = 0;
        for (int d = 1; d < n; d *= 2) {
            offset >>= 1;
            __syncthreads();
            if (t < d) {
                int left = BANK(offset * (2 * t + 1) - 1),
                    right = BANK(offset * (2 * t + 2) - 1);
                int kept = temp[left];
                temp[left] = temp[right];
                temp[right] += kept;
            }
        }
        __syncthreads();
        out[2 * t] = temp[BANK(2 * t)];
        out[2 * t + 1] = temp[BANK(2 * t + 1)];
    "#;
    let x = ints(256);
    let sums = running(&x);
    case(
        text,
        Grid::new(1, 128).shared_bytes(4 * 264),
        &x,
        sums.iter().zip(&x).map(|(sum, x)| sum - x),
    )
}

fn scan_by_shuffles_with_warp_totals() -> Case {
    let text = r#"
        __shared__ int totals[8];
        int t = threadIdx.x, lane = t & 31, warp = t >> 5, v = t < n ? in[t] : 0;
        #pragma unroll
        for (int d = 1; d < 32; d <<= 1) {
            int other = __shfl_up_sync(0xffffffff, v, d);
            if (lane >= d) v += other;
        }
        if (lane == 31) totals[warp] = v;
        __syncthreads();
        if (warp == 0 && lane < 8) {
            int w = totals[lane];
            for (int d = 1; d < 8; d <<= 1) {
                int other = __shfl_up_sync(0xff, w, d, 8);
                if (lane >= d) w += other;
            }
            totals[lane] = w;
        }
        __syncthreads();
        if (warp > 0) v += totals[warp - 1];
        if (t < n) out[t] = v;
    "#;
    let x = ints(250);
    case(text, Grid::new(1, 256), &x, running(&x))
}

fn running_maximum() -> Case {
    let text = r#"
        int lane = threadIdx.x;
        float v = in[lane];
        for (int d = 1; d < 32; d *= 2) {
            float other = __shfl_up_sync(-1, v, d);
            if (lane >= d) v = fmaxf(v, other);
        }
        out[lane] = v;
    "#;
    let x = floats(32);
    let mut expected = x.clone();
    (1..32).for_each(|i| expected[i] = expected[i].max(expected[i - 1]));
    case(text, Grid::new(1, 32), &x, expected)
}

fn compaction_by_ballots_and_a_block_offset() -> Case {
    let text = r#"
        __shared__ int starts[5];
        int t = threadIdx.x, lane = t % 32, warp = t / 32;
        bool keep = t < n && in[t] % 3 == 0;
        unsigned mask = __ballot_sync(0xffffffff, keep);
        if (lane == 0) starts[warp + 1] = __popc(mask);
        __syncthreads();
        if (t == 0) {
            starts[0] = 0;
            for (int w = 1; w <= 4; w++) starts[w] += starts[w - 1];
            out[n] = starts[4];
        }
        __syncthreads();
        if (keep) out[starts[warp] + __popc(mask & ((1u << lane) - 1))] = in[t];
    "#;
    let x = ints(128);
    let mut expected: Vec<i32> = x.iter().copied().filter(|x| x % 3 == 0).collect();
    let count = expected.len() as i32;
    expected.resize(128, -1);
    expected.push(count);
    case_with(text, Grid::new(1, 128), &x, &[-1; 129], expected)
}

fn stable_partition_by_a_predicate() -> Case {
    let text = r#"
        __shared__ unsigned flags[65];
        unsigned t = threadIdx.x;
        unsigned is_one = in[t] >> 7 & 1;
        flags[t + 1] = 1 - is_one;
        if (t == 0) flags[0] = 0;
        __syncthreads();
        if (t == 0) for (int k = 1; k <= n; k++) flags[k] += flags[k - 1];
        __syncthreads();
        unsigned zeros_before = flags[t], zeros = flags[n];
        out[is_one ? zeros + t - zeros_before : zeros_before] = in[t];
    "#;
    let x = words(64);
    let (ones, zeros): (Vec<u32>, Vec<u32>) = x.iter().partition(|x| *x >> 7 & 1 == 1);
    case(text, Grid::new(1, 64), &x, [zeros, ones].concat())
}

fn run_lengths() -> Case {
    let text = r#"
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        bool starts = i == 0 || in[i] != in[i - 1];
        if (!starts) { out[i] = 0; return; }
        int length = 1;
        while (i + length < n && in[i + length] == in[i]) ++length;
        out[i] = length;
    "#;
    let x: Vec<i32> = words(200).iter().map(|x| (x % 3 / 2) as i32).collect();
    case_with(
        text,
        Grid::new(4, 64),
        &x,
        &[9; 200],
        (0..200).map(|i| match i {
            _ if i > 0 && x[i] == x[i - 1] => 0,
            _ => x[i..].iter().take_while(|y| **y == x[i]).count() as i32,
        }),
    )
}

fn linear_recurrence_as_a_scan_of_pairs() -> Case {
    let text = r#"
        // x' = a x + b as a pair; composition is associative.
        __shared__ uint2 pairs[64];
        int t = threadIdx.x;
        uint2 own = make_uint2(in[t] & 3, in[t]);
        pairs[t] = own;
        __syncthreads();
        for (int d = 1; d < 64; d <<= 1) {
            uint2 before = t >= d ? pairs[t - d] : make_uint2(1, 0);
            __syncthreads();
            own = make_uint2(own.x * before.x, own.x * before.y + own.y);
            pairs[t] = own;
            __syncthreads();
        }
        out[t] = own.x * 7 + own.y;
    "#;
    let x = words(64);
    let step = |value: &mut u32, x: &u32| {
        *value = (x & 3).wrapping_mul(*value).wrapping_add(*x);
        Some(*value)
    };
    case(text, Grid::new(1, 64), &x, x.iter().scan(7, step))
}
