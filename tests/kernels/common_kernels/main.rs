//! Kernels as CUDA programs commonly have them, each beside plain Rust: on the embedded device,
//! then with each access checked. `scripts/long-checks ptx` also executes them as PTX. The kernels
//! of a file are one source, which is compiled once for all tests of the file.

/// The tests of a file: one for each of these functions, which return a [`Case`].
macro_rules! cases {
    ($($name:ident),+) => {
        const CASES: &[$crate::Named] = &[$((stringify!($name), $name)),+];

        mod cases {
            $(#[test]
            fn $name() {
                $crate::check(module_path!(), super::CASES, stringify!($name));
            })+
        }
    };
}

mod bits;
mod graphs;
mod halves;
mod language;
mod memory;
mod numbers;
mod open_values;
mod reductions;
mod scans;
mod sorting;
mod stencils;
mod warps;

use std::fmt::Debug;

use resident::{CudaSource, Device, Element, Emulation, Grid, In, InOut, Kernel, SmartArray};

support::record_launches!();

/// A case by its name, which is that of its test and of its kernel in the source.
type Named = (&'static str, fn() -> Case);

type Run = dyn Fn(&Device, &str, CudaSource) -> Result<(), String>;

/// A kernel `run(const I *in, O *out, int n)`, where `n` is the number of inputs, with what is to
/// be in `out` afterwards.
struct Case {
    text: String,
    /// Launches the kernel of that name, and compares.
    run: Box<Run>,
}

/// A case whose `out` has zeros before. The text is the kernel, with what it needs, or its body.
fn case<I: Element, O: Element + PartialEq + Debug>(
    text: &str,
    grid: Grid,
    input: &[I],
    expected: impl IntoIterator<Item = O>,
) -> Case {
    let expected: Vec<O> = expected.into_iter().collect();
    case_with(text, grid, input, &vec![O::zeroed(); expected.len()], expected)
}

/// A case whose `out` has these elements before.
fn case_with<I: Element, O: Element + PartialEq + Debug>(
    text: &str,
    grid: Grid,
    input: &[I],
    before: &[O],
    expected: impl IntoIterator<Item = O>,
) -> Case {
    let (input, before) = (input.to_vec(), before.to_vec());
    let expected: Vec<O> = expected.into_iter().collect();
    assert_eq!(before.len(), expected.len(), "elements of `out`");
    let run = move |device: &Device, name: &str, source: CudaSource| {
        // SAFETY: the sources of this suite access only elements of their arguments.
        let kernel = unsafe { Kernel::<(In<I>, InOut<O>, i32)>::new(name).cuda(source) };
        let (x, mut y) = (SmartArray::from(input.clone()), SmartArray::from(before.clone()));
        let queued = kernel.launch_on(&device.stream(), grid, (&x, &mut y, input.len() as i32));
        let found = queued.and_then(|()| y.to_vec()).map_err(|error| error.to_string())?;
        differs(&found, &expected)
    };
    Case { text: kernel_of::<I, O>(text), run: Box::new(run) }
}

/// The kernel, if the text is its body.
fn kernel_of<I: 'static, O: 'static>(text: &str) -> String {
    if text.contains("void run(") {
        return text.to_owned();
    }
    let [input, output] = [c_name::<I>(), c_name::<O>()];
    let head = format!("void run(const {input} *in, {output} *out, int n)");
    format!("extern \"C\" __global__ {head} {{\n{text}\n}}\n")
}

fn c_name<T: 'static>() -> &'static str {
    match std::any::type_name::<T>().trim_start_matches("half::binary16::") {
        "f16" => "__half",
        "[u16; 2]" => "__half2",
        "half::bfloat::bf16" => "__nv_bfloat16",
        "f32" => "float",
        "[f32; 2]" => "float2",
        "[f32; 4]" => "float4",
        "f64" => "double",
        "i8" => "char",
        "i16" => "short",
        "i32" => "int",
        "i64" => "long long",
        "u8" => "unsigned char",
        "u32" => "unsigned",
        "[u32; 4]" => "uint4",
        "u64" => "unsigned long long",
        "[u64; 2]" => "ulonglong2",
        other => panic!("{other} has no name here: give the whole kernel"),
    }
}

fn differs<O: PartialEq + Debug>(found: &[O], expected: &[O]) -> Result<(), String> {
    let mut pairs = found.iter().zip(expected).enumerate();
    match pairs.find(|(_, (found, expected))| found != expected) {
        None => Ok(()),
        Some((at, (found, expected))) => {
            Err(format!("element {at} is {found:?} instead of {expected:?}"))
        }
    }
}

/// Runs one of the cases of a file. Where launches are recorded, its kernel is a source of its own,
/// so that each is compiled for a GPU by itself.
fn check(module: &'static str, cases: &[Named], name: &str) {
    let is_recorded = std::env::var_os("RESIDENT_TEST_PTX").is_some();
    let made = cases.iter().filter(|(other, _)| !is_recorded || *other == name);
    let made: Vec<(&str, Case)> = made.map(|(name, case)| (*name, case())).collect();
    let source = CudaSource::c(source(&made)).entry(name);
    let (_, case) = made.iter().find(|(other, _)| *other == name).expect("it is listed");
    let file = support::own_process::without_crate(module).trim_end_matches("::cases");
    for is_checked in [false, true] {
        let device = Device::emulated(Emulation::new().sanitize(is_checked));
        let outcome = (case.run)(&device, file, source.clone());
        outcome.unwrap_or_else(|fault| panic!("{name}, checked {is_checked}: {fault}"));
    }
}

/// The source of the kernels: each has the name of its case, in a namespace of its own, and its
/// macros end with it.
fn source(cases: &[(&str, Case)]) -> String {
    let (mut includes, mut kernels) = (String::new(), String::new());
    for (name, case) in cases {
        let lines = case.text.lines().map(str::trim_start);
        let is_include = |line: &&str| line.starts_with("#include");
        lines.clone().filter(is_include).for_each(|line| includes += &format!("{line}\n"));
        let macros = lines.filter_map(|line| line.strip_prefix("#define "));
        let ends = macros.filter_map(|line| line.split([' ', '(']).next());
        let ends: String = ends.map(|name| format!("#undef {name}\n")).collect();
        let rest = case.text.split_inclusive('\n').filter(|line| !is_include(&line.trim_start()));
        let text = rest.collect::<String>().replace("void run(", &format!("void {name}("));
        kernels += &format!("namespace of_{name} {{\n{text}\n}}\n{ends}");
    }
    includes + &kernels
}

/// Numbers that look random.
fn words(count: usize) -> Vec<u32> {
    let mut state = 12345_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state ^ state >> 15
    };
    (0..count).map(|_| next()).collect()
}

/// Whole numbers from -100 to 100.
fn ints(count: usize) -> Vec<i32> {
    words(count).iter().map(|word| (word % 201) as i32 - 100).collect()
}

/// Multiples of 1/8 from -12 to 12: sums of them are exact in each order.
fn floats(count: usize) -> Vec<f32> {
    ints(count).iter().map(|x| *x as f32 / 8.0).collect()
}
