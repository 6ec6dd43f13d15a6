//! Numerical methods.

use std::cmp::Ordering;

use resident::Grid;

use crate::{Case, case, case_with, floats, ints, words};

cases! {
    scaled_sum_of_vectors, polynomial_by_horner_with_fused_steps,
    forces_between_all_bodies_in_tiles, transform_of_walsh_and_hadamard,
    fourier_transform_modulo_a_prime, butterflies_of_complex_numbers, pi_by_points_in_a_circle,
    random_walks, systems_of_three_diagonals, iterations_of_jacobi, elimination_of_small_matrices,
    compensated_sums, directed_rounding_for_intervals, directed_rounding_of_doubles,
    directed_rounding_at_the_ends, least_squares_and_distances, sieve_of_primes,
    powers_modulo_a_number
}

fn scaled_sum_of_vectors() -> Case {
    let text = r#"
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
            out[i] = 2.5f * in[i] + out[i];
    "#;
    let (x, y) = (floats(200), floats(400));
    case_with(
        text,
        Grid::new(2, 32),
        &x,
        &y[200..],
        x.iter().zip(&y[200..]).map(|(x, y)| 2.5 * x + y),
    )
}

fn polynomial_by_horner_with_fused_steps() -> Case {
    let text = r#"
        float x = in[threadIdx.x];
        const float c[] = {1.5f, -2.0f, 0.25f, 3.0f};
        float sum = c[3];
        #pragma unroll
        for (int k = 2; k >= 0; --k) sum = fmaf(sum, x, c[k]);
        out[threadIdx.x] = sum;
    "#;
    let x = floats(64);
    let value = |x: &f32| 3.0_f32.mul_add(*x, 0.25).mul_add(*x, -2.0).mul_add(*x, 1.5);
    case(text, Grid::new(1, 64), &x, x.iter().map(value))
}

fn forces_between_all_bodies_in_tiles() -> Case {
    let text = r#"
        #define P 16
        __shared__ float4 tile[P];
        int i = blockIdx.x * P + threadIdx.x;
        float4 own = in[i];
        float3 force = {0, 0, 0};
        for (int start = 0; start < n; start += P) {
            tile[threadIdx.x] = in[start + threadIdx.x];
            __syncthreads();
            for (int k = 0; k < P; ++k) {
                float3 r = make_float3(tile[k].x - own.x, tile[k].y - own.y, tile[k].z - own.z);
                float d = r.x * r.x + r.y * r.y + r.z * r.z + 1.0f;
                float s = tile[k].w / (d * sqrtf(d));
                force.x += r.x * s;
                force.y += r.y * s;
                force.z += r.z * s;
            }
            __syncthreads();
        }
        out[i] = make_float4(force.x, force.y, force.z, 0);
    "#;
    let x: Vec<[f32; 4]> = floats(128).chunks(4).map(|b| [b[0], b[1], b[2], b[3].abs()]).collect();
    let force = |own: &[f32; 4]| {
        let mut force = [0.0_f32; 4];
        for other in &x {
            let r = [other[0] - own[0], other[1] - own[1], other[2] - own[2]];
            let d = r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + 1.0;
            let s = other[3] / (d * d.sqrt());
            (0..3).for_each(|k| force[k] += r[k] * s);
        }
        force
    };
    case(text, Grid::new(2, 16), &x, x.iter().map(force))
}

fn transform_of_walsh_and_hadamard() -> Case {
    let text = r#"
        __shared__ int s[64];
        int t = threadIdx.x;
        s[t] = in[t];
        s[t + 32] = in[t + 32];
        for (int stride = 32; stride > 0; stride >>= 1) {
            __syncthreads();
            int low = t & (stride - 1), i = ((t - low) << 1) + low;
            int a = s[i], b = s[i + stride];
            s[i] = a + b;
            s[i + stride] = a - b;
        }
        __syncthreads();
        out[t] = s[t];
        out[t + 32] = s[t + 32];
    "#;
    let x = ints(64);
    let value = |i: usize| {
        let sign = |k: usize| if (i & k).count_ones() % 2 == 1 { -1 } else { 1 };
        x.iter().enumerate().map(|(k, x)| sign(k) * x).sum::<i32>()
    };
    case(text, Grid::new(1, 32), &x, (0..64).map(value))
}

