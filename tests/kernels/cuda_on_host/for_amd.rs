//! What the library supplies to AMD's compilers, run on the host: the functions of warps with a
//! mask, over wavefronts of 32 lanes whose own functions are the host's, and `__nv_bfloat16`.

use half::bf16;
use resident::ndarray::Ix1;
use resident::{Grid, In, InOut, Out, Result, SmartArray};

use super::{device, kernel, one_of};

const WARPS: &str = include_str!("../../../crates/code/src/prelude_amd.cuh");
const BF16: &str = include_str!("../../../crates/gpu/src/code/cuda_bf16_of_amd.h");

/// What AMD's compiler has, and other names for what it has not.
const AMDS: &str = r"
__device__ inline int amd_lane() { return threadIdx.x % 32; }
__device__ inline int amd_permute(int at, int word) {
    return __shfl_sync(0xffffffff, word, at / 4 % 32);
}
__device__ inline unsigned long long amd_ballot(int predicate) {
    return __ballot_sync(__activemask(), predicate);
}
__device__ inline void amd_fence() { __syncwarp(); }
#define __AMDGCN__ 1
#define RESIDENT_AMD_ON_HOST 1
#define __lane_id amd_lane
#define __ballot amd_ballot
#define __builtin_amdgcn_ds_bpermute amd_permute
#define __builtin_amdgcn_fence(order, scope) amd_fence()
#define __builtin_amdgcn_wave_barrier() amd_fence()
";

/// The functions of warps that the library supplies there.
const NAMES: [&str; 17] = [
    "shfl_sync",
    "shfl_up_sync",
    "shfl_down_sync",
    "shfl_xor_sync",
    "ballot_sync",
    "any_sync",
    "all_sync",
    "syncwarp",
    "activemask",
    "match_any_sync",
    "match_all_sync",
    "reduce_add_sync",
    "reduce_min_sync",
    "reduce_max_sync",
    "reduce_and_sync",
    "reduce_or_sync",
    "reduce_xor_sync",
];

/// What stands before the library's functions, which get other names than the host's have.
fn before() -> String {
    AMDS.to_owned() + &NAMES.map(|name| format!("#define __{name} own_{name}\n")).concat()
}

/// A source of the library's functions under those names, and of the host's.
fn comparing() -> String {
    let undefined = NAMES.map(|name| format!("#undef __{name}\n")).concat();
    [&before(), WARPS, &undefined, COMPARE].concat()
}

/// The lanes, widths and distances at which the two differ are counted.
const COMPARE: &str = r#"
template <typename T> __device__ int differ(T value, int distance, int width) {
    const unsigned all = 0xffffffff;
    int count = 0;
    count += own_shfl_sync(resident::all_lanes(), value, distance, width)
        != __shfl_sync(all, value, distance, width);
    count += own_shfl_up_sync(0xffffffffu, value, distance, width)
        != __shfl_up_sync(all, value, distance, width);
    count += own_shfl_down_sync(-1, value, distance, width)
        != __shfl_down_sync(all, value, distance, width);
    count += own_shfl_xor_sync(~0ull, value, distance, width)
        != __shfl_xor_sync(all, value, distance, width);
    return count;
}

/// The same for matches and reductions, with one mask or two.
template <typename T> __device__ int reductions_differ(unsigned mask, T value) {
    int count = own_reduce_add_sync(mask, value) != __reduce_add_sync(mask, value);
    count += own_reduce_min_sync(mask, value) != __reduce_min_sync(mask, value);
    count += own_reduce_max_sync(mask, value) != __reduce_max_sync(mask, value);
    unsigned bits = value;
    count += own_reduce_and_sync(mask, bits) != __reduce_and_sync(mask, bits);
    count += own_reduce_or_sync(mask, bits) != __reduce_or_sync(mask, bits);
    count += own_reduce_xor_sync(mask, bits) != __reduce_xor_sync(mask, bits);
    return count;
}

template <typename T> __device__ int matches_differ(unsigned mask, T value) {
    int own = 5, expected = 6;
    int count = own_match_any_sync(mask, value) != __match_any_sync(mask, value);
    count += own_match_all_sync(mask, value, &own) != __match_all_sync(mask, value, &expected);
    return count + (own != expected);
}

