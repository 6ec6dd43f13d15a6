//! `__half` and `__nv_bfloat16` in CUDA C on the host, compared with the types of the crate `half`.

use std::cmp::Ordering;

use half::{bf16, f16};
use resident::ndarray::{Array2, Ix2};
use resident::{CudaSource, Element, Grid, In, InOut, Kernel, Out, Result, Signature, SmartArray};

use crate::{device, kernel};

/// A type of 16 bits, in Rust and in CUDA C.
trait Small: Element + std::fmt::Debug {
    /// The type, and its name in other names.
    const NAMES: (&str, &str);
    fn of_bits(bits: u16) -> Self;
    fn bits(self) -> u16;
    fn of(x: f64) -> Self;
    fn f32(self) -> f32;
}

macro_rules! small {
    ($type:ty, $names:expr) => {
        impl Small for $type {
            const NAMES: (&str, &str) = $names;
            fn of_bits(bits: u16) -> Self {
                Self::from_bits(bits)
            }
            fn bits(self) -> u16 {
                self.to_bits()
            }
            fn of(x: f64) -> Self {
                Self::from_f32(to_odd(x))
            }
            fn f32(self) -> f32 {
                self.to_f32()
            }
        }
    };
}
small!(f16, ("__half", "half"));
small!(bf16, ("__nv_bfloat16", "bfloat16"));

/// A number with the digits of `f32`, the last of which tells whether others were dropped: rounding
/// it again gives what rounding the number gives. (`from_f64` ignores the last 32 bits.)
fn to_odd(x: f64) -> f32 {
    let near = x as f32;
    let bits = near.to_bits();
    match f64::from(near).abs().partial_cmp(&x.abs()) {
        Some(Ordering::Less) => f32::from_bits(bits | 1),
        Some(Ordering::Greater) => f32::from_bits((bits - 1) | 1),
        _ => near,
    }
}

/// The kernels of these tests, in which `T` is the type, and `NAME` stands for its name in other
/// names.
const SOURCE: &str = r#"
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    extern "C" __global__ void convert(const T *x, float *y, T *back) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        y[i] = __NAME2float(x[i]);
        back[i] = __float2NAME(y[i]);
    }
    extern "C" __global__ void rounded(unsigned len, const double *x, resident::View2<T> view) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= len) return;
        view.data[6 * i] = __double2NAME(x[i]);
        view.data[6 * i + 1] = __float2NAME((float)x[i]);
        view.data[6 * i + 2] = __float2NAME_rn((float)x[i]);
        view.data[6 * i + 3] = __float2NAME_rz((float)x[i]);
        view.data[6 * i + 4] = __float2NAME_rd((float)x[i]);
        view.data[6 * i + 5] = __float2NAME_ru((float)x[i]);
    }
    extern "C" __global__ void arithmetic(const T *x, const T *y, resident::View2<T> out) {
        long long i = resident::thread();
        if (i >= out.shape[0]) return;
        T a = x[i], b = y[i], *to = &out(i, 0);
        to[0] = a + b;
        to[1] = __hsub(a, b);
        to[2] = __hmul_rn(a, b);
        to[3] = a / b;
        to[4] = hsqrt(a);
        to[5] = __hneg(__habs(a));
        to[6] = hfloor(a);
        to[7] = a < b ? T(1.0f) : T(0.0f);
        to[8] = __hge(a, b) ? 1 : __hgeu(a, b) ? 2 : 3;
        to[9] = __hadd_sat(a, b);
        to[10] = a;
        to[10] *= b;
    }
    extern "C" __global__ void fused_with_others(const T *x, const T *y, resident::View2<T> out) {
        long long i = resident::thread();
        if (i >= out.shape[0]) return;
        for (int j = 0; j < 8; ++j) out(i, j) = __hfma(x[i], y[i], x[(i + j) % out.shape[0]]);
    }
    extern "C" __global__ void fused(const T *a, const T *b, const T *c, T *out) {
        out[threadIdx.x] = __hfma(a[threadIdx.x], b[threadIdx.x], c[threadIdx.x]);
    }
    #if IS_HALF
    extern "C" __global__ void extremes(const T *x, const T *y, resident::View2<T> out) {
        long long i = resident::thread();
        if (i >= out.shape[0]) return;
        out(i, 0) = __hmin(x[i], y[i]);
        out(i, 1) = __hmax(x[i], y[i]);
        out(i, 2) = __hmax_nan(x[i], y[i]);
    }
    extern "C" __global__ void mixed(const __half2 *x, __half2 *sums, float *y) {
        __shared__ half2 tile[32];
        tile[threadIdx.x] = __hmul2(x[threadIdx.x], __float2half2_rn(2.0f));
        __syncthreads();
        half2 other = tile[31 - threadIdx.x];
        half low = __low2half(other);
        for (int by = 16; by > 0; by /= 2) low = low + __shfl_xor_sync(0xffffffff, low, by);
        if (threadIdx.x % 8 == 0) atomicAdd(&sums[1], __halves2half2(low, __high2half(other)));
        if (threadIdx.x != 0) return;
        sums[0] = make_half2(low, hexp2(__int2half_rn(3)));
        y[0] = __low2float(other) + 1000 * __high2float(other);
        y[1] = __half2int_rn(__float2half(2.5f)) + 10 * __half2int_ru(__float2half(2.1f))
             + 100 * __half2uint_rz(__float2half(-3.0f)) + 1000 * (int)__float2half(7.9f);
        y[2] = __half2float(hrsqrt(__ushort_as_half(0x4400)))
             + __half_as_ushort(hrint(half(2.5f)));
        y[3] = __hbeq2(other, other) + 2 * __hbne2(other, other) + 4 * (tile[0] == tile[0])
             + 8 * (__heq2_mask(tile[0], __low2half2(tile[0])) == 0xffff);
        half h = 1;
        h++;
        h -= half(0.5f);
        y[4] = h ? -h : h;
        float2 two = __half22float2(__hfma2_relu(x[1], x[1], __hneg2(x[2])));
        half infinity = half(1.0f) / half(0.0f);
        y[5] = two.x + two.y + __hisinf(infinity) + __hisnan(infinity - infinity);
        y[6] = __bfloat162float(__float2bfloat16(1.00390625f)) + float(__hmax(h, half(9.0f)));
    }
    #endif
