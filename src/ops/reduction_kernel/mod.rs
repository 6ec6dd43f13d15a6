//! [`Reduction`]: a reduction of values that a text describes, by an operation that another text
//! describes.

mod call;
mod inputs;
mod plan;
mod source;

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;

use self::plan::{Key, Plan};
use self::source::Texts;
use super::arithmetic::Scalar;
use super::cache::Cached;
use super::elementwise_kernel::source::variables;
use super::elementwise_kernel::{Declared, ElementwiseSignature, Use};
use super::language::{self, Variable};
use crate::array::AnyViewMut;
use crate::device::Stream;
use crate::error::{AtCall, Result};
use crate::launch::{Arguments, Flat, In, Kernel};
use ndarray::Axis;
use resident_backend::call_site::call_site;

pub use inputs::{ReductionInput, ReductionInputs};

/// A reduction that texts describe: a value for the elements of each index, and how two values
/// become one. One pass over memory, on all devices, for arrays of any layout, without `unsafe`.
/// CuPy's `ReductionKernel`.
///
/// ```
/// use resident::ndarray::{Axis, arr2};
/// use resident::ops::Reduction;
/// use resident::{Device, In, SmartArray};
///
/// let distance = Reduction::<(In<f32>, In<f32>), f32>::new(
///     "distance",
///     ["x", "y"],
///     "(x - y) * (x - y)",
///     "a + b",
///     0.0,
/// )
/// .host(|(x, y)| (x - y) * (x - y), |a, b| a + b);    // for machines without a C++ compiler
///
/// let _here = Device::cpu().enter();                   // without this line, on the first GPU
/// let points = SmartArray::from(arr2(&[[1.0_f32, 2.0], [3.0, 4.0], [0.0, 2.0]]));
/// let centre = SmartArray::from([1.0_f32, 2.0]);
/// assert_eq!(distance.apply((&points, &centre))?, 9.0);
/// let mut squares = SmartArray::<f32, _>::uninit(3);
/// distance.apply_axis(Axis(1), (&points, &centre), &mut squares)?;
/// assert_eq!(squares.to_vec()?, [0.0, 8.0, 1.0]);
/// # Ok::<(), resident::Error>(())
/// ```
///
/// The first parameter is a tuple of 1 to 8 inputs, with one [`In`](crate::In) at least
/// ([`ReductionInput`]); they broadcast with each other as in NumPy. The second is the type of the
/// values and of the result: `f32`, `f64`, `i32`, `i64`, `u32`, `u64`, `u8`, `Complex<f32>` or
/// `Complex<f64>`. Sums of `f16` are best `f32`. The inner product of complex numbers:
///
/// ```
/// use num_complex::Complex;
/// use resident::ops::Reduction;
/// use resident::{Device, In, SmartArray};
///
/// type Z = Complex<f64>;
/// let zero = Z::new(0.0, 0.0);
/// let inner =
///     Reduction::<(In<Z>, In<Z>), Z>::new("inner", ["x", "y"], "conj(x) * y", "a + b", zero)
///         .host(|(x, y)| x.conj() * y, |a, b| a + b);
///
/// let _here = Device::cpu().enter();
/// let x = SmartArray::from([Z::new(0.0, 1.0), Z::new(2.0, 0.0)]);
/// assert_eq!(inner.apply((&x, &x))?, Z::new(5.0, 0.0));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// Texts are expressions of the language of [`Elementwise`](super::Elementwise), with its limits.
/// Each is converted to the type of the result, but for floats where that is an integer: write
/// `(int)x`. The text that joins has only the names `a` and `b`, and
/// should be associative and commutative, as sums, products, minima and maxima are: which elements
/// are joined first depends on shapes and strides, but neither on the device nor on the number of
/// threads, so that a result is the same in each run. (The compiler of a GPU may contract products
/// and sums to one rounding.) The initial value is joined once, at last, and is the result where
/// there are no elements.
///
/// Up to one result for 256 elements is intermediate, in memory of the device. Compiled code is
/// kept as that of [`Elementwise`](super::Elementwise). Cloning is cheap.
pub struct Reduction<I: ReductionInputs, R: Scalar> {
    inner: Arc<Inner<I, R>>,
}

/// The kernels of a reduction of inputs.
type Kernels<I, R> = DashMap<Key, Kernel<<I as ReductionInputs>::Kernel<R>>>;

/// Gives a kernel the body in Rust.
type WithHost<I, R> = dyn Fn(
        Kernel<<I as ReductionInputs>::Kernel<R>>,
        Plan<R>,
    ) -> Kernel<<I as ReductionInputs>::Kernel<R>>
    + Send
    + Sync;

/// The results of chunks, which are reduced in turn.
type Partial<R> = (In<R, Flat>,);

/// Bodies in Rust, of the values and of results of chunks.
struct Host<I: ReductionInputs, R: Scalar> {
    first: Arc<WithHost<I, R>>,
    rest: Arc<WithHost<Partial<R>, R>>,
}