__device__ int groups_differ(unsigned mask, int lane) {
    int count = 0;
    for (int kinds = 1; kinds < 34; kinds += 3) {
        count += matches_differ(mask, lane % kinds) + matches_differ(mask, lane % kinds * 0.5f);
        count += matches_differ(mask, static_cast<long long>(lane % kinds) << 40);
        count += reductions_differ(mask, lane % kinds - 11);
        count += reductions_differ(mask, 0xf0f0f0f0u + lane % kinds * 0x1010101u);
    }
    return count;
}

extern "C" __global__ void groups(resident::View1<int> faults) {
    int lane = threadIdx.x % 32;
    int count = groups_differ(0xffffffff, lane);
    count += groups_differ(lane < 11 ? 0x000007ffu : 0xfffff800u, lane);
    count += own_activemask() != __activemask();
    faults(threadIdx.x) = count;
}

extern "C" __global__ void compare(resident::View1<int> faults) {
    const unsigned all = 0xffffffff;
    int lane = threadIdx.x, count = 0;
    for (int width = 1; width <= 32; width *= 2)
        for (int distance = 0; distance < 40; ++distance) {
            // CUDA has no distances beyond the warp but for `__shfl_sync`.
            int by = distance < 32 ? distance : 31;
            count += differ(lane * 7 + 3, by, width) + differ(lane * 0.5, by, width);
            count += differ(static_cast<unsigned char>(lane), by, width);
            count += own_shfl_sync(all, lane, distance, width)
                != __shfl_sync(all, lane, distance, width);
        }
    for (int bits = 0; bits < 64; ++bits) {
        int predicate = bits == 40 || (bits < 32 && lane % (bits + 1) == 0);
        count += own_ballot_sync(all, predicate) != __ballot_sync(all, predicate);
        count += own_any_sync(all, predicate) != __any_sync(all, predicate);
        count += own_all_sync(all, predicate) != __all_sync(all, predicate);
    }
    static_assert(sizeof(own_ballot_sync(all, 1)) == 4, "as in CUDA, where warps have 32 lanes");
    own_syncwarp();
    own_syncwarp(all);
    faults(lane) = count;
}
"#;

#[test]
fn functions_of_warps_are_cudas() -> Result<()> {
    let compare = one_of::<(Out<i32, Ix1>,)>(&comparing(), "compare");
    let mut faults = SmartArray::<i32, _>::uninit(32);
    compare.launch_on(&device().stream(), Grid::new(1, 32), (&mut faults,))?;
    assert_eq!(faults.to_vec()?, [0; 32]);
    Ok(())
}

/// The last warp of the block has 8 lanes, and masks name others too.
#[test]
fn functions_of_groups_of_lanes_are_cudas() -> Result<()> {
    let groups = one_of::<(Out<i32, Ix1>,)>(&comparing(), "groups");
    let mut faults = SmartArray::<i32, _>::uninit(72);
    groups.launch_on(&device().stream(), Grid::new(1, 72), (&mut faults,))?;
    assert_eq!(faults.to_vec()?, [0; 72]);
    Ok(())
}

/// Where the compiler has the functions, as since ROCm 7, the library's give way, except that masks
/// of 32 bits are the library's business: AMD's functions refuse them.
#[test]
fn functions_that_the_compiler_has_are_its_own() -> Result<()> {
    let theirs = r#"
        template <typename M, typename T>
        __device__ inline T __shfl_sync(M mask, T value, int from, int width = 32) {
            static_assert(sizeof(M) == 8, "");
            return value + T(100);
        }
        template <typename M> __device__ inline int __any_sync(M, int) {
            static_assert(sizeof(M) == 8, "");
            return 7;
        }
        template <typename M> __device__ inline void __syncwarp(M) {
            static_assert(sizeof(M) == 8, "");
        }
        __device__ inline void __syncwarp() {}
        __device__ inline unsigned long long __activemask() { return 1000; }
        template <typename M, typename T>
        __device__ inline unsigned long long __match_any_sync(M, T) {
            static_assert(sizeof(M) == 8, "");
            return 2000;
        }
        template <typename M, typename T>
        __device__ inline unsigned long long __match_all_sync(M, T, int *) { return 4000; }
        template <typename M> __device__ inline int __reduce_add_sync(M, int) {
            static_assert(sizeof(M) == 8, "");
            return 8000;
        }
    "#;
    let text = r#"
        extern "C" __global__ void theirs(resident::View1<int> x) {
            __syncwarp();
            __syncwarp(~0ull);
            x(0) = __shfl_sync(~0ull, 1, 0) + __any_sync(~0ull, 1);
            x(0) += __activemask() + __match_any_sync(~0ull, 1) + __match_all_sync(~0ull, 1, &x(1));
            x(0) += __reduce_add_sync(~0ull, 1);
            // Theirs refuse 32 bits.
            __syncwarp(0xffffffff);
            __syncwarp(-1);
            x(1) = __shfl_sync(0xffffffff, 5, 0) + __any_sync(-1, 1);
            x(1) += 10 * __match_any_sync(resident::all_lanes(), 3) + __reduce_add_sync(-1, 60);
        }
    "#;
    let source = [&before(), theirs, WARPS, text].concat();
    let kernel = kernel::<(InOut<i32, Ix1>,)>("theirs", source);
    let mut x = SmartArray::<i32, _>::zeros(2);
    kernel.launch_on(&device().stream(), Grid::new(1, 1), (&mut x,))?;
    assert_eq!(x.to_vec()?, [15108, 76]);
    Ok(())
}

