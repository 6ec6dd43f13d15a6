//! Grids: neighbours, products of matrices, and images.

use resident::Grid;

use crate::{Case, case, floats, ints, words};

cases! {
    moving_average_with_a_halo_in_shared_memory, heat_on_a_plate, seven_points_in_three_axes,
    product_of_matrices_in_tiles, product_with_several_results_in_registers,
    transpose_through_a_padded_tile, matrix_times_vector_with_one_warp_per_row, edges_by_sobel,
    median_of_nine_by_a_sorting_network, convolution_with_weights_in_constant_memory,
    colours_to_grey_and_packed_pixels, bilinear_enlargement
}

fn at(x: &[f32], width: usize, row: i64, column: i64) -> f32 {
    let height = x.len() as i64 / width as i64;
    x[(row.clamp(0, height - 1) * width as i64 + column.clamp(0, width as i64 - 1)) as usize]
}

fn moving_average_with_a_halo_in_shared_memory() -> Case {
    let text = r#"
        #define RADIUS 3
        #define BLOCK 32
        __shared__ float tile[BLOCK + 2 * RADIUS];
        int g = threadIdx.x + blockIdx.x * blockDim.x, l = threadIdx.x + RADIUS;
        tile[l] = g < n ? in[g] : 0;
        if (threadIdx.x < RADIUS) {
            tile[l - RADIUS] = g >= RADIUS ? in[g - RADIUS] : 0;
            tile[l + BLOCK] = g + BLOCK < n ? in[g + BLOCK] : 0;
        }
        __syncthreads();
        float result = 0;
        for (int offset = -RADIUS; offset <= RADIUS; offset++) result += tile[l + offset];
        if (g < n) out[g] = result;
    "#;
    let x = floats(150);
    let value = |i: i64| usize::try_from(i).ok().and_then(|i| x.get(i)).copied().unwrap_or(0.0);
    case(text, Grid::new(5, 32), &x, (0..150).map(|i| (i - 3..=i + 3).map(value).sum::<f32>()))
}

fn heat_on_a_plate() -> Case {
    let text = r#"
        #define W 24
        int x = blockIdx.x * blockDim.x + threadIdx.x,
            y = blockIdx.y * blockDim.y + threadIdx.y;
        if (x >= W || y >= n / W) return;
        int i = y * W + x;
        if (x == 0 || y == 0 || x == W - 1 || y == n / W - 1) { out[i] = in[i]; return; }
        out[i] = in[i] + 0.25f * (in[i - 1] + in[i + 1] + in[i - W] + in[i + W] - 4 * in[i]);
    "#;
    let x = floats(24 * 10);
    let expected = (0..240).map(|i| {
        let (row, column) = (i / 24, i % 24);
        if row == 0 || column == 0 || row == 9 || column == 23 {
            return x[i];
        }
        0.25 * (x[i - 1] + x[i + 1] + x[i - 24] + x[i + 24])
    });
    case(text, Grid::new((3, 3), (8, 4)), &x, expected)
}

fn seven_points_in_three_axes() -> Case {
    let text = r#"
        __device__ __forceinline__ int at(int x, int y, int z) { return (z * 6 + y) * 8 + x; }
        extern "C" __global__ void run(const int *in, int *out, int n) {
            int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
            int sum = -6 * in[at(x, y, z)];
            sum += in[at((x + 7) % 8, y, z)] + in[at((x + 1) % 8, y, z)];
            sum += in[at(x, (y + 5) % 6, z)] + in[at(x, (y + 1) % 6, z)];
            sum += in[at(x, y, (z + 4) % 5)] + in[at(x, y, (z + 1) % 5)];
            out[at(x, y, z)] = sum;
        }
    "#;
    let x = ints(240);
    let value = |i: usize, j: usize, k: usize| x[((k % 5) * 6 + j % 6) * 8 + i % 8];
    let expected = (0..240).map(|n| {
        let (i, j, k) = (n % 8, n / 8 % 6, n / 48);
        value(i + 7, j, k)
            + value(i + 1, j, k)
            + value(i, j + 5, k)
            + value(i, j + 1, k)
            + value(i, j, k + 4)
            + value(i, j, k + 1)
            - 6 * x[n]
    });
    case(text, Grid::new(5, (8, 6)), &x, expected)
}

