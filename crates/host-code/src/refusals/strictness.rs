//! What NVRTC refuses in a source that a C++ compiler takes: functions and variables of the host,
//! and the standard library. It is looked for in the preprocessed source, in which `__device__` and
//! its kin stand as they are.

use resident_code::words::{code_only, words};

use super::outline::{functions, plain_variables};

/// The option with which the headers leave `__device__` as it is.
pub(in super::super) const OPTION: &str = "-DRESIDENT_OUTLINE";

/// What NVRTC has of the standard library.
const OF_STANDARD_LIBRARY: [&str; 3] = ["move", "forward", "initializer_list"];

/// The options of NVRTC with which functions and variables without `__device__` are a device's.
const DEVICE_BY_DEFAULT: [&str; 2] = ["-default-device", "--device-as-default-execution-space"];

/// What is wrong with a source, if anything is: `preprocessed` is what the compiler made of it and
/// of the headers around it, and `file` the name of the source there.
pub(in super::super) fn fault(
    preprocessed: &str,
    file: &str,
    options: &[std::sync::Arc<str>],
) -> Option<String> {
    let source = Source::of(preprocessed, file);
    let is_device = options.iter().any(|option| DEVICE_BY_DEFAULT.contains(&option.trim()));
    let of_host = || source.host_function().or_else(|| source.host_variable());
    source.standard_library().or_else(|| (!is_device).then(of_host).flatten())
}

/// The lines of the source and of the files that it includes, without those of the library and the
/// host.
struct Source {
    text: String,
    /// For each line, its file and its number.
    lines: Vec<(usize, usize)>,
    files: Vec<String>,
}

impl Source {
    fn of(preprocessed: &str, file: &str) -> Self {
        let mut source = Self { text: String::new(), lines: Vec::new(), files: Vec::new() };
        let (mut current, mut has_begun, mut number) = (None, false, 0);
        for line in preprocessed.lines() {
            if let Some((next, name, is_system)) = marker(line) {
                has_begun |= name == file;
                let is_of_source = has_begun && !is_system && !is_own(name);
                (current, number) = (is_of_source.then(|| source.file(name)), next);
                continue;
            }
            if let Some(file) = current {
                source.text.push_str(line);
                source.text.push('\n');
                source.lines.push((file, number));
            }
            number += 1;
        }
        source
    }

    /// The number of a file.
    fn file(&mut self, name: &str) -> usize {
        self.files.iter().position(|known| known == name).unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        })
    }

    /// `k.cu:3` for a place in the text.
    fn place(&self, at: usize) -> String {
        let known = self.lines.get(self.text[..at].matches('\n').count());
        known.map_or_else(String::new, |(file, number)| format!("{}:{number}", self.files[*file]))
    }

    /// The first name of the standard library that NVRTC lacks.
    fn standard_library(&self) -> Option<String> {
        let code = code_only(&self.text);
        let (at, name) = words(&code).find_map(|(at, word)| {
            let is_qualified = code[..at].trim_end().ends_with("::");
            let behind = code[at + word.len()..].trim_start().strip_prefix("::")?.trim_start();
            let name = words(behind).next().map_or("", |(_, name)| name);
            let is_there = OF_STANDARD_LIBRARY.contains(&name) || !behind.starts_with(name);
            (word == "std" && !is_qualified && !is_there).then(|| (at, name.to_owned()))
        })?;
        Some(format!(
            "{}: `std::{name}`: NVRTC has no standard library of C++; write `{name}` if CUDA C has \
             it, such as `sqrtf` or `max`, or a `__device__` function of your own",
            self.place(at)
        ))
    }

    /// The first function that is the host's.
    fn host_function(&self) -> Option<String> {
        let is_of_device = |specifiers: &str| {
            words(specifiers).any(|(_, word)| matches!(word, "__device__" | "__global__"))
        };
        let all = functions(&self.text);
        let function = all.iter().find(|function| !is_of_device(function.specifiers))?;
        let name = if function.name.is_empty() { "operator" } else { function.name };
        Some(format!(
            "{}: the function `{name}` is one of the host, which NVRTC refuses: put `__device__` \
             before it, or leave it out by `#ifndef __CUDACC_RTC__`",
            self.place(function.at)
        ))
    }

    /// The first variable that is the host's.
    fn host_variable(&self) -> Option<String> {
        let (name, at) = *plain_variables(&self.text).first()?;
        Some(format!(
            "{}: the variable `{name}` is one of the host, which NVRTC refuses: put `__device__` \
             or `__constant__` before it, or `const` if nothing writes it",
            self.place(at)
        ))
    }
}

/// What a line of the preprocessor says: the number of the next line, its file, and whether that is
/// the system's.
fn marker(line: &str) -> Option<(usize, &str, bool)> {
    let rest = line.strip_prefix("# ")?;
    let (number, rest) = rest.split_once(' ')?;
    let (name, flags) = rest.strip_prefix('"')?.rsplit_once('"')?;
    Some((number.parse().ok()?, name, flags.split_whitespace().any(|flag| flag == "3")))
}

/// Whether a file is one of the library's.
fn is_own(name: &str) -> bool {
    let is_header = |name: &str| {
        let last = name.rsplit('/').next().unwrap_or(name);
        last.ends_with(".hpp") || last == "CudaSource::entry"
    };
    is_header(name) || name.starts_with('<') || name.contains("/resident-headers-")
}

#[cfg(test)]
mod tests {
    use super::fault;

    fn of(text: &str) -> Option<String> {
        let text = format!(
            "# 1 \"/tmp/resident-1.cpp\"\n# 1 \"/usr/include/math.h\" 1 3\nint host();\nstd::x y;\n\
             # 1 \"entry.hpp\"\nvoid own() {{}}\n# 1 \"k.cu\"\n{text}\n\
             # 1 \"exports.hpp\"\nvoid also() {{}}\n"
        );
        fault(&text, "k.cu", &[])
    }

    #[test]
    fn the_standard_library_and_host_functions_are_refused_with_their_lines() {
        assert_eq!(
            of("__device__ int f() { return 1; }\n__global__ void k() { std::move(1); }"),
            None
        );
        let said = of("__global__ void k() {\n  x = std::max(1, 2); }").expect("no std::max");
        assert!(said.starts_with("k.cu:2: `std::max`"), "{said}");
        let said = of("\nint f() {\n return 1; }").expect("a host function");
        assert!(said.starts_with("k.cu:2: the function `f` is one of the host"), "{said}");
        assert_eq!(of("cuda::std::array<int, 2> x; __device__ int std = 1;"), None);
        let said = of("__device__ int a;\nint b = 2;").expect("a host variable");
        assert!(said.starts_with("k.cu:2: the variable `b` is one of the host"), "{said}");
        let said = of("__device__ int g() { }\n# 7 \"part.cuh\" 1\nint h() { }\n# 3 \"k.cu\" 2\n");
        assert!(said.expect("a host function").starts_with("part.cuh:7: the function `h`"));
    }

    #[test]
    fn an_option_makes_all_functions_a_devices() {
        let text = "# 1 \"k.cu\"\nint f() { return 1; }\n";
        assert!(fault(text, "k.cu", &[]).is_some());
        assert_eq!(fault(text, "k.cu", &["-default-device".into()]), None);
        let text = "# 1 \"k.cu\"\nint counter;\n";
        assert!(fault(text, "k.cu", &[]).is_some());
        assert_eq!(fault(text, "k.cu", &["-default-device".into()]), None);
    }
}
