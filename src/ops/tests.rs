//! Makes the kernels of all operations and types, and compiles them with a real NVRTC if
//! `RESIDENT_NVRTC` names the library.

use ndarray::{Axis, s};
use num_complex::Complex;

use super::arithmetic::{Arithmetic, Float, Index, Number, Ordered, Scalar};
use super::cache::Cached as _;
use super::elementwise::Unary;
use super::language;
use super::right::Right;
use crate::array::SmartArray;
use crate::device::Device;
use crate::error::Result;
use crate::launch::{In, InOut};
use resident_backend::{GpuCode, Program, environment};
use resident_embedded::Emulation;

/// No file has the sources of `ops`.
#[test]
fn real_nvrtc_compiles_every_operation() {
    if environment::text("RESIDENT_NVRTC").is_none() {
        return eprintln!("RESIDENT_NVRTC is not set: nothing was compiled");
    }
    use_every_operation();
    let mut count = 0;
    super::cache::each_program(&mut |program| {
        count += 1;
        compile(program);
    });
    assert!(count > 200, "only {count}");
}

fn compile(program: &Program) {
    let GpuCode::C(text) = &program.source.code else { unreachable!("all are texts") };
    // What is declared and not used is an error.
    let strict = format!("#pragma nv_diag_error 177\n{text}");
    let names = resident_gpu::kernel_names_by_nvrtc(program, &strict)
        .unwrap_or_else(|log| panic!("{}: {log}\n{text}", program.kernel));
    let entry = program.source.entry.as_deref().expect("all have names");
    assert_eq!(names, [entry], "{}", program.kernel);
}

/// The kernels of texts: each statement, operator and function, each type, on one axis and on two.
#[test]
fn real_nvrtc_compiles_texts() -> Result<()> {
    if environment::text("RESIDENT_NVRTC").is_none() {
        eprintln!("RESIDENT_NVRTC is not set: nothing was compiled");
        return Ok(());
    }
    let mut count = 0;
    let mut check = |program: &Program| {
        count += 1;
        compile(program);
    };
    macro_rules! each {
        ($($type:ty),+) => {
            $(of_type::<$type>(&mut check)?;)+
        };
    }
    each!(f32, f64, i32, i64, u32, u64, u8, half::f16, half::bf16);
    macro_rules! reduce {
        ($($type:ty),+) => {
            $(reductions_of::<$type>("h > 0 ? x / 2 : x", "min(a, b) + max(a, b)", &mut check)?;)+
        };
    }
    reduce!(f32, f64, i32, i64, u32, u64, u8);
    macro_rules! complex {
        ($($type:ty),+) => {
            $(
                elementwise_of::<$type>(COMPLEX, &mut check)?;
                reductions_of::<$type>("conj(x) / h", "a + b", &mut check)?;
            )+
        };
    }
    complex!(Complex<f32>, Complex<f64>);
    assert_eq!(count, 11 * 2 + 9 * 5);
    Ok(())
}

/// A text with all that the language has for complex numbers.
const COMPLEX: &str = "
    complex<double> d = 2 * x; complex<float> f = complex(1, 2.0f) + a;
    d += f * x - a / x; d -= 1; f *= -conj(f); d++; --f;
    double r = re(d) + im(x) + re(2) + abs(f) * abs(d);
    if (d == f || x != 1 || !a) d = r; else f = d ? x : r;
    y = d / complex(r, 1) + (complex<float>)d + f + (bool)x";

/// A text with all that the language has for real numbers, whose value becomes this type of C.
fn everything(kind: &str) -> String {
    let of_float = |name: &str| {
        let count = language::functions_of_floats().find(|(known, _)| *known == name);
        let arguments = ["x", "y", "d"][..count.map_or(1, |(_, count)| count)].join(", ");
        format!(
            "d += {name}({arguments}); d += {name}f({arguments}); d += {name}({});\n",
            ["d", "d, x", "d, x, 1",][count.map_or(0, |(_, count)| count - 1)]
        )
    };
    let functions: String =
        language::functions_of_floats().map(|(name, _)| of_float(name)).collect();
    format!(
        "double d = 2 * x; int n = (int)x; unsigned int u = n; long long l = (long long)d;
         unsigned long long q = u * l; unsigned char k = (unsigned char)q; bool b = k && !n;
         {functions}
         n += n + n - n * n / n % n; l -= l / q - l % 3; q <<= n; q >>= 70; n = n << 3 >> u;
         u ^= u & 3 | ~u; d += abs(n) + abs(l) + abs(d) + min(n, l) + max(u, 3) + max(x, d);
         b = b ? isnan(d) || isinf(x) : isfinite(d) != (x < NAN) == true;
         for (int i = 0, j = 9; i < 3; ++i, j--) {{ if (j == i) continue; n -= -j; }}
         while (n > 1000) n /= 2;
         do {{ u = u + 1; if (u > 7) break; }} while (u);
         y = ({kind})(a + d + n + u + l + q + k + b + M_PI - INFINITY);"
    )
}