fn product_of_matrices_in_tiles() -> Case {
    let text = r#"
        #define TILE 8
        const int w = 20;
        const float *a = in, *b = in + w * w;
        __shared__ float as[TILE][TILE], bs[TILE][TILE + 1];
        int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
        float sum = 0;
        for (int m = 0; m < (w + TILE - 1) / TILE; ++m) {
            int k = m * TILE + threadIdx.x, l = m * TILE + threadIdx.y;
            as[threadIdx.y][threadIdx.x] = row < w && k < w ? a[row * w + k] : 0;
            bs[threadIdx.y][threadIdx.x] = l < w && column < w ? b[l * w + column] : 0;
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < TILE; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
            __syncthreads();
        }
        if (row < w && column < w) out[row * w + column] = sum;
    "#;
    let x = floats(800);
    let product =
        |i: usize| (0..20).map(|k| x[i / 20 * 20 + k] * x[400 + k * 20 + i % 20]).sum::<f32>();
    case(text, Grid::new((3, 3), (8, 8)), &x, (0..400).map(product))
}

fn product_with_several_results_in_registers() -> Case {
    let text = r#"
        template <int N> __device__ void accumulate(float (&sums)[N], const float *row, float b) {
            #pragma unroll
            for (int k = 0; k < N; ++k) sums[k] += row[k * 16] * b;
        }
        extern "C" __global__ void run(const float *in, float *out, int n) {
            float sums[4] = {};
            int column = threadIdx.x, row = 4 * threadIdx.y;
            for (int k = 0; k < 16; ++k) accumulate(sums, in + row * 16 + k,
                in[256 + k * 16 + column]);
            for (int k = 0; k < 4; ++k) out[(row + k) * 16 + column] = sums[k];
        }
    "#;
    let x = floats(512);
    let product =
        |i: usize| (0..16).map(|k| x[i / 16 * 16 + k] * x[256 + k * 16 + i % 16]).sum::<f32>();
    case(text, Grid::new(1, (16, 4)), &x, (0..256).map(product))
}

fn transpose_through_a_padded_tile() -> Case {
    let text = r#"
        #define TILE 16
        #define ROWS 4
        __shared__ int tile[TILE][TILE + 1];
        const int w = 40, h = n / w;
        int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
        for (int j = 0; j < TILE; j += ROWS)
            if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
        __syncthreads();
        x = blockIdx.y * TILE + threadIdx.x;
        y = blockIdx.x * TILE + threadIdx.y;
        for (int j = 0; j < TILE; j += ROWS)
            if (x < h && y + j < w) out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
    "#;
    let x = ints(40 * 30);
    case(text, Grid::new((3, 2), (16, 4)), &x, (0..1200).map(|i| x[i % 30 * 40 + i / 30]))
}

fn matrix_times_vector_with_one_warp_per_row() -> Case {
    let text = r#"
        const int w = 50;
        int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
        if (row >= n / w - 1) return;
        float sum = 0;
        for (int k = lane; k < w; k += 32) sum += in[w + row * w + k] * in[k];
        for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(0xffffffff, sum, s);
        if (lane == 0) out[row] = sum;
    "#;
    let x = floats(50 * 8);
    let row = |r: usize| (0..50).map(|k| x[50 + r * 50 + k] * x[k]).sum::<f32>();
    case(text, Grid::new(4, 64), &x, (0..7).map(row))
}

fn edges_by_sobel() -> Case {
    let text = r#"
        #define CLAMP(x, lo, hi) min(max((x), (lo)), (hi))
        const int w = 16, h = n / w;
        int x = threadIdx.x, y = blockIdx.x;
        auto p = [&](int dx, int dy) { return in[CLAMP(y + dy, 0, h - 1) * w + CLAMP(x + dx,
            0, w - 1)]; };
        float gx = p(1, -1) + 2 * p(1, 0) + p(1, 1) - p(-1, -1) - 2 * p(-1, 0) - p(-1, 1);
        float gy = p(-1, 1) + 2 * p(0, 1) + p(1, 1) - p(-1, -1) - 2 * p(0, -1) - p(1, -1);
        out[y * w + x] = fabsf(gx) + fabsf(gy);
    "#;
    let x = floats(16 * 12);
    let expected = (0..192).map(|i| {
        let p = |dx: i64, dy: i64| at(&x, 16, i / 16 + dy, i % 16 + dx);
        let gx = p(1, -1) + 2.0 * p(1, 0) + p(1, 1) - p(-1, -1) - 2.0 * p(-1, 0) - p(-1, 1);
        let gy = p(-1, 1) + 2.0 * p(0, 1) + p(1, 1) - p(-1, -1) - 2.0 * p(0, -1) - p(1, -1);
        gx.abs() + gy.abs()
    });
    case(text, Grid::new(12, 16), &x, expected)
}

