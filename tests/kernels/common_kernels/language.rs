//! What CUDA C takes from C++: templates, structures, unions, functions, loops.

use resident::Grid;

use crate::{Case, case, case_with, floats, ints, words};

cases! {
    bits_of_floats_by_union_pointer_and_function, fast_inverse_square_root,
    structures_in_arrays_and_by_value, operations_as_template_parameters,
    overloaded_operators_of_complex_numbers, recursion, functions_in_a_table,
    a_machine_of_instructions, lambdas_and_loops_of_each_kind,
    shared_memory_of_several_types_in_one_array, whole_numbers_wrap_shift_and_divide,
    conversions_between_floats_and_whole_numbers, bit_fields_and_alignment
}

fn bits_of_floats_by_union_pointer_and_function() -> Case {
    let text = r#"
        union Word { float f; unsigned u; struct { unsigned short low, high; } part;
            unsigned char bytes[4]; };
        extern "C" __global__ void run(const float *in, unsigned *out, int n) {
            int i = threadIdx.x;
            Word w;
            w.f = in[i];
            unsigned by_function = __float_as_uint(in[i]);
            int exponent = (int)(w.u >> 23 & 0xff) - 127;
            out[i] = (w.u == by_function ? exponent * 65536 : 0) + w.part.high + w.bytes[3];
        }
    "#;
    let x = floats(40);
    let value = |x: &f32| {
        let bits = x.to_bits();
        let exponent = (bits >> 23 & 0xff).wrapping_sub(127);
        exponent.wrapping_mul(65536).wrapping_add(bits >> 16).wrapping_add(bits >> 24)
    };
    case(text, Grid::new(1, 40), &x, x.iter().map(value))
}

fn fast_inverse_square_root() -> Case {
    let text = r#"
        float x = fabsf(in[threadIdx.x]) + 1, half = 0.5f * x;
        int i = *(int *)&x;
        i = 0x5f3759df - (i >> 1);
        x = *(float *)&i;
        out[threadIdx.x] = x * (1.5f - half * x * x);
    "#;
    let x = floats(32);
    let root = |x: &f32| {
        let x = x.abs() + 1.0;
        let guess = f32::from_bits(0x5f37_59df - (x.to_bits() >> 1));
        guess * (1.5 - 0.5 * x * guess * guess)
    };
    case(text, Grid::new(1, 32), &x, x.iter().map(root))
}

fn structures_in_arrays_and_by_value() -> Case {
    let text = r#"
        struct Body { float3 at; int mass; };
        struct Box { float low[3], high[3]; int count; };
        __device__ Box extended(Box box, Body b) {
            const float at[3] = {b.at.x, b.at.y, b.at.z};
            for (int k = 0; k < 3; ++k) {
                box.low[k] = fminf(box.low[k], at[k]);
                box.high[k] = fmaxf(box.high[k], at[k]);
            }
            box.count += b.mass;
            return box;
        }
        extern "C" __global__ void run(const float *in, float *out, int n) {
            Box box = {{1e9f, 1e9f, 1e9f}, {-1e9f, -1e9f, -1e9f}, 0};
            for (int k = 0; k < 5; ++k) {
                const float *p = in + 15 * threadIdx.x + 3 * k;
                box = extended(box, Body{make_float3(p[0], p[1], p[2]), k});
            }
            for (int k = 0; k < 3; ++k) out[4 * threadIdx.x + k] = box.high[k] - box.low[k];
            out[4 * threadIdx.x + 3] = box.count;
        }
    "#;
    let x = floats(90);
    let mut expected = Vec::new();
    for part in x.chunks(15) {
        for k in 0..3 {
            let values = || part.iter().copied().skip(k).step_by(3);
            let (low, high) = (values().fold(1e9, f32::min), values().fold(-1e9, f32::max));
            expected.push(high - low);
        }
        expected.push(10.0);
    }
    case(text, Grid::new(1, 6), &x, expected)
}

fn operations_as_template_parameters() -> Case {
    let text = r#"
        struct Add { static __device__ int of(int a, int b) { return a + b;
            } static const int unit = 0; };
        struct Max { static __device__ int of(int a, int b) { return a > b ? a : b;
            } static const int unit = -1000; };
        template <typename Op, int N> struct Fold {
            static __device__ int of(const int *x) { return Op::of(x[N - 1], Fold<Op,
                N - 1>::of(x)); }
        };
        template <typename Op> struct Fold<Op, 0> {
            static __device__ int of(const int *) { return Op::unit; }
        };
        template <typename Op> __device__ void store(const int *in, int *out) {
            *out = Fold<Op, 7>::of(in);
        }
        extern "C" __global__ void run(const int *in, int *out, int n) {
            int i = threadIdx.x;
            if (i & 1) store<Add>(in + 7 * i, out + i); else store<Max>(in + 7 * i, out + i);
        }
    "#;
    let x = ints(84);
    let folded = |(i, part): (usize, &[i32])| match i % 2 {
        1 => part.iter().sum(),
        _ => *part.iter().max().expect("some"),
    };
    case(text, Grid::new(1, 12), &x, x.chunks(7).enumerate().map(folded))
}

