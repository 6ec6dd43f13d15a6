//! Numbers of two bytes.

use half::{bf16, f16};
use resident::Grid;

use crate::{Case, case, floats};

cases! {
    halves_become_floats_and_back, pairs_of_halves_are_added_and_multiplied,
    sum_of_halves_in_a_float, halves_in_shared_memory, products_of_halves_are_fused,
    numbers_with_eight_bits_of_fraction, softmax_of_rows_without_its_exponential
}

fn halves(count: usize) -> Vec<f16> {
    floats(count).iter().map(|x| f16::from_f32(*x)).collect()
}

fn halves_become_floats_and_back() -> Case {
    let text = r#"
        #include <cuda_fp16.h>
        int i = threadIdx.x;
        float x = __half2float(in[i]);
        out[i] = __float2half(x * x + 0.125f);
    "#;
    let x = halves(64);
    let value = |x: &f16| f16::from_f32(x.to_f32() * x.to_f32() + 0.125);
    case(text, Grid::new(1, 64), &x, x.iter().map(value))
}

fn pairs_of_halves_are_added_and_multiplied() -> Case {
    let text = r#"
        #include <cuda_fp16.h>
        __half2 x = in[threadIdx.x], two = __float2half2_rn(2.0f);
        __half2 y = __hmul2(x, two);
        out[threadIdx.x] = __halves2half2(__hadd(__low2half(y), __high2half(x)),
            __hneg(__high2half(y)));
    "#;
    let x: Vec<[u16; 2]> = halves(64).chunks(2).map(|x| [x[0].to_bits(), x[1].to_bits()]).collect();
    let value = |x: &[u16; 2]| {
        let [a, b] = x.map(|bits| f16::from_bits(bits).to_f32());
        [f16::from_f32(2.0 * a + b).to_bits(), f16::from_f32(-(2.0 * b)).to_bits()]
    };
    case(text, Grid::new(1, 32), &x, x.iter().map(value))
}

fn sum_of_halves_in_a_float() -> Case {
    let text = r#"
        #include <cuda_fp16.h>
        float sum = 0;
        for (int i = threadIdx.x; i < n; i += 32) sum += __half2float(in[i]);
        for (int s = 16; s > 0; s /= 2) sum += __shfl_down_sync(0xffffffff, sum, s);
        if (threadIdx.x == 0) *out = sum;
    "#;
    let x = halves(200);
    let sum = x.iter().map(|x| x.to_f32()).sum::<f32>();
    case(text, Grid::new(1, 32), &x, [sum])
}

fn halves_in_shared_memory() -> Case {
    let text = r#"
        #include <cuda_fp16.h>
        __shared__ __half tile[64];
        tile[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        __half a = tile[63 - threadIdx.x], b = tile[threadIdx.x];
        out[threadIdx.x] = __hgt(a, b) ? a : b;
    "#;
    let x = halves(64);
    case(
        text,
        Grid::new(1, 64),
        &x,
        (0..64).map(|i| if x[63 - i] > x[i] { x[63 - i] } else { x[i] }),
    )
}

fn products_of_halves_are_fused() -> Case {
    let text = r#"
        #include <cuda_fp16.h>
        __half x = in[threadIdx.x], sum = __float2half(0.0f);
        for (int k = 0; k < 3; ++k) sum = __hfma(x, in[k], sum);
        out[threadIdx.x] = sum;
    "#;
    let x: Vec<f16> = floats(32).iter().map(|x| f16::from_f32(x / 4.0)).collect();
    let value = |own: &f16| {
        (0..3).fold(f16::ZERO, |sum, k| f16::from_f32(own.to_f32() * x[k].to_f32() + sum.to_f32()))
    };
    case(text, Grid::new(1, 32), &x, x.iter().map(value))
}

fn numbers_with_eight_bits_of_fraction() -> Case {
    let text = r#"
        #include <cuda_bf16.h>
        __nv_bfloat16 x = __float2bfloat16(in[threadIdx.x] * 1.01f);
        out[threadIdx.x] = __hadd(x, __float2bfloat16(1.0f));
    "#;
    let x = floats(64);
    let value = |x: &f32| bf16::from_f32(bf16::from_f32(x * 1.01).to_f32() + 1.0);
    case(text, Grid::new(1, 64), &x, x.iter().map(value))
}

fn softmax_of_rows_without_its_exponential() -> Case {
    let text = r#"
        #include <cuda_fp16.h>
        // Powers of two in place of the exponential, so that the result is exact.
        int lane = threadIdx.x;
        float x = floorf(__half2float(in[blockIdx.x * 32 + lane])), largest = x;
        for (int s = 16; s > 0; s /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u,
            largest, s));
        float y = ldexpf(1.0f, (int)(x - largest)), sum = y;
        for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(~0u, sum, s);
        out[blockIdx.x * 32 + lane] = y / sum;
    "#;
    let x: Vec<f16> = floats(96).iter().map(|x| f16::from_f32(x / 2.0)).collect();
    let row = |row: &[f16]| {
        let floors: Vec<f32> = row.iter().map(|x| x.to_f32().floor()).collect();
        let largest = floors.iter().copied().fold(f32::MIN, f32::max);
        let powers: Vec<f32> = floors.iter().map(|x| (x - largest).exp2()).collect();
        let sum = powers.iter().sum::<f32>();
        powers.into_iter().map(|power| power / sum).collect::<Vec<_>>()
    };
    case(text, Grid::new(3, 32), &x, x.chunks(32).flat_map(row))
}
