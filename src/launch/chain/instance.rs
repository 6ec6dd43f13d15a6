//! A chain for one stream and for arguments of the same shapes: its steps as a backend gets them,
//! and what they do with the arrays.

use std::sync::Arc;

use smallvec::SmallVec;

use super::super::arguments::bound::{ArrayForm, BoundArgument, BoundArray, Words};
use super::super::submit::packed;
use super::core::Core;
use super::part::{Part, PartOf};
use super::recorder::{passed_twice, unwritten};
use super::signature::ParameterKind;
use super::step::{Passed, ServeStep, Step, StepKind, Use};
use super::steps::{AddressAt, AddressPlace, Places, ScalarPlace, Steps};
use super::temp::{ReadBy, Temporary};
use super::uses::{ArrayUse, Flow};
use crate::device::{Device, Stream};
use crate::error::{CalledAt, Error, Result};
use crate::transfer;
use resident_backend::call_site::CallSite;
use resident_backend::grid::Grid;
use resident_backend::{
    Address, Bytes, ChainInstance, ChainStep, Dependencies, FailureKind, FillWork, Footprint,
    KernelCode, Label, LabelText, LaunchWork, PackedArguments, StreamId, Work,
};
use resident_core::Access;
use resident_core::layout::Strided;

/// See the module.
pub(super) struct Instance {
    key: Key,
    pub(super) steps: Steps,
    /// The arrays that the steps use.
    pub(super) uses: Vec<ArrayUse>,
    /// For each parameter that is a temporary, its array.
    pub(super) temporaries: Vec<Option<Temporary>>,
    /// The parts that steps name, by number.
    parts: Vec<Part>,
    /// The grids of the launches, also of those that are left out since they have no threads.
    grids: Vec<Grid>,
    /// The scalars of the last replay.
    scalars: SmallVec<[u8; 32]>,
    pub(super) kept: ChainInstance,
    /// Whether later replays may have the same steps: the code of some launches names their arrays.
    pub(super) may_be_kept: bool,
}

/// For which replays an instance is.
struct Key {
    stream: StreamId,
    views: Vec<KeyView>,
}

/// The shape and strides of an array; empty for a scalar.
#[derive(Default)]
struct KeyView {
    shape: SmallVec<[usize; 4]>,
    strides: SmallVec<[isize; 4]>,
    /// If it is copied or filled, since the parts of such work are relative to the array.
    offset: Option<usize>,
}

/// The arrays of a replay, by parameter, and then its parts.
type Arrays<'a> = SmallVec<[Option<BoundArray<'a>>; 8]>;

