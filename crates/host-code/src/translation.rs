//! A source as the C++ compiler gets it: between two headers, with dynamic shared memory replaced.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use super::contraction::CONTRACTION;
use super::launch_bounds::{HiddenBounds, Listed};
use super::refusals::left_out::{Kept, LeftOut, without_features};
use super::refusals::missing_headers;
use super::waiting_loops::with_turns;
use super::{gpu_values, headers, launch_bounds, launch_timeout, sanitizer};
use resident_backend::Program;
use resident_code::c_declaration::identifier;
use resident_code::kernels::definitions;
use resident_code::words::{find_in_code, words};
use resident_code::{includes, numbers, prelude};

/// What NVRTC declares of C and C++, in place of this machine's headers.
const DECLARATIONS: &str = include_str!("declarations.hpp");
const FUNCTIONS_OF_C: &str = include_str!("functions_of_c.hpp");

/// What CUDA C needs beyond C++17.
const CUDA_ON_HOST: &str = include_str!("cuda_on_host.hpp");
const INTEGERS: &str = include_str!("integers.hpp");
const PRINTING: &str = include_str!("printing.hpp");

/// Its mathematics.
const MATHEMATICS: &str = include_str!("mathematics.hpp");
const SPECIAL_FUNCTIONS: &str = include_str!("special_functions.hpp");
const PACKED_INTEGERS: &str = include_str!("packed_integers.hpp");

/// What the preprocessor leaves as it is where a source is looked through.
const OUTLINE: &str = include_str!("outline.hpp");

/// How blocks run.
const ENTRY: &str = include_str!("entry.hpp");

/// The functions that the library calls.
const EXPORTS: &str = include_str!("exports.hpp");

/// Whether the compiled code announces each access to the checker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checks {
    Off,
    On,
}

/// The list of the source's kernels.
const KERNELS: &str = include_str!("kernels.hpp");

/// As in CUDA C, `a * b + c` is rounded twice unless the options say otherwise.
pub(super) const NO_CONTRACTION: &str = "-ffp-contract=off";

/// The option with which compilers keep all code.
const NOT_OPTIMISED: &str = "-O0";

/// The text for the compiler, and its options.
#[derive(Clone, Debug)]
pub struct Translation {
    /// The headers, which are the same for all sources.
    headers: String,
    /// What of this source stands behind them, the source, and what stands behind it.
    parts: [String; 3],
    /// The name expressions of kernels, which are listed behind the source.
    expressions: Vec<Arc<str>>,
    bounded_templates: Vec<String>,
    options: Vec<OsString>,
    file: String,
    checks: Checks,
    dynamic_arrays: Vec<String>,
    /// The source as it was given, and its options.
    source: String,
    options_of_source: Vec<Arc<str>>,
    /// The kernels and functions that use what is not there.
    left_out: Vec<LeftOut>,
    /// Files for headers of features that are not there.
    missing_headers: Vec<(String, String)>,
    /// Whether it is to be refused what NVRTC refuses.
    is_strict: bool,
    /// Whether the source may include the headers that there are for the host.
    pub(super) has_headers: bool,
    /// Whether the code depends on no other file. Only such code is stored on disk.
    pub is_self_contained: bool,
}