/// Of the root of 1 of order 2^k modulo 998244353.
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base % 998_244_353;
        }
        base = base * base % 998_244_353;
        exponent >>= 1;
    }
    result
}

fn fourier_transform_modulo_a_prime() -> Case {
    let text = r#"
        typedef unsigned long long u64;
        #define P 998244353ull
        __device__ unsigned power(u64 base, unsigned exponent) {
            u64 result = 1;
            for (; exponent; exponent >>= 1) { if (exponent & 1) result = result * base % P;
                base = base * base % P; }
            return result;
        }
        extern "C" __global__ void run(const unsigned *in, unsigned *out, int n) {
            __shared__ unsigned s[64];
            int t = threadIdx.x;
            for (int i = t; i < 64; i += 32) s[__brev(i) >> 26] = in[i] % P;
            for (int half = 1; half < 64; half *= 2) {
                __syncthreads();
                int k = t % half, i = (t / half) * 2 * half + k;
                u64 w = power(power(3, (P - 1) / (2 * half)), k);
                unsigned a = s[i], b = (unsigned)(w * s[i + half] % P);
                s[i] = (a + b) % P;
                s[i + half] = (unsigned)((a + P - b) % P);
            }
            __syncthreads();
            for (int i = t; i < 64; i += 32) out[i] = s[i];
        }
    "#;
    let x = words(64);
    let root = power(3, 998_244_352 / 64);
    let value = |k: u64| {
        let terms = x
            .iter()
            .zip(0..)
            .map(|(x, j)| u64::from(*x) % 998_244_353 * power(root, j * k) % 998_244_353);
        (terms.sum::<u64>() % 998_244_353) as u32
    };
    case(text, Grid::new(1, 32), &x, (0..64).map(value))
}

fn butterflies_of_complex_numbers() -> Case {
    let text = r#"
        // A transform of four points needs no other factors than 1, i, -1 and -i.
        const float2 *x = in + 4 * threadIdx.x;
        float2 a = {x[0].x + x[2].x, x[0].y + x[2].y}, b = {x[0].x - x[2].x, x[0].y - x[2].y};
        float2 c = {x[1].x + x[3].x, x[1].y + x[3].y}, d = {x[1].y - x[3].y, x[3].x - x[1].x};
        float2 *y = out + 4 * threadIdx.x;
        y[0] = make_float2(a.x + c.x, a.y + c.y);
        y[1] = make_float2(b.x + d.x, b.y + d.y);
        y[2] = make_float2(a.x - c.x, a.y - c.y);
        y[3] = make_float2(b.x - d.x, b.y - d.y);
    "#;
    let x: Vec<[f32; 2]> = floats(128).chunks(2).map(|x| [x[0], x[1]]).collect();
    // (-i)^m times a number.
    let turned = |[re, im]: [f32; 2], m: usize| match m % 4 {
        0 => [re, im],
        1 => [im, -re],
        2 => [-re, -im],
        _ => [-im, re],
    };
    let value = |i: usize| {
        let terms = (0..4).map(|j| turned(x[i / 4 * 4 + j], j * (i % 4)));
        terms.fold([0.0, 0.0], |sum, term| [sum[0] + term[0], sum[1] + term[1]])
    };
    case(text, Grid::new(1, 16), &x, (0..64).map(value))
}