fn overloaded_operators_of_complex_numbers() -> Case {
    let text = r#"
        struct Complex {
            float re, im;
            __host__ __device__ Complex(float r = 0, float i = 0) : re(r), im(i) {}
            __device__ Complex operator*(const Complex &o) const {
                return {re * o.re - im * o.im, re * o.im + im * o.re}; }
            __device__ Complex operator+(Complex o) const { return Complex(re + o.re, im + o.im); }
            __device__ float size2() const { return re * re + im * im; }
        };
        // Points of the Mandelbrot set, by the number of steps.
        extern "C" __global__ void run(const float *in, int *out, int n) {
            Complex c(in[0] + 0.125f * threadIdx.x, in[1] + 0.125f * threadIdx.y), z;
            int steps = 0;
            while (steps < 50 && z.size2() <= 4) { z = z * z + c; ++steps; }
            out[threadIdx.y * blockDim.x + threadIdx.x] = steps;
        }
    "#;
    let steps = |i: usize| {
        let (cx, cy) = (-2.0 + 0.125 * (i % 24) as f32, -1.0 + 0.125 * (i / 24) as f32);
        let (mut x, mut y) = (0.0_f32, 0.0_f32);
        (0..50)
            .take_while(|_| {
                let stays = x * x + y * y <= 4.0;
                (x, y) = ((x * x - y * y) + cx, (x * y + y * x) + cy);
                stays
            })
            .count() as i32
    };
    case(text, Grid::new(1, (24, 16)), &[-2.0_f32, -1.0], (0..384).map(steps))
}

fn recursion() -> Case {
    let text = r#"
        __device__ int ackermann(int m, int n) {
            return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m,
                n - 1));
        }
        __device__ int divisor(int a, int b) { return b ? divisor(b, a % b) : a; }
        extern "C" __global__ void run(const int *in, int *out, int n) {
            int i = threadIdx.x;
            out[i] = i < 4 ? ackermann(2, i) : divisor(abs(in[i]), abs(in[i - 1]));
        }
    "#;
    let x = ints(32);
    fn divisor(a: i32, b: i32) -> i32 {
        if b == 0 { a } else { divisor(b, a % b) }
    }
    let value = |i: usize| match i {
        0..4 => 2 * i as i32 + 3,
        _ => divisor(x[i].abs(), x[i - 1].abs()),
    };
    case(text, Grid::new(1, 32), &x, (0..32).map(value))
}

fn functions_in_a_table() -> Case {
    let text = r#"
        typedef int (*Operation)(int, int);
        __device__ int add(int a, int b) { return a + b; }
        __device__ int subtract(int a, int b) { return a - b; }
        __device__ int multiply(int a, int b) { return a * b; }
        __device__ Operation const operations[3] = {add, subtract, multiply};
        extern "C" __global__ void run(const int *in, int *out, int n) {
            int i = threadIdx.x;
            out[i] = operations[i % 3](in[i], i);
        }
    "#;
    let x = ints(30);
    let value = |(x, i): (&i32, i32)| [x + i, x - i, x * i][i as usize % 3];
    case(text, Grid::new(1, 30), &x, x.iter().zip(0..).map(value))
}

fn a_machine_of_instructions() -> Case {
    let text = r#"
        enum Code { PUSH, ADD, MUL, NEG, DUP, SWAP, JUMP_IF, STOP };
        extern "C" __global__ void run(const int *in, int *out, int n) {
            int stack[8], top = 0, at = 0;
            stack[top++] = threadIdx.x;
            for (int steps = 0; steps < 100; ++steps) {
                switch ((Code)in[at++]) {
                    case PUSH: stack[top++] = in[at++]; break;
                    case ADD: --top; stack[top - 1] += stack[top]; break;
                    case MUL: --top; stack[top - 1] *= stack[top]; break;
                    case NEG: stack[top - 1] = -stack[top - 1]; break;
                    case DUP: stack[top] = stack[top - 1]; ++top; break;
                    case SWAP: { int x = stack[top - 1]; stack[top - 1] = stack[top - 2];
                        stack[top - 2] = x; break; }
                    case JUMP_IF: { int to = in[at++]; if (stack[top - 1] > 0) at = to; break; }
                    case STOP: out[threadIdx.x] = stack[0]; return;
                }
            }
        }
    "#;
    // From n: add -3 while that leaves more than 0, then negate a copy and multiply.
    let program = [0, -3, 1, 6, 0, 4, 3, 2, 7];
    let value = |n: i32| {
        let least = if n <= 3 { n - 3 } else { (n - 1) % 3 - 2 };
        -(least * least)
    };
    case_with(text, Grid::new(1, 20), &program, &[7; 20], (0..20).map(value))
}

