//! Records the sources and the launches of CUDA C on embedded devices, if `RESIDENT_TEST_PTX` names
//! a folder: each as a file, which the suite `executed_as_ptx` reads.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, fs};

use resident_backend::call_site::CallSite;
use resident_backend::grid::Grid;
use resident_backend::{GpuCode, KernelAttributes, KernelBody, ParameterLayout, Program};
use resident_ptx_interpreter::recorded::{Argument, Array, Recorded, Source};

/// The variable that names the folder.
pub const VARIABLE: &str = "RESIDENT_TEST_PTX";

/// The launches of one kernel that a process records. Others would tell little more.
const LAUNCHES_MAX: u64 = 12;

/// The threads of all these launches.
const THREADS_MAX: u64 = 500_000;

/// The most bytes of a launch that is recorded.
const BYTES_MAX: u64 = 4 << 20;

/// Has the bodies of all kernels wrapped.
pub extern "C" fn begin() {
    resident_host_code::set_wrapper(wrapped);
}

/// A body that records each launch of another one.
struct RecordedBody {
    folder: PathBuf,
    source: Source,
    parameters: Arc<[ParameterLayout]>,
    body: Arc<dyn KernelBody>,
}

fn wrapped(program: &Program, body: Arc<dyn KernelBody>) -> Arc<dyn KernelBody> {
    let folder = std::env::var_os(VARIABLE).map(PathBuf::from);
    let (Some(folder), Some(source)) = (folder, source(program)) else { return body };
    let parameters = program.parameters.iter().copied().collect();
    let body = RecordedBody { folder, source, parameters, body };
    let source = body.source.clone();
    let (grid, block, arguments) = ([0; 3], [0; 3], Vec::new());
    body.write(&Recorded { source, grid, block, shared_bytes: 0, arguments }, "source");
    Arc::new(body)
}

/// `None` if there is no text.
fn source(program: &Program) -> Option<Source> {
    let source = &program.source;
    let (text, file) = match &source.code {
        GpuCode::C(text) => (text.to_string(), None),
        GpuCode::File(path) => (fs::read_to_string(path).ok()?, Some(path.display().to_string())),
        _ => return None,
    };
    let defines = source.defines.iter();
    Some(Source {
        kernel: program.kernel.to_string(),
        entry: source.entry.as_ref().map(ToString::to_string),
        text,
        file,
        defines: defines.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        options: source.options.iter().map(ToString::to_string).collect(),
        includes: source.includes.iter().map(|folder| folder.display().to_string()).collect(),
    })
}

impl RecordedBody {
    /// The launch without contents. `None` if it is too large, or one of many.
    fn begin(&self, grid: Grid, words: &[u64], pointers: &[*mut u8]) -> Option<Recorded> {
        let (blocks, threads) = (grid.blocks(), grid.threads());
        let recorded = Recorded {
            source: self.source.clone(),
            grid: [blocks.x, blocks.y, blocks.z],
            block: [threads.x, threads.y, threads.z],
            shared_bytes: grid.dynamic_shared_bytes(),
            arguments: self.arguments(words, pointers),
        };
        let arrays = recorded.arguments.iter().filter_map(|argument| argument.array.as_ref());
        let len_bytes = |array: &Array| array.shape.iter().product::<u64>() * array.element_bytes;
        let is_small = arrays.map(len_bytes).sum::<u64>() <= BYTES_MAX;
        (is_small && self.is_one_of_few(blocks.count() * threads.count())).then_some(recorded)
    }

    fn is_one_of_few(&self, threads: u64) -> bool {
        static TOTALS: Mutex<Option<HashMap<Source, (u64, u64)>>> = Mutex::new(None);
        let mut totals = TOTALS.lock().unwrap_or_else(PoisonError::into_inner);
        let total = totals.get_or_insert_default().entry(self.source.clone()).or_default();
        let (launches, all_threads) = (total.0 + 1, total.1 + threads);
        let is_one = launches <= LAUNCHES_MAX && all_threads <= THREADS_MAX;
        if is_one {
            *total = (launches, all_threads);
        }
        is_one
    }

    fn arguments(&self, words: &[u64], pointers: &[*mut u8]) -> Vec<Argument> {
        let (mut rest, mut pointers) = (words, pointers.iter());
        let mut arguments = Vec::new();
        for parameter in &*self.parameters {
            let first = rest.first().copied().unwrap_or_default();
            let (own, behind) = rest.split_at(parameter.words(first));
            rest = behind;
            let address =
                || pointers.next().map_or(0, |pointer| pointer.expose_provenance() as u64);
            arguments.push(argument(parameter, own, address));
        }
        arguments
    }