fn pi_by_points_in_a_circle() -> Case {
    let text = r#"
        __device__ unsigned next(unsigned &s) { s ^= s << 13; s ^= s >> 17; s ^= s << 5; return s; }
        extern "C" __global__ void run(const unsigned *in, unsigned *out, int n) {
            unsigned state = in[blockIdx.x * blockDim.x + threadIdx.x] | 1, inside = 0;
            for (int k = 0; k < 50; ++k) {
                float x = (next(state) >> 8) * (1.0f / 16777216),
                    y = (next(state) >> 8) * (1.0f / 16777216);
                inside += x * x + y * y < 1;
            }
            atomicAdd(out, inside);
        }
    "#;
    let x = words(128);
    let mut inside = 0_u32;
    for seed in &x {
        let mut s = seed | 1;
        let mut next = || {
            s ^= s << 13;
            s ^= s >> 17;
            s ^= s << 5;
            (s >> 8) as f32 * (1.0 / 16_777_216.0)
        };
        for _ in 0..50 {
            let (x, y) = (next(), next());
            inside += u32::from(x * x + y * y < 1.0);
        }
    }
    assert!((f64::from(inside) / 1600.0 - std::f64::consts::PI).abs() < 0.1);
    case(text, Grid::new(4, 32), &x, [inside])
}

fn random_walks() -> Case {
    let text = r#"
        unsigned long long s = in[threadIdx.x];
        int2 at = make_int2(0, 0);
        for (int k = 0; k < 100; ++k) {
            s = s * 6364136223846793005ull + 1442695040888963407ull;
            switch (s >> 62) {
                case 0: ++at.x; break;
                case 1: --at.x; break;
                case 2: ++at.y; break;
                default: --at.y;
            }
        }
        out[threadIdx.x] = at.x * 1000 + at.y;
    "#;
    let x = words(32);
    let walk = |seed: &u32| {
        let mut s = u64::from(*seed);
        (0..100).fold(0, |at, _| {
            s = s.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            at + [1000, -1000, 1, -1][(s >> 62) as usize]
        })
    };
    case(text, Grid::new(1, 32), &x, x.iter().map(walk))
}

fn systems_of_three_diagonals() -> Case {
    let text = r#"
        // -x[i-1] + 4 x[i] - x[i+1] = d[i], a system of 8 for each thread.
        const double *d = in + 8 * threadIdx.x;
        double *x = out + 8 * threadIdx.x, c[8], e[8];
        c[0] = -1.0 / 4;
        e[0] = d[0] / 4;
        for (int i = 1; i < 8; ++i) {
            double m = 1 / (4 + c[i - 1]);
            c[i] = -m;
            e[i] = (d[i] + e[i - 1]) * m;
        }
        x[7] = e[7];
        for (int i = 6; i >= 0; --i) x[i] = e[i] - c[i] * x[i + 1];
    "#;
    let x: Vec<f64> = floats(64).iter().map(|x| f64::from(*x)).collect();
    let solved = |d: &[f64]| {
        let (mut c, mut e) = ([0.0; 8], [0.0; 8]);
        (c[0], e[0]) = (-1.0 / 4.0, d[0] / 4.0);
        for i in 1..8 {
            let m = 1.0 / (4.0 + c[i - 1]);
            (c[i], e[i]) = (-m, (d[i] + e[i - 1]) * m);
        }
        let mut x = e;
        (0..7).rev().for_each(|i| x[i] = e[i] - c[i] * x[i + 1]);
        x
    };
    case(text, Grid::new(1, 8), &x, x.chunks(8).flat_map(solved))
}

fn iterations_of_jacobi() -> Case {
    let text = r#"
        __shared__ double x[2][34];
        int t = threadIdx.x + 1;
        if (t == 1) for (int k = 0; k < 2; ++k) { x[k][0] = 1; x[k][33] = 2; }
        x[0][t] = 0;
        for (int step = 0; step < 40; ++step) {
            __syncthreads();
            x[~step & 1][t] = 0.5 * (x[step & 1][t - 1] + x[step & 1][t + 1] + in[t - 1]);
        }
        out[t - 1] = x[0][t];
    "#;
    let b: Vec<f64> = floats(32).iter().map(|x| f64::from(*x)).collect();
    let mut x = vec![0.0; 34];
    (x[0], x[33]) = (1.0, 2.0);
    for _ in 0..40 {
        let last = x.clone();
        (1..33).for_each(|i| x[i] = 0.5 * (last[i - 1] + last[i + 1] + b[i - 1]));
    }
    case(text, Grid::new(1, 32), &b, x[1..33].to_vec())
}

