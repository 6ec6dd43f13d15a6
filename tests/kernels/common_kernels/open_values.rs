//! Where C leaves a result open and PTX does not: shifts, conversions, and numbers that wrap.

use resident::Grid;

use crate::{Case, case};

cases! {
    shifts_by_any_count, shifts_in_place_and_of_bit_fields, shifts_of_records_are_their_own,
    conversions_of_floats, conversions_of_doubles, conversions_in_each_form,
    conversions_of_halves, conversions_by_functions, conversions_that_the_text_does_not_show,
    conversions_in_templates_and_records, conversions_in_macros, constants_that_do_not_fit,
    bit_fields_in_place, extremes_of_zeros,
    numbers_rounded_to_integers,
    extremes_of_integers, extremes_of_floats, products_of_complex_numbers_are_rounded_apart,
    products_are_rounded_apart_in_turn
}

/// The numbers that are shifted, and so many threads that each is shifted by -2 to 69.
const SHIFTED: [u64; 4] = [1, 0x8000_0000_ffff_ff81, 0xffff_ffff_8000_0001, 0x1234_5678_9abc_def0];
const COUNTS: i32 = 72;

/// What `shift` gives for each number and count: so many words.
fn shifted<const N: usize>(text: &str, shift: impl Fn(u64, i64) -> [u64; N]) -> Case {
    let counts = (0..COUNTS).map(|count| i64::from(count) - 2);
    let expected = SHIFTED.iter().flat_map(|x| counts.clone().map(|by| (*x, by)));
    let expected: Vec<u64> = expected.flat_map(|(x, by)| shift(x, by)).collect();
    let head = format!(
        "unsigned long long x = in[blockIdx.x]; int by = (int)threadIdx.x - 2;
         unsigned long long *o = out + {N} * (blockIdx.x * blockDim.x + threadIdx.x);\n"
    );
    case(&(head + text), Grid::new(4, COUNTS as u32), &SHIFTED, expected)
}

fn left<const BITS: u32>(x: u64, by: i64) -> u64 {
    let kept = if BITS == 64 { u64::MAX } else { (1 << BITS) - 1 };
    if (0..i64::from(BITS)).contains(&by) { x << by & kept } else { 0 }
}

fn right(x: u64, bits: u32, by: i64) -> u64 {
    if (0..i64::from(bits)).contains(&by) { x >> by } else { 0 }
}

fn arithmetic_right(x: i64, bits: i64, by: i64) -> i64 {
    x >> if (0..bits).contains(&by) { by } else { bits - 1 }
}

fn shifts_by_any_count() -> Case {
    let text = r#"
        #define MASK(n) ((1u << (n)) - 1)
        o[0] = (unsigned)x << by;
        o[1] = (unsigned)((int)x >> by);
        o[2] = (unsigned)x >> by;
        o[3] = x << by;
        o[4] = (long long)x >> by;
        o[5] = x >> by;
        o[6] = (unsigned)((short)x << by);
        o[7] = (unsigned)((unsigned char)x >> by);
        o[8] = MASK(by);
        // Of a count, 32 bits are read.
        o[9] = (unsigned)x << (by + 0x500000000ll);
        o[10] = x >> (unsigned char)by;
        o[11] = 1u << (by & 31) << by;
    "#;
    shifted(text, |x, by| {
        let low = x & 0xffff_ffff;
        [
            left::<32>(low, by),
            arithmetic_right(i64::from(low as i32), 32, by) as u32 as u64,
            right(low, 32, by),
            left::<64>(x, by),
            arithmetic_right(x as i64, 64, by) as u64,
            right(x, 64, by),
            left::<32>(x as i16 as u32 as u64, by),
            right(x & 0xff, 32, by),
            left::<32>(1, by).wrapping_sub(1) & 0xffff_ffff,
            left::<32>(low, by),
            right(x, 64, i64::from(by as u8)),
            left::<32>(1 << (by & 31), by),
        ]
    })
}

