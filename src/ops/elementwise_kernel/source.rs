//! The CUDA C of an [`Elementwise`](super::Elementwise) for one number of axes.

use std::fmt::Write as _;

use resident_backend::GpuSource;

use super::parameter::{Declared, Use};
use crate::array::Axes;
use crate::ops::c_type::CType;
use crate::ops::language::{self, SUPPORT, c_name};

/// How an array steps along the last axis. Compilers vectorise loops whose steps they know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    None,
    One,
    Any,
}

/// What decides over the CUDA C besides the text: the number of axes, and two bits for the step of
/// each array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Form {
    pub(crate) rank: usize,
    steps: u32,
}

impl Form {
    /// The form for arrays of one shape. Where one has another step than 0 or 1, all have any, so
    /// that there are few forms.
    pub(crate) fn of<'a>(arrays: impl Iterator<Item = &'a Axes> + Clone) -> Self {
        let step = |axes: &Axes| match axes.strides().last() {
            Some(0) => Step::None,
            Some(1) => Step::One,
            _ => Step::Any,
        };
        let rank = arrays.clone().next().map_or(0, |axes| axes.shape().len());
        let are_known = arrays.clone().all(|axes| step(axes) != Step::Any);
        let step = |axes| if are_known { step(axes) } else { Step::Any };
        let steps = arrays.fold(0, |steps, axes| steps << 2 | step(axes) as u32);
        Self { rank, steps }
    }

    /// The step of an array, of which so many follow.
    fn step(self, following: usize) -> Step {
        match self.steps >> (2 * following) & 3 {
            0 => Step::None,
            1 => Step::One,
            _ => Step::Any,
        }
    }
}

/// An array of a kernel, by its number among the parameters.
pub(crate) struct ArrayC {
    pub(crate) number: usize,
    c: CType,
    step: Step,
    is_written: bool,
}

impl ArrayC {
    /// The arrays among parameters.
    pub(crate) fn all(declared: &[Declared], form: Form) -> Vec<Self> {
        let numbered = declared.iter().enumerate();
        let arrays: Vec<_> = numbered.filter(|(_, one)| one.how != Use::Scalar).collect();
        let count = arrays.len();
        let array = |(at, (number, one)): (usize, (usize, &Declared))| Self {
            number,
            c: one.c,
            step: form.step(count - 1 - at),
            is_written: one.how.is_output(),
        };
        arrays.into_iter().enumerate().map(array).collect()
    }

    /// The results of a reduction, with this number among the parameters.
    pub(crate) fn result(number: usize, c: CType) -> Self {
        Self { number, c, step: Step::Any, is_written: true }
    }

    fn element(&self) -> String {
        let constness = if self.is_written { "" } else { "const " };
        format!("{constness}{}", self.c.memory)
    }

    /// A pointer to the first element of a row from a column on.
    pub(crate) fn pointer(&self, rank: usize, column: &str) -> String {
        let (element, number, last) = (self.element(), self.number, rank - 1);
        let first = match self.step {
            Step::None => String::new(),
            Step::One => format!(" + {column}"),
            Step::Any => format!(" + {column} * p{number}.strides[{last}]"),
        };
        format!("{element} *__restrict__ d{number} = p{number}.data{first};\n")
    }

    /// The element at an index of the row.
    fn at(&self, rank: usize, index: &str) -> String {
        let (number, last) = (self.number, rank - 1);
        match self.step {
            Step::None => format!("d{number}[0]"),
            Step::One => format!("d{number}[{index}]"),
            Step::Any => format!("d{number}[{index} * p{number}.strides[{last}]]"),
        }
    }
}

/// A kernel of parameters, with what it needs before it.
pub(crate) fn with_preludes(declared: &[Declared], kernel: &str) -> String {
    // Texts have complex numbers of their own too.
    let complex = kernel.contains("Complex<").then_some(CType::C64);
    let types = declared.iter().map(|one| one.c).chain(complex);
    format!("{}{SUPPORT}\n{kernel}", CType::preludes(types))
}

/// The parameters of the kernel in CUDA C.
pub(crate) fn parameters(declared: &[Declared], rank: usize) -> Vec<String> {
    let parameter = |(number, one): (usize, &Declared)| match one.how {
        Use::Scalar => format!("{} p{number}", one.c.memory),
        Use::Read => format!("resident::View<const {}, {rank}> p{number}", one.c.memory),
        _ => format!("resident::View<{}, {rank}> p{number}", one.c.memory),
    };
    declared.iter().enumerate().map(parameter).collect()
}