struct Inner<I: ReductionInputs, R: Scalar> {
    name: Arc<str>,
    names: Box<[Box<str>]>,
    map: Arc<str>,
    join: Arc<str>,
    initial: R,
    host: Option<Host<I, R>>,
    checked: OnceLock<Result<Checked, String>>,
    first: Kernels<I, R>,
    rest: Kernels<Partial<R>, R>,
}

// As of kernels: they stay as they were.
impl<I: ReductionInputs, R: Scalar> std::panic::RefUnwindSafe for Inner<I, R> {}

/// The expressions in CUDA C.
struct Checked {
    map: String,
    join: String,
}

impl<I: ReductionInputs, R: Scalar> Reduction<I, R> {
    /// A reduction with a name for messages, the names of its inputs in order, the value for the
    /// elements of an index, how two values `a` and `b` become one, and the initial value. The
    /// texts are read at the first use.
    #[must_use]
    pub fn new(
        name: impl Into<Arc<str>>,
        names: impl IntoIterator<Item = impl Into<Box<str>>>,
        map: impl Into<Arc<str>>,
        join: impl Into<Arc<str>>,
        initial: R,
    ) -> Self {
        let (name, map, join) = (name.into(), map.into(), join.into());
        let names = names.into_iter().map(Into::into).collect();
        Self { inner: Arc::new(Inner::new(name, names, map, join, initial)) }
    }

    /// Sets bodies in Rust for the embedded device, which must compute what the texts do: the value
    /// for elements, and how two values become one. As of
    /// [`Elementwise::host`](super::Elementwise::host).
    #[must_use]
    pub fn host(
        self,
        map: impl for<'e> Fn(I::Elements<'e>) -> R + Send + Sync + 'static,
        join: impl Fn(R, R) -> R + Send + Sync + 'static,
    ) -> Self {
        let (map, join) = (Arc::new(map), Arc::new(join));
        let join_rest = Arc::clone(&join);
        let host = Host {
            first: Arc::new(move |kernel: Kernel<I::Kernel<R>>, plan| {
                let (map, join) = (Arc::clone(&map), Arc::clone(&join));
                kernel.own_host(move |_grid, host| I::reduce(host, &plan, &*map, &*join))
            }),
            rest: Arc::new(move |kernel, plan| {
                let join = Arc::clone(&join_rest);
                kernel.own_host(move |_grid, host| {
                    <Partial<R> as ReductionInputs>::reduce(host, &plan, &|(x,)| x, &*join);
                })
            }),
        };
        let Inner { name, names, map, join, initial, .. } = &*self.inner;
        let (name, map, join) = (Arc::clone(name), Arc::clone(map), Arc::clone(join));
        let inner = Inner::new(name, names.clone(), map, join, *initial);
        Self { inner: Arc::new(Inner { host: Some(host), ..inner }) }
    }

    /// The reduction of all elements, on the current stream: see [`apply_on`](Self::apply_on).
    ///
    /// # Errors
    ///
    /// As [`apply_on`](Self::apply_on), and [`NoDevice`](crate::Error::NoDevice) if there is no
    /// current device.
    #[track_caller]
    pub fn apply(&self, arguments: impl Arguments<I>) -> Result<R> {
        let site = call_site();
        self.number(&Stream::current().at(site)?, &arguments, site)
    }

    /// The reduction of all elements, on a stream. Waits, and brings the result alone to the host.
    ///
    /// # Errors
    ///
    /// - [`Compile`](crate::Error::Compile) if names or texts cannot be used, with the place and
    ///   what to write; or if there is no compiler.
    /// - [`Shape`](crate::Error::Shape) if inputs do not broadcast with each other.
    /// - What [`Kernel::launch_on`](crate::Kernel::launch_on) returns while arguments are acquired.
    #[track_caller]
    pub fn apply_on(&self, stream: &Stream, arguments: impl Arguments<I>) -> Result<R> {
        self.number(stream, &arguments, call_site())
    }

    /// The reductions of the elements along an axis, on the current stream: see
    /// [`apply_axis_on`](Self::apply_axis_on).
    ///
    /// # Errors
    ///
    /// As [`apply_axis_on`](Self::apply_axis_on), and [`NoDevice`](crate::Error::NoDevice) if there
    /// is no current device.
    #[track_caller]
    pub fn apply_axis(
        &self,
        axis: Axis,
        arguments: impl Arguments<I>,
        out: &mut impl AnyViewMut<R>,
    ) -> Result<()> {
        let site = call_site();
        self.along(&Stream::current().at(site)?, axis, &arguments, out, site)
    }

    /// The reductions of the elements along an axis, on a stream. `out` has the shape to which the
    /// inputs broadcast, without that axis. Returns when it is queued.
    ///
    /// # Errors
    ///
    /// As [`apply_on`](Self::apply_on), and [`Shape`](crate::Error::Shape) if there is no such
    /// axis, or `out` has another shape.
    #[track_caller]
    pub fn apply_axis_on(
        &self,
        stream: &Stream,
        axis: Axis,
        arguments: impl Arguments<I>,
        out: &mut impl AnyViewMut<R>,
    ) -> Result<()> {
        self.along(stream, axis, &arguments, out, call_site())
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }
}

