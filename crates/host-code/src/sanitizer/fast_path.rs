//! The accesses that compiled code checks itself: the other side of `fast_path.hpp`.

use std::cell::Cell;
use std::ops::Range;

use super::order::FastStamps;
use super::shadow;

/// What compiled code needs of an area: `resident_area`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct FastArea {
    pub(super) start: usize,
    /// Those of whole units.
    pub(super) len_bytes: usize,
    /// Null if all bytes have contents and may only be read.
    pub(super) units: *mut shadow::Cell,
    pub(super) unit_bytes: u32,
    pub(super) may_read_contents: bool,
    pub(super) is_of_block: bool,
}

impl FastArea {
    /// No address belongs to it.
    pub(super) const NONE: Self = Self {
        start: 0,
        len_bytes: 0,
        units: std::ptr::null_mut(),
        unit_bytes: 1,
        may_read_contents: false,
        is_of_block: false,
    };
}

/// What compiled code knows of the running block, a variable of its library: `resident_fast_path`.
/// It writes the units of the areas, the running thread's stamp and the number of accesses.
#[derive(Debug)]
#[repr(C)]
pub(super) struct FastPath {
    areas: Cell<*const FastArea>,
    areas_end: Cell<*const FastArea>,
    accesses: Cell<u64>,
    me: Cell<u64>,
    now: Cell<u64>,
    block_start: Cell<u64>,
    ordered: Cell<u64>,
    stack_start: Cell<usize>,
    stack_bytes: Cell<usize>,
}

impl FastPath {
    /// A launch begins, all of whose accesses are told.
    pub(super) fn begin(&self) {
        self.close();
        self.accesses.set(0);
        self.set_stack(0..0);
    }

    /// From now on all accesses are told.
    pub(super) fn close(&self) {
        self.areas_end.set(self.areas.get());
    }

    /// From now on compiled code checks the simple accesses of a block to these areas itself. The
    /// stamp is that of the running thread.
    pub(super) fn open(&self, me: u64, stamps: FastStamps, areas: &[FastArea]) {
        self.me.set(me);
        self.now.set(stamps.now);
        self.block_start.set(stamps.block_start);
        self.ordered.set(stamps.ordered);
        let Range { start, end } = areas.as_ptr_range();
        self.areas.set(start);
        self.areas_end.set(end);
    }

    /// Threads access their own variables on this stack while they run on it.
    pub(super) fn set_stack(&self, stack: Range<usize>) {
        self.stack_start.set(stack.start);
        self.stack_bytes.set(stack.len());
    }

    /// The accesses that compiled code has checked.
    pub(super) fn accesses(&self) -> u64 {
        self.accesses.get()
    }
}

#[cfg(test)]
mod tests {
    use super::{FastArea, FastPath};
    use crate::compiler::Compiler;
    use crate::sanitizer::FAST_PATH_HEADER;
    use crate::sanitizer::access::Touch;
    use crate::sanitizer::order::{Order, Stamp};
    use crate::sanitizer::shadow::{self, UNTOUCHED};
    use crate::temporary_files::TemporaryFile;

    /// Whether an access of so many bytes to an address passes. The last argument tells a write.
    type Passes = unsafe extern "C" fn(usize, u64, bool) -> bool;

    const BEFORE: &str = "#define RESIDENT_UNCHECKED\n#define RESIDENT_EXPORT extern \"C\" \
         __attribute__((visibility(\"default\")))\n";

    const BEHIND: &str = "
        resident_fast_path resident_path;
        RESIDENT_EXPORT resident_fast_path *path() { return &resident_path; }
        RESIDENT_EXPORT bool passes(unsigned long long at, unsigned long long bytes, bool writes) {
            return resident_passes(at, bytes, writes);
        }
        RESIDENT_EXPORT bool passes_range(unsigned long long at, unsigned long long bytes,
                                          bool writes) {
            return resident_passes_range(at, bytes, writes);
        }";

    /// The compiled header.
    fn compiled() -> libloading::Library {
        let [source, output] = ["cpp", "so"].map(|kind| TemporaryFile::new(kind).expect("a file"));
        source.fill([BEFORE, FAST_PATH_HEADER, BEHIND].concat().as_bytes()).expect("written");
        let compiler = Compiler::find().expect("a compiler");
        compiler.run(&source, &output, &[], &[]).expect("it compiles");
        // SAFETY: the library is the text above, which has no initialisers.
        unsafe { libloading::Library::new(&output.path) }.expect("it loads")
    }

    /// The compiled functions, and the variable that they use.
    struct Compiled {
        passes: Passes,
        passes_range: Passes,
        path: *const FastPath,
        _library: libloading::Library,
    }

    impl Compiled {
        fn new() -> Self {
            let library = compiled();
            let function = |name: &[u8]| {
                // SAFETY: the functions of these names have this type.
                *unsafe { library.get::<Passes>(name) }.expect("it is there")
            };
            let [passes, passes_range] = [b"passes\0".as_slice(), b"passes_range\0"].map(function);
            // SAFETY: the function has this type.
            let path = unsafe { library.get::<extern "C" fn() -> *const FastPath>(b"path") };
            Self { passes, passes_range, path: path.expect("it is there")(), _library: library }
        }
    }

