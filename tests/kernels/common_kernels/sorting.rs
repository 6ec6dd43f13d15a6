//! Histograms, sorts, searches and merges.

use resident::Grid;

use crate::{Case, case, ints, words};

cases! {
    histogram_with_counts_of_a_block_in_shared_memory,
    histogram_with_bytes_in_words_and_one_column_per_thread, histogram_aggregated_by_matching_lanes,
    bitonic_sort_in_shared_memory, bitonic_sort_within_a_warp, odd_even_transposition_sort,
    radix_sort_by_one_bit_at_a_time, sort_by_rank, insertion_sort_of_each_threads_own_array,
    merge_by_binary_search, smallest_few_of_each_row, counting_sort_of_bytes
}

fn sorted<T: Ord + Clone>(x: &[T]) -> Vec<T> {
    let mut x = x.to_vec();
    x.sort();
    x
}

fn histogram_with_counts_of_a_block_in_shared_memory() -> Case {
    let text = r#"
        #define BINS 16
        __shared__ unsigned counts[BINS];
        if (threadIdx.x < BINS) counts[threadIdx.x] = 0;
        __syncthreads();
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
            atomicAdd(&counts[in[i] >> 28], 1);
        __syncthreads();
        if (threadIdx.x < BINS) atomicAdd(&out[threadIdx.x], counts[threadIdx.x]);
    "#;
    let x = words(500);
    let mut counts = [0_u32; 16];
    x.iter().for_each(|x| counts[(x >> 28) as usize] += 1);
    case(text, Grid::new(3, 64), &x, counts)
}

fn histogram_with_bytes_in_words_and_one_column_per_thread() -> Case {
    let text = r#"
        __shared__ unsigned char counts[32][8];
        for (int b = 0; b < 8; ++b) counts[threadIdx.x][b] = 0;
        for (int i = threadIdx.x; i < n; i += 32) counts[threadIdx.x][in[i] >> 5]++;
        __syncthreads();
        if (threadIdx.x < 8) {
            unsigned sum = 0;
            for (int t = 0; t < 32; ++t) sum += counts[t][threadIdx.x];
            out[threadIdx.x] = sum;
        }
    "#;
    let x: Vec<u8> = words(600).iter().map(|x| *x as u8).collect();
    let mut counts = [0_u32; 8];
    x.iter().for_each(|x| counts[usize::from(x >> 5)] += 1);
    case(text, Grid::new(1, 32), &x, counts)
}

fn histogram_aggregated_by_matching_lanes() -> Case {
    let text = r#"
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        int bin = i < n ? (in[i] + 100) / 41 : 5;
        unsigned same = __match_any_sync(0xffffffff, bin);
        int leader = __ffs(same) - 1;
        if ((threadIdx.x & 31) == leader) atomicAdd(&out[bin], __popc(same));
    "#;
    let x = ints(200);
    let mut counts = [0; 6];
    x.iter().for_each(|x| counts[(x + 100) as usize / 41] += 1);
    counts[5] = 24;
    case(text, Grid::new(7, 32), &x, counts)
}

fn bitonic_sort_in_shared_memory() -> Case {
    let text = r#"
        extern __shared__ int keys[];
        unsigned t = threadIdx.x;
        keys[t] = in[t];
        for (unsigned k = 2; k <= blockDim.x; k <<= 1)
            for (unsigned j = k >> 1; j > 0; j >>= 1) {
                __syncthreads();
                unsigned other = t ^ j;
                if (other > t) {
                    bool up = (t & k) == 0;
                    int a = keys[t], b = keys[other];
                    if ((a > b) == up) { keys[t] = b; keys[other] = a; }
                }
            }
        __syncthreads();
        out[t] = keys[t];
    "#;
    let x = ints(128);
    case(text, Grid::new(1, 128).shared_bytes(512), &x, sorted(&x))
}

fn bitonic_sort_within_a_warp() -> Case {
    let text = r#"
        __device__ int exchanged(int x, int mask, bool keeps_small) {
            int y = __shfl_xor_sync(0xffffffff, x, mask);
            return keeps_small == (x < y) ? x : y;
        }
        extern "C" __global__ void run(const int *in, int *out, int n) {
            int lane = threadIdx.x, x = in[lane];
            for (int size = 2; size <= 32; size *= 2)
                for (int stride = size / 2; stride > 0; stride /= 2)
                    x = exchanged(x, stride, ((lane & size) == 0) == ((lane & stride) == 0));
            out[lane] = x;
        }
    "#;
    let x: Vec<i32> = words(32).iter().map(|x| *x as i32).collect();
    case(text, Grid::new(1, 32), &x, sorted(&x))
}