fn shifts_in_place_and_of_bit_fields() -> Case {
    let text = r#"
        struct Fields { unsigned low : 5, high : 27; };
        enum Names { two = 2 };
        short narrow = (short)x; narrow <<= by; o[0] = (unsigned short)narrow;
        unsigned char byte = (unsigned char)x; byte >>= by; o[1] = byte;
        long long wide = (long long)x; wide >>= by; o[2] = wide;
        volatile unsigned word = (unsigned)x; word <<= by; o[3] = word;
        Fields fields = {(unsigned)x & 31, 3}; o[4] = (unsigned)(fields.low << by);
        o[5] = (unsigned)(two << by);
        unsigned list[2] = {(unsigned)x, 7}; (list[0] >>= by) += 1; o[6] = list[0];
        constexpr int five = 5; o[7] = sizeof(char[1 << five]);
    "#;
    shifted(text, |x, by| {
        let low = x & 0xffff_ffff;
        [
            left::<32>(x as i16 as u32 as u64, by) & 0xffff,
            right(x & 0xff, 32, by),
            arithmetic_right(x as i64, 64, by) as u64,
            left::<32>(low, by),
            left::<32>(x & 31, by),
            left::<32>(2, by),
            (right(low, 32, by) + 1) & 0xffff_ffff,
            32,
        ]
    })
}

fn shifts_of_records_are_their_own() -> Case {
    let text = r#"
        struct Sum {
            int value;
            __device__ Sum &operator<<(int more) { value += more; return *this; }
            __device__ Sum &operator>>=(int less) { value -= less; return *this; }
        };
        struct Log { int value; };
        // A tag between the operands would be ambiguous: the line stays as it is.
        template <typename T> __device__ Log &operator<<(Log &log, const T &x) {
            log.value += (int)x;
            return log;
        }
        enum class Kind { odd };
        __device__ int operator>>(Kind, int count) { return 7 * count; }
        template <typename T> struct Box { T value; };
        template <typename T> __device__ Box<Box<T>> boxed(T value) { return {{value}}; }
        extern "C" __global__ void run(const int *in, int *out, int n) {
            int by = in[threadIdx.x];
            Sum sum = {1};
            sum << by << by;
            sum >>= by + 1;
            Box<Box<int>> box = boxed<int>(sum.value);
            Log log = {0};
            log << by << 2;
            int none = 1 << (by + 32);
            out[threadIdx.x] = box.value.value + (Kind::odd >> by) + (log.value - 2) + none;
        }
    "#;
    let x = [0, 1, 5, 100];
    case(text, Grid::new(1, 4), &x, x.iter().map(|by| by + 7 * by + by))
}

/// Numbers inside the limits of all types, at them, and beyond.
fn numbers() -> Vec<f64> {
    let limits = [7, 8, 15, 16, 31, 32, 63, 64].map(|bits| 2_f64.powi(bits));
    let near = limits.iter().flat_map(|limit| {
        [limit.next_down(), limit.next_up(), limit - 1.0, limit - 0.5, *limit, limit * 1.5]
    });
    let more = [0.0, 0.5, 0.99, 1.0, 41.7, 300.0, 1000.5, 70000.0, 3e10, 1e19, 1e30, 1e300];
    let all = near.chain(more).chain([f64::INFINITY]).flat_map(|x| [x, -x]);
    all.chain([f64::NAN]).collect()
}

