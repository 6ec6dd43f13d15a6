//! Recording a chain.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use smallvec::SmallVec;

use super::super::kernel::Kernel;
use super::super::signature::{In, Out, Signature};
use super::part::PartsNamed;
use super::signature::{Brand, ChainSignature, Intent, ParameterKind};
use super::step::{
    ChainGrid, Passed, Step, StepArgument, StepArguments, StepGrid, StepKernel, StepKind, Use,
};
use crate::element::Element;
use crate::error::{CalledAt, Error, Result};
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::grid::Grid;
use resident_core::Access;

/// Records the steps of a [`Chain`](crate::Chain): [`Chain::record`](crate::Chain::record) has an
/// example. Nothing is allocated, moved or queued.
///
/// Of [`ops`](crate::ops), [`apply`](Self::apply) records an
/// [`Elementwise`](crate::ops::Elementwise), which can compute what the functions on corresponding
/// elements do; [`copy`](Self::copy) and [`fill`](Self::fill) do without a kernel. Other operations
/// cannot be recorded, as they take memory for results of stages, or wait: a
/// [`Reduction`](crate::ops::Reduction) and the functions that reduce, `dot`, `matmul`, running
/// sums, sorts, `gather`, `scatter`, and products of sparse matrices. Write a
/// [`Kernel`](crate::Kernel) for these.
pub struct Recorder<'r, S: ChainSignature> {
    pub(super) recorded: Recorded,
    title: Arc<str>,
    /// Whether each parameter has contents by now.
    has_contents: Box<[bool]>,
    /// The first call that failed: the recording fails even if the closure drops the error.
    failed: Option<Error>,
    brand: Brand<'r>,
    signature: PhantomData<fn() -> S>,
}

/// What a recorder has recorded.
pub(super) struct Recorded {
    pub(super) steps: Vec<Step>,
    pub(super) parts: PartsNamed,
    /// The part that says whether `repeat_while_on` goes on.
    pub(super) condition: Option<usize>,
}

impl<'r, S: ChainSignature> Recorder<'r, S> {
    pub(super) fn new(title: Arc<str>) -> Self {
        let has_contents = S::kinds().iter().map(|kind| kind.has_contents()).collect();
        let parts = PartsNamed::of_parameters(S::kinds().len());
        let (recorded, failed) = (Recorded { steps: Vec::new(), parts, condition: None }, None);
        Self { recorded, title, has_contents, failed, brand: PhantomData, signature: PhantomData }
    }

    pub(super) fn finish(self) -> Result<Recorded> {
        self.failed.map_or(Ok(self.recorded), Err)
    }

    /// Records a launch. The grid is what a launch takes, or a closure over the arguments of a
    /// replay (see [`ChainGrid`]). What each launch checks is checked at the first replay with
    /// arguments of these shapes, before anything is copied.
    ///
    /// ```
    /// use resident::{Chain, Described, Device, In, Kernel, Out, SmartArray, Temp, ndarray::Ix1};
    ///
    /// let double = Kernel::<(u32, In<u32>, Out<u32>)>::new("double")
    ///     .host(|_grid, (factor, xs, ys)| {
    ///         ys.iter_mut().zip(xs).for_each(|(y, x)| *y = factor * x);
    ///     });
    /// let chain = Chain::<(u32, In<u32, Ix1>, Temp<u32, Ix1>, Out<u32, Ix1>)>::record(
    ///     "scale and double",
    ///     |r, (factor, xs, tmp, ys)| {
    ///         let cover = |(_, xs, ..): (_, Described, Described, Described)| xs.len();
    ///         r.launch(&double, cover, (factor, xs.read(), tmp.write()))?;
    ///         r.launch(&double, cover, (2, tmp.read(), ys.write()))
    ///     },
    /// )?;
    /// let _here = Device::cpu().enter();
    /// let xs = SmartArray::from([1_u32, 2, 3]);
    /// let mut ys = SmartArray::uninit_like(&xs);
    /// chain.launch((5, &xs, Temp::like(&xs), &mut ys))?;
    /// assert_eq!(ys.to_vec()?, [10, 20, 30]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Uninitialised`](Error::Uninitialised) if a [`Temp`](crate::Temp) or an
    /// [`Out`](crate::Out) of the chain is read that no earlier step writes.
    /// [`Requirement`](Error::Requirement) if an array that the kernel writes is passed twice. The
    /// recording then fails.
    #[track_caller]
    pub fn launch<K: Signature, M>(
        &mut self,
        kernel: &Kernel<K>,
        grid: impl ChainGrid<S, M>,
        arguments: impl StepArguments<'r, K>,
    ) -> Result<()> {
        let kernel = Arc::new(kernel.clone());
        self.add_launch(kernel, grid.step_grid(), &arguments, call_site())
    }

    /// Records a launch of a kernel that chooses its grid.
    pub(crate) fn launch_own_grid<K: Signature>(
        &mut self,
        kernel: Arc<dyn StepKernel>,
        arguments: &impl StepArguments<'r, K>,
        site: CallSite,
    ) -> Result<()> {
        self.add_launch(kernel, StepGrid::Fixed(Grid::new(1, 1)), arguments, site)
    }