fn of_type<T: Arithmetic>(check: &mut dyn FnMut(&Program)) -> Result<()> {
    elementwise_of::<T>(&everything(T::C.of_text().c()), check)
}

fn elementwise_of<T: Arithmetic>(text: &str, check: &mut dyn FnMut(&Program)) -> Result<()> {
    let _here = Device::emulated(Emulation::new()).enter();
    let operation =
        super::Elementwise::<(T, In<T>, InOut<T>)>::new("all", text, ["a", "x", "y"]).host(|_| ());
    let table = SmartArray::<T, _>::zeros((6, 6));
    let mut out = SmartArray::<T, _>::zeros((6, 6));
    operation.apply((T::zeroed(), &table, &mut out))?;
    operation.apply((T::zeroed(), &table.t(), &mut out))?;
    operation.each_program(check);
    Ok(())
}

fn reductions_of<T: Scalar>(map: &str, join: &str, check: &mut dyn FnMut(&Program)) -> Result<()> {
    let _here = Device::emulated(Emulation::new()).enter();
    let reduction =
        super::Reduction::<(half::f16, In<T>), T>::new("all", ["h", "x"], map, join, T::ZERO)
            .host(|(_, x)| x, |a, _| a);
    let (line, table) = (SmartArray::<T, _>::zeros(9000), SmartArray::<T, _>::zeros((300, 90)));
    reduction.apply((half::f16::ONE, &line))?;
    let mut sums = SmartArray::<T, _>::uninit(90);
    reduction.apply_axis(Axis(0), (half::f16::ONE, &table), &mut sums)?;
    let mut sums = SmartArray::<T, _>::uninit(300);
    reduction.apply_axis(Axis(1), (half::f16::ONE, &table), &mut sums)?;
    reduction.each_program(check);
    Ok(())
}