    const START: usize = 0x1000;

    /// A block, its order, and an array of four units of 4 bytes, which is at no real address.
    struct Launch<'a> {
        code: &'a Compiled,
        order: Order,
        units: Box<[shadow::Cell; 4]>,
        is_input: bool,
    }

    impl<'a> Launch<'a> {
        fn new(code: &'a Compiled, is_input: bool) -> Self {
            let mut order = Order::default();
            order.start_block(0);
            Self { code, order, units: Box::new([UNTOUCHED; 4]), is_input }
        }

        /// Whether an access of the thread passes, and the number of those that have.
        fn pass(&mut self, thread: u32, run: Passes, access: (usize, u64, bool)) -> (bool, u64) {
            let (offset, len_bytes, is_write) = access;
            let units = if self.is_input { std::ptr::null_mut() } else { self.units.as_mut_ptr() };
            let area = FastArea {
                start: START,
                len_bytes: 16,
                units,
                unit_bytes: 4,
                may_read_contents: true,
                is_of_block: false,
            };
            let areas = [FastArea::NONE, area];
            // SAFETY: the library lives, and this thread alone uses its variable.
            let path = unsafe { &*self.code.path };
            path.begin();
            path.open(self.stamp(thread).0, self.order.fast_stamps().expect("early"), &areas);
            // SAFETY: the path is open, and its areas and their units are alive.
            let does_pass = unsafe { run(START + offset, len_bytes, is_write) };
            path.close();
            (does_pass, path.accesses())
        }

        fn stamp(&self, thread: u32) -> Stamp {
            self.order.stamp(thread)
        }
    }

    #[test]
    #[ignore = "compiles the header: needs a C++ compiler"]
    fn only_simple_accesses_pass() {
        let code = Compiled::new();
        for (run, access, does_pass, what) in [
            (code.passes, (4, 4, true), true, "one unit"),
            (code.passes, (8, 8, true), false, "two units"),
            (code.passes_range, (8, 8, true), true, "two units"),
            (code.passes_range, (8, 8, false), true, "two units"),
            (code.passes, (6, 2, false), false, "a part of a unit"),
            (code.passes_range, (2, 4, false), false, "parts of two units"),
            (code.passes_range, (12, 8, false), false, "beyond the end"),
            (code.passes, (16, 4, false), false, "behind the end"),
            (code.passes_range, (16, 4, false), false, "behind the end"),
        ] {
            let passed = Launch::new(&code, false).pass(3, run, access);
            assert_eq!(passed, (does_pass, u64::from(does_pass)), "{what}: {access:?}");
        }
        for (run, access, does_pass) in [
            (code.passes, (4, 4, false), true),
            (code.passes, (4, 4, true), false),
            (code.passes_range, (2, 3, false), true),
            (code.passes_range, (2, 3, true), false),
        ] {
            let passed = Launch::new(&code, true).pass(3, run, access).0;
            assert_eq!(passed, does_pass, "an input: {access:?}");
        }
        let mut launch = Launch::new(&code, false);
        launch.pass(3, code.passes_range, (8, 8, true));
        let stamp = launch.stamp(3).0;
        assert_eq!(*launch.units, [UNTOUCHED, UNTOUCHED, [stamp, 0, 0], [stamp, 0, 0]]);
    }

    /// In a program, this is no thread, but a barrier.
    const BARRIER: u32 = u32::MAX;

    #[test]
    #[ignore = "compiles the header: needs a C++ compiler"]
    fn what_passes_changes_no_finding() {
        let code = Compiled::new();
        let mut steps = vec![(BARRIER, Touch::Read)];
        for thread in [0, 1, 40] {
            steps.extend([Touch::Read, Touch::Write, Touch::AtomicUpdate].map(|one| (thread, one)));
        }
        let (count, mut passed) = (steps.len(), 0);
        for number in 0..count.pow(5) {
            let program = (0..5).map(|place| steps[number / count.pow(place) % count]);
            let (mut launch, mut told) = (Launch::new(&code, false), UNTOUCHED);
            for (thread, touch) in program.clone() {
                if thread == BARRIER {
                    launch.order.pass_barrier();
                    continue;
                }
                let me = launch.stamp(thread);
                let does_pass = !touch.is_atomic()
                    && launch.pass(thread, code.passes, (0, 4, touch.writes())).0;
                passed += u64::from(does_pass);
                let expected = shadow::conflict(&told, touch, me, &launch.order).is_some();
                let unit = &mut launch.units[0];
                let found =
                    !does_pass && shadow::conflict(unit, touch, me, &launch.order).is_some();
                assert_eq!(found, expected, "{:?}", program.collect::<Vec<_>>());
                if found {
                    break;
                }
                shadow::record(&mut told, touch, me, &launch.order);
                if !does_pass {
                    shadow::record(unit, touch, me, &launch.order);
                }
            }
        }
        assert!(passed > 100_000, "{passed} accesses have passed");
    }
}