"#;

/// One of them.
fn of_type<T: Small, S: Signature>(entry: &str) -> Kernel<S> {
    let (type_name, name) = T::NAMES;
    let source = CudaSource::c(SOURCE.replace("NAME", name)).define("T", type_name);
    let source = source.define("IS_HALF", u8::from(name == "half"));
    kernel("halves", source.entry(entry))
}

/// Whether two values have the same bits, or both are not a number.
fn is_same<T: Small>(one: T, other: T) -> bool {
    one.bits() == other.bits() || one.f32().is_nan() && other.f32().is_nan()
}

fn every<T: Small>() -> Vec<T> {
    (0..=u16::MAX).map(T::of_bits).collect()
}

fn conversions<T: Small>() -> Result<()> {
    type Convert<T> = (In<T>, Out<f32>, Out<T>);
    let convert = of_type::<T, Convert<T>>("convert");
    let x = SmartArray::from(every::<T>());
    let (mut y, mut back) = (SmartArray::<f32, _>::uninit(65_536), SmartArray::uninit(65_536));
    convert.launch_on(&device().stream(), Grid::new(256, 256), (&x, &mut y, &mut back))?;
    for ((x, y), back) in x.to_vec()?.into_iter().zip(y.to_vec()?).zip(back.to_vec()?) {
        let is_exact = y.to_bits() == x.f32().to_bits() || y.is_nan() && x.f32().is_nan();
        assert!(is_exact && is_same(x, back), "{x:?} becomes {y} and {back:?}");
    }
    Ok(())
}

#[test]
fn every_value_becomes_a_float_and_back() -> Result<()> {
    conversions::<f16>()?;
    conversions::<bf16>()
}

/// Numbers at, between and near all finite values, and beyond.
fn numbers_between<T: Small>() -> Vec<f64> {
    let finite = every::<T>().into_iter().map(|x| f64::from(x.f32())).filter(|x| x.is_finite());
    let mut finite: Vec<f64> = finite.collect();
    finite.sort_by(f64::total_cmp);
    let beyond = 2.0 * finite[finite.len() - 1] - finite[finite.len() - 2];
    finite.extend([beyond, 2.0 * beyond, f64::INFINITY, f64::MIN_POSITIVE]);
    let middles = finite.windows(2).map(|pair| pair[0] / 2.0 + pair[1] / 2.0);
    let near = |x: f64| [x.next_down(), x, x.next_up(), (x as f32).next_up().into()];
    middles.flat_map(near).chain(finite.iter().copied()).collect()
}