fn median_of_nine_by_a_sorting_network() -> Case {
    let text = r#"
        __device__ inline void order(float &a, float &b) { float low = fminf(a, b); b = fmaxf(a,
            b); a = low; }
        extern "C" __global__ void run(const float *in, float *out, int n) {
            const int w = 12, h = n / w;
            int x = threadIdx.x, y = threadIdx.y;
            float v[9];
            int k = 0;
            for (int dy = -1; dy <= 1; ++dy)
                for (int dx = -1; dx <= 1; ++dx)
                    v[k++] = in[min(max(y + dy, 0), h - 1) * w + min(max(x + dx, 0), w - 1)];
            for (int round = 0; round < 9; ++round)
                for (int i = round & 1; i + 1 < 9; i += 2) order(v[i], v[i + 1]);
            out[y * w + x] = v[4];
        }
    "#;
    let x = floats(12 * 9);
    let expected = (0..108).map(|i| {
        let around = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy)));
        let mut v: Vec<f32> = around.map(|(dx, dy)| at(&x, 12, i / 12 + dy, i % 12 + dx)).collect();
        v.sort_by(f32::total_cmp);
        v[4]
    });
    case(text, Grid::new(1, (12, 9)), &x, expected)
}

fn convolution_with_weights_in_constant_memory() -> Case {
    let text = r#"
        __constant__ float weights[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};
        extern "C" __global__ void run(const float *in, float *out, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            float sum = 0;
            for (int k = -2; k <= 2; ++k) {
                int j = i + k;
                j = j < 0 ? -j : j >= n ? 2 * n - 2 - j : j;
                sum += weights[k + 2] * __ldg(&in[j]);
            }
            out[i] = sum;
        }
    "#;
    let x = floats(90);
    let weights = [0.0625, 0.25, 0.375, 0.25, 0.0625];
    let value = |j: i64| {
        x[if j < 0 {
            -j
        } else if j >= 90 {
            178 - j
        } else {
            j
        } as usize]
    };
    let sum = |i: i64| (0..5).map(|k| weights[k as usize] * value(i + k - 2)).sum::<f32>();
    case(text, Grid::new(3, 32), &x, (0..90).map(sum))
}

fn colours_to_grey_and_packed_pixels() -> Case {
    let text = r#"
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        uchar4 p = *reinterpret_cast<const uchar4 *>(&in[i]);
        unsigned char grey = (77 * p.x + 150 * p.y + 29 * p.z) >> 8;
        uchar4 q = make_uchar4(grey, grey, grey, 255 - p.w);
        out[i] = *reinterpret_cast<unsigned *>(&q);
    "#;
    let x = words(77);
    let grey = |x: &u32| {
        let [r, g, b, a] = x.to_le_bytes().map(u32::from);
        let grey = (77 * r + 150 * g + 29 * b) >> 8;
        grey * 0x01_0101 + ((255 - a) << 24)
    };
    case(text, Grid::new(3, 32), &x, x.iter().map(grey))
}

fn bilinear_enlargement() -> Case {
    let text = r#"
        const int w = 8, h = 6;
        int x = blockIdx.x * blockDim.x + threadIdx.x,
            y = blockIdx.y * blockDim.y + threadIdx.y;
        float u = x * 0.5f, v = y * 0.5f;
        int i = (int)floorf(u), j = (int)floorf(v);
        float a = u - i, b = v - j;
        int k = min(i + 1, w - 1), l = min(j + 1, h - 1);
        float top = (1 - a) * in[j * w + i] + a * in[j * w + k];
        float bottom = (1 - a) * in[l * w + i] + a * in[l * w + k];
        out[y * 2 * w + x] = (1 - b) * top + b * bottom;
    "#;
    let x = floats(48);
    let expected = (0..192).map(|n| {
        let (column, row): (i64, i64) = (n % 16, n / 16);
        let value = |dx: i64, dy: i64| at(&x, 8, row / 2 + dy, column / 2 + dx);
        let (a, b) = ((column % 2) as f32 / 2.0, (row % 2) as f32 / 2.0);
        let line = |dy: i64| (1.0 - a) * value(0, dy) + a * value(1, dy);
        (1.0 - b) * line(0) + b * line(1)
    });
    case(text, Grid::new((2, 3), (8, 4)), &x, expected)
}
