//! Kernels with views, parts and records.

use std::sync::LazyLock;

use resident::bytemuck::{Pod, Zeroable};
use resident::emulation::{Finding, FindingKind};
use resident::ndarray::{Array2, Ix1, Ix2, s};
use resident::{CudaSource, Grid, In, InOut, Out, Result, SmartArray};

use crate::check;

/// All kernels but those of [`found_in_out`].
const SOURCE: &str = r#"
extern "C" __global__ void next_column(resident::View2<const float> a, resident::View2<float> b) {
    long long row = threadIdx.x;
    for (long long column = 0; column < b.shape[1]; ++column)
        b(row, column) = a(row, column + 1);
}
extern "C" __global__ void every_step(resident::View1<int> x, int step) {
    x.data[threadIdx.x * step] += 1;
}
extern "C" __global__ void write_input(resident::View2<const double> a, double *sum) {
    double *data = const_cast<double *>(&a(1, 2));
    if (threadIdx.x == 0) *data = 3;
    *sum = 1;
}
extern "C" __global__ void fill_rows(float a, resident::View2<float> b) {
    long long row = threadIdx.x;
    for (long long column = 0; column < b.shape[1]; ++column) b(row, column) = a;
}
struct Particle { float position[3]; float mass; unsigned int kind; };
extern "C" __global__ void copy_records(const Particle *from, Particle *to, int bad) {
    int i = threadIdx.x;
    Particle particle = from[i];
    particle.position[1] += 1;
    to[i] = particle;
    if (bad) to[i + 1].mass = from[i].mass + 1;
}
extern "C" __global__ void sum_rows(resident::View2<const int> a, resident::View1<const int> b,
                                    int *sum) {
    int all = 0;
    for (long long row = 0; row < a.shape[0]; ++row) all += a(row, threadIdx.x);
    for (long long i = 0; i < b.size(); ++i) all += b.at(i);
    sum[threadIdx.x] = all;
}
extern "C" __global__ void number(resident::View2<unsigned char> x) {
    x.at(threadIdx.x) = threadIdx.x;
}
"#;

/// What a thread does with its element of an `InOut`.
const OF_ELEMENTS: [&str; 7] = [
    "b.at(i) = 2;",
    "b.at(i) = 2; b.at(i) += b.at(i);",
    "b.at(i) += 1;",
    "if (i != 7) b.at(i) = 2;",
    "float old = i == 3 ? b.at(i) : 0; b.at(i) = old;",
    "atomicAdd(&b.at(i), 1.0f);",
    "if (b.at(0) > 9) b.at(i) = 2;",
];

/// A kernel of this file's one source.
fn kernel(name: &str) -> CudaSource {
    static ALL: LazyLock<CudaSource> = LazyLock::new(|| {
        let of_elements = OF_ELEMENTS.iter().enumerate().map(|(number, code)| {
            format!(
                "extern \"C\" __global__ void element_{number}(resident::View2<float> b) {{\n\
                 long long i = threadIdx.x;\n{code}\n}}\n"
            )
        });
        CudaSource::c(std::iter::once(SOURCE.to_owned()).chain(of_elements).collect::<String>())
    });
    ALL.clone().entry(name)
}

/// The line of the source that has these words.
fn line_of(words: &str) -> u32 {
    1 + SOURCE.lines().position(|line| line.contains(words)).expect("it is there") as u32
}

/// The first finding that is an error.
fn error(findings: Vec<Finding>) -> Finding {
    let error = findings.into_iter().find(|finding| finding.kind.is_error());
    error.expect("a defect is found")
}

#[test]
fn a_column_beyond_the_last_is_out_of_bounds_although_it_is_memory_of_the_array() {
    let a = SmartArray::from(Array2::<f32>::ones((5, 7)));
    let mut b = SmartArray::uninit((5, 7));
    type Parameters = (In<f32, Ix2>, Out<f32, Ix2>);
    let found = check::<Parameters>(kernel("next_column"), Grid::new(1, 5), (&a, &mut b));
    let error = error(found);
    assert_eq!(error.kind, FindingKind::OutOfBounds);
    assert_eq!((error.argument, error.element), (Some(0), Some(vec![0, 7])));
    assert_eq!(error.line.map(|line| line.number), Some(line_of("a(row, column + 1)")));
}