impl Translation {
    /// The translation of a source, which lists its kernels, and those of these functions that it
    /// would not list otherwise, such as instances of templates. `None` lists nothing.
    pub fn new(
        program: &Program,
        text: &str,
        path: Option<&Path>,
        checks: Checks,
        entries: Option<&[Arc<str>]>,
    ) -> Result<Self, String> {
        let source = &program.source;
        let file = path.map_or_else(
            || format!("{}.cu", identifier(&program.kernel)),
            |path| path.display().to_string(),
        );
        let has_include_option = source.options.iter().any(|option| option.contains("include"));
        let Kept { text: kept, left_out } = without_features(text, &file);
        let told = match checks {
            Checks::On => with_returns(&kept),
            Checks::Off => with_turns(kept),
        };
        let folders = path.and_then(Path::parent).into_iter();
        let folders: Vec<&Path> =
            folders.chain(source.includes.iter().map(|folder| &**folder)).collect();
        let Listed { text: listed, names, bounded_templates } = match entries {
            Some(_) => launch_bounds::listed(&told),
            None => Listed { text: told, ..Listed::default() },
        };
        let mut dynamic_arrays = Vec::new();
        let replaced = with_shared_memory(&listed, &mut dynamic_arrays);
        let others = entries.unwrap_or_default().iter();
        let is_left_out = |entry: &str| LeftOut::named_in(&left_out, entry).is_some();
        let others = others.filter(|entry| !names.iter().any(|name| **name == ***entry));
        let others = others.filter(|entry| !is_left_out(entry));
        let expressions = others.cloned().collect();
        Ok(Self {
            headers: headers_before(checks),
            parts: [before(text), replaced, behind()?],
            expressions,
            bounded_templates,
            options: options(program, path, checks)?,
            file,
            checks,
            dynamic_arrays,
            source: text.to_owned(),
            options_of_source: source.options.clone(),
            left_out,
            missing_headers: entries
                .map_or_else(Vec::new, |_| missing_headers::files(text, &folders, headers::is_own)),
            is_strict: entries.is_some(),
            has_headers: includes(text) || has_include_option,
            is_self_contained: source.includes.is_empty()
                && !headers::includes_others(text)
                && !has_include_option,
        })
    }

    /// Whether an option includes a file before all others.
    pub(super) fn includes_before(&self) -> bool {
        self.options.iter().any(|option| option == "-include")
    }

    /// What stands before all sources.
    pub(super) fn headers(&self) -> &str {
        &self.headers
    }

    /// The text for the compiler behind the headers, in which kernels have these launch bounds.
    pub(super) fn text(&self, hidden: &[HiddenBounds]) -> String {
        let [_, source, behind] = &self.parts;
        let source = launch_bounds::with_hidden(source, hidden);
        let source = prelude::from_line_1(&source, &self.file);
        let expressions = self.listed_expressions(hidden);
        format!("{}{source}\n{expressions}{behind}", self.text_before())
    }

    /// What of it stands before the source.
    pub(super) fn text_before(&self) -> String {
        format!("\n{}", self.parts[0])
    }

    fn listed_expressions(&self, hidden: &[HiddenBounds]) -> String {
        let listed = |entry: &Arc<str>| expression(entry, &self.bounded_templates, hidden);
        self.expressions.iter().map(listed).collect()
    }

    pub(super) fn options(&self) -> &[OsString] {
        &self.options
    }

    /// The name of the source in messages.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// The source as it was given.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn options_of_source(&self) -> &[Arc<str>] {
        &self.options_of_source
    }

    pub(super) fn missing_headers(&self) -> &[(String, String)] {
        &self.missing_headers
    }

    pub(super) fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Whether sums of products are to be contracted.
    pub(super) fn contracts(&self) -> bool {
        self.options.iter().any(|option| option == CONTRACTION)
    }

    /// Whether the compiler leaves out code that does nothing.
    pub(super) fn is_optimised(&self) -> bool {
        !self.options.iter().any(|option| option == NOT_OPTIMISED)
    }

    /// Why the library has no kernel with this name, if the embedded device lacks what it uses.
    pub(super) fn left_out(&self, entry: &str) -> Option<&str> {
        LeftOut::named_in(&self.left_out, entry).map(|one| &*one.reason)
    }

    pub(super) fn is_checked(&self) -> bool {
        self.checks == Checks::On
    }

    /// The names of the source's arrays of dynamic shared memory.
    pub(super) fn dynamic_arrays(&self) -> &[String] {
        &self.dynamic_arrays
    }

    /// What of the source decides over the code.
    pub fn key(&self) -> Vec<u8> {
        let expressions = self.listed_expressions(&[]);
        [&self.module_key(), self.file.as_bytes(), b"\0", expressions.as_bytes()].concat()
    }

    /// As [`key`](Self::key), whatever its name expressions and its name in messages.
    pub(super) fn module_key(&self) -> Vec<u8> {
        let headers = if self.has_headers { headers::key() } else { String::new() };
        let options = self.options.join(OsStr::new("\0"));
        let options = options.as_encoded_bytes();
        let parts = self.parts.join("\0");
        let hooks = if self.is_checked() { sanitizer::HOOKS } else { "" };
        let strict = [u8::from(self.is_strict)];
        let texts = [&*self.headers, &parts, &headers, hooks, gpu_values::VERSION].join("\0");
        [options, b"\0\0", texts.as_bytes(), b"\0", &strict].concat()
    }
}