const ROUND: &str = r#"
extern "C" __global__ void rounded(const float *x, const double *y, unsigned short *out, int len) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= len) return;
    amd_bf16 a = __float2bfloat16(x[i]), b(y[i]);
    amd_bf16 c = a;
    c += b;
    out[5 * i] = a.__x;
    out[5 * i + 1] = __bfloat16_as_ushort(b);
    out[5 * i + 2] = c.__x;
    out[5 * i + 3] = __hmul(a, b).__x;
    out[5 * i + 4] = (a < b ? -__hmax(a, b) : __habs(a)).__x;
}
"#;

/// The nearest `bf16` to a number of `f64`, by way of a `f32` whose last digit tells of others.
fn nearest(y: f64) -> bf16 {
    let near = y as f32;
    let bits = near.to_bits();
    bf16::from_f32(match f64::from(near).abs().total_cmp(&y.abs()) {
        std::cmp::Ordering::Less => f32::from_bits(bits | 1),
        std::cmp::Ordering::Greater => f32::from_bits((bits - 1) | 1),
        std::cmp::Ordering::Equal => near,
    })
}

fn expected(x: f32, y: f64) -> [bf16; 5] {
    let (a, b) = (bf16::from_f32(x), nearest(y));
    let of = |x: f32| bf16::from_f32(x);
    let last = if a.to_f32() < b.to_f32() { -b } else { of(a.to_f32().abs()) };
    [a, b, of(a.to_f32() + b.to_f32()), of(a.to_f32() * b.to_f32()), last]
}

#[test]
fn bfloat16_is_rounded_to_the_nearest() -> Result<()> {
    let source = format!("#define __nv_bfloat16 amd_bf16\n{BF16}\n{ROUND}");
    type Round = (In<f32>, In<f64>, Out<u16>, i32);
    let round = kernel::<Round>("rounded", source);
    // All upper halves of a float, each with lower halves around the middle.
    let ends = [0_u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff];
    let bits = (0..1_u32 << 16).step_by(7).flat_map(|high| ends.map(|low| high << 16 | low));
    let x: Vec<f32> = bits.map(f32::from_bits).collect();
    let nudge = |(index, x): (usize, &f32)| f64::from(*x) * (1.0 + (index % 3) as f64 * 1e-12);
    let y: Vec<f64> = x.iter().rev().enumerate().map(nudge).collect();
    let (len, count) = (x.len() as i32, x.len() as u32);
    let mut out = SmartArray::<u16, _>::uninit(5 * x.len());
    let arguments = (&SmartArray::from(x.clone()), &SmartArray::from(y.clone()), &mut out, len);
    round.launch_on(&device().stream(), Grid::new(count.div_ceil(128), 128), arguments)?;
    for ((x, y), seen) in x.into_iter().zip(y).zip(out.to_vec()?.chunks(5)) {
        for (seen, expected) in seen.iter().zip(expected(x, y)) {
            let seen = bf16::from_bits(*seen);
            let is_same = seen.to_bits() == expected.to_bits();
            assert!(is_same || seen.is_nan() && expected.is_nan(), "{x} {y}: {seen}, {expected}");
        }
    }
    Ok(())
}
