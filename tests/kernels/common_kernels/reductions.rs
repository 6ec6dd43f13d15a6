//! Sums, extremes and counts of many elements.

use resident::Grid;

use crate::{Case, case, case_with, floats, ints, words};

cases! {
    sum_with_interleaved_addresses, sum_with_sequential_addresses_and_a_grid_stride,
    sum_by_shuffles_within_warps_and_shared_memory_between,
    sum_of_pairs_of_loads_with_the_last_warp_unrolled, sum_finished_by_the_last_block,
    largest_and_its_place, smallest_of_floats_by_atomics_on_their_bits,
    mean_and_variance_by_merging_moments, count_by_votes, sums_by_segment_keys,
    checksum_of_words_by_exclusive_or, dot_product_with_vectors_of_four
}

fn sum_with_interleaved_addresses() -> Case {
    let text = r#"
        __shared__ float part[64];
        unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
        part[t] = i < n ? in[i] : 0.0f;
        __syncthreads();
        for (unsigned s = 1; s < blockDim.x; s *= 2) {
            if (t % (2 * s) == 0) part[t] += part[t + s];
            __syncthreads();
        }
        if (t == 0) out[blockIdx.x] = part[0];
    "#;
    let x = floats(300);
    case(text, Grid::new(5, 64), &x, x.chunks(64).map(|part| part.iter().sum::<f32>()))
}

fn sum_with_sequential_addresses_and_a_grid_stride() -> Case {
    let text = r#"
        extern __shared__ float part[];
        float sum = 0;
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            sum += in[i];
        part[threadIdx.x] = sum;
        __syncthreads();
        for (unsigned s = blockDim.x / 2; s > 0; s >>= 1) {
            if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
            __syncthreads();
        }
        if (threadIdx.x == 0) atomicAdd(out, part[0]);
    "#;
    let x = floats(1000);
    let sum = x.iter().sum::<f32>();
    case(text, Grid::new(3, 64).shared_bytes(256), &x, [sum])
}

fn sum_by_shuffles_within_warps_and_shared_memory_between() -> Case {
    let text = r#"
        __inline__ __device__ int warp_sum(int v) {
            for (int offset = warpSize / 2; offset > 0; offset /= 2)
                v += __shfl_down_sync(0xffffffff, v, offset);
            return v;
        }
        __inline__ __device__ int block_sum(int v) {
            static __shared__ int shared[32];
            int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
            v = warp_sum(v);
            if (lane == 0) shared[warp] = v;
            __syncthreads();
            v = threadIdx.x < blockDim.x / warpSize ? shared[lane] : 0;
            if (warp == 0) v = warp_sum(v);
            return v;
        }
        extern "C" __global__ void run(const int *in, int *out, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            int sum = block_sum(i < n ? in[i] : 0);
            if (threadIdx.x == 0) out[blockIdx.x] = sum;
        }
    "#;
    let x = ints(500);
    case(text, Grid::new(4, 128), &x, x.chunks(128).map(|part| part.iter().sum::<i32>()))
}

fn sum_of_pairs_of_loads_with_the_last_warp_unrolled() -> Case {
    let text = r#"
        template <unsigned size> __device__ void last_warp(volatile int *part, unsigned t) {
            if (size >= 64) { part[t] += part[t + 32]; __syncwarp(); }
            for (int s = 16; s > 0; s /= 2) {
                int other = t < s ? part[t + s] : 0;
                __syncwarp();
                if (t < s) part[t] += other;
                __syncwarp();
            }
        }
        extern "C" __global__ void run(const int *in, int *out, int n) {
            __shared__ int part[128];
            unsigned t = threadIdx.x, i = blockIdx.x * 256 + t;
            part[t] = (i < n ? in[i] : 0) + (i + 128 < n ? in[i + 128] : 0);
            __syncthreads();
            if (t < 64) part[t] += part[t + 64];
            __syncthreads();
            if (t < 32) last_warp<128>(part, t);
            if (t == 0) out[blockIdx.x] = part[0];
        }
    "#;
    let x = ints(700);
    case(text, Grid::new(3, 128), &x, x.chunks(256).map(|part| part.iter().sum::<i32>()))
}

fn sum_finished_by_the_last_block() -> Case {
    let text = r#"
        __device__ unsigned arrived = 0;
        __device__ int partial[4];
        extern "C" __global__ void run(const int *in, int *out, int n) {
            __shared__ bool is_last;
            int sum = 0;
            if (threadIdx.x == 0) {
                for (int i = blockIdx.x; i < n; i += gridDim.x) sum += in[i];
                partial[blockIdx.x] = sum;
                __threadfence();
                unsigned ticket = atomicInc(&arrived, gridDim.x - 1);
                is_last = ticket == gridDim.x - 1;
            }
            __syncthreads();
            if (is_last && threadIdx.x == 0) {
                sum = 0;
                for (int k = 0; k < gridDim.x; k++) sum += ((volatile int *)partial)[k];
                *out = sum;
            }
        }
    "#;
    let x = ints(100);
    let sum = x.iter().sum::<i32>();
    case(text, Grid::new(4, 32), &x, [sum])
}

