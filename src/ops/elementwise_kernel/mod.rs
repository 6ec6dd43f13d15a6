//! [`Elementwise`]: an operation on corresponding elements that a text describes.

pub(super) mod call;
mod parameter;
mod recorded;
pub(super) mod source;

use std::fmt;
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;

use self::source::Form;
use super::language::{self, Statements};
use crate::device::Stream;
use crate::error::{AtCall, Result};
use crate::launch::{Arguments, Kernel};
use resident_backend::call_site::call_site;

pub(crate) use parameter::{Declared, Use};
pub use parameter::{ElementwiseParameter, ElementwiseSignature};

/// An operation on corresponding elements, which a text describes: one pass over memory for an
/// expression of any length, on all devices, for arrays of any layout, without `unsafe`. CuPy's
/// `ElementwiseKernel`.
///
/// ```
/// use resident::ops::Elementwise;
/// use resident::{Device, Error, In, InOut, SmartArray};
///
/// let saxpy = Elementwise::<(f32, In<f32>, InOut<f32>)>::new(
///     "saxpy",
///     "y = a * x + y",
///     ["a", "x", "y"],
/// )
/// .host(|(a, x, y)| *y = a * x + *y);    // for machines without a C++ compiler
///
/// let _here = Device::cpu().enter();      // without this line it runs on the first GPU
/// let row = SmartArray::from([1.0_f32, 2.0, 3.0]);
/// let mut table = SmartArray::<f32, _>::ones((2, 3));
/// saxpy.apply((2.0, &row, &mut table))?;                      // the row is used for each row
/// assert_eq!(table.to_vec()?, [3.0, 5.0, 7.0, 3.0, 5.0, 7.0]);
///
/// let wrong = Elementwise::<(In<f32>, InOut<f32>)>::new("wrong", "y = x[0]", ["x", "y"]);
/// let Err(Error::Compile { log, .. }) = wrong.apply((&row, &mut table)) else { panic!() };
/// assert!(log.contains("line 1, column 6, at `[`: there are no arrays here"));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// Complex numbers of the crate `num_complex`, and real ones beside them:
///
/// ```
/// use num_complex::Complex;
/// use resident::ops::Elementwise;
/// use resident::{Device, In, Out, SmartArray};
///
/// let power = Elementwise::<(Complex<f32>, In<Complex<f32>>, Out<f32>)>::new(
///     "power",
///     "complex<float> turned = a * z; p = re(turned * conj(turned))",
///     ["a", "z", "p"],
/// )
/// .host(|(a, z, p)| *p = (a * z).norm_sqr());
///
/// let _here = Device::cpu().enter();
/// let z = SmartArray::from([Complex::new(3.0_f32, 4.0), Complex::new(0.0, 1.0)]);
/// let mut p = SmartArray::<f32, _>::uninit(2);
/// power.apply((Complex::new(0.0, 2.0), &z, &mut p))?;
/// assert_eq!(p.to_vec()?, [100.0, 4.0]);
/// # Ok::<(), resident::Error>(())
/// ```
///
/// Parameters are as those of a [`Kernel`](crate::Kernel): see [`ElementwiseParameter`]. Arguments
/// are arrays and views of this library. All outputs ([`Out`](crate::Out),
/// [`InOut`](crate::InOut)) have one shape, to which the inputs broadcast as in NumPy.
///
/// # The text
///
/// Statements of C, which run for each element. The names of array parameters are the values of
/// the elements; those of outputs are variables, whose values are stored at the end. An `Out` is 0
/// at first. `f16` and `bf16` are `float` values; a `double` or an integer that is assigned to such
/// an output is rounded once.
///
/// - Statements: assignments (`=`, `+=` and its kin, `++`, `--`), local variables with a value,
///   `if`, `else`, `for`, `while`, `do`, `break`, `continue`, blocks. The last `;` may be left out.
/// - Types: `bool`, `int`, `unsigned int`, `long long`, `unsigned long long`, `unsigned char`,
///   `float`, `double`, `complex<float>`, `complex<double>`. `1.5` is a `double`, and `1.5f` a
///   `float`, as in C: `2.0 * x` of a `float` is computed in `double`, which takes a multiple of
///   the time on most GPUs.
/// - Operators: all of C but those of pointers, `sizeof` and the comma. Assignments have no value.
/// - Functions: `abs`, `min`, `max`, `isnan`, `isinf`, `isfinite`; and for floats `acos acosh asin
///   asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc exp exp10 exp2 expm1 fabs
///   fdim floor fma fmax fmin fmod hypot log log10 log1p log2 nearbyint nextafter pow rcbrt
///   remainder rint round rsqrt sin sinh sinpi sqrt tan tanh tgamma trunc`, which compute in
///   `float` if an argument is `float` and none is `double`, else in `double`. With an `f` behind
///   the name they compute in `float`.
/// - Complex numbers: `+ - * /`, `==` and `!=`, with real numbers too, which become complex, and of
///   `double` parts beside a `double`, as in C; `re(z)`, `im(z)`, `conj(z)`, `abs(z)` (by `hypot`),
///   and `complex(re, im)`, whose parts are `float` if an argument is and none is `double`.
///   Quotients are those of [`Arithmetic`](super::Arithmetic). None becomes a real number unless
///   the text says how. Other functions and operators do not take them.
/// - Constants: `true`, `false`, `M_PI`, `INFINITY`, `NAN`.
/// - Conversions: as in C, but that no float becomes an element of integers unless the text says
///   so: `n = x` of an `Out<i32>` is refused, and `n = (int)x` truncates. Integers become narrower
///   or unsigned ones by their lowest bits, as Rust's `as` converts them, without a cast too: 300
///   in an `Out<u8>` is 44. Local variables take any number.
/// - Limits: 32,768 bytes, 64 levels of nesting (of parentheses, calls, unary operators, `? :` and
///   blocks), and 200 of what is written for one expression, such as `a + b + ..` of 200 terms.
///   Local variables shorten expressions.
///
/// A text is read by this library, and CUDA C is written anew from what was read. What C++ leaves
/// open has a value: integers wrap around; a quotient by 0 is 0, and so is the rest; shifts by all
/// bits or more leave none (to the right those of the sign), as in NumPy; `(int)x` of a float is
/// Rust's `x as i32`. The loops of one element end after 2³² − 1 rounds, taken together,
/// which still takes seconds for each. The GPU's compiler may contract `a * x + y` to one rounding.
///
/// # Where it runs
///
/// On GPUs the text runs as CUDA C, compiled at first use for each number of axes that are not one
/// in memory, and kept in the cache of [`Kernel::cuda`](crate::Kernel::cuda). The embedded device
/// compiles it for the host, on all cores from about a million elements on, unless there is a
/// [`host`](Self::host) body. A text without loops runs there on the calling thread if the arrays
/// are small and the stream is idle, as other operations do. Cloning is cheap.
pub struct Elementwise<S: ElementwiseSignature> {
    inner: Arc<Inner<S>>,
}

