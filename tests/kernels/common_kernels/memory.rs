//! Vectors, strides, and memory of each kind.

use resident::Grid;

use crate::{Case, case, floats, ints, words};

cases! {
    copy_by_vectors_of_four_with_a_rest, structures_of_arrays_from_arrays_of_structures,
    reversal_in_place_and_shared, gather_scatter_and_guards, grids_of_two_and_three_axes,
    tables_in_constant_and_device_memory, circular_buffer_in_local_memory,
    bytes_and_short_numbers_in_words
}

fn copy_by_vectors_of_four_with_a_rest() -> Case {
    let text = r#"
        int i = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
        for (int k = i; k < n / 4; k += step)
            reinterpret_cast<int4 *>(out)[k] = reinterpret_cast<const int4 *>(in)[k];
        if (i < n % 4) out[n - 1 - i] = in[n - 1 - i];
    "#;
    let x = ints(203);
    case(text, Grid::new(2, 32), &x, x.clone())
}

fn structures_of_arrays_from_arrays_of_structures() -> Case {
    let text = r#"
        struct Particle { float x, y, z; int id; };
        extern "C" __global__ void run(const Particle *in, float *out, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            Particle p = in[i];
            out[i] = p.x;
            out[n + i] = p.y;
            out[2 * n + i] = p.z;
            out[3 * n + i] = __int_as_float(p.id);
        }
    "#;
    let x: Vec<[f32; 4]> = floats(200).chunks(4).map(|x| [x[0], x[1], x[2], x[3]]).collect();
    case(text, Grid::new(2, 32), &x, (0..200).map(|i| x[i % 50][i / 50]))
}

fn reversal_in_place_and_shared() -> Case {
    let text = r#"
        extern __shared__ int s[];
        int start = blockIdx.x * blockDim.x, t = threadIdx.x;
        s[t] = in[start + t];
        __syncthreads();
        int to = (gridDim.x - 1 - blockIdx.x) * blockDim.x + t;
        out[to] = s[blockDim.x - 1 - t];
    "#;
    let x = ints(192);
    case(text, Grid::new(3, 64).shared_bytes(256), &x, x.iter().rev().copied())
}

fn gather_scatter_and_guards() -> Case {
    let text = r#"
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        unsigned to = (i * 37u + 11u) % n;
        out[to] = in[i] ^ in[in[i] % n];
    "#;
    let x = words(101);
    let mut expected = [0; 101];
    (0..101).for_each(|i| expected[(i * 37 + 11) % 101] = x[i] ^ x[x[i] as usize % 101]);
    case(text, Grid::new(4, 32), &x, expected)
}

fn grids_of_two_and_three_axes() -> Case {
    let text = r#"
        int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        int i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
        dim3 size = gridDim;
        if (i < n) out[i] = in[i] + 1000 * (threadIdx.z * 100 + threadIdx.y * 10 + threadIdx.x)
            + size.x * size.y * size.z + blockIdx.z;
    "#;
    let x = ints(2 * 3 * 2 * 24);
    let value = |(i, x): (usize, &i32)| {
        let (thread, block) = (i % 24, i / 24);
        let digits = thread / 12 * 100 + thread / 4 % 3 * 10 + thread % 4;
        x + 1000 * digits as i32 + 12 + (block / 6) as i32
    };
    case(text, Grid::new((2, 3, 2), (4, 3, 2)), &x, x.iter().enumerate().map(value))
}

fn tables_in_constant_and_device_memory() -> Case {
    let text = r#"
        __constant__ unsigned char bits[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
        __device__ const int squares[] = {0, 1, 4, 9, 16};
        __constant__ struct { int scale; float shift; } settings = {3, 0.5f};
        extern "C" __global__ void run(const unsigned *in, int *out, int n) {
            unsigned x = in[threadIdx.x];
            int sum = 0;
            for (int k = 0; k < 32; k += 4) sum += squares[bits[x >> k & 15]];
            out[threadIdx.x] = sum * settings.scale + (int)(settings.shift * 10);
        }
    "#;
    let x = words(64);
    let value = |x: &u32| {
        let squares = (0..8).map(|k| (x >> (4 * k) & 15).count_ones().pow(2) as i32);
        squares.sum::<i32>() * 3 + 5
    };
    case(text, Grid::new(1, 64), &x, x.iter().map(value))
}

fn circular_buffer_in_local_memory() -> Case {
    let text = r#"
        int ring[5], sum = 0, start = threadIdx.x * 20;
        for (int k = 0; k < 20; ++k) {
            if (k >= 5) sum -= ring[k % 5];
            ring[k % 5] = in[start + k];
            sum += ring[k % 5];
            out[start + k] = sum;
        }
    "#;
    let x = ints(160);
    let sums = |part: &[i32]| {
        (0..20)
            .map(|k| part[(k + 1_usize).saturating_sub(5)..=k].iter().sum())
            .collect::<Vec<i32>>()
    };
    case(text, Grid::new(1, 8), &x, x.chunks(20).flat_map(sums))
}

fn bytes_and_short_numbers_in_words() -> Case {
    let text = r#"
        const short2 *pairs = (const short2 *)in;
        const char4 *bytes = (const char4 *)in;
        int i = threadIdx.x;
        short2 p = pairs[i];
        char4 b = bytes[i];
        out[i] = p.x * 3 + p.y + ((int)b.x + b.y) * 100000 - b.w;
    "#;
    let x: Vec<i16> = words(80).iter().map(|x| *x as i16).collect();
    let value = |p: &[i16]| {
        let ([a, b], [_, d]) = (p[0].to_le_bytes(), p[1].to_le_bytes());
        let bytes = i32::from(a as i8) + i32::from(b as i8);
        i32::from(p[0]) * 3 + i32::from(p[1]) + bytes * 100_000 - i32::from(d as i8)
    };
    case(text, Grid::new(1, 40), &x, x.chunks(2).map(value))
}