/// What a GPU makes of a number: it saturates 32 or 64 bits, of which narrower types keep the
/// lowest. Not-a-number is 0, or the highest bit if one of the types has 64 bits.
fn converted(x: f64, is_double: bool) -> [u64; 9] {
    let is_nan = x.is_nan();
    let int = if is_nan && is_double { i32::MIN } else { x as i32 };
    let unsigned = if is_nan && is_double { 1 << 31 } else { x as u32 };
    let wide = if is_nan { i64::MIN } else { x as i64 };
    let unsigned_wide = if is_nan { 1 << 63 } else { x as u64 };
    [
        int as i8 as u64,
        int as i8 as u64,
        u64::from(unsigned as u8),
        int as i16 as u64,
        u64::from(unsigned as u16),
        int as u64,
        u64::from(unsigned),
        wide as u64,
        unsigned_wide,
    ]
}

const CONVERSIONS: &str = r#"
    auto x = in[threadIdx.x];
    unsigned long long *o = out + 9 * threadIdx.x;
    o[0] = (char)x;
    o[1] = (signed char)x;
    o[2] = (unsigned char)x;
    o[3] = (short)x;
    o[4] = (unsigned short)x;
    o[5] = (int)x;
    o[6] = (unsigned)x;
    o[7] = (long long)x;
    o[8] = (unsigned long long)x;
"#;

fn conversions_of_floats() -> Case {
    let x: Vec<f32> = numbers().iter().map(|x| *x as f32).collect();
    let expected: Vec<u64> = x.iter().flat_map(|x| converted(f64::from(*x), false)).collect();
    case(CONVERSIONS, Grid::new(1, x.len() as u32), &x, expected)
}

fn conversions_of_doubles() -> Case {
    let x = numbers();
    let expected: Vec<u64> = x.iter().flat_map(|x| converted(*x, true)).collect();
    case(CONVERSIONS, Grid::new(1, x.len() as u32), &x, expected)
}

fn conversions_in_each_form() -> Case {
    let text = r#"
        typedef unsigned char byte;
        #define TO_INT(x) (int)floorf(x)
        struct Part { float value[2]; __device__ float twice() const { return 2 * value[1]; } };
        template <typename To> __device__ To to(float x) { return (To)x; }
        template <typename To> __device__ To made(float x) { return To(x); }
        extern "C" __global__ void run(const float *in, int *out, int n) {
            float x = in[threadIdx.x];
            Part part = {{x, x}}, *pointer = &part;
            int *o = out + 18 * threadIdx.x;
            int braces[2] = {2.0, 3.5};
            o[0] = int(x) / braces[0];
            o[1] = static_cast<int>(x);
            o[2] = TO_INT(x);
            o[3] = (byte)x;
            o[4] = to<int>(x) - (to<float>(x) == x);
            o[5] = made<unsigned>(x);
            o[6] = (int)pointer->value[0];
            o[7] = (int)part.twice();
            o[8] = (int)-x;
            o[9] = -(int)x;
            o[10] = (short)(int)x;
            o[11] = (int)(float)(x + 1.0);
            o[12] = (int)*&x < 5;
            o[13] = (int)fmaxf(x, 2.0f) >> 1;
            // Compilers know that these are not negative.
            o[14] = (unsigned char)fabsf(x);
            o[15] = (signed char)fabsf(x);
            o[16] = (int)((unsigned long long)(long long)fabsf(x) >> 48);
            o[17] = (int)fabs((double)x);
        }
    "#;
    let x = [0.0_f32, -5.5, 41.75, 300.0, -300.0, 3e10, -3e10, f32::NAN, f32::INFINITY];
    let expected = x.iter().flat_map(|x| {
        let int = *x as i32;
        [
            int / 2,
            int,
            x.floor() as i32,
            i32::from(*x as u32 as u8),
            int.wrapping_sub(i32::from(!x.is_nan())),
            *x as u32 as i32,
            int,
            (2.0 * x) as i32,
            (-x) as i32,
            int.wrapping_neg(),
            i32::from(int as i16),
            (f64::from(*x) + 1.0) as f32 as i32,
            i32::from(int < 5),
            x.max(2.0) as i32 >> 1,
            i32::from(x.abs() as u32 as u8),
            i32::from(x.abs() as i32 as i8),
            if x.is_nan() { 1 << 15 } else { (x.abs() as i64 >> 48) as i32 },
            if x.is_nan() { i32::MIN } else { x.abs() as i32 },
        ]
    });
    case(text, Grid::new(1, x.len() as u32), &x, expected)
}