/// The name of a function without namespaces and the arguments of a template.
fn plain(entry: &str) -> &str {
    let name = entry.split('<').next().unwrap_or(entry).trim().trim_start_matches('&');
    name.rsplit("::").next().unwrap_or(name).trim()
}

/// What stands before all sources.
fn headers_before(checks: Checks) -> String {
    let (calls, fast_path) = match checks {
        Checks::On => (sanitizer::CALLS_HEADER, sanitizer::FAST_PATH_HEADER),
        Checks::Off => ("", ""),
    };
    let libc = if cfg!(target_env = "gnu") { "#define RESIDENT_GLIBC 1" } else { "" };
    format!(
        "{libc}\n#line 1 \"declarations.hpp\"\n{DECLARATIONS}\n\
         #line 1 \"functions_of_c.hpp\"\n{FUNCTIONS_OF_C}\n\
         #line 1 \"calls.hpp\"\n{calls}\n#line 1 \"fast_path.hpp\"\n{fast_path}\n\
         #line 1 \"cuda_on_host.hpp\"\n{CUDA_ON_HOST}\n\
         #line 1 \"integers.hpp\"\n{INTEGERS}\n\
         #line 1 \"printing.hpp\"\n{PRINTING}\n\
         #line 1 \"mathematics.hpp\"\n{MATHEMATICS}\n\
         #line 1 \"special_functions.hpp\"\n{SPECIAL_FUNCTIONS}\n\
         #line 1 \"operators.hpp\"\n{}\n\
         #line 1 \"entry.hpp\"\n{ENTRY}\n\
         {}{}\n\
         #line 1 \"kernels.hpp\"\n{KERNELS}\n",
        gpu_values::HEADER,
        prelude::TEXT,
        prelude::PARAMETERS,
    )
}

/// What stands between them and a source.
fn before(text: &str) -> String {
    let packed = if may_use_packed_integers(text) {
        format!("#line 1 \"packed_integers.hpp\"\n{PACKED_INTEGERS}\n")
    } else {
        String::new()
    };
    let defined = definitions(text);
    let is_own = |(name, is_of_cuda): &(&str, bool)| {
        defined.iter().any(|kernel| kernel.name == *name) || !is_of_cuda && declares(text, name)
    };
    let names = CALLED_BY_COMPILERS.into_iter().filter(is_own);
    let renamed: String =
        names.map(|(name, _)| format!("#define {name} {RENAMED}{name}\n")).collect();
    let numbers = numbers::for_host(text, headers::includes_others);
    format!("{packed}#line 1 \"outline.hpp\"\n{OUTLINE}\n{renamed}{numbers}")
}

/// Whether a source has a name other than in calls.
fn declares(text: &str, name: &str) -> bool {
    let mut before = "";
    words(text).any(|(at, word)| {
        let is_called = text[at + word.len()..].trim_start().starts_with('(');
        let is_after_type = text[..at].trim_end().ends_with(before) && before != "return";
        let is_declared = word == name && (!is_called || is_after_type && !before.is_empty());
        before = word;
        is_declared
    })
}

/// Few sources use them, and compilers need a tenth of the headers' time for them.
fn may_use_packed_integers(text: &str) -> bool {
    text.contains("__dp") || text.contains("__v") || includes(text)
}

/// What stands behind a source.
fn behind() -> Result<String, String> {
    let poll = if launch_timeout::polls()? { launch_timeout::HEADER } else { "" };
    Ok(format!("#line 1 \"exports.hpp\"\n{EXPORTS}\n{poll}"))
}

/// What lists the kernel of a name expression.
fn expression(entry: &str, bounded_templates: &[String], hidden: &[HiddenBounds]) -> String {
    let quoted = entry.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
    let function = entry.trim().trim_start_matches('&');
    let bound = launch_bounds::of_expression(function, plain(entry), bounded_templates)
        .or_else(|| launch_bounds::of_hidden(plain(entry), hidden))
        .unwrap_or_else(|| String::from("0"));
    format!(
        "#line 1 \"{ENTRY_FILE}\"\nRESIDENT_HOST_EXPRESSION(\"{quoted}\", {bound}, {function})\n"
    )
}