fn elimination_of_small_matrices() -> Case {
    let text = r#"
        // The determinant of a 4 x 4 matrix of whole numbers, by elimination without fractions.
        long long a[4][4], last = 1, sign = 1;
        for (int k = 0; k < 16; ++k) a[k / 4][k % 4] = in[16 * threadIdx.x + k];
        for (int k = 0; k < 3; ++k) {
            int pivot = k;
            while (pivot < 4 && a[pivot][k] == 0) ++pivot;
            if (pivot == 4) { out[threadIdx.x] = 0; return; }
            if (pivot != k) {
                for (int j = 0; j < 4; ++j) { long long x = a[k][j]; a[k][j] = a[pivot][j];
                    a[pivot][j] = x; }
                sign = -sign;
            }
            for (int i = k + 1; i < 4; ++i)
                for (int j = k + 1; j < 4; ++j)
                    a[i][j] = (a[i][j] * a[k][k] - a[i][k] * a[k][j]) / last;
            last = a[k][k];
        }
        out[threadIdx.x] = sign * a[3][3];
    "#;
    let x: Vec<i32> = ints(256).iter().map(|x| x / 10).collect();
    fn determinant(m: &[Vec<i64>]) -> i64 {
        if m.len() == 1 {
            return m[0][0];
        }
        (0..m.len())
            .map(|k| {
                let minor = |row: &Vec<i64>| [&row[..k], &row[k + 1..]].concat();
                let rest: Vec<Vec<i64>> = m[1..].iter().map(minor).collect();
                let sign = if k % 2 == 0 { 1 } else { -1 };
                sign * m[0][k] * determinant(&rest)
            })
            .sum()
    }
    let matrix = |part: &[i32]| {
        let rows = part.chunks(4).map(|row| row.iter().map(|x| i64::from(*x)).collect());
        determinant(&rows.collect::<Vec<_>>())
    };
    case_with(text, Grid::new(1, 16), &x, &[7_i64; 16], x.chunks(16).map(matrix))
}

fn compensated_sums() -> Case {
    let text = r#"
        float sum = 0, lost = 0;
        for (int i = 0; i < n; ++i) {
            float y = __fsub_rn(in[i], lost), t = __fadd_rn(sum, y);
            lost = __fsub_rn(__fsub_rn(t, sum), y);
            sum = t;
        }
        out[0] = sum;
        out[1] = lost;
    "#;
    let x: Vec<f32> = words(500).iter().map(|x| *x as f32 / 1000.0).collect();
    let (mut sum, mut lost) = (0.0_f32, 0.0_f32);
    for x in &x {
        let y = x - lost;
        let t = sum + y;
        lost = (t - sum) - y;
        sum = t;
    }
    case(text, Grid::new(1, 1), &x, [sum, lost])
}

fn directed_rounding_for_intervals() -> Case {
    let text = r#"
        float x = in[threadIdx.x], y = in[(threadIdx.x + 1) % n] + 0.1f;
        float *o = out + 6 * threadIdx.x;
        o[0] = __fmul_rd(x, y);
        o[1] = __fmul_ru(x, y);
        o[2] = __fadd_rd(x, y * 1e-8f);
        o[3] = __fadd_ru(x, y * 1e-8f);
        o[4] = __fdiv_rz(x, y);
        o[5] = __fsqrt_ru(fabsf(y));
    "#;
    let x = floats(32);
    /// The float next to an exact value, below or above.
    fn toward(exact: f64, nearest: f32, up: bool) -> f32 {
        match f64::from(nearest).total_cmp(&exact) {
            Ordering::Less if up => nearest.next_up(),
            Ordering::Greater if !up => nearest.next_down(),
            _ => nearest,
        }
    }
    let mut expected = Vec::new();
    for i in 0..32 {
        let (x, y) = (x[i], x[(i + 1) % 32] + 0.1);
        let (wide_x, wide_y) = (f64::from(x), f64::from(y));
        let product = wide_x * wide_y;
        expected.push(toward(product, x * y, false));
        expected.push(toward(product, x * y, true));
        let small = y * 1e-8;
        let sum = wide_x + f64::from(small);
        expected.push(toward(sum, x + small, false));
        expected.push(toward(sum, x + small, true));
        let quotient = wide_x / wide_y;
        expected.push(toward(quotient, x / y, quotient < 0.0));
        let root = wide_y.abs().sqrt();
        expected.push(toward(root, y.abs().sqrt(), true));
    }
    case(text, Grid::new(1, 32), &x, expected)
}