/// For the reductions that the library itself has.
impl<I: ReductionInputs + 'static, R: Scalar> Cached for Reduction<I, R> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    #[cfg(all(test, feature = "nccl"))]
    fn each_program(&self, check: &mut dyn FnMut(&resident_backend::Program)) {
        let Inner { first, rest, .. } = &*self.inner;
        first.iter().for_each(|kernel| kernel.program().into_iter().for_each(&mut *check));
        rest.iter().for_each(|kernel| kernel.program().into_iter().for_each(&mut *check));
    }
}

impl<I: ReductionInputs, R: Scalar> Inner<I, R> {
    fn new(
        name: Arc<str>,
        names: Box<[Box<str>]>,
        map: Arc<str>,
        join: Arc<str>,
        initial: R,
    ) -> Self {
        let (checked, first, rest) = (OnceLock::new(), DashMap::new(), DashMap::new());
        Self { name, names, map, join, initial, host: None, checked, first, rest }
    }

    /// The expressions in CUDA C.
    fn checked(&self) -> Result<&Checked, &str> {
        match self.checked.get_or_init(|| self.check()) {
            Ok(checked) => Ok(checked),
            Err(fault) => Err(fault),
        }
    }

    fn check(&self) -> Result<Checked, String> {
        language::check_names(&self.names, I::DECLARED.len())?;
        if I::DECLARED.iter().all(|declared| declared.how == Use::Scalar) {
            return Err(String::from("no input is an array; make one an `In`"));
        }
        let kind = R::C.of_text();
        let map = language::expression(&self.map, &variables(I::DECLARED, &self.names), kind)
            .map_err(|fault| format!("in the text of the values, {fault}"))?;
        let operands =
            ["a", "b"].map(|name| Variable { name, kind, is_output: false, is_half: false });
        let join = language::expression(&self.join, &operands, kind)
            .map_err(|fault| format!("in the text that joins, {fault}"))?;
        Ok(Checked { map, join })
    }

    fn plan(&self, key: Key) -> Plan<R> {
        let Key { reducer, is_whole, .. } = key;
        Plan { chunk: reducer.chunk(), reducer, is_whole, initial: self.initial }
    }

    /// The kernel that reduces the values.
    fn first(&self, key: Key, checked: &Checked) -> Kernel<I::Kernel<R>> {
        let with_host = self.host.as_ref().map(|host| &*host.first);
        let texts = Texts {
            declared: I::DECLARED,
            names: &self.names,
            map: &checked.map,
            join: &checked.join,
        };
        self.kernel::<I>(&self.first, key, with_host, &texts)
    }

    /// The kernel that reduces results of chunks.
    fn rest(
        &self,
        key: Key,
        checked: &Checked,
    ) -> Kernel<<Partial<R> as ReductionInputs>::Kernel<R>> {
        let with_host = self.host.as_ref().map(|host| &*host.rest);
        let declared: &[Declared] = <Partial<R> as ElementwiseSignature>::DECLARED;
        let (names, map) = ([Box::from("x")], language::c_name("x"));
        let texts = Texts { declared, names: &names, map: &map, join: &checked.join };
        self.kernel::<Partial<R>>(&self.rest, key, with_host, &texts)
    }

    fn kernel<J: ReductionInputs>(
        &self,
        kernels: &Kernels<J, R>,
        key: Key,
        with_host: Option<&WithHost<J, R>>,
        texts: &Texts<'_>,
    ) -> Kernel<J::Kernel<R>> {
        if let Some(kernel) = kernels.get(&key) {
            return kernel.clone();
        }
        let make = || {
            let kernel = Kernel::new(Arc::clone(&self.name));
            let kernel = match with_host {
                Some(with_host) => with_host(kernel, self.plan(key)),
                None => kernel,
            };
            // SAFETY: `out` has as many chunks in each row as the rows of the inputs have, and both
            // have the same rows. Each chunk is read and written by one block or thread. `language`
            // writes the expressions, which access only the values.
            unsafe { kernel.cuda(source::source(texts, key, self.initial)) }
        };
        kernels.entry(key).or_insert_with(make).clone()
    }
}

impl<I: ReductionInputs, R: Scalar> Clone for Reduction<I, R> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<I: ReductionInputs, R: Scalar> fmt::Debug for Reduction<I, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { name, names, map, join, host, .. } = &*self.inner;
        f.debug_struct("Reduction")
            .field("name", name)
            .field("names", names)
            .field("map", map)
            .field("join", join)
            .field("has_host_body", &host.is_some())
            .finish_non_exhaustive()
    }
}