    fn add_launch<K: Signature>(
        &mut self,
        kernel: Arc<dyn StepKernel>,
        grid: StepGrid,
        arguments: &impl StepArguments<'r, K>,
        site: CallSite,
    ) -> Result<()> {
        let arguments = arguments.all_passed(&mut self.recorded.parts);
        let uses = arguments.iter().filter_map(Passed::array).collect();
        self.add(Step { kind: StepKind::Launch { kernel, grid, arguments }, uses, site })
    }

    /// Records a copy between two arrays, which have one shape in each replay.
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch).
    #[track_caller]
    pub fn copy<T: Element, D>(
        &mut self,
        from: Intent<'r, In<T, D>>,
        to: Intent<'r, Out<T, D>>,
    ) -> Result<()> {
        let parts = &mut self.recorded.parts;
        let (from, to) = (parts.number_of(from.part()), parts.number_of(to.part()));
        let uses = [(from, Access::Read), (to, Access::Overwrite)];
        let kind = StepKind::Copy { from, to };
        self.add(Step { kind, uses: uses_of(&uses), site: call_site() })
    }

    /// Records a fill with a value or a scalar parameter of the chain.
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch).
    #[track_caller]
    pub fn fill<T: Element, D>(
        &mut self,
        to: Intent<'r, Out<T, D>>,
        value: impl StepArgument<'r, T>,
    ) -> Result<()> {
        let parts = &mut self.recorded.parts;
        let (to, value) = (parts.number_of(to.part()), value.passed(parts));
        let uses = uses_of(&[(to, Access::Overwrite)]);
        self.add(Step { kind: StepKind::Fill { to, value }, uses, site: call_site() })
    }

    /// Names the array of one element that says whether
    /// [`Chain::repeat_while_on`](crate::Chain::repeat_while_on) goes on: while it is not 0.
    ///
    /// # Errors
    ///
    /// [`Uninitialised`](Error::Uninitialised) if no step so far writes it, and it is a
    /// [`Temp`](crate::Temp) or an [`Out`](crate::Out).
    #[track_caller]
    pub fn repeat_while<D>(&mut self, go_on: Intent<'r, In<u32, D>>) -> Result<()> {
        let part = self.recorded.parts.number_of(go_on.part());
        let checked = self.check("repeat_while", &uses_of(&[(part, Access::Read)]), call_site());
        self.recorded.condition = Some(part);
        self.note(checked)
    }

    fn add(&mut self, step: Step) -> Result<()> {
        let checked = self.check(step.name(), &step.uses, step.site);
        if checked.is_ok() {
            self.recorded.steps.push(step);
        }
        self.note(checked)
    }

    fn note(&mut self, checked: Result<()>) -> Result<()> {
        checked.inspect_err(|error| {
            self.failed.get_or_insert_with(|| error.clone());
        })
    }

    fn check(&mut self, name: &str, uses: &[Use], site: CallSite) -> Result<()> {
        let parameter = |used: &Use| self.recorded.parts.get(used.part).parameter;
        for (index, used) in uses.iter().enumerate() {
            let shared = uses[..index].iter().find(|other| other.part == used.part);
            if shared.is_some_and(|other| other.access.writes() || used.access.writes()) {
                let step = format!("{} ({})", name.trim_start_matches("kernel "), self.title);
                let part = self.recorded.parts.get(used.part);
                return Err(passed_twice(step, format!("{part} of the chain twice"), site));
            }
            if used.access != Access::Overwrite && !self.has_contents[parameter(used)] {
                return Err(self.unwritten(name, used.part, site));
            }
        }
        let written = uses.iter().filter(|used| used.access.writes()).map(parameter);
        for parameter in written.collect::<SmallVec<[usize; 4]>>() {
            self.has_contents[parameter] = true;
        }
        Ok(())
    }

    #[cold]
    fn unwritten(&self, name: &str, part: usize, site: CallSite) -> Error {
        let part = self.recorded.parts.get(part);
        let kind = match S::kinds().get(part.parameter) {
            Some(ParameterKind::Temporary(_)) => "a `Temp`",
            _ => "an `Out`",
        };
        unwritten(&format!("{name} of {}", self.title), &format!("{part}, {kind}"), site)
    }
}

/// The error of a step to which elements are passed twice, of which it writes some.
#[cold]
pub(super) fn passed_twice(kernel: String, arguments: String, site: CallSite) -> Error {
    Error::Requirement {
        call: CalledAt::from(site),
        kernel,
        requirement: String::from("an array that a step writes is passed to it once"),
        arguments,
    }
}

/// The error of a step that reads an array before a step writes it.
pub(super) fn unwritten(operation: &str, array: &str, site: CallSite) -> Error {
    Error::Uninitialised {
        call: CalledAt::from(site),
        array: String::from(array),
        operation: String::from(operation),
        part: String::from("all"),
        left_out_by: None,
    }
}

fn uses_of(uses: &[(usize, Access)]) -> SmallVec<[Use; 4]> {
    uses.iter().map(|(part, access)| Use { part: *part, access: *access }).collect()
}

impl<S: ChainSignature> fmt::Debug for Recorder<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({}, {} steps)", self.title, self.recorded.steps.len())
    }
}