    fn write(&self, recorded: &Recorded, extension: &str) {
        let bytes = recorded.to_bytes().expect("it can be written");
        static PARTS: AtomicU64 = AtomicU64::new(0);
        let part = PARTS.fetch_add(1, Ordering::Relaxed);
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        // Several tests may make the same: then it is one file.
        let name = format!("{:016x}", hasher.finish());
        let process = std::process::id();
        let part = self.folder.join(format!("{name}.{extension}-{process}-{part}"));
        fs::create_dir_all(&self.folder).expect("the folder can be made");
        fs::write(&part, bytes).expect("the folder can be written");
        fs::rename(part, self.folder.join(format!("{name}.{extension}"))).expect("as above");
    }
}

fn argument(parameter: &ParameterLayout, words: &[u64], address: impl FnOnce() -> u64) -> Argument {
    let element = parameter.element();
    let rust_name = element.rust_name.to_owned();
    let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    if parameter.access().is_some() {
        let address = address();
        let axes = match parameter {
            ParameterLayout::Flat { .. } => (vec![words[0]], vec![1]),
            _ => {
                let (shape, strides) = words[1..].split_at(words[0] as usize);
                (shape.to_vec(), strides.iter().map(|stride| *stride as i64).collect())
            }
        };
        let is_view = matches!(parameter, ParameterLayout::Sized { .. });
        let words = if is_view { &words[1..] } else { &[] };
        let array = Array {
            is_view,
            address,
            element_bytes: element.len_bytes as u64,
            shape: axes.0,
            strides: axes.1,
            before: Vec::new(),
            after: Vec::new(),
        };
        let passed = bytes(&[&[address], words].concat());
        return Argument { rust_name, passed, array: Some(array) };
    }
    let mut passed: Vec<u8> = bytes(words);
    passed.truncate(element.len_bytes);
    Argument { rust_name, passed, array: None }
}

/// The elements of an array.
///
/// # Safety
///
/// They are initialised memory that no other thread writes meanwhile.
unsafe fn elements(array: &Array) -> Vec<u8> {
    let len = array.element_bytes as usize;
    let mut bytes = Vec::new();
    array.for_each_address(|address| {
        let pointer = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the address is one of an element, of which the caller vouches.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(pointer, len) });
    });
    bytes
}

// SAFETY: the body that it wraps keeps to this; what is read beside it are elements of its arrays.
unsafe impl KernelBody for RecordedBody {
    fn name(&self) -> &Arc<str> {
        self.body.name()
    }

    fn attributes(&self) -> KernelAttributes {
        self.body.attributes()
    }

    fn tracks_contents(&self) -> bool {
        self.body.tracks_contents()
    }

    fn for_launch(
        &self,
        array_names: &dyn Fn() -> Vec<String>,
        site: CallSite,
    ) -> Option<Arc<dyn KernelBody>> {
        let body = self.body.for_launch(array_names, site)?;
        let (folder, source) = (self.folder.clone(), self.source.clone());
        Some(Arc::new(Self { folder, source, parameters: Arc::clone(&self.parameters), body }))
    }

    fn may_leave_out(&self) -> bool {
        self.body.may_leave_out()
    }

    unsafe fn run(&self, grid: Grid, words: &[u64], pointers: &[*mut u8]) {
        let mut recorded = self.begin(grid, words, pointers);
        let mut arrays: Vec<&mut Array> = Vec::new();
        if let Some(recorded) = &mut recorded {
            arrays.extend(
                recorded.arguments.iter_mut().filter_map(|argument| argument.array.as_mut()),
            );
        }
        for array in &mut arrays {
            // SAFETY: the caller vouches for the footprints of its arrays.
            array.before = unsafe { elements(array) };
        }
        // SAFETY: the caller keeps to the contract of the body.
        unsafe { self.body.run(grid, words, pointers) };
        for array in &mut arrays {
            // SAFETY: as above.
            array.after = unsafe { elements(array) };
        }
        if let Some(recorded) = &recorded {
            self.write(recorded, "launch");
        }
    }
}

impl fmt::Debug for RecordedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordedBody({})", self.source.kernel)
    }
}