/// The double next to a sum of two, the second of which is smaller than any step of the first.
fn toward(nearest: f64, rest: f64, direction: Ordering) -> f64 {
    let wanted = match direction {
        Ordering::Equal if nearest > 0.0 => Ordering::Less,
        Ordering::Equal => Ordering::Greater,
        other => other,
    };
    match (wanted, rest.partial_cmp(&0.0)) {
        (Ordering::Less, Some(Ordering::Less)) => nearest.next_down(),
        (Ordering::Greater, Some(Ordering::Greater)) => nearest.next_up(),
        _ => nearest,
    }
}

/// The sum, the product, the quotient and the root, rounded down, up, and toward zero.
fn directed_rounding_of_doubles() -> Case {
    let text = r#"
        #define ALL(suffix)                                                                     \
            *o++ = __dadd_##suffix(x, y); *o++ = __dsub_##suffix(x, y);                         \
            *o++ = __dmul_##suffix(x, y); *o++ = __ddiv_##suffix(x, y);                         \
            *o++ = __drcp_##suffix(y); *o++ = __dsqrt_##suffix(fabs(x));                        \
            *o++ = __fma_##suffix(x, y, -__dmul_rn(x, y));
        extern "C" __global__ void run(const double *in, double *out, int n) {
            double x = in[threadIdx.x], y = in[(threadIdx.x + 1) % n] + 0.1;
            double *o = out + 21 * threadIdx.x;
            ALL(rd) ALL(ru) ALL(rz)
        }
    "#;
    let x: Vec<f64> = words(32).iter().map(|x| f64::from(*x as i32) / 1000.3).collect();
    let mut expected = Vec::new();
    for i in 0..32 {
        let (x, y) = (x[i], x[(i + 1) % 32] + 0.1);
        let rest_of_sum = |x: f64, y: f64| {
            let (large, small) = if x.abs() > y.abs() { (x, y) } else { (y, x) };
            small - ((x + y) - large)
        };
        let rest_of_quotient = |x: f64, y: f64| (-(x / y)).mul_add(y, x) * y.signum();
        let root = x.abs().sqrt();
        for direction in [Ordering::Less, Ordering::Greater, Ordering::Equal] {
            expected.extend([
                toward(x + y, rest_of_sum(x, y), direction),
                toward(x - y, rest_of_sum(x, -y), direction),
                toward(x * y, x.mul_add(y, -(x * y)), direction),
                toward(x / y, rest_of_quotient(x, y), direction),
                toward(1.0 / y, rest_of_quotient(1.0, y), direction),
                toward(root, (-root).mul_add(root, x.abs()), direction),
                x.mul_add(y, -(x * y)),
            ]);
        }
    }
    case(text, Grid::new(1, 32), &x, expected)
}