fn conversions_of_halves() -> Case {
    let text = r#"
        #include <cuda_fp16.h>
        extern "C" __global__ void run(const float *in, long long *out, int n) {
            __half x = __float2half(in[threadIdx.x]);
            long long *o = out + 4 * threadIdx.x;
            o[0] = (int)x;
            o[1] = (unsigned)x;
            o[2] = (long long)x;
            o[3] = (short)x;
        }
    "#;
    let x = [0.0_f32, -5.5, 41.75, 40000.0, -40000.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let expected = x.iter().flat_map(|x| {
        let wide = if x.is_nan() { i64::MIN } else { *x as i64 };
        [i64::from(*x as i32), i64::from(*x as u32), wide, i64::from(*x as i16)]
    });
    case(text, Grid::new(1, 8), &x, expected)
}

fn conversions_by_functions() -> Case {
    let text = r#"
        double x = in[threadIdx.x];
        unsigned long long *o = out + 8 * threadIdx.x;
        o[0] = __float2int_rz((float)x);
        o[1] = __float2uint_rz((float)x);
        o[2] = __float2ll_rz((float)x);
        o[3] = __float2ull_rz((float)x);
        o[4] = __double2int_rz(x);
        o[5] = __double2uint_rz(x);
        o[6] = __double2ll_rz(x);
        o[7] = __double2ull_rz(x);
    "#;
    let x = numbers();
    let expected = x.iter().flat_map(|x| {
        let [of_float, of_double] = [converted(f64::from(*x as f32), false), converted(*x, true)];
        [of_float[5..].to_vec(), of_double[5..].to_vec()].concat()
    });
    case(text, Grid::new(1, x.len() as u32), &x, expected)
}

fn conversions_that_the_text_does_not_show() -> Case {
    let text = r#"
        __device__ int same(int x) { return x; }
        __device__ unsigned char byte(float x) { return x; }
        struct Pair { int first; short second; };
        template <typename T> __device__ T twice(float x) { T y = x * 2; return y; }
        extern "C" __global__ void run(const float *in, int *out, int n) {
            float x = in[threadIdx.x];
            int *o = out + 12 * threadIdx.x;
            int declared = x;
            o[0] = declared;
            o[1] = x;
            o[2] = in[threadIdx.x];
            o[3] = same(x);
            o[4] = byte(x);
            Pair pair;
            pair.second = x + 1;
            o[5] = pair.second;
            o[6] = 7;
            o[6] += x;
            o[7] = twice<int>(x);
            o[8] = twice<float>(x) > 1;
            unsigned word = x * 2.0; o[9] = word;
            o[10] = x > 2 ? x : 2 * x;
            o[11] = fabsf(x);
        }
    "#;
    let x = [0.0_f32, -5.5, 41.75, 300.0, -300.0, 3e10, -3e10, f32::NAN, f32::INFINITY];
    let expected = x.iter().flat_map(|x| {
        let int = *x as i32;
        let double = f64::from(*x) * 2.0;
        let word = if double.is_nan() { 1 << 31 } else { double as u32 };
        [
            int,
            int,
            int,
            int,
            i32::from(*x as u32 as u8),
            i32::from((x + 1.0) as i32 as i16),
            (7.0 + x) as i32,
            (x * 2.0) as i32,
            i32::from(x * 2.0 > 1.0),
            word as i32,
            (if *x > 2.0 { *x } else { 2.0 * x }) as i32,
            x.abs() as i32,
        ]
    });
    case(text, Grid::new(1, x.len() as u32), &x, expected)
}

fn conversions_in_templates_and_records() -> Case {
    let text = r#"
        template <typename T> struct Traits { typedef int type; using small = unsigned char; };
        template <typename T> __device__ typename Traits<T>::type by_trait(T x) {
            return (typename Traits<T>::type)x;
        }
        template <typename T> __device__ int small(T x) {
            return static_cast<typename Traits<T>::small>(x);
        }
        template <typename T> struct Member { T a; __device__ Member(float x) : a(x) {} };
        struct Float { float value; __device__ operator float() const { return value; } };
        template <typename T> struct Proxy {
            T value;
            __device__ operator T() const { return value; }
        };
        struct Both {
            float value;
            __device__ operator float() const { return value; }
            __device__ operator int() const { return 7; }
        };
        struct Sum { int sum; __device__ Sum &operator+=(float x) { sum += x; return *this; } };
        enum Color { red };
        enum class Small : unsigned char { one };
        extern "C" __global__ void run(const float *in, int *out, int n) {
            float x = in[threadIdx.x];
            int *o = out + 14 * threadIdx.x;
            o[0] = by_trait(x);
            o[1] = small(x);
            o[2] = Member<int>(x).a;
            o[3] = (int)Float{x};
            int implicit = Float{x}; o[4] = implicit;
            o[5] = (unsigned)Proxy<float>{x};
            o[6] = (int)Both{x};
            Sum sum = {0}; sum += x; o[7] = sum.sum;
            o[8] = (Color)x;
            o[9] = (int)(Small)x;
            o[10] = static_cast<int>(static_cast<Color>(x));
            o[11] = ~(int)x;
            o[12] = (const int)x + decltype(n)(x);
            o[13] = [](auto y) { return (int)y; }(x);
        }
    "#;
    let x = [0.0_f32, -5.5, 41.75, 300.0, -300.0, 3e10, -3e10, f32::NAN, f32::INFINITY];
    let expected = x.iter().flat_map(|x| {
        let (int, byte) = (*x as i32, i32::from(*x as u32 as u8));
        let unsigned = *x as u32 as i32;
        let sum = int.wrapping_add(int);
        [int, byte, int, int, int, unsigned, 7, int, int, byte, int, !int, sum, int]
    });
    case(text, Grid::new(1, x.len() as u32), &x, expected)
}

/// NVRTC warns of these, and converts them as any other number, but for constants from 2^32 on that
/// become `unsigned`: of those it keeps the lowest bits.
fn constants_that_do_not_fit() -> Case {
    let text = r#"
        struct Pair { unsigned char a; unsigned b; };
        struct Fields { unsigned low : 5; int high : 6; };
        __device__ int same(int x) { return x; }
        extern "C" __global__ void run(const int *in, long long *out, int n) {
            long long *o = out;
            int a = 3e10f; *o++ = a;
            unsigned char b = 300.0f; *o++ = b;
            unsigned char c = -1.0f; *o++ = c;
            unsigned d = -1.0f; *o++ = d;
            const int e = -3e10; *o++ = e;
            long long f = 1e30; *o++ = f;
            static const unsigned short g = 70000.0f; *o++ = g;
            int h = __int_as_float(0x7fc00000); *o++ = h;
            short i = 1e6f; *o++ = i;
            Pair j = {300.0f, -2.5f}; *o++ = j.a, *o++ = j.b;
            Pair k = {0.0}; *o++ = k.a;
            int l; l = 1e20; *o++ = l;
            *o++ = same(-1e20);
            int m = 7; m += 3e10f; *o++ = m;
            *o++ = (signed char)200.0f;
            int p(5e9f); *o++ = p;
            unsigned q = {-3.0}; *o++ = q;
            *o = 1e30f;
        }
    "#;
    let (min, max) = (i64::from(i32::MIN), i64::from(i32::MAX));
    let expected = [
        max,
        44,
        0,
        0,
        min,
        i64::MAX,
        4464,
        0,
        16960,
        44,
        0,
        0,
        max,
        min,
        max,
        -56,
        max,
        0,
        i64::MAX,
    ];
    case(text, Grid::new(1, 1), &[0], expected)
}

fn bit_fields_in_place() -> Case {
    let text = r#"
        struct Fields { unsigned low : 5, high : 27; int s : 7; unsigned long long w : 40; };
        Fields f = {(unsigned)x & 31, (unsigned)x >> 5, (int)x << 25 >> 25, x}, *p = &f;
        f.low <<= by; o[0] = f.low;
        p->high >>= by; o[1] = f.high;
        f.s >>= by; o[2] = (long long)f.s;
        p[0].w <<= by; o[3] = f.w;
    "#;
    shifted(text, |x, by| {
        let low = x & 0xffff_ffff;
        let signed = i64::from((low as u32 as i32) << 25 >> 25);
        [
            left::<32>(x & 31, by) & 31,
            right(low >> 5, 32, by),
            arithmetic_right(signed, 32, by) as u64,
            left::<64>(x & 0xff_ffff_ffff, by) & 0xff_ffff_ffff,
        ]
    })
}

fn conversions_in_macros() -> Case {
    let text = r#"
        #define ROUNDED(x) ((int)((x) + 0.5f))
        #define CONVERTED(T, x) ((T)(x))
        #define TO_INT (int)
        #define ASSIGN(a, b) a = b
        #define LARGER(a, b) ((a) > (b) ? (a) : (b))
        float x = in[threadIdx.x];
        int *o = out + 6 * threadIdx.x;
        o[0] = ROUNDED(x);
        o[1] = CONVERTED(unsigned char, x);
        o[2] = TO_INT x;
        ASSIGN(o[3], x);
        o[4] = LARGER(x, 2);
        o[5] = (unsigned char)300.0f + (unsigned char)(x * 0 + 300.0f);
    "#;
    let x = [0.0_f32, -5.5, 41.75, 300.0, 3e10, -3e10, 7.0, 1e30];
    let expected = x.iter().flat_map(|x| {
        let int = *x as i32;
        let larger = if *x > 2.0 { int } else { 2 };
        [(x + 0.5) as i32, i32::from(*x as u32 as u8), int, int, larger, 88]
    });
    case(text, Grid::new(1, x.len() as u32), &x, expected)
}

/// `-0` is less than `+0`.
fn extremes_of_zeros() -> Case {
    let text = r#"
        float x = in[threadIdx.x], y = in[n - 1 - threadIdx.x];
        unsigned *o = out + 5 * threadIdx.x;
        o[0] = __float_as_uint(fminf(x, y));
        o[1] = __float_as_uint(fmaxf(x, y));
        o[2] = __float_as_uint((float)fmin((double)x, (double)y));
        o[3] = __float_as_uint((float)max((double)x, (double)y));
        o[4] = __float_as_uint(fmaxf(x, 0.0f));
    "#;
    let x = [0.0_f32, -0.0, 0.0, -0.0, -0.0, 0.0, 0.0, -0.0];
    let expected = (0..x.len()).flat_map(|at| {
        let (x, y) = (x[at].to_bits(), x[x.len() - 1 - at].to_bits());
        [x | y, x & y, x | y, x & y, 0]
    });
    case(text, Grid::new(1, 8), &x, expected.collect::<Vec<u32>>())
}

fn numbers_rounded_to_integers() -> Case {
    let text = r#"
        double x = in[threadIdx.x];
        long long *o = out + 5 * threadIdx.x;
        o[0] = lroundf((float)x);
        o[1] = llrintf((float)x);
        o[2] = lrint(x);
        o[3] = llround(x);
        o[4] = lround((float)x);
    "#;
    let x = [0.0, 2.5, -2.5, 3e10, -3e10, 1e19, -1e19, 9.3e18, 1e30, f64::INFINITY, f64::NAN];
    let long = |x: f64| if x.is_nan() { i64::MIN } else { x as i64 };
    let expected = x.iter().flat_map(|x| {
        let narrow = f64::from(*x as f32);
        let [away, even] = [long(x.round()), long(x.round_ties_even())];
        let [narrow_away, narrow_even] = [long(narrow.round()), long(narrow.round_ties_even())];
        [narrow_away, narrow_even, even, away, narrow_away]
    });
    case(text, Grid::new(1, x.len() as u32), &x, expected)
}

fn extremes_of_integers() -> Case {
    let text = r#"
        int x = in[threadIdx.x], *o = out + 6 * threadIdx.x;
        o[0] = abs(x);
        o[1] = x + 1;
        o[2] = x * x;
        o[3] = -x;
        o[4] = (char)(x >> 3) < 0;
        o[5] = x - 0x7fffffff;
    "#;
    let x = [0, 1, -1, 1000, i32::MIN, i32::MIN + 1, i32::MAX, 65_536, -65_537];
    let expected = x.iter().flat_map(|x| {
        [
            x.wrapping_abs(),
            x.wrapping_add(1),
            x.wrapping_mul(*x),
            x.wrapping_neg(),
            i32::from(((x >> 3) as i8) < 0),
            x.wrapping_sub(i32::MAX),
        ]
    });
    case(text, Grid::new(1, x.len() as u32), &x, expected)
}

fn extremes_of_floats() -> Case {
    let text = r#"
        float x = in[threadIdx.x], y = in[n - 1 - threadIdx.x];
        unsigned *o = out + 4 * threadIdx.x;
        o[0] = __float_as_uint(fminf(x, y));
        o[1] = __float_as_uint(fmaxf(x, y));
        o[2] = __float_as_uint((float)fmin((double)x, (double)y));
        o[3] = __float_as_uint(max(x, y));
    "#;
    let x = [1.0_f32, f32::NAN, 3.0, f32::INFINITY, -1.0, 2.0, -2.0, f32::NEG_INFINITY];
    let expected = (0..x.len()).flat_map(|at| {
        let (x, y) = (x[at], x[x.len() - 1 - at]);
        [x.min(y), x.max(y), x.min(y), x.max(y)].map(f32::to_bits)
    });
    case(text, Grid::new(1, 8), &x, expected.collect::<Vec<u32>>())
}

fn products_of_complex_numbers_are_rounded_apart() -> Case {
    let text = r#"
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        const float *a = in + 4 * i, *b = a + 2;
        out[2 * i] = a[0] * b[0] - a[1] * b[1];
        out[2 * i + 1] = a[0] * b[1] + a[1] * b[0];
    "#;
    let x: Vec<f32> = crate::words(512).iter().map(|word| *word as f32 * 1.1e-9 - 2.3).collect();
    let expected = x.chunks(4).flat_map(|x| [x[0] * x[2] - x[1] * x[3], x[0] * x[3] + x[1] * x[2]]);
    case(text, Grid::new(2, 64), &x, expected.collect::<Vec<f32>>())
}

/// GCC makes one instruction of such sums and differences.
fn products_are_rounded_apart_in_turn() -> Case {
    let text = r#"
        const double *a = in, *b = in + 64, *c = in + 128;
        for (int i = 0; i < 64; i += 2) {
            out[i] = a[i] * b[i] - c[i];
            out[i + 1] = a[i + 1] * b[i + 1] + c[i + 1];
        }
    "#;
    let x: Vec<f64> = crate::words(192).iter().map(|word| f64::from(*word) * 1.1e-9).collect();
    let expected = (0..64).map(|i| {
        let (product, sum) = (x[i] * x[64 + i], x[128 + i]);
        if i % 2 == 0 { product - sum } else { product + sum }
    });
    case(text, Grid::new(1, 1), &x, expected.collect::<Vec<f64>>())
}