impl Instance {
    /// Makes the temporaries and the steps. Checks what each launch checks.
    pub(super) fn new(
        core: &Core,
        stream: &Stream,
        bound: &[BoundArgument<'_>],
        site: CallSite,
    ) -> Result<Self> {
        let temporaries = core.temporaries(bound, site)?;
        let parts = core.parts_of(&arrays_of(&temporaries, &[], bound), site)?;
        let built = {
            let arrays = arrays_of(&temporaries, &parts, bound);
            Builder::build(core, stream.device_ref(), bound, &arrays, &parts)?
        };
        let Built { steps, uses, grids, places, may_be_kept } = built;
        let steps = Steps::new(steps, places, bound.len());
        let key = Key::of(core, stream, bound);
        let (scalars, title) = (scalars_of(bound).collect(), Arc::clone(&core.title));
        let kept = ChainInstance { title, ..ChainInstance::default() };
        let instance =
            Self { key, steps, uses, temporaries, parts, grids, scalars, kept, may_be_kept };
        Ok(instance)
    }

    /// Whether it is for this stream and for arguments of these shapes.
    pub(super) fn is_for(&self, stream: &Stream, bound: &[BoundArgument<'_>]) -> bool {
        self.key.stream == stream.id()
            && self.key.views.iter().zip(bound).all(|(view, bound)| view.is_of(bound))
    }

    /// Checks anew what depends on scalars, if these are not those of the last replay, and writes
    /// them to the steps. Returns whether the steps have the grids that they should have.
    pub(super) fn set_scalars(
        &mut self,
        core: &Core,
        device: &Device,
        bound: &[BoundArgument<'_>],
    ) -> Result<bool> {
        if self.has_scalars(bound) {
            return Ok(true);
        }
        if core.depends_on_scalars {
            let arrays = arrays_of(&self.temporaries, &self.parts, bound);
            let mut grids = Vec::with_capacity(self.grids.len());
            for step in &core.steps {
                core.resolve(step, device, bound, &arrays, &mut |_, grid, _| {
                    grids.push(grid);
                    Ok(())
                })?;
            }
            if grids != self.grids {
                return Ok(false);
            }
        }
        self.scalars = scalars_of(bound).collect();
        self.steps.write_scalars(bound);
        Ok(true)
    }

    fn has_scalars(&self, bound: &[BoundArgument<'_>]) -> bool {
        let mut known = &self.scalars[..];
        bound.iter().all(|bound| {
            let BoundArgument::Scalar { bytes, .. } = bound else { return true };
            let (first, rest) = known.split_at(bytes.len());
            known = rest;
            first == *bytes
        })
    }

    /// The array of a part.
    pub(super) fn array<'a>(
        &'a self,
        part: usize,
        bound: &'a [BoundArgument<'a>],
    ) -> Option<BoundArray<'a>> {
        arrays_of(&self.temporaries, &self.parts, bound)[part]
    }
}

/// The array of a parameter; `None` for a scalar.
#[inline]
pub(super) fn array_of<'a>(
    bound: &'a BoundArgument<'a>,
    temporary: &'a Option<Temporary>,
) -> Option<BoundArray<'a>> {
    match bound {
        BoundArgument::Scalar { .. } => None,
        BoundArgument::Array(array) => Some(*array),
        BoundArgument::Temporary(_) => temporary.as_ref().map(|it| it.bound()),
    }
}

/// The bytes of all scalars, one after the other.
fn scalars_of<'a>(bound: &'a [BoundArgument<'_>]) -> impl Iterator<Item = u8> + 'a {
    let bytes = bound.iter().filter_map(|bound| match bound {
        BoundArgument::Scalar { bytes, .. } => Some(*bytes),
        BoundArgument::Array(_) | BoundArgument::Temporary(_) => None,
    });
    bytes.flatten().copied()
}

/// The arrays of the arguments, the temporaries, and the parts of them behind the parameters.
fn arrays_of<'a>(
    temporaries: &'a [Option<Temporary>],
    parts: &'a [Part],
    bound: &'a [BoundArgument<'a>],
) -> Arrays<'a> {
    let parameters = bound.iter().zip(temporaries);
    let mut arrays: Arrays<'a> =
        parameters.map(|(bound, temporary)| array_of(bound, temporary)).collect();
    for part in parts.iter().skip(bound.len()) {
        arrays.push(arrays[part.parameter].as_ref().map(|array| part.of(array)));
    }
    arrays
}

impl Key {
    fn of(core: &Core, stream: &Stream, bound: &[BoundArgument<'_>]) -> Self {
        let view = |(parameter, bound): (usize, &BoundArgument<'_>)| {
            view_of(bound).map_or_else(KeyView::default, |view| KeyView {
                shape: SmallVec::from_slice(view.shape),
                strides: SmallVec::from_slice(view.strides),
                offset: core.has_parts(parameter).then_some(view.offset),
            })
        };
        Self { stream: stream.id(), views: bound.iter().enumerate().map(view).collect() }
    }
}

impl KeyView {
    fn is_of(&self, bound: &BoundArgument<'_>) -> bool {
        view_of(bound).is_none_or(|view| {
            *self.shape == *view.shape
                && *self.strides == *view.strides
                && self.offset.is_none_or(|offset| offset == view.offset)
        })
    }
}

fn view_of<'a>(bound: &BoundArgument<'a>) -> Option<Strided<'a>> {
    match bound {
        BoundArgument::Scalar { .. } => None,
        BoundArgument::Array(array) => Some(array.view),
        BoundArgument::Temporary(view) => Some(*view),
    }
}