/// Every operation on elements of every type, on one axis and on two.
fn use_every_operation() {
    let _here = Device::cpu().enter();
    let mut outcome = Ok(());
    macro_rules! each {
        ($($type:ty),+) => {
            $(outcome = outcome.and_then(|()| numbers::<$type>());)+
        };
    }
    each!(f32, f64, i32, i64, u32, u64, u8);
    outcome = outcome.and_then(|()| floats::<f32>()).and_then(|()| floats::<f64>());
    outcome = outcome.and_then(|()| ordered::<half::f16>());
    outcome = outcome.and_then(|()| ordered::<half::bf16>());
    outcome = outcome.and_then(|()| complex::<Complex<f32>>());
    outcome = outcome.and_then(|()| complex::<Complex<f64>>());
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

fn numbers<T: Number + Right<T>>() -> Result<()> {
    let table = SmartArray::<T, _>::zeros((40, 40));
    ordered::<T>()?;
    let mut out = SmartArray::<T, _>::zeros((40, 40));
    for function in [Unary::Neg, Unary::Abs, Unary::Sign, Unary::Square, Unary::Round] {
        super::map(function, &table, &mut out)?;
    }
    if T::IS_FLOAT {
        for function in [Unary::Reciprocal, Unary::Sqrt, Unary::Exp, Unary::Exp2, Unary::Log] {
            super::map(function, &table, &mut out)?;
        }
        for function in [Unary::Sin, Unary::Cos, Unary::Tan, Unary::Tanh, Unary::Trunc] {
            super::map(function, &table, &mut out)?;
        }
    }
    sparse::<u32, T>()?;
    sparse::<u64, T>()?;
    super::sort(&mut out)?;
    super::sort(&mut out.slice_mut(s![..;2, ..;2]))?;
    super::cumulative_sum(&table, &mut out)?;
    super::cumulative_sum_axis(&table, Axis(0), &mut out)?;
    super::cumulative_product(&table, &mut out)?;
    let mut places = SmartArray::<u64, _>::zeros((20, 20));
    super::searchsorted(&table.row(0), &table.slice(s![..;2, ..;2]), &mut places)?;
    super::searchsorted(&table.row(0), &table.slice(s![0, ..20]), &mut places.row_mut(0))?;
    reductions(&table)?;
    sums(&table)
}

fn complex<T: Scalar + Right<T>>() -> Result<()> {
    arithmetic::<T>()?;
    sums(&SmartArray::<T, _>::zeros((40, 40)))
}

fn sparse<I: Index, T: Number>() -> Result<()> {
    let starts = SmartArray::<I, _>::zeros(7);
    let (columns, values) = (SmartArray::<I, _>::zeros(0), SmartArray::<T, _>::zeros(0));
    let (line, mut out) = (SmartArray::<T, _>::zeros(6), SmartArray::<T, _>::zeros(6));
    super::bincount(&starts, &mut SmartArray::<u32, _>::zeros(1))?;
    super::bincount(&starts, &mut SmartArray::<u64, _>::zeros(1))?;
    super::csr_matvec(&starts, &columns, &values, &line, &mut out)?;
    let (table, mut out) = (SmartArray::<T, _>::zeros((6, 6)), SmartArray::<T, _>::zeros((6, 6)));
    super::csr_matmul(&starts, &columns, &values, &table, &mut out)
}

fn floats<T: Float>() -> Result<()> {
    let mut table = SmartArray::<T, _>::zeros((6, 6));
    super::random_uniform(1, &mut table)?;
    super::random_normal(1, &mut table)?;
    super::random_uniform(1, &mut table.slice_mut(s![..;2, ..;2]))?;
    super::random_normal(1, &mut table.slice_mut(s![..;2, ..;2]))
}

fn reductions<T: Number>(table: &SmartArray<T, ndarray::Ix2>) -> Result<()> {
    table.min()?;
    table.max()?;
    table.var(T::Real::ZERO)?;
    table.norm_l2()?;
    table.unique()?;
    table.argmin()?;
    table.argmax()?;
    let mut line = SmartArray::<T, _>::zeros(40);
    let mut reals = SmartArray::<T::Real, _>::zeros(40);
    let mut places = SmartArray::<u64, _>::zeros(40);
    for axis in [Axis(0), Axis(1)] {
        super::min_axis(table, axis, &mut line)?;
        super::max_axis(table, axis, &mut line)?;
        super::norm_l2_axis(table, axis, &mut reals)?;
        super::argmin_axis(table, axis, &mut places)?;
    }
    Ok(())
}

fn sums<T: Scalar>(table: &SmartArray<T, ndarray::Ix2>) -> Result<()> {
    let part = table.slice(s![..;2, ..;2]);
    part.sum()?;
    table.sum()?;
    table.mean()?;
    table.dot(table)?;
    part.dot(&part)?;
    table.product()?;
    table.count_nonzero()?;
    table.any()?;
    table.all()?;
    super::matmul(table, table, &mut SmartArray::<T, _>::zeros((40, 40)))?;
    let mut line = SmartArray::<T, _>::zeros(40);
    let mut reals = SmartArray::<T::Real, _>::zeros(40);
    let mut places = SmartArray::<u64, _>::zeros(40);
    for axis in [Axis(0), Axis(1)] {
        super::sum_axis(table, axis, &mut line)?;
        super::mean_axis(table, axis, &mut reals)?;
        super::product_axis(table, axis, &mut line)?;
        super::count_nonzero_axis(table, axis, &mut places)?;
    }
    Ok(())
}

/// What [`arithmetic`] does not have of complex numbers.
fn ordered<T: Ordered + Right<T>>() -> Result<()> {
    let table = SmartArray::<T, _>::zeros((6, 6));
    let (part, mut out) = (table.slice(s![..;2, ..;2]), SmartArray::<T, _>::zeros((6, 6)));
    super::clamp(&table, T::zeroed(), T::zeroed(), &mut out)?;
    let mut mask = SmartArray::<u8, _>::zeros((6, 6));
    super::less(&table, &table, &mut mask)?;
    super::less_equal(&table, &table, &mut mask)?;
    super::greater(&table, T::zeroed(), &mut mask)?;
    super::greater_equal(&part, T::zeroed(), &mut mask.slice_mut(s![..;2, ..;2]))?;
    arithmetic::<T>()
}

fn arithmetic<T: Arithmetic + Right<T>>() -> Result<()> {
    let table = SmartArray::<T, _>::zeros((6, 6));
    let (part, ones) = (table.slice(s![..;2, ..;2]), SmartArray::<u8, _>::zeros(1));
    let (mut out, mut small) =
        (SmartArray::<T, _>::zeros((6, 6)), SmartArray::<T, _>::zeros((3, 3)));
    super::add(&table, &table, &mut out)?;
    super::add(&part, &part, &mut small)?;
    super::sub(&table, &table, &mut out)?;
    super::mul(&table, &table, &mut out)?;
    super::div(&table, &table, &mut out)?;
    super::add(&table, T::zeroed(), &mut out)?;
    super::sub(&part, T::zeroed(), &mut small)?;
    super::mul(&table, T::zeroed(), &mut out)?;
    super::div(&table, T::zeroed(), &mut out)?;
    (-&table)?;
    (-&part)?;
    super::scaled_add(T::zeroed(), &table, &mut out)?;
    super::copy(&table, &mut out)?;
    super::copy(&part, &mut small)?;
    super::select(&ones, &table, &table, &mut out)?;
    let mut mask = SmartArray::<u8, _>::zeros((6, 6));
    super::equal(&table, &table, &mut mask)?;
    super::not_equal(&part, &part, &mut mask.slice_mut(s![..;2, ..;2]))?;
    let index = SmartArray::<u64, _>::zeros(9);
    let mut line = SmartArray::<T, _>::zeros(9);
    super::gather(&part, &index, &mut line)?;
    super::scatter(&line, &index, &mut out)?;
    macro_rules! cast {
        ($($type:ty),+) => {
            $(super::cast(&table, &mut SmartArray::<$type, _>::zeros((6, 6)))?;)+
        };
    }
    cast!(f32, f64, i32, i64, u32, u64, u8, half::f16, half::bf16, Complex<f32>, Complex<f64>);
    Ok(())
}