fn odd_even_transposition_sort() -> Case {
    let text = r#"
        __shared__ int a[50];
        int t = threadIdx.x;
        for (int i = t; i < n; i += blockDim.x) a[i] = in[i];
        for (int round = 0; round < n; ++round) {
            __syncthreads();
            int i = 2 * t + (round & 1);
            if (i + 1 < n && a[i] > a[i + 1]) { int kept = a[i]; a[i] = a[i + 1];
                a[i + 1] = kept; }
        }
        __syncthreads();
        for (int i = t; i < n; i += blockDim.x) out[i] = a[i];
    "#;
    let x = ints(50);
    case(text, Grid::new(1, 25), &x, sorted(&x))
}

fn radix_sort_by_one_bit_at_a_time() -> Case {
    let text = r#"
        __shared__ unsigned keys[64], ones[64];
        unsigned t = threadIdx.x, key = in[t];
        for (int bit = 0; bit < 32; ++bit) {
            ones[t] = key >> bit & 1;
            __syncthreads();
            for (int d = 1; d < 64; d *= 2) {
                unsigned before = t >= d ? ones[t - d] : 0;
                __syncthreads();
                ones[t] += before;
                __syncthreads();
            }
            unsigned zeros = 64 - ones[63], is_one = key >> bit & 1;
            keys[is_one ? zeros + ones[t] - 1 : t - ones[t]] = key;
            __syncthreads();
            key = keys[t];
            __syncthreads();
        }
        out[t] = key;
    "#;
    let x = words(64);
    case(text, Grid::new(1, 64), &x, sorted(&x))
}

fn sort_by_rank() -> Case {
    let text = r#"
        int i = blockIdx.x * blockDim.x + threadIdx.x, rank = 0;
        if (i >= n) return;
        for (int j = 0; j < n; ++j) rank += in[j] < in[i] || (in[j] == in[i] && j < i);
        out[rank] = in[i];
    "#;
    let x = ints(90);
    case(text, Grid::new(3, 32), &x, sorted(&x))
}

fn insertion_sort_of_each_threads_own_array() -> Case {
    let text = r#"
        int own[8], i = 8 * (blockIdx.x * blockDim.x + threadIdx.x);
        for (int k = 0; k < 8; ++k) {
            int x = in[i + k], j = k;
            while (j > 0 && own[j - 1] > x) { own[j] = own[j - 1]; --j; }
            own[j] = x;
        }
        for (int k = 0; k < 8; ++k) out[i + k] = own[k];
    "#;
    let x = ints(256);
    case(text, Grid::new(2, 16), &x, x.chunks(8).flat_map(sorted))
}

fn merge_by_binary_search() -> Case {
    let text = r#"
        __device__ int below(const int *x, int n, int key, bool or_equal) {
            int low = 0, high = n;
            while (low < high) {
                int middle = (low + high) >> 1;
                if (or_equal ? x[middle] <= key : x[middle] < key) low = middle + 1;
                    else high = middle;
            }
            return low;
        }
        extern "C" __global__ void run(const int *in, int *out, int n) {
            int i = threadIdx.x, half = n / 2;
            const int *a = in, *b = in + half;
            if (i < half) out[i + below(b, half, a[i], false)] = a[i];
            else out[i - half + below(a, half, b[i - half], true)] = b[i - half];
        }
    "#;
    let numbers = ints(120);
    let x = [sorted(&numbers[..60]), sorted(&numbers[60..])].concat();
    case(text, Grid::new(1, 120), &x, sorted(&x))
}

fn smallest_few_of_each_row() -> Case {
    let text = r#"
        template <int K> struct Smallest {
            int of[K];
            __device__ Smallest() { for (int &x : of) x = 0x7fffffff; }
            __device__ void add(int x) {
                for (int k = 0; k < K; ++k) if (x < of[k]) { int kept = of[k]; of[k] = x;
                    x = kept; }
            }
        };
        extern "C" __global__ void run(const int *in, int *out, int n) {
            Smallest<3> best;
            for (int k = 0; k < 20; ++k) best.add(in[threadIdx.x * 20 + k]);
            for (int k = 0; k < 3; ++k) out[threadIdx.x * 3 + k] = best.of[k];
        }
    "#;
    let x = ints(200);
    case(text, Grid::new(1, 10), &x, x.chunks(20).flat_map(|row| sorted(row)[..3].to_vec()))
}

fn counting_sort_of_bytes() -> Case {
    let text = r#"
        __shared__ int starts[257];
        for (int b = threadIdx.x; b < 257; b += blockDim.x) starts[b] = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&starts[in[i] + 1], 1);
        __syncthreads();
        if (threadIdx.x == 0) for (int b = 1; b < 257; ++b) starts[b] += starts[b - 1];
        __syncthreads();
        for (int b = threadIdx.x; b < 256; b += blockDim.x)
            for (int i = starts[b]; i < starts[b + 1]; ++i) out[i] = b;
    "#;
    let x: Vec<u8> = words(300).iter().map(|x| (x >> 8) as u8).collect();
    case(text, Grid::new(1, 64), &x, sorted(&x))
}