/// Gives a kernel the body in Rust.
type WithHost<S> = dyn Fn(KernelOf<S>) -> KernelOf<S> + Send + Sync;

/// A kernel for any number of axes.
type KernelOf<S> = Kernel<<S as ElementwiseSignature>::Sized>;

struct Inner<S: ElementwiseSignature> {
    name: Arc<str>,
    text: Arc<str>,
    names: Box<[Box<str>]>,
    host: Option<Arc<WithHost<S>>>,
    /// The statements in CUDA C, or what is wrong with the text, once it was read.
    statements: OnceLock<Result<Statements, String>>,
    kernels: DashMap<Form, Kernel<S::Sized>>,
}

// As of kernels: they stay as they were.
impl<S: ElementwiseSignature> std::panic::RefUnwindSafe for Inner<S> {}

impl<S: ElementwiseSignature> Elementwise<S> {
    /// An operation with a name for messages, its text, and the names of its parameters in order.
    /// The text is read at the first use.
    #[must_use]
    pub fn new(
        name: impl Into<Arc<str>>,
        text: impl Into<Arc<str>>,
        names: impl IntoIterator<Item = impl Into<Box<str>>>,
    ) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self { inner: Arc::new(Inner::new(name.into(), text.into(), names, None)) }
    }

    /// Sets a body in Rust for the embedded device ([`Device::cpu`](crate::Device::cpu)), which is
    /// called for each element, and by several threads at once: inputs are values, and outputs
    /// `&mut` of the elements. It must compute what the text does. The embedded device then needs
    /// no C++ compiler, and runs the text only where
    /// [`Emulation::prefer_cuda`](crate::Emulation::prefer_cuda) or `RESIDENT_CPU_KERNELS=cuda`
    /// asks for it, as of [`Kernel::host`](crate::Kernel::host).
    ///
    /// If it panics, the contents of the outputs are lost.
    #[must_use]
    pub fn host(self, body: impl for<'e> Fn(S::Elements<'e>) + Send + Sync + 'static) -> Self {
        let body = Arc::new(body);
        let with_host = move |kernel: Kernel<S::Sized>| {
            let body = Arc::clone(&body);
            kernel.host(move |_grid, host| S::for_each(host, &*body))
        };
        let Inner { name, text, names, .. } = &*self.inner;
        let host: Arc<WithHost<S>> = Arc::new(with_host);
        let inner = Inner::new(Arc::clone(name), Arc::clone(text), names.clone(), Some(host));
        Self { inner: Arc::new(inner) }
    }

    /// Applies it on the current stream: see [`apply_on`](Self::apply_on).
    ///
    /// # Errors
    ///
    /// As [`apply_on`](Self::apply_on), and [`NoDevice`](crate::Error::NoDevice) if there is no
    /// current device.
    #[track_caller]
    pub fn apply(&self, arguments: impl Arguments<S>) -> Result<()> {
        let site = call_site();
        let stream = Stream::current().at(site)?;
        self.apply_at(&stream, &arguments, site)
    }

    /// Applies it on a stream, as a launch of a [`Kernel`](crate::Kernel): it copies what is out of
    /// date there, is ordered after other uses of the same bytes, and returns when it is queued.
    ///
    /// # Errors
    ///
    /// - [`Compile`](crate::Error::Compile) if the names or the text cannot be used, with the place
    ///   and what to write; or if there is no compiler.
    /// - [`Shape`](crate::Error::Shape) if an input does not broadcast to the shape of the outputs,
    ///   or outputs differ.
    /// - What [`Kernel::launch_on`](crate::Kernel::launch_on) returns while arguments are acquired.
    #[track_caller]
    pub fn apply_on(&self, stream: &Stream, arguments: impl Arguments<S>) -> Result<()> {
        self.apply_at(stream, &arguments, call_site())
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The kernel of a form.
    fn kernel(&self, form: Form, statements: &Statements) -> Kernel<S::Sized> {
        let Inner { name, names, host, kernels, .. } = &*self.inner;
        if let Some(kernel) = kernels.get(&form) {
            return kernel.clone();
        }
        let make = || {
            let kernel = Kernel::<S::Sized>::new(Arc::clone(name));
            let kernel = host.as_ref().map_or_else(|| kernel.clone(), |with| with(kernel.clone()));
            let source = source::source(S::DECLARED, names, &statements.c, form);
            // SAFETY: `source` writes a kernel whose threads read and write elements of the views,
            // which have one shape, and no two threads the same; `language` writes the statements,
            // which access only local variables, and end.
            unsafe { kernel.cuda(source) }
        };
        kernels.entry(form).or_insert_with(make).clone()
    }

    /// Calls `check` with the device code of all kernels made so far.
    #[cfg(all(test, feature = "nccl"))]
    pub(super) fn each_program(&self, check: &mut dyn FnMut(&resident_backend::Program)) {
        self.inner
            .kernels
            .iter()
            .for_each(|kernel| kernel.program().into_iter().for_each(&mut *check));
    }
}

