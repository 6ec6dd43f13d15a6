//! The CUDA C of a [`Reduction`](super::Reduction) for one number of axes.

use resident_backend::GpuSource;

use super::plan::{Key, LANES};
use crate::ops::arithmetic::Scalar;
use crate::ops::elementwise_kernel::source::{ArrayC, loads, parameters, to_row, with_preludes};
use crate::ops::elementwise_kernel::{Declared, Use};
use crate::ops::language::{Type, c_name};
use crate::ops::rows::reducer::Reducer;
use crate::ops::source::function;

/// The expressions in CUDA C, and what they use.
pub(super) struct Texts<'t> {
    pub(super) declared: &'t [Declared],
    pub(super) names: &'t [Box<str>],
    pub(super) map: &'t str,
    pub(super) join: &'t str,
}

/// A number in CUDA C, by its bits.
pub(super) fn literal<R: Scalar>(number: R) -> String {
    let mut bytes = [0; 16];
    let own = bytemuck::bytes_of(&number);
    bytes[..own.len()].copy_from_slice(own);
    let [words, _] = bytemuck::cast::<_, [[u32; 2]; 2]>(bytes);
    let [first, second] = bytemuck::cast::<_, [u64; 2]>(bytes);
    let float = |bits: u32| format!("__uint_as_float({bits}u)");
    let double = |bits: u64| format!("__longlong_as_double(static_cast<long long>({bits}ull))");
    match R::C.of_text() {
        Type::F32 => float(words[0]),
        Type::F64 => double(first),
        Type::C32 => format!("T({}, {})", float(words[0]), float(words[1])),
        Type::C64 => format!("T({}, {})", double(first), double(second)),
        kind => format!("static_cast<{}>({first}ull)", kind.c()),
    }
}

/// A kernel that reduces each chunk of each row.
pub(super) fn source<R: Scalar>(texts: &Texts<'_>, key: Key, initial: R) -> GpuSource {
    let (rank, kind) = (key.form.rank, R::C.name);
    let out = texts.declared.len();
    let mut all = texts.declared.to_vec();
    all.push(Declared { how: Use::Write, c: R::C });
    let mut arrays = ArrayC::all(texts.declared, key.form);
    let shape = arrays.first().map_or(0, |array| array.number);
    let mut pointers: String = arrays.iter().map(|array| array.pointer(rank, "first")).collect();
    let loads = loads(texts.declared, texts.names, &arrays, rank);
    let result = ArrayC::result(out, R::C);
    pointers.push_str(&result.pointer(rank, "number"));
    arrays.push(result);
    let last = rank - 1;
    let row = match (rank, key.reducer) {
        (1, _) => "",
        (_, Reducer::Block) => "long long row = item / chunks;\n",
        (_, Reducer::Thread) => "long long row = item % rows;\n",
    };
    let text = format!(
        "typedef {kind} T;\n{join}\
         extern \"C\" __global__ void reduce({parameters}) {{\n\
         const long long chunks = p{out}.shape[{last}], items = p{out}.size();\n\
         const long long row_len = p{shape}.shape[{last}], chunk = {chunk};\n\
         {open}\
         const long long first = number * chunk;\n\
         const long long len = row_len - first < chunk ? row_len - first : chunk;\n\
         {row}{pointers}{to_row}\
         const auto term = [&](long long i) -> T {{\n{loads}return {map};\n}};\n\
         {body}\
         if ({is_last}) total = join({initial}, total);\n\
         d{out}[0] = total;\n\
         {close}}}\n",
        join = function(&format!("T join(T {}, T {})", c_name("a"), c_name("b")), texts.join),
        parameters = parameters(&all, rank).join(", "),
        chunk = key.reducer.chunk(),
        to_row = to_row(&arrays, rank, "row"),
        map = texts.map,
        is_last = if key.is_whole { "items == 1" } else { "chunks == 1" },
        initial = literal(initial),
        open = match key.reducer {
            Reducer::Block => block_open(),
            Reducer::Thread => String::from(THREAD_OPEN),
        },
        body = match key.reducer {
            Reducer::Block => block_body(),
            Reducer::Thread => String::from(THREAD_BODY),
        },
        close = match key.reducer {
            Reducer::Block => BLOCK_CLOSE,
            Reducer::Thread => "",
        },
    );
    GpuSource::c(with_preludes(&all, &text)).entry("reduce")
}

/// Each thread reduces a chunk. Neighbouring threads serve neighbouring rows.
const THREAD_OPEN: &str = "\
const long long item = resident::thread();
if (item >= items) return;
const long long rows = items / chunks, number = item / rows;
";

const THREAD_BODY: &str = "\
T total = term(0);
for (long long i = 1; i < len; ++i) total = join(total, term(i));
";

/// Each block reduces a chunk, and then another.
fn block_open() -> String {
    format!(
        "__shared__ T lanes[{LANES}];\n\
         for (long long item = blockIdx.x; item < items; item += gridDim.x) {{\n\
         const long long number = item % chunks;\n"
    )
}

/// Lane after lane takes an element, and lanes are joined in pairs: by one thread for each lane, or
/// all by one thread, where a barrier costs more than the work.
fn block_body() -> String {
    format!(
        "long long count = len < {LANES} ? len : {LANES};\n\
         const bool is_alone = blockDim.x != {LANES};\n\
         const long long lane = threadIdx.x;\n\
         if (is_alone) {{\n\
         if (lane != 0) return;\n\
         for (long long i = 0; i < count; ++i) lanes[i] = term(i);\n\
         for (long long from = {LANES}; from < len; from += {LANES}) {{\n\
         const long long some = len - from < {LANES} ? len - from : {LANES};\n\
         for (long long i = 0; i < some; ++i) lanes[i] = join(lanes[i], term(from + i));\n\
         }}\n\
         }} else if (lane < len) {{\n\
         T part = term(lane);\n\
         for (long long i = lane + {LANES}; i < len; i += {LANES}) part = join(part, term(i));\n\
         lanes[lane] = part;\n\
         }}\n\
         while (count > 1) {{\n\
         const long long half = (count + 1) / 2;\n\
         if (is_alone) {{\n\
         for (long long i = 0; i < count - half; ++i) lanes[i] = join(lanes[i], lanes[i + half]);\n\
         }} else {{\n\
         __syncthreads();\n\
         if (lane < count - half) lanes[lane] = join(lanes[lane], lanes[lane + half]);\n\
         }}\n\
         count = half;\n\
         }}\n\
         if (lane == 0) {{\n\
         T total = lanes[0];\n"
    )
}

const BLOCK_CLOSE: &str = "}\nif (!is_alone) __syncthreads();\n}\n";