fn rounding<T: Small>() -> Result<()> {
    type Convert<T> = (u32, In<f64>, Out<T, Ix2>);
    let convert = of_type::<T, Convert<T>>("rounded");
    let x = SmartArray::from(numbers_between::<T>());
    let mut y = SmartArray::<T, _>::uninit((x.len(), 6));
    let grid = Grid::cover(x.len());
    convert.launch_on(&device().stream(), grid, (x.len() as u32, &x, &mut y))?;
    for (x, y) in x.to_vec()?.into_iter().zip(y.host()?.rows()) {
        let single = f64::from(x as f32);
        assert!(is_same(y[0], T::of(x)), "{x:e} becomes {:?}", y[0]);
        assert!(is_same(y[1], T::of(single)) && is_same(y[2], y[1]), "{single:e}: {:?}", y[1]);
        let [zero, down, up] = [y[3], y[4], y[5]].map(|y| f64::from(y.f32()));
        assert!(down <= single && single <= up && (down == up) == (down == single), "{single:e}");
        assert_eq!(zero, if single < 0.0 { up } else { down }, "{single:e} towards zero");
        assert!([down, up].contains(&f64::from(y[1].f32())), "{single:e}: {down:e}, {up:e}");
    }
    Ok(())
}

#[test]
fn numbers_are_rounded_once() -> Result<()> {
    rounding::<f16>()?;
    rounding::<bf16>()
}

/// Pairs of values: those at the ends of the ranges with each other, and others at random.
fn pairs<T: Small>() -> Pairs<T> {
    let special = [0, 1, 2, 0x3ff, 0x400, 0x3c00, 0x3c01, 0x3f80, 0x7bff, 0x7c00, 0x7f7f, 0x7f80];
    let special: Vec<u16> = special.iter().flat_map(|x| [*x, x | 0x8000]).chain([0x7fff]).collect();
    let ends = special.iter().flat_map(|x| special.iter().map(|y| (*x, *y)));
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let random = (0..100_000).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 16) as u16, (state >> 32) as u16)
    });
    ends.chain(random).map(|(x, y)| (T::of_bits(x), T::of_bits(y))).collect()
}

type Pairs<T> = Vec<(T, T)>;
type OfPairs<T> = Kernel<(In<T>, In<T>, Out<T, Ix2>)>;

/// Runs a kernel with a thread for each pair, and `results` results for each.
fn of_pairs<T: Small>(kernel: &OfPairs<T>, results: usize) -> Result<(Pairs<T>, Array2<T>)> {
    let pairs = pairs::<T>();
    let (x, y): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
    let mut out = SmartArray::<T, _>::uninit((pairs.len(), results));
    let (x, y) = (SmartArray::from(x), SmartArray::from(y));
    kernel.launch_on(&device().stream(), Grid::cover(pairs.len()), (&x, &y, &mut out))?;
    Ok((pairs, out.host()?.to_owned()))
}