/// The name in messages of what an entry says.
const ENTRY_FILE: &str = "CudaSource::entry";

/// The compiler's options.
fn options(
    program: &Program,
    path: Option<&Path>,
    checks: Checks,
) -> Result<Vec<OsString>, String> {
    let source = &program.source;
    let defines = source.defines.iter().map(|(name, value)| format!("-D{name}={value}"));
    let mut options: Vec<OsString> =
        defines.chain(translated(&source.options)).map(OsString::from).collect();
    let is_named = |folder: &&Path| !folder.as_os_str().is_empty();
    let own = path.and_then(Path::parent);
    let own = own.map(|folder| Some(folder).filter(is_named).unwrap_or(Path::new(".")));
    // What is included in quotes is looked for beside the file first.
    options.extend(own.into_iter().flat_map(|folder| ["-iquote".into(), folder.into()]));
    let folders = source.includes.iter().map(|folder| &**folder).chain(own);
    options.extend(folders.map(headers::include_option));
    if launch_timeout::polls()? {
        options.push(OsString::from(launch_timeout::OPTION));
    }
    if checks == Checks::On {
        options.push(OsString::from(sanitizer::OPTION));
    }
    Ok(options)
}

/// NVRTC's options in the spelling of C++ compilers. Those that concern GPUs alone are left out.
fn translated(options: &[Arc<str>]) -> Vec<String> {
    let mut words = options.iter().flat_map(|option| option.split_whitespace()).peekable();
    let mut translated = vec![String::from(NO_CONTRACTION)];
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        let mut value = || value.or_else(|| words.next()).unwrap_or_default();
        match name {
            "--fmad" | "-fmad" if value() == "true" => {
                translated.push(String::from(CONTRACTION));
            }
            "--use_fast_math" | "-use_fast_math" => {
                translated.push(String::from(CONTRACTION));
            }
            "--define-macro" | "-D" => translated.push(format!("-D{}", value())),
            "--undefine-macro" | "-U" => translated.push(format!("-U{}", value())),
            "--include-path" | "-I" => translated.push(format!("-I{}", value())),
            "--pre-include" | "-include" => {
                translated.extend([String::from("-include"), value().to_owned()]);
            }
            "--gpu-architecture" | "-arch" => {
                let option = |number| format!("-DRESIDENT_CUDA_ARCH={number}");
                translated.extend(architecture_number(value()).map(option));
            }
            "--std" | "-std" => translated.push(format!("-std={}", value())),
            "--device-debug" | "-G" => translated.push(NOT_OPTIMISED.to_owned()),
            _ if name.starts_with("-D") || name.starts_with("-I") || name.starts_with("-U") => {
                translated.push(word.to_owned());
            }
            _ => {}
        }
    }
    translated
}

/// `__CUDA_ARCH__` for the name of an architecture: 900 for `sm_90` and `compute_90a`.
fn architecture_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_"))?;
    let digits = number.trim_end_matches(['a', 'f']).parse::<u32>().ok()?;
    digits.checked_mul(10)
}

/// The text in which kernels tell that they return, on the same lines. Macros may return too.
fn with_returns(text: &str) -> String {
    let bodies: Vec<_> = definitions(text).into_iter().map(|kernel| kernel.body).collect();
    let (mut result, mut done) = (String::with_capacity(text.len()), 0);
    for (at, word) in words(text).filter(|(_, word)| *word == "return") {
        let end = at + word.len();
        let is_of_kernel = bodies.iter().any(|body| body.contains(&at)) || is_of_macro(text, at);
        if is_of_kernel && text[end..].trim_start().starts_with(';') {
            result.push_str(&text[done..end]);
            result.push_str(" resident::host::returns()");
            done = end;
        }
    }
    result + &text[done..]
}

/// Whether a place is in the first line of a macro, or in one that goes on from there.
fn is_of_macro(text: &str, at: usize) -> bool {
    let before = text[..at].lines().rev();
    let mut lines = before.scan(true, |is_first, line| {
        let is_its = std::mem::replace(is_first, false) || line.ends_with('\\');
        is_its.then_some(line)
    });
    lines.any(|line| {
        line.trim_start()
            .strip_prefix('#')
            .is_some_and(|rest| rest.trim_start().starts_with("define"))
    })
}

