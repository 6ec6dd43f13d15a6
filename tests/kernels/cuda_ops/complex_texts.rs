//! `Elementwise` and `Reduction` of complex numbers: bodies in Rust and texts give the same values,
//! texts that are checked too.

use ndarray::{Array2, Axis};
use num_complex::Complex;
use resident::ops::{Elementwise, Reduction};
use resident::{In, InOut, Out, Result, SmartArray};

use crate::devices;
use crate::elementwise_texts::all;

type C32 = Complex<f32>;
type C64 = Complex<f64>;

/// Every operation and function, of both types and of real numbers beside them.
#[test]
fn each_operation() -> Result<()> {
    type Signature =
        (f32, C32, In<C32>, In<C64>, InOut<C32>, Out<C64>, Out<f32>, Out<u8>, Out<i32>);
    let text = "
        complex<double> wide = z * w;
        wide += 2;
        const complex<float> turned = complex(-im(z), re(z));
        s = s * turned - a / (z + c) + conj(-z);
        d = wide / conj(w) - 0.5f;
        if (z == s || !c) d = 0;
        r = abs(z) + re(c) * im(conj(z)) + re(a);
        k = z != turned;
        n = (int)re(w) + (z ? 1 : 0);
        float re = 1; r += re";
    let names = ["a", "c", "z", "w", "s", "d", "r", "k", "n"];
    let operation =
        Elementwise::<Signature>::new("each", text, names).host(|(a, c, z, w, s, d, r, k, n)| {
            let wide = |z: C32| C64::new(z.re.into(), z.im.into());
            let turned = C32::new(-z.im, z.re);
            *s = *s * turned - quotient(C32::new(a, 0.0), z + c) + (-z).conj();
            *d = quotient_of_doubles(wide(z) * w + C64::new(2.0, 0.0), w.conj()) - 0.5;
            if z == *s || c == C32::new(0.0, 0.0) {
                *d = C64::new(0.0, 0.0);
            }
            *r = z.re.hypot(z.im) + c.re * -z.im + a + 1.0;
            *k = u8::from(z != turned);
            *n = w.re as i32 + i32::from(z != C32::new(0.0, 0.0));
        });
    let z = Array2::from_shape_fn((7, 30), |(i, j)| C32::new(i as f32 - 2.3, j as f32 * 0.7 - 9.1));
    let w = Array2::from_shape_fn((7, 1), |(i, _)| C64::new(1.1 - i as f64, 0.3 * i as f64));
    let mut found = Vec::new();
    for device in all() {
        let _here = device.enter();
        let (z, w) = (SmartArray::from(z.clone()), SmartArray::from(w.clone()));
        let mut s = z.try_clone()?;
        let (mut d, mut r) = (SmartArray::uninit((7, 30)), SmartArray::uninit((7, 30)));
        let (mut k, mut n) = (SmartArray::uninit((7, 30)), SmartArray::uninit((7, 30)));
        let c = C32::new(0.5, -1.5);
        operation.apply((1.7, c, &z, &w, &mut s, &mut d, &mut r, &mut k, &mut n))?;
        found.push((s.to_vec()?, d.to_vec()?, r.to_vec()?, k.to_vec()?, n.to_vec()?));
    }
    assert!(found.iter().all(|results| *results == found[0]));
    Ok(())
}

/// Smith's quotient.
macro_rules! smith {
    ($a:ident, $b:ident) => {
        if $b.re.abs() >= $b.im.abs() {
            let ratio = $b.im / $b.re;
            let divisor = $b.re + $b.im * ratio;
            Complex::new(($a.re + $a.im * ratio) / divisor, ($a.im - $a.re * ratio) / divisor)
        } else {
            let ratio = $b.re / $b.im;
            let divisor = $b.re * ratio + $b.im;
            Complex::new(($a.re * ratio + $a.im) / divisor, ($a.im * ratio - $a.re) / divisor)
        }
    };
}

fn quotient(a: C32, b: C32) -> C32 {
    smith!(a, b)
}

fn quotient_of_doubles(a: C64, b: C64) -> C64 {
    smith!(a, b)
}

/// Inner products, which conjugate, of all elements and along both axes; and powers of both types.
#[test]
fn reductions() -> Result<()> {
    let inner = Reduction::<(In<C32>, In<C32>), C32>::new(
        "inner",
        ["x", "y"],
        "conj(x) * y",
        "a + b",
        C32::new(0.25, -0.5),
    )
    .host(|(x, y)| x.conj() * y, |a, b| a + b);
    let product = Reduction::<(In<C32>,), C64>::new(
        "product",
        ["x"],
        "x / abs(x)",
        "a * b",
        C64::new(1.0, 0.0),
    )
    .host(
        |(x,)| {
            let size = x.re.hypot(x.im);
            quotient_of_parts(x, size)
        },
        |a, b| a * b,
    );
    let table = |seed: usize| {
        Array2::from_shape_fn((300, 90), |(i, j)| {
            C32::new((i * seed % 17) as f32 * 0.3 - 2.0, (j * 7 + i) as f32 % 11.0 - 5.3)
        })
    };
    let mut found = Vec::new();
    for (_, _here) in devices() {
        let (x, y) = (SmartArray::from(table(3)), SmartArray::from(table(5)));
        let mut results = vec![inner.apply((&x, &y))?];
        for axis in [Axis(0), Axis(1)] {
            let mut sums = SmartArray::uninit([90, 300][axis.0]);
            inner.apply_axis(axis, (&x, &y), &mut sums)?;
            results.extend(sums.to_vec()?);
        }
        found.push((results, product.apply((&x.slice(ndarray::s![0, ..]),))?));
    }
    let exact: C64 = table(3).iter().zip(&table(5)).map(|(x, y)| wide(x.conj()) * wide(*y)).sum();
    let error = wide(found[0].0[0]) - (exact + C64::new(0.25, -0.5));
    assert!(error.re.hypot(error.im) < 1e-5 * exact.re.hypot(exact.im), "{error}");
    let size = found[0].1;
    assert!((size.re.hypot(size.im) - 1.0).abs() < 1e-5, "{size}");
    assert!(found.iter().all(|results| *results == found[0]));
    Ok(())
}

fn wide(z: C32) -> C64 {
    C64::new(z.re.into(), z.im.into())
}

/// The quotient by a real number, which is complex in the text.
fn quotient_of_parts(z: C32, by: f32) -> C64 {
    wide(quotient(z, C32::new(by, 0.0)))
}