/// Results beyond the largest number and below the smallest, sums that are zero, and integers that
/// are no floats, as bits.
fn directed_rounding_at_the_ends() -> Case {
    let text = r#"
        float most = in[0], least = in[1], one = in[2];
        float all[] = {
            __fmul_rd(most, 2), __fmul_ru(most, 2), __fmul_rz(-most, 2),
            __fadd_ru(-most, -most),
            __fmul_rd(least, 0.5f), __fmul_ru(least, 0.5f), __fmul_rd(-least, 0.5f),
            __fsub_rd(one, one), __fsub_ru(one, one), __fmaf_rd(one, one, -one),
            __frcp_rz(3 * one), __frcp_ru(3 * one), __fsqrt_rz(2 * one), __fdiv_rd(one, 0),
            __int2float_rd(int(one) << 24 | 1), __int2float_ru(int(one) << 24 | 1),
            __uint2float_rz(0xffffffffu * unsigned(one)), __ull2float_rd(unsigned(one) - 1),
            __ll2float_ru(-0x123456789LL * (long long)one), __double2float_ru(0.1 * one),
            __double2float_rz(0.1 * one), (float)__ll2double_rd((long long)one - 1),
        };
        for (int i = 0; i < 22; ++i) out[i] = __float_as_uint(all[i]);
    "#;
    let (most, least) = (f32::MAX, f32::from_bits(1));
    let below = |x: f32| x.next_down();
    let third = 1.0_f32 / 3.0;
    let expected = [
        most,
        f32::INFINITY,
        -most,
        -most,
        0.0,
        least,
        -least,
        -0.0,
        0.0,
        -0.0,
        below(third),
        third,
        2.0_f32.sqrt(),
        f32::INFINITY,
        16_777_216.0,
        16_777_218.0,
        below(4_294_967_296.0),
        0.0,
        (-4_886_718_464.0_f32).next_up(),
        0.1,
        below(0.1),
        0.0,
    ];
    let bits = expected.map(f32::to_bits);
    case(text, Grid::new(1, 1), &[most, least, 1.0], bits)
}

fn least_squares_and_distances() -> Case {
    let text = r#"
        float sx = 0, sy = 0, sxx = 0, sxy = 0;
        for (int i = threadIdx.x; i < n; i += 4) {
            sx += in[i].x;
            sy += in[i].y;
            sxx += in[i].x * in[i].x;
            sxy += in[i].x * in[i].y;
        }
        float *o = out + 4 * threadIdx.x;
        o[0] = sx; o[1] = sy; o[2] = sxx; o[3] = sxy;
    "#;
    let x: Vec<[f32; 2]> = floats(80).chunks(2).map(|x| [x[0], x[1]]).collect();
    let sums = |t: usize| {
        x.iter().skip(t).step_by(4).fold([0.0_f32; 4], |s, p| {
            [s[0] + p[0], s[1] + p[1], s[2] + p[0] * p[0], s[3] + p[0] * p[1]]
        })
    };
    case(text, Grid::new(1, 4), &x, (0..4).flat_map(sums))
}

fn sieve_of_primes() -> Case {
    let text = r#"
        int limit = in[0];
        for (int p = threadIdx.x + 2; p * p < limit; p += blockDim.x) {
            bool is_prime = true;
            for (int d = 2; d * d <= p; ++d) if (p % d == 0) { is_prime = false; break; }
            if (is_prime) for (int m = p * p; m < limit;
                m += p) atomicOr((unsigned *)out + m / 32, 1u << (m % 32));
        }
    "#;
    let mut composite = [0_u8; 64];
    for m in 4..512_usize {
        if (2..m).any(|d| m % d == 0) {
            composite[m / 8] |= 1 << (m % 8);
        }
    }
    case(text, Grid::new(1, 16), &[512], composite)
}

fn powers_modulo_a_number() -> Case {
    let text = r#"
        __device__ unsigned modular_power(unsigned base, unsigned exponent, unsigned modulus) {
            unsigned long long result = 1, b = base % modulus;
            while (exponent) {
                if (exponent & 1u) result = result * b % modulus;
                b = b * b % modulus;
                exponent >>= 1;
            }
            return (unsigned)result;
        }
        extern "C" __global__ void run(const unsigned *in, unsigned *out, int n) {
            int i = threadIdx.x;
            out[i] = modular_power(in[i], in[(i + 1) % n], 1000000007u);
        }
    "#;
    let x = words(32);
    let modular = |i: usize| {
        let (mut b, mut e, mut r) = (u64::from(x[i]) % 1_000_000_007, x[(i + 1) % 32], 1_u64);
        while e > 0 {
            if e & 1 == 1 {
                r = r * b % 1_000_000_007;
            }
            b = b * b % 1_000_000_007;
            e >>= 1;
        }
        r as u32
    };
    case(text, Grid::new(1, 32), &x, (0..32).map(modular))
}