/// Adds the offset of a row to each pointer. `row` counts the rows, and is used up.
pub(crate) fn to_row(arrays: &[ArrayC], rank: usize, row: &str) -> String {
    let mut c = String::new();
    let shape = arrays.first().map_or(0, |array| array.number);
    for axis in (0..rank.saturating_sub(1)).rev() {
        let index = match axis {
            0 => String::from(row),
            _ => format!("{row} % p{shape}.shape[{axis}]"),
        };
        let _ = writeln!(c, "{{\nconst long long index = {index};");
        for ArrayC { number, .. } in arrays {
            let _ = writeln!(c, "d{number} += index * p{number}.strides[{axis}];");
        }
        let _ = writeln!(c, "}}\n{row} /= p{shape}.shape[{axis}];");
    }
    c
}

/// Before a loop whose iterations are independent, since each writes elements that no other uses.
/// Without it, compilers for the host compare the ranges of all arrays.
const INDEPENDENT: &str = "\
#if defined(__RESIDENT_HOST__) && defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#elif defined(__RESIDENT_HOST__) && defined(__GNUC__)
#pragma GCC ivdep
#endif
";

/// A kernel whose threads each serve a range of the elements in row-major order: one element, if
/// there are as many threads, or more.
pub(super) fn source(
    declared: &[Declared],
    names: &[Box<str>],
    statements: &str,
    form: Form,
) -> GpuSource {
    let rank = form.rank;
    let arrays = ArrayC::all(declared, form);
    let shape = arrays.first().map_or(0, |array| array.number);
    let pointers: String = arrays.iter().map(|array| array.pointer(rank, "column")).collect();
    let (column, row) = match rank {
        1 => ("at", ""),
        _ => ("at % columns", "long long row = at / columns;\n"),
    };
    let text = format!(
        "extern \"C\" __global__ void apply({parameters}) {{\n\
         const long long size = p{shape}.size(), columns = p{shape}.shape[{last}];\n\
         const long long threads = static_cast<long long>(gridDim.x) * gridDim.y * gridDim.z\n\
             * (blockDim.x * blockDim.y * blockDim.z);\n\
         const long long each = size <= threads ? 1 : (size - 1) / threads / 16 * 16 + 16;\n\
         long long at = resident::thread() * each;\n\
         const long long end = size - at < each ? size : at + each;\n\
         while (at < end) {{\n\
         const long long column = {column};\n\
         {row}{pointers}{to_row}\
         const long long len = columns - column < end - at ? columns - column : end - at;\n\
         {INDEPENDENT}\
         for (long long i = 0; i < len; ++i) {{\n\
         {loads}{{\n{statements}}}\n{stores}}}\n\
         at += len;\n}}\n}}\n",
        parameters = parameters(declared, rank).join(", "),
        last = rank - 1,
        to_row = to_row(&arrays, rank, "row"),
        loads = loads(declared, names, &arrays, rank),
        stores = stores(declared, names, &arrays, rank),
    );
    GpuSource::c(with_preludes(declared, &text)).entry("apply")
}

/// Declares the variables of the text, with the values of the elements.
pub(crate) fn loads(
    declared: &[Declared],
    names: &[Box<str>],
    arrays: &[ArrayC],
    rank: usize,
) -> String {
    let mut c = String::new();
    for (number, (one, name)) in declared.iter().zip(names).enumerate() {
        let array = arrays.iter().find(|array| array.number == number);
        let (kind, name) = (one.c.of_text().c(), c_name(name));
        let value = match (one.how, array) {
            (Use::Write, _) => String::from("0"),
            (_, None) => format!("{}(p{number})", one.c.load),
            (_, Some(array)) => format!("{}({})", one.c.load, array.at(rank, "i")),
        };
        let constness = if one.how.is_output() { "" } else { "const " };
        let _ = writeln!(c, "{constness}{kind} {name} = {value};");
    }
    c
}

fn stores(declared: &[Declared], names: &[Box<str>], arrays: &[ArrayC], rank: usize) -> String {
    let written = arrays.iter().filter(|array| array.is_written);
    let store = |array: &ArrayC| {
        let (store, name) = (declared[array.number].c.store, c_name(&names[array.number]));
        format!("{} = {store}({name});\n", array.at(rank, "i"))
    };
    written.map(store).collect()
}

/// The variables of a text, for the check.
pub(crate) fn variables<'n>(
    declared: &[Declared],
    names: &'n [Box<str>],
) -> Vec<language::Variable<'n>> {
    let named = declared.iter().zip(names);
    named
        .map(|(one, name)| language::Variable {
            name,
            kind: one.c.of_text(),
            is_output: one.how.is_output(),
            is_half: one.c.is_half(),
        })
        .collect()
}