fn arithmetic<T: Small>() -> Result<()> {
    let kernel = of_type::<T, _>("arithmetic");
    let (pairs, results) = of_pairs::<T>(&kernel, 11)?;
    for ((x, y), row) in pairs.into_iter().zip(results.rows()) {
        let (a, b) = (x.f32(), y.f32());
        let order = if a >= b {
            1.0
        } else if a < b {
            3.0
        } else {
            2.0
        };
        let sum = T::of((a + b).into()).f32();
        let clamped = if sum.is_nan() { 0.0 } else { sum.clamp(0.0, 1.0) };
        let less = f32::from(u8::from(a < b));
        let expected = [
            a + b,
            a - b,
            a * b,
            a / b,
            a.sqrt(),
            -a.abs(),
            a.floor(),
            less,
            order,
            clamped,
            a * b,
        ];
        for (number, (got, expected)) in row.iter().zip(expected).enumerate() {
            let expected = T::of(expected.into());
            // The sign of a clamped zero is not told.
            let is_zero = number == 9 && got.f32() == 0.0 && expected.f32() == 0.0;
            assert!(
                is_same(*got, expected) || is_zero,
                "result {number} of {x:?} and {y:?} is {got:?}, not {expected:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn arithmetic_is_rounded_after_each_operation() -> Result<()> {
    arithmetic::<f16>()?;
    arithmetic::<bf16>()
}

/// The smallest and the largest of two numbers; not-a-number, and the signs of zeros.
#[test]
fn minima_and_maxima_are_those_of_cuda() -> Result<()> {
    let kernel = of_type::<f16, _>("extremes");
    let (pairs, results) = of_pairs::<f16>(&kernel, 3)?;
    for ((x, y), row) in pairs.into_iter().zip(results.rows()) {
        let (low, high) = match (x.is_nan(), y.is_nan()) {
            (false, false) if x.total_cmp(&y).is_le() => (x, y),
            (false, false) => (y, x),
            (true, _) => (y, y),
            (_, true) => (x, x),
        };
        let strict = if x.is_nan() || y.is_nan() { f16::NAN } else { high };
        for (got, expected) in row.iter().zip([low, high, strict]) {
            assert!(is_same(*got, expected), "{x:?} and {y:?}: {row}");
        }
    }
    Ok(())
}

/// A finite value in units of 2^-48, of which products of two such values are multiples.
fn fixed(x: f16) -> i128 {
    (x.to_f64() * 2.0_f64.powi(48)) as i128
}

/// Compared with the exact value, as an integer.
#[test]
fn a_fused_product_and_sum_of_halves_is_rounded_once() -> Result<()> {
    let kernel = of_type::<f16, _>("fused_with_others");
    let (pairs, results) = of_pairs::<f16>(&kernel, 8)?;
    for (index, ((a, b), row)) in pairs.iter().zip(results.rows()).enumerate() {
        for (got, (c, _)) in row.iter().zip(pairs.iter().cycle().skip(index)) {
            let about = a.to_f64().mul_add(b.to_f64(), c.to_f64());
            if !about.is_finite() || about.abs() >= 65_504.0 {
                assert!(is_same(*got, f16::of(about)), "{a:?} * {b:?} + {c:?}");
                continue;
            }
            let units = |x: f16| (x.to_f64() * 2.0_f64.powi(24)) as i128;
            let exact = units(*a) * units(*b) + fixed(*c);
            let far = |x: f16| (fixed(x) - exact).abs();
            let bits = got.to_bits();
            let neighbours = [bits.wrapping_add(1), bits.wrapping_sub(1)].map(f16::from_bits);
            for other in neighbours.into_iter().filter(|other| other.is_finite()) {
                let is_nearest = far(*got) < far(other) || far(*got) == far(other) && bits & 1 == 0;
                assert!(is_nearest, "{a:?} * {b:?} + {c:?} is {got:?}, and {other:?} is nearer");
            }
        }
    }
    Ok(())
}

/// A product in the middle between two values, and a summand that is too small for a `double` to
/// keep beside it, but decides.
#[test]
fn a_fused_sum_of_bfloat16_keeps_the_smallest_summand() -> Result<()> {
    type Fused = (In<bf16>, In<bf16>, In<bf16>, Out<bf16>);
    let fused = of_type::<bf16, Fused>("fused");
    let (mut a, mut b, mut c, mut expected) = (vec![], vec![], vec![], vec![]);
    // The products have nine digits, one more than the type.
    for (x, y) in [(17.0, 17.0), (3.0, 129.0), (-3.0, 129.0), (17.0, -23.0), (5.0, 77.0)] {
        for small in [-1e-30_f64, 1e-30, -1e-36, 1e-36, 0.0] {
            let scale = 2.0_f64.powi(60);
            let product: f64 = x * y * scale;
            let nudged = match small.total_cmp(&0.0) {
                Ordering::Less => product.next_down(),
                Ordering::Equal => product,
                Ordering::Greater => product.next_up(),
            };
            a.push(bf16::from_f64(x * scale));
            b.push(bf16::from_f64(y));
            c.push(bf16::from_f64(small));
            expected.push(bf16::of(nudged));
        }
    }
    let len = a.len() as u32;
    let [a, b, c] = [a, b, c].map(SmartArray::from);
    let mut out = SmartArray::<bf16, _>::uninit(expected.len());
    fused.launch_on(&device().stream(), Grid::new(1, len), (&a, &b, &c, &mut out))?;
    assert_eq!(out.to_vec()?, expected);
    Ok(())
}

/// Pairs, shared memory, lanes, atomics, integers and mathematics.
#[test]
fn pairs_of_halves_and_all_else() -> Result<()> {
    type Mixed = (In<[f16; 2]>, InOut<[f16; 2]>, Out<f32>);
    let mixed = of_type::<f16, Mixed>("mixed");
    let x = (0..32_u8).map(|i| [f16::from(i), f16::from(100 - i)]);
    let x = SmartArray::from(x.collect::<Vec<_>>());
    let mut sums = SmartArray::from(vec![[f16::ZERO; 2]; 2]);
    let mut y = SmartArray::<f32, _>::uninit(7);
    mixed.launch_on(&device().stream(), Grid::new(1, 32), (&x, &mut sums, &mut y))?;
    let of = |x: f32| f16::from_f32(x);
    let highs = [31.0, 23.0, 15.0, 7.0].map(|i| 2.0 * (100.0 - i)).iter().sum::<f32>();
    assert_eq!(sums.to_vec()?, [[of(992.0), of(8.0)], [of(3968.0), of(highs)]]);
    let expected = [
        62.0 + 138_000.0,
        2.0 + 30.0 + 7000.0,
        0.5 + f32::from(of(2.0).to_bits()),
        1.0 + 4.0 + 8.0,
        -1.5,
        9704.0 + 2.0,
        1.0 + 9.0,
    ];
    assert_eq!(y.to_vec()?, expected);
    Ok(())
}