/// Replaces each `extern __shared__ T name[];` by pointers to the memory of the launch, and `static
/// __shared__` by `__shared__`, on the same lines. Adds the names of the pointers to `pointers`.
fn with_shared_memory(text: &str, pointers: &mut Vec<String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, word)) = find_in_code(rest, &["extern", "static"]) {
        let (before, behind) = rest.split_at(at);
        result.push_str(before);
        let replaced = match word {
            "extern" => dynamic_declaration(behind, pointers),
            _ => static_declaration(behind),
        };
        let (replacement, len) = replaced.unwrap_or_else(|| (word.to_owned(), word.len()));
        result.push_str(&replacement);
        rest = &behind[len..];
    }
    result + rest
}

/// The replacement of `static` before `__shared__`, and its length.
fn static_declaration(text: &str) -> Option<(String, usize)> {
    let behind = &text["static".len()..];
    behind.trim_start().starts_with("__shared__").then(|| (String::new(), "static".len()))
}

/// The replacement of a declaration of dynamic shared memory at the start of a text, and the
/// declaration's length.
fn dynamic_declaration(text: &str, pointers: &mut Vec<String>) -> Option<(String, usize)> {
    let end = text.find(';')?;
    let inner = &text["extern".len()..end];
    if !inner.contains("__shared__") || inner.contains(['{', '"']) {
        return None;
    }
    let plain = without_specifiers(&inner.replacen("__shared__", " ", 1));
    let mut declarators = plain.split(',').map(|one| {
        let name = one.trim().strip_suffix(']')?.trim_end().strip_suffix('[')?.trim_end();
        Some(name.to_owned())
    });
    let first = declarators.next()??;
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let start = first.rfind(|letter| !is_word(letter))? + 1;
    let kind = first[..start].trim();
    let name = &first[start..];
    let mut replacement = pointer(kind, name);
    pointers.push(name.to_owned());
    for other in declarators {
        let other = other?;
        replacement.push_str(&pointer(kind, other.trim()));
        pointers.push(other.trim().to_owned());
    }
    replacement.push_str(&"\n".repeat(text[..end].matches('\n').count()));
    Some((replacement, end + 1))
}

/// A pointer that each thread of the machine initialises at its first use.
fn pointer(kind: &str, name: &str) -> String {
    format!("static thread_local {kind} *const {name} = resident::host::dynamic_shared<{kind}>();")
}