fn lambdas_and_loops_of_each_kind() -> Case {
    let text = r#"
        template <typename F> __device__ int count_if(const int *x, int n, F accepts) {
            int count = 0;
            for (int i = 0; i < n; ++i) {
                if (!accepts(x[i])) continue;
                if (++count == 20) break;
            }
            return count;
        }
        extern "C" __global__ void run(const int *in, int *out, int n) {
            int limit = 10 * threadIdx.x - 80;
            int below = count_if(in, n, [=](int x) { return x < limit; });
            int digits = 0, rest = abs(limit) + 1;
            do { ++digits; rest /= 3; } while (rest);
            goto store;
            below = -1;
        store:
            out[threadIdx.x] = 100 * below + digits;
        }
    "#;
    let x = ints(60);
    let value = |t: i32| {
        let limit = 10 * t - 80;
        let below = x.iter().filter(|x| **x < limit).count().min(20) as i32;
        100 * below + (limit.abs() + 1).ilog(3) as i32 + 1
    };
    case(text, Grid::new(1, 16), &x, (0..16).map(value))
}

fn shared_memory_of_several_types_in_one_array() -> Case {
    let text = r#"
        extern __shared__ unsigned char memory[];
        double *sums = (double *)memory;
        int *ints = (int *)(sums + 16);
        short *shorts = (short *)&ints[16];
        int t = threadIdx.x;
        sums[t] = in[t] * 0.5;
        ints[t] = in[t] * 2;
        shorts[t] = in[t];
        __syncthreads();
        int o = 15 - t;
        out[t] = (int)(sums[o] * 2) + ints[o] + shorts[o];
    "#;
    let x = ints(16);
    case(text, Grid::new(1, 16).shared_bytes(16 * 14), &x, x.iter().rev().map(|x| 4 * x))
}

fn whole_numbers_wrap_shift_and_divide() -> Case {
    let text = r#"
        int i = threadIdx.x, x = in[i], y = in[(i + 3) % n];
        unsigned u = x;
        short narrow = (short)(x * 1000);
        signed char byte = (signed char)x;
        long long wide = (long long)x * y * 1000003;
        int r = (x << 5) ^ (x >> 3) ^ (int)(u >> 3) ^ narrow ^ byte;
        if (y != 0) r += x / y * 7 + x % y;
        out[i] = r ^ (int)(wide >> 16) ^ (int)(u * 2654435761u);
    "#;
    let x = ints(60);
    let value = |i: usize| {
        let (x, y) = (x[i], x[(i + 3) % 60]);
        let wide = i64::from(x) * i64::from(y) * 1_000_003;
        let narrow = (x * 1000) as i16;
        let mut r =
            x << 5 ^ x >> 3 ^ (x as u32 >> 3) as i32 ^ i32::from(narrow) ^ i32::from(x as i8);
        if y != 0 {
            r = r.wrapping_add(x / y * 7 + x % y);
        }
        r ^ (wide >> 16) as i32 ^ (x as u32).wrapping_mul(2_654_435_761) as i32
    };
    case(text, Grid::new(1, 60), &x, (0..60).map(value))
}

fn conversions_between_floats_and_whole_numbers() -> Case {
    let text = r#"
        float x = in[threadIdx.x];
        int *o = out + 8 * threadIdx.x;
        o[0] = (int)x;
        o[1] = __float2int_rn(x);
        o[2] = __float2int_rd(x);
        o[3] = __float2int_ru(x);
        o[4] = (int)rintf(x) + 100 * (int)roundf(x);
        o[5] = (int)(unsigned char)(int)fabsf(x * 30);
        o[6] = (int)__double2ll_rz((double)x * 1e6);
        o[7] = __float_as_int((float)(int)(x * 8));
    "#;
    let x = floats(40);
    let values = |x: &f32| {
        [
            *x as i32,
            x.round_ties_even() as i32,
            x.floor() as i32,
            x.ceil() as i32,
            x.round_ties_even() as i32 + 100 * x.round() as i32,
            i32::from((x * 30.0).abs() as i32 as u8),
            (f64::from(*x) * 1e6) as i64 as i32,
            ((x * 8.0) as i32 as f32).to_bits() as i32,
        ]
    };
    case(text, Grid::new(1, 40), &x, x.iter().flat_map(values))
}

fn bit_fields_and_alignment() -> Case {
    let text = r#"
        struct Packed { unsigned a : 5, b : 11; int c : 16; };
        struct __align__(16) Wide { unsigned char tag; double value; };
        extern "C" __global__ void run(const unsigned *in, int *out, int n) {
            union { unsigned word; Packed packed; } x;
            x.word = in[threadIdx.x];
            Wide wide[2] = {{1, 0.5}, {2, (double)x.packed.b}};
            out[threadIdx.x] = x.packed.a + 100 * (int)wide[threadIdx.x & 1].value + x.packed.c
                + 10000000 * (sizeof(Wide) == 16 && alignof(Wide) == 16);
        }
    "#;
    let x = words(32);
    let value = |(i, x): (usize, &u32)| {
        let b = if i % 2 == 1 { (x >> 5 & 0x7ff) as i32 } else { 0 };
        (x & 31) as i32 + 100 * b + (*x as i32 >> 16) + 10_000_000
    };
    case(text, Grid::new(1, 32), &x, x.iter().enumerate().map(value))
}