impl<S: ElementwiseSignature> Inner<S> {
    fn new(
        name: Arc<str>,
        text: Arc<str>,
        names: Box<[Box<str>]>,
        host: Option<Arc<WithHost<S>>>,
    ) -> Self {
        Self { name, text, names, host, statements: OnceLock::new(), kernels: DashMap::new() }
    }

    /// The statements in CUDA C.
    fn statements(&self) -> Result<&Statements, &str> {
        let read = || {
            language::check_names(&self.names, S::DECLARED.len())?;
            if !S::DECLARED.iter().any(|declared| declared.how.is_output()) {
                return Err(String::from("no parameter is written; make one an `Out` or `InOut`"));
            }
            let variables = source::variables(S::DECLARED, &self.names);
            language::statements(&self.text, &variables)
        };
        match self.statements.get_or_init(read) {
            Ok(statements) => Ok(statements),
            Err(fault) => Err(fault),
        }
    }
}

impl<S: ElementwiseSignature> Clone for Elementwise<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S: ElementwiseSignature> fmt::Debug for Elementwise<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { name, text, names, host, .. } = &*self.inner;
        f.debug_struct("Elementwise")
            .field("name", name)
            .field("text", text)
            .field("names", names)
            .field("has_host_body", &host.is_some())
            .finish()
    }
}
