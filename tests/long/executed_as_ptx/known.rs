//! What is not equal, and why.

use resident_ptx_interpreter::recorded::Source;

use crate::Outcome;

/// A kernel whose launches are known to differ. An entry that no launch needs is a failure.
#[derive(Debug)]
pub(crate) struct Entry {
    kernel: &'static str,
    /// What its source has, if several kernels have this name.
    text: &'static str,
    known: Known,
    /// Why.
    _reason: &'static str,
}

/// How launches are known to differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    /// NVRTC refuses the source.
    NotCompiled,
    /// The interpreter does not run it to its end.
    NotRun,
    /// Numbers with a fraction differ by at most so many units of the last place.
    Ulp(u64),
    Differs,
    /// Equal, but not if blocks and threads run in descending order.
    DependsOnOrder,
}

impl Entry {
    pub(crate) fn covers(&self, source: &Source, outcome: &Outcome) -> bool {
        let is_as_known = match (self.known, outcome) {
            (Known::NotCompiled, Outcome::NotCompiled(_))
            | (Known::NotRun, Outcome::NotRun(_))
            | (Known::Differs, Outcome::Differs(..))
            | (Known::DependsOnOrder, Outcome::DependsOnOrder(_)) => true,
            (Known::Ulp(largest), Outcome::Differs(_, Some(ulp), _)) => *ulp <= largest,
            _ => false,
        };
        let names = [Some(&*source.kernel), source.entry.as_deref()];
        is_as_known && names.contains(&Some(self.kernel)) && source.text.contains(self.text)
    }
}

const fn entry(
    kernel: &'static str,
    text: &'static str,
    known: Known,
    reason: &'static str,
) -> Entry {
    Entry { kernel, text, known, _reason: reason }
}

const FUNCTION: &str = "CUDA's function and that of the C library round some results differently";
const IN_SUMS: &str = "such functions, in sums that cancel";
const GLOBAL: &str =
    "a variable of the module keeps its value between launches; a replay begins anew";
const AMDS: &str = "the declarations for AMD's compilers name what only they and the host's have";
const LAST: &str = "it tells which block or warp is the last";
const TWO_NAMES: &str = "NVRTC takes two arrays of dynamic shared memory for two places";
const OWN_NAME: &str =
    "NVRTC computes a call of the source's `floor` with a constant by its own one";
const REST: &str = "with the quotient by zero at hand, NVRTC makes the rest of it";
const LATER: &str = "its blocks wait for later ones, and run one after the other there";
const PACKED: &str = "instructions of packed integers (`vabsdiff4`, `max.u16x2`) are not there";
const HEAP: &str = "`malloc` in kernels is not there";
const BUILTINS: &str = "its source names builtins that only the host's compilers have";
const REMOVED: &str = "the test has removed the header that it includes";

pub(crate) const KNOWN: [Entry; 44] = [
    entry("kernel", "sincosf(in[i], &io[i + bad]", Known::Ulp(1), FUNCTION),
    entry("kernel", "sincosf(in[i], &sine[threadIdx.x]", Known::Differs, IN_SUMS),
    entry("functions", "tgamma", Known::Differs, IN_SUMS),
    entry("special", "__prof_trigger", Known::NotRun, "the instruction `pmevent` is not there"),
    entry("each", "", Known::Ulp(2), FUNCTION),
    entry("product", "abs(x)", Known::Differs, "such functions, in a product"),
    entry("start", "", Known::Differs, IN_SUMS),
    entry("several things", "++launches", Known::Differs, GLOBAL),
    entry("index", "++launches", Known::Differs, GLOBAL),
    entry("count", "", Known::Differs, GLOBAL),
    entry("line", "", Known::Differs, GLOBAL),
    entry("scaled", "ns::offset", Known::Differs, "the host has written a variable"),
    entry("same", "__CUDA_ARCH__", Known::Differs, "its options name another architecture"),
    entry("k", "own_floor", Known::Differs, OWN_NAME),
    entry("punned", "extern __shared__ int words", Known::Differs, TWO_NAMES),
    entry("divided", "", Known::Differs, REST),
    entry("good", "tex2D", Known::NotRun, "a function of another kernel reads a texture"),
    entry("good", "mma.h", Known::NotCompiled, "the packages lack files that this header needs"),
    entry(
        "arithmetic",
        "__hadd_sat",
        Known::Ulp(1),
        "the sum of -0 and -0, cut to 0 .. 1, is -0 there",
    ),
    entry("lanes_that_come", "", Known::DependsOnOrder, "places are given in the order of arrival"),
    entry("kernel", "atomicAdd(&io[0]", Known::DependsOnOrder, "it tells who came when"),
    entry("kernel", "atomicAdd(&done", Known::DependsOnOrder, LAST),
    entry("kernel", "atomicAdd(&warps", Known::DependsOnOrder, LAST),
    entry("kernel", "atomicAdd(&blocks", Known::DependsOnOrder, LAST),
    entry(
        "endless",
        "",
        Known::NotRun,
        "it ends after 2^32 rounds, which the host's compiler skips",
    ),
    entry("beyond", "x[0] = x[2]", Known::NotRun, "it reads behind its argument, as it is to"),
    entry("unset", "", Known::Differs, "it reads a variable that nothing has set"),
    entry("bounded", "", Known::NotRun, "it asks for more shared memory than a GPU has"),
    entry("ends", "malloc(", Known::NotRun, HEAP),
    entry("kernel", "malloc(", Known::NotRun, HEAP),
    entry("set", "value.h", Known::NotCompiled, REMOVED),
    entry("k", "v.h", Known::NotCompiled, REMOVED),
    entry("kernel", "void memset(float", Known::NotCompiled, "NVRTC has a function of its name"),
    entry("divide", "__builtin_va_list", Known::NotCompiled, BUILTINS),
    entry("stars", "__builtin_va_list", Known::NotCompiled, BUILTINS),
    entry("twice", "Number *x", Known::NotCompiled, REMOVED),
    entry("two_steps", "", Known::NotRun, LATER),
    entry("wait_for_last_block", "", Known::NotRun, LATER),
    entry("reverse_and_wait", "", Known::NotRun, "asynchronous copies are not there"),
    entry("bits", "__vabsdiffu4", Known::NotRun, PACKED),
    entry("compare", "", Known::NotCompiled, AMDS),
    entry("groups", "", Known::NotCompiled, AMDS),
    entry("rounded", "", Known::NotCompiled, AMDS),
    entry("theirs", "", Known::NotCompiled, AMDS),
];