#[test]
fn memory_between_the_elements_of_a_part_is_out_of_bounds() {
    type Parameters = (InOut<i32, Ix1>, i32);
    for (step, expected) in [(2, None), (1, Some(FindingKind::OutOfBounds))] {
        let mut x = SmartArray::<i32, _>::zeros(20);
        let mut part = x.slice_mut(s![..;2]);
        let found = check::<Parameters>(kernel("every_step"), Grid::new(1, 10), (&mut part, step));
        assert_eq!(found.first().map(|finding| finding.kind), expected);
        if let Some(finding) = found.first() {
            assert_eq!((finding.argument, finding.element.clone()), (Some(0), None));
        }
    }
}

#[test]
fn an_element_has_its_index_in_the_part_that_was_passed() {
    let a = SmartArray::from(Array2::<f64>::ones((8, 9)));
    let mut sum = SmartArray::uninit(1);
    let part = a.slice(s![..7;-2, 1..8;2]);
    type Parameters = (In<f64, Ix2>, Out<f64>);
    let found = check::<Parameters>(kernel("write_input"), Grid::new(1, 2), (&part.t(), &mut sum));
    let error = error(found);
    assert_eq!(error.kind, FindingKind::WriteToInput);
    assert_eq!((error.argument, error.element), (Some(0), Some(vec![1, 2])));
    assert_eq!(error.len_bytes, 8);
}

#[test]
fn a_row_that_no_thread_writes_is_noted_and_fails_nothing() -> Result<()> {
    let mut b = SmartArray::<f32, _>::uninit((5, 7));
    let found = check::<(f32, Out<f32, Ix2>)>(kernel("fill_rows"), Grid::new(1, 4), (2.0, &mut b));
    let [note] = &found[..] else { panic!("{found:?}") };
    assert_eq!(note.kind, FindingKind::Unwritten);
    assert_eq!((note.argument, note.element.clone()), (Some(1), Some(vec![4, 0])));
    assert_eq!(note.len_bytes, 28);
    assert_eq!(b.slice(s![..4, ..]).host()?.sum(), 56.0);
    Ok(())
}

/// What is found if each thread runs one of [`OF_ELEMENTS`].
fn found_in_out(number: usize) -> Vec<Finding> {
    let source = kernel(&format!("element_{number}"));
    let mut b = SmartArray::from(Array2::<f32>::ones((5, 8))).named("table");
    let mut part = b.slice_mut(s![1.., ..;2]);
    check::<(InOut<f32, Ix2>,)>(source, Grid::new(1, 16), (&mut part,))
}

#[test]
fn an_in_out_that_is_overwritten_unread_is_noted() {
    // What is read after it was written is no contents of before.
    for number in 0..2 {
        let found = found_in_out(number);
        let [note] = &found[..] else { panic!("{number}: {found:?}") };
        assert_eq!((note.kind, note.kind.is_error()), (FindingKind::UnreadContents, false));
        assert_eq!((note.argument, note.len_bytes, note.is_write), (Some(0), 64, true));
        assert_eq!(
            note.to_string(),
            "kernel \"kernel\" overwrites all elements of `b` (argument 0, array \"table\") \
             without reading any before, so the signature may pass it as `Out`, not `InOut` \
             (64 bytes)"
        );
    }
}

#[test]
fn an_in_out_whose_contents_a_launch_needs_is_not_noted() {
    for (number, text) in OF_ELEMENTS.iter().enumerate().skip(2) {
        let found = found_in_out(number);
        assert_eq!(found, [], "{text}");
    }
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    mass: f32,
    kind: u32,
}

#[test]
fn records_are_copied_whole_and_by_field() {
    let particle = Particle { position: [1.0; 3], mass: 2.0, kind: 3 };
    let from = SmartArray::from(vec![particle; 10]);
    let mut to = SmartArray::<Particle, _>::uninit(10);
    type Parameters = (In<Particle>, Out<Particle>, i32);
    let found = check::<Parameters>(kernel("copy_records"), Grid::new(1, 10), (&from, &mut to, 0));
    assert_eq!(found, []);
    let found = check::<Parameters>(kernel("copy_records"), Grid::new(1, 10), (&from, &mut to, 1));
    let error = error(found);
    assert_eq!((error.kind, error.element), (FindingKind::Race, Some(vec![1])));
}