fn largest_and_its_place() -> Case {
    let text = r#"
        __shared__ int best[64], place[64];
        int t = threadIdx.x;
        best[t] = -2147483647 - 1;
        place[t] = -1;
        for (int i = t; i < n; i += blockDim.x)
            if (in[i] > best[t]) { best[t] = in[i]; place[t] = i; }
        __syncthreads();
        for (int s = 32; s; s >>= 1) {
            if (t < s && (best[t + s] > best[t]
                          || (best[t + s] == best[t] && place[t + s] < place[t]))) {
                best[t] = best[t + s];
                place[t] = place[t + s];
            }
            __syncthreads();
        }
        if (!t) { out[0] = best[0]; out[1] = place[0]; }
    "#;
    let x = ints(300);
    let largest = *x.iter().max().expect("some");
    let place = x.iter().position(|x| *x == largest).expect("it is there") as i32;
    case(text, Grid::new(1, 64), &x, [largest, place])
}

fn smallest_of_floats_by_atomics_on_their_bits() -> Case {
    let text = r#"
        __device__ void atomic_min(float *address, float value) {
            int *bits = (int *)address;
            int old = atomicAdd(bits, 0), assumed;
            do {
                assumed = old;
                if (__int_as_float(assumed) <= value) break;
                old = atomicCAS(bits, assumed, __float_as_int(value));
            } while (old != assumed);
        }
        extern "C" __global__ void run(const float *in, float *out, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) atomic_min(out, in[i]);
        }
    "#;
    let x = floats(200);
    let least = x.iter().copied().fold(f32::INFINITY, f32::min);
    case_with(text, Grid::new(4, 64), &x, &[1000.0_f32], [least])
}

fn mean_and_variance_by_merging_moments() -> Case {
    let text = r#"
        struct Moments { float n, mean, m2; };
        __device__ Moments merged(const Moments &a, const Moments &b) {
            Moments r;
            r.n = a.n + b.n;
            if (r.n == 0) { r.mean = r.m2 = 0; return r; }
            float delta = b.mean - a.mean;
            r.mean = a.mean + delta * b.n / r.n;
            r.m2 = a.m2 + b.m2 + delta * delta * a.n * b.n / r.n;
            return r;
        }
        extern "C" __global__ void run(const float *in, float *out, int n) {
            __shared__ Moments all[32];
            Moments own = {0, 0, 0};
            for (int i = threadIdx.x; i < n; i += 32) own = merged(own, Moments{1, in[i], 0});
            all[threadIdx.x] = own;
            __syncthreads();
            for (int s = 16; s > 0; s /= 2) {
                if (threadIdx.x < s) all[threadIdx.x] = merged(all[threadIdx.x],
                    all[threadIdx.x + s]);
                __syncthreads();
            }
            if (threadIdx.x == 0) { out[0] = all[0].n; out[1] = all[0].mean;
                out[2] = all[0].m2 / all[0].n; }
        }
    "#;
    // Four values, each as often as the others: mean 2.5, variance 1.25, all steps exact enough.
    let x: Vec<f32> = (0..128).map(|i| (i / 32 + 1) as f32).collect();
    case(text, Grid::new(1, 32), &x, [128.0_f32, 2.5, 1.25])
}

fn count_by_votes() -> Case {
    let text = r#"
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        bool is = i < n && in[i] > 10;
        unsigned votes = __ballot_sync(~0u, is);
        if ((threadIdx.x & 31) == 0) atomicAdd(out, __popc(votes));
        int of_block = __syncthreads_count(is);
        if (threadIdx.x == 0) atomicAdd(out + 1, of_block);
        if (__syncthreads_or(is) && threadIdx.x == 0) atomicAdd(out + 2, 1u);
    "#;
    let x = ints(333);
    let count = x.iter().filter(|x| **x > 10).count() as u32;
    case(text, Grid::new(6, 64), &x, [count, count, 6])
}

fn sums_by_segment_keys() -> Case {
    let text = r#"
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) atomicAdd(&out[(in[i] + 100) / 51], in[i]);
    "#;
    let x = ints(400);
    let mut sums = [0; 4];
    x.iter().for_each(|x| sums[(x + 100) as usize / 51] += x);
    case(text, Grid::new(7, 64), &x, sums)
}

fn checksum_of_words_by_exclusive_or() -> Case {
    let text = r#"
        unsigned sum = 0;
        for (int i = threadIdx.x; i < n; i += blockDim.x) sum ^= __funnelshift_l(in[i],
            in[i], i & 31);
        for (int lane = 16; lane; lane >>= 1) sum ^= __shfl_xor_sync(0xffffffffu, sum, lane,
            32);
        if (threadIdx.x == 0) *out = sum;
    "#;
    let x = words(100);
    let sum = x.iter().enumerate().fold(0, |sum, (i, x)| sum ^ x.rotate_left(i as u32 & 31));
    case(text, Grid::new(1, 32), &x, [sum])
}

fn dot_product_with_vectors_of_four() -> Case {
    let text = r#"
        const float4 *v = reinterpret_cast<const float4 *>(in);
        __shared__ float sums[32];
        float sum = 0;
        for (int i = threadIdx.x; i < n / 4; i += 32) {
            float4 a = v[i];
            sum += a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w;
        }
        sums[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int k = 1; k < 32; k++) sum += sums[k];
            *out = sum;
        }
    "#;
    let x = floats(256);
    let sum = x.iter().map(|x| x * x).sum::<f32>();
    case(text, Grid::new(1, 32), &x, [sum])
}