impl Core {
    /// Arrays for the parameters that are temporaries. They have no memory yet.
    fn temporaries(
        &self,
        bound: &[BoundArgument<'_>],
        site: CallSite,
    ) -> Result<Vec<Option<Temporary>>> {
        let make = |(index, bound): (usize, &BoundArgument<'_>)| match (self.kinds[index], bound) {
            (ParameterKind::Temporary(allocate), BoundArgument::Temporary(view)) => {
                let temporary = allocate(view, self.who_reads(index), site)?;
                temporary.storage().set_name(&format!("parameter {index} of {}", self.title));
                Ok(Some(temporary))
            }
            _ => Ok(None),
        };
        bound.iter().enumerate().map(make).collect()
    }

    fn who_reads(&self, temporary: usize) -> ReadBy {
        let condition = self.condition.map(|part| self.parts.get(part).parameter);
        if condition == Some(temporary) { ReadBy::Host } else { ReadBy::Steps }
    }

    /// Whether a step copies or fills the parameter.
    fn has_parts(&self, parameter: usize) -> bool {
        let is_of = |part: &usize| self.parts.get(*part).parameter == parameter;
        self.steps.iter().any(|step| match &step.kind {
            StepKind::Launch { .. } => false,
            StepKind::Copy { from, to } => [from, to].into_iter().any(is_of),
            StepKind::Fill { to, .. } => is_of(to),
        })
    }

    /// The parts that the steps name, of these arrays.
    fn parts_of(&self, arrays: &Arrays<'_>, site: CallSite) -> Result<Vec<Part>> {
        let part = |(number, named): (usize, &PartOf)| {
            let array = arrays[named.parameter].as_ref();
            let part = named.within(array.map(|array| &array.view));
            part.map_err(|fault| self.does_not_fit(number, array, &fault, site))
        };
        self.parts.iter().enumerate().map(part).collect()
    }

    #[cold]
    fn does_not_fit(
        &self,
        part: usize,
        array: Option<&BoundArray<'_>>,
        fault: &str,
        site: CallSite,
    ) -> Error {
        let is_its = |step: &&Step| step.uses.iter().any(|used| used.part == part);
        let step = self.steps.iter().find(is_its);
        let (name, site) = step.map_or(("repeat_while", site), |step| (step.name(), step.site));
        let seen = array.map(|array| BoundArgument::Array(*array).describe()).unwrap_or_default();
        Error::Shape {
            call: CalledAt::from(site),
            operation: format!("{name} of {}", self.title),
            expected: format!("an array that has {}", self.parts.get(part)),
            seen: format!("{fault}, of {seen}"),
            instead: "pass an array that is large enough, or record another slice".into(),
        }
    }

    /// Calls `serve` with the code, the grid and the arguments of a step that is a launch.
    fn resolve<'a>(
        &self,
        step: &'a Step,
        device: &Device,
        bound: &[BoundArgument<'a>],
        arrays: &Arrays<'a>,
        serve: ServeStep<'_>,
    ) -> Result<()> {
        let StepKind::Launch { kernel, grid, arguments } = &step.kind else { return Ok(()) };
        let passed = passed(arguments, bound, arrays);
        let resolved = kernel.resolve(device, grid.of(bound), &passed, serve);
        let place = || format!(" ({}, recorded at {})", self.title, step.site);
        resolved.map_err(|error| error.of_kernel_in(&place()))
    }
}

/// What a step passes to its kernel.
fn passed<'a>(
    arguments: &'a [Passed],
    bound: &[BoundArgument<'a>],
    arrays: &Arrays<'a>,
) -> SmallVec<[BoundArgument<'a>; 8]> {
    let pass = |argument: &'a Passed| match argument {
        Passed::Value { bytes, show } => BoundArgument::Scalar { bytes, show: *show },
        Passed::Scalar(parameter) => bound[*parameter],
        Passed::Array(Use { part, access }, form) => match &arrays[*part] {
            Some(array) => BoundArgument::Array(rebound(array, *access, *form)),
            None => unreachable!("an array"),
        },
    };
    arguments.iter().map(pass).collect()
}