#[test]
fn views_without_elements_and_with_one_axis_repeated_are_correct() {
    let row = SmartArray::from(vec![1, 2, 3]);
    let repeated = row.broadcast((4, 3)).expect("it fits");
    let (empty, mut sum) = (SmartArray::<i32, _>::zeros(0), SmartArray::uninit(3));
    type Parameters = (In<i32, Ix2>, In<i32, Ix1>, Out<i32>);
    let found =
        check::<Parameters>(kernel("sum_rows"), Grid::new(1, 3), (&repeated, &empty, &mut sum));
    assert_eq!(found, []);
}

#[test]
fn the_nth_element_beyond_the_last_is_out_of_bounds() {
    let mut x = SmartArray::<u8, _>::uninit((3, 4));
    let found = check::<(Out<u8, Ix2>,)>(
        kernel("number"),
        Grid::new(1, 13),
        (&mut x.view_mut().permuted_axes([1, 0]),),
    );
    let error = error(found);
    assert_eq!((error.kind, error.thread), (FindingKind::OutOfBounds, [12, 0, 0]));
}

#[test]
fn every_defect_with_views_is_found() {
    crate::check_texts(TEXTS);
}

pub(crate) const TEXTS: &str = r#"
== row_and_column(view in out) float|byte <<<4, 64>>> OutOfBounds, OutOfBounds, OutOfBounds
int row = i / 16, column = i % 16;
out(row, column) = in($1{row + 1}{row}, $2{column + 1}3{column - 1}{column});
== swapped_axes(view in out) short <<<2, 64>>> OutOfBounds, OutOfBounds
int row = i / 16, column = i % 16;
out($1{column}{row}, $1{row}{column}) = in($2{column}{row}, $2{row}{column});
== written_column(part in out) half <<<2, 64>>> OutOfBounds, OutOfBounds
int row = i / 16, column = i % 16;
out(row, $1{column * 2}{column}) = in($2{row - 1}{row}, column);
== bare_pointer_of_a_part(part in io) int <<<2, 64>>> OutOfBounds, OutOfBounds
int row = i / 16, column = i % 16;
T *data = &io(row, 0);
data[$1{column}2{2 * column + 1}{2 * column}] += in(row, column);
== length_of_the_wrong_axis(view in out) float <<<1, 64>>> OutOfBounds, Unwritten
for (int column = t; column < in.shape[$1{0}{1}] $1{* 8}{}; column += 64)
    for (int row = 0; row < in.shape[$2{1}{0}] $2{- 13}{}; ++row)
        out(row, column) = in(row, column);
== rows_of_blocks(view in io) double <<<8, 16>>> Race, Race
io($1{b / 2}{b}, $2{t ^ 1}{t}) += in(b, t) $2{+ io(b, t)}{};
== table_transposed_in_place(view io) float <<<1, 16x16>>> Race
int x = threadIdx.x, y = threadIdx.y;
T other = io(x, y);
$1{}{__syncthreads();}
io(y, x) = other;
== diagonal(part in io) float <<<4, 64>>> OutOfBounds, Race
if (i < 17 $1{}{- 1}) io(i, i) += in(i, i);
if (i > 100 && i < 116) io((i - 101) $2{/ 2}{}, ((i - 101) $2{/ 2}{}) ^ 1) += T(1) $2{+ i}{};
== sums_of_rows(view in io) int <<<8, 16>>> Race
if ($1{true}{t == 0}) {
    T sum = 0;
    for (int column = 0; column < in.shape[1]; ++column) sum += in(b, column);
    io(b, 0) = io(b, 0) + sum;
}
== shared_row(view in out) float <<<8, 16>>> Race, OutOfBounds, Uninitialised
__shared__ T row[16];
if ($3{t != 0}{true}) row[t] = in(b, t);
$1{}{__syncthreads();}
out(b, t) = row[$2{16 - t}{15 - t}];
== nth_element(view in out) byte <<<2, 64>>> OutOfBounds, OutOfBounds
out.at(i) = in.at($1{i + 1}2{i + in.size()}{i});
"#;