/// A declaration without what concerns alignment.
fn without_specifiers(declaration: &str) -> String {
    let mut plain = declaration.to_owned();
    for specifier in ["__align__", "__builtin_align__", "__attribute__", "alignas"] {
        while let Some(at) = plain.find(specifier) {
            let mut depth = 0;
            let len = plain[at..].find(|letter| {
                depth += i32::from(letter == '(') - i32::from(letter == ')');
                letter == ')' && depth == 0
            });
            let end = len.map_or(plain.len(), |len| at + len + 1);
            plain.replace_range(at..end, " ");
        }
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What compilers call although no source names it, and whether CUDA has it too. A kernel, function
/// or variable of such a name gets another one here.
const CALLED_BY_COMPILERS: [(&str, bool); 4] =
    [("memcpy", true), ("memset", true), ("memmove", false), ("memcmp", false)];

/// How that begins.
pub(super) const RENAMED: &str = "of_source_of_resident_";

#[cfg(test)]
mod tests {
    use super::{translated, with_returns, with_shared_memory};

    #[test]
    fn shared_memory_becomes_memory_of_the_thread_on_the_same_line() {
        let pointer = |kind: &str, name: &str| {
            format!(
                "static thread_local {kind} *const {name} = \
                 resident::host::dynamic_shared<{kind}>();"
            )
        };
        for (text, expected) in [
            (
                "f() { extern __shared__ float tile[]; }",
                format!("f() {{ {} }}", pointer("float", "tile")),
            ),
            (
                "extern __shared__ __align__(16) unsigned char bytes [ ] ;",
                pointer("unsigned char", "bytes"),
            ),
            (
                "extern\n__shared__ double2 x[];\nint y;",
                format!("{}\n\nint y;", pointer("double2", "x")),
            ),
            (
                "i = 1'0; extern volatile __shared__ __attribute__((aligned(16))) float a[], b[];",
                format!(
                    "i = 1'0; {}{}",
                    pointer("volatile float", "a"),
                    pointer("volatile float", "b")
                ),
            ),
            ("static __shared__ int x[3];", String::from(" __shared__ int x[3];")),
        ] {
            assert_eq!(with_shared_memory(text, &mut Vec::new()), expected);
        }
        for unchanged in [
            "extern \"C\" __global__ void f(float *x) { __shared__ int y; }",
            "// extern __shared__ float x[];\n",
            "/* extern __shared__ float x[]; */",
            "const char *t = \"extern __shared__ float x[];\";",
            "extern int x; __shared__ float y[3]; static int z;",
            "myextern __shared__ float x[4];",
        ] {
            assert_eq!(with_shared_memory(unchanged, &mut Vec::new()), unchanged);
        }
    }

    #[test]
    fn kernels_tell_that_they_return_and_functions_do_not() {
        let text = "__device__ void f(int i) { if (i) return; }\n\
                    #define LEAVE(i) \\\n    if (i) return;\n\
                    __global__ void k(int i) { if (i) return ; auto g = [] { return 1; }; }\n";
        let told = with_returns(text);
        assert_eq!(told.matches("return resident::host::returns()").count(), 2, "{told}");
        assert!(told.starts_with("__device__ void f(int i) { if (i) return; }"), "{told}");
        assert_eq!(told.lines().count(), text.lines().count());
    }

    #[test]
    fn options_are_those_of_cpp_compilers() {
        let options =
            ["--fmad=true", "-arch=sm_90", "--std", "c++20", "-DN=3", "--maxrregcount=32"];
        let options = options.map(Into::into);
        assert_eq!(
            translated(&options),
            [
                "-ffp-contract=off",
                "-ffp-contract=fast",
                "-DRESIDENT_CUDA_ARCH=900",
                "-std=c++20",
                "-DN=3"
            ]
        );
        assert_eq!(translated(&["--fmad=false".into()]), ["-ffp-contract=off"]);
    }

    #[test]
    fn each_option_is_understood_in_each_spelling() {
        let cases: [(&[&str], &str); 18] = [
            (&["-fmad=true"], "-ffp-contract=fast"),
            (&["--fmad", "true"], "-ffp-contract=fast"),
            (&["-fmad", "false"], ""),
            (&["--use_fast_math", "-use_fast_math"], "-ffp-contract=fast -ffp-contract=fast"),
            (&["--define-macro=A=1", "--define-macro", "B"], "-DA=1 -DB"),
            (&["-D", "A=1", "-D=B"], "-DA=1 -DB"),
            (&["--undefine-macro=A", "-U B", "-UC"], "-UA -UB -UC"),
            (&["--include-path=here", "-I", "there", "-Ielsewhere"], "-Ihere -Ithere -Ielsewhere"),
            (&["--pre-include=a.h"], "-include a.h"),
            (&["--pre-include", "a.h", "-DX"], "-include a.h -DX"),
            (&["-include=a.h", "-include b.h"], "-include a.h -include b.h"),
            (&["--std=c++14", "-std", "c++20"], "-std=c++14 -std=c++20"),
            (&["--device-debug", "-G"], "-O0 -O0"),
            (
                &["-arch", "sm_90a", "--gpu-architecture=compute_80"],
                "-DRESIDENT_CUDA_ARCH=900 -DRESIDENT_CUDA_ARCH=800",
            ),
            (&["-arch=native", "-arch=gfx90a"], ""),
            (&["--maxrregcount", "32", "-lineinfo", "--ftz=true"], ""),
            (&["--define-macro"], "-D"),
            (&[], ""),
        ];
        for (words, expected) in cases {
            let options: Vec<std::sync::Arc<str>> =
                words.iter().map(|word| (*word).into()).collect();
            let found = translated(&options).join(" ");
            let expected = format!("-ffp-contract=off {expected}");
            assert_eq!(found, expected.trim_end(), "{words:?}");
        }
    }
}