/// An array of the chain as an argument of a step's kernel.
fn rebound<'a>(array: &BoundArray<'a>, access: Access, form: ArrayForm) -> BoundArray<'a> {
    let bind = match form {
        ArrayForm::Sized => BoundArray::sized,
        ArrayForm::Flat => BoundArray::flat,
        ArrayForm::Slice => BoundArray::slice,
    };
    bind(array.stored(), array.home, access)
}

/// Makes the steps of an instance.
struct Builder<'b, 'a> {
    core: &'a Core,
    device: &'b Device,
    bound: &'b [BoundArgument<'a>],
    arrays: &'b Arrays<'a>,
    parts: &'b [Part],
    steps: Vec<ChainStep>,
    /// The step of which each was made: those without work are left out.
    recorded: Vec<&'a Step>,
    grids: Vec<Grid>,
    places: Places,
    may_be_kept: bool,
}

/// What a builder makes.
struct Built {
    steps: Vec<ChainStep>,
    uses: Vec<ArrayUse>,
    grids: Vec<Grid>,
    places: Places,
    may_be_kept: bool,
}

impl<'b, 'a> Builder<'b, 'a> {
    fn build(
        core: &'a Core,
        device: &'b Device,
        bound: &'b [BoundArgument<'a>],
        arrays: &'b Arrays<'a>,
        parts: &'b [Part],
    ) -> Result<Built> {
        let mut builder = Self {
            core,
            device,
            bound,
            arrays,
            parts,
            steps: Vec::with_capacity(core.steps.len()),
            recorded: Vec::with_capacity(core.steps.len()),
            grids: Vec::new(),
            places: Places::default(),
            may_be_kept: true,
        };
        core.steps.iter().try_for_each(|step| builder.add(step))?;
        let uses = builder.order()?;
        let Self { steps, grids, places, may_be_kept, .. } = builder;
        Ok(Built { steps, uses, grids, places, may_be_kept })
    }

    fn add(&mut self, step: &'a Step) -> Result<()> {
        self.expect_apart(step)?;
        let work = match &step.kind {
            StepKind::Launch { arguments, .. } => self.launch(step, arguments)?,
            StepKind::Copy { from, to } => self.copy(step, *from, *to)?,
            StepKind::Fill { to, value } => self.fill(step, *to, value),
        };
        if let Some(work) = work {
            self.steps.push(ChainStep { work, after: SmallVec::new() });
            self.recorded.push(step);
        }
        Ok(())
    }

    fn launch(&mut self, step: &'a Step, arguments: &'a [Passed]) -> Result<Option<Work>> {
        let (core, device, bound, arrays) = (self.core, self.device, self.bound, self.arrays);
        let mut work = None;
        core.resolve(step, device, bound, arrays, &mut |code, grid, passed| {
            self.grids.push(grid);
            if grid.is_empty_cover() {
                return Ok(());
            }
            let code = self.named(code, passed, step.site);
            let arguments = self.pack(&code, arguments, passed);
            let (depends, site) = (Dependencies::new(), step.site);
            work = Some(Work::Launch(LaunchWork { code, grid, arguments, depends, site }));
            Ok(())
        })?;
        Ok(work)
    }

    /// The code, which on devices that check kernels names the arrays of the launch.
    fn named(
        &mut self,
        code: KernelCode,
        passed: &[BoundArgument<'_>],
        site: CallSite,
    ) -> KernelCode {
        let KernelCode::Host(body) = &code else { return code };
        let name = |bound: &BoundArgument<'_>| match bound {
            BoundArgument::Array(array) => Some(array.storage.named()),
            BoundArgument::Scalar { .. } | BoundArgument::Temporary(_) => None,
        };
        let named = body.for_launch(&|| passed.iter().filter_map(name).collect(), site);
        self.may_be_kept &= named.is_none();
        named.map_or(code, KernelCode::Host)
    }

    fn pack(
        &mut self,
        code: &KernelCode,
        arguments: &[Passed],
        passed: &[BoundArgument<'_>],
    ) -> PackedArguments {
        let (mut words, mut arrays) = (Words::new(), SmallVec::new());
        let step = self.steps.len();
        for (argument, bound) in arguments.iter().zip(passed) {
            if let Passed::Scalar(parameter) = argument {
                let (parameter, word) = (*parameter, words.len());
                self.places.scalars.push(ScalarPlace { step, parameter, word });
            }
            if let (Passed::Array(used, _), BoundArgument::Array(array)) = (argument, bound) {
                let is_word = matches!(code, KernelCode::Loaded(_)) && array.is_flat();
                let at = if is_word {
                    AddressAt::Word(words.len())
                } else {
                    AddressAt::Packed(arrays.len())
                };
                self.place(step, used.part, at, array.origin_bytes());
                if is_word {
                    words.push(0);
                    if array.form == ArrayForm::Slice {
                        words.push(array.len);
                    }
                    continue;
                }
                arrays.push(packed(array, Address(0), words.len()));
            }
            bound.pack(&mut words);
        }
        PackedArguments { words: SmallVec::from_slice(&words), arrays }
    }

    fn place(&mut self, step: usize, part: usize, at: AddressAt, origin_bytes: u64) {
        let parameter = self.parts[part].parameter;
        let Some(array) = &self.arrays[parameter] else { return };
        let element_bytes = u64::from(array.element_bytes);
        let to_origin_bytes = origin_bytes.wrapping_sub(element_bytes * array.view.offset as u64);
        let place = AddressPlace { step, parameter, at, element_bytes, to_origin_bytes };
        self.places.addresses.push(place);
    }

    fn copy(&mut self, step: &Step, from: usize, to: usize) -> Result<Option<Work>> {
        let (Some(source), Some(destination)) = (&self.arrays[from], &self.arrays[to]) else {
            return Ok(None);
        };
        if source.view.shape != destination.view.shape {
            return Err(self.shapes_differ(step, source, destination));
        }
        if source.len == 0 || source.element_bytes == 0 {
            return Ok(None);
        }
        let index = self.steps.len();
        self.place(index, from, AddressAt::Source, 0);
        self.place(index, to, AddressAt::Destination, 0);
        let named = &self.core.parts;
        let text = format!("copy from {} to {}", named.get(from), named.get(to));
        let (source, destination) = (source.stored(), destination.stored());
        Ok(Some(transfer::copy_step(&source, &destination, label(text, step))))
    }

    #[cold]
    fn shapes_differ(
        &self,
        step: &Step,
        source: &BoundArray<'_>,
        destination: &BoundArray<'_>,
    ) -> Error {
        Error::Shape {
            call: CalledAt::from(step.site),
            operation: format!("copy of {} in {}", source.storage.named(), self.core.title),
            expected: format!("a destination of shape {:?}", source.view.shape),
            seen: format!("{} of shape {:?}", destination.storage.named(), destination.view.shape),
            instead: "pass arrays of one shape for both parameters".into(),
        }
    }

    fn fill(&mut self, step: &Step, to: usize, value: &Passed) -> Option<Work> {
        let array = self.arrays[to].as_ref()?;
        let pattern = match (value, self.bound) {
            (Passed::Value { bytes, .. }, _) => bytes.clone(),
            (Passed::Scalar(parameter), bound) => match &bound[*parameter] {
                BoundArgument::Scalar { bytes, .. } => Bytes::from_slice(bytes),
                _ => return None,
            },
            (Passed::Array(..), _) => return None,
        };
        if array.len == 0 || pattern.is_empty() {
            return None;
        }
        let index = self.steps.len();
        self.place(index, to, AddressAt::Destination, 0);
        if let Passed::Scalar(parameter) = value {
            let place = ScalarPlace { step: index, parameter: *parameter, word: 0 };
            self.places.scalars.push(place);
        }
        let text = format!("fill of {}", self.core.parts.get(to));
        Some(Work::Fill(Box::new(FillWork {
            address: Address(0),
            parts: SmallVec::from_iter([footprint(array)]),
            pattern,
            loss: FailureKind::Contents,
            depends: Dependencies::new(),
            label: label(text, step),
        })))
    }

    /// Returns an error if a step writes elements that are passed to it twice.
    fn expect_apart(&self, step: &Step) -> Result<()> {
        for (index, Use { part, access }) in step.uses.iter().enumerate() {
            let own = &self.parts[*part];
            let shares = |other: &&Use| {
                let part = &self.parts[other.part];
                (access.writes() || other.access.writes())
                    && part.parameter == own.parameter
                    && part.elements.intersection(&own.elements).is_some()
            };
            if let Some(other) = step.uses[..index].iter().find(shares) {
                let named = [other.part, *part].map(|part| self.core.parts.get(part));
                let name = step.name().trim_start_matches("kernel ");
                let array = self.arrays[own.parameter].map(BoundArgument::Array);
                let array = array.map(|array| array.describe()).unwrap_or_default();
                let arguments = format!("{} and {}, {array}", named[0], named[1]);
                let step_of = format!("{name} ({})", self.core.title);
                return Err(passed_twice(step_of, arguments, step.site));
            }
        }
        Ok(())
    }

    /// Sets which steps each step follows. Returns what they do with the arrays, or an error if a
    /// step reads elements that no step writes before.
    fn order(&mut self) -> Result<Vec<ArrayUse>> {
        let kinds = &self.core.kinds;
        let mut flow = Flow::of_parameters(kinds.len());
        for (index, (step, made)) in self.recorded.iter().zip(&mut self.steps).enumerate() {
            for Use { part, access } in &step.uses {
                let known = &self.parts[*part];
                let is_written = flow.add(index, known, *access, &mut made.after);
                let is_empty = self.arrays[*part].as_ref().is_none_or(|it| it.len == 0);
                let reads = *access != Access::Overwrite && !is_empty;
                if reads && !is_written && !kinds[known.parameter].has_contents() {
                    let operation = format!("{} of {}", step.name(), self.core.title);
                    let part = self.core.parts.get(*part).to_string();
                    return Err(unwritten(&operation, &part, step.site));
                }
            }
            made.after.sort_unstable();
            made.after.dedup();
        }
        let views: SmallVec<[Option<Strided<'_>>; 8]> =
            self.arrays.iter().map(|array| array.as_ref().map(|array| array.view)).collect();
        Ok(flow.uses(&views))
    }
}

fn footprint(array: &BoundArray<'_>) -> Footprint {
    let Strided { shape, strides, offset } = array.view;
    let shape: SmallVec<[u64; 4]> = shape.iter().map(|len| *len as u64).collect();
    let strides: SmallVec<[u64; 4]> = strides.iter().map(|stride| *stride as u64).collect();
    let element_bytes = u64::from(array.element_bytes);
    Footprint::of_view(offset as u64 * element_bytes, element_bytes, &shape, &strides)
}

fn label(text: String, step: &Step) -> Label {
    Label { text: LabelText::Text(text.into()), site: Some(step.site) }
}
