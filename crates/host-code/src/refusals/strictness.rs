//! What NVRTC refuses in a source that a C++ compiler takes: functions and variables of the host.
//! It is looked for in the preprocessed source, in which `__device__` and its kin stand as they
//! are.

use resident_code::words::words;

use super::extensions::extension;
use super::outline::{declared_functions, functions, plain_variables};
use super::preprocessed::Preprocessed;

/// How compilers name functions that they have without a declaration of the source.
const OF_COMPILER: &str = "__builtin_";

/// Those that NVRTC has, and those that macros and declarations of the library use.
const OF_NVRTC: [&str; 27] = [
    "FILE",
    "FUNCTION",
    "LINE",
    "addressof",
    "assume",
    "assume_aligned",
    "bit_cast",
    "constant_p",
    "copysign",
    "copysignf",
    "expect",
    "inf",
    "inff",
    "is_constant_evaluated",
    "isinf",
    "isnan",
    "memcpy",
    "nan",
    "nanf",
    "offsetof",
    "printf",
    "unreachable",
    "va_arg",
    "va_copy",
    "va_end",
    "va_list",
    "va_start",
];

/// What to write instead of some others.
const INSTEAD: [(&str, &str); 7] = [
    ("__builtin_abort", TRAP),
    ("__builtin_alloca", "an array whose length is a constant"),
    ("__builtin_alloca_with_align", "an array whose length is a constant"),
    ("__builtin_exit", TRAP),
    ("__builtin_longjmp", TRAP),
    ("__builtin_return", "`return`"),
    ("__builtin_setjmp", TRAP),
];
const TRAP: &str = "`__trap()`, or `assert`";

/// Functions of a GPU that a source may declare anew as it does for C.
const OF_DEVICE: [&str; 7] = ["clock", "clock64", "free", "malloc", "memcpy", "memset", "printf"];

/// The options of NVRTC with which functions and variables without `__device__` are a device's.
const DEVICE_BY_DEFAULT: [&str; 2] = ["-default-device", "--device-as-default-execution-space"];

/// What is wrong with a source, if anything is.
pub(in super::super) fn fault(
    source: &Preprocessed,
    options: &[std::sync::Arc<str>],
) -> Option<String> {
    let is_device = options.iter().any(|option| DEVICE_BY_DEFAULT.contains(&option.trim()));
    let of_host = || {
        let declared = || declared_host_function(source);
        host_function(source).or_else(declared).or_else(|| host_variable(source))
    };
    let of_compiler = || function_of_compiler(source).or_else(|| extension(source, options));
    of_compiler().or_else(|| (!is_device).then(of_host).flatten())
}

/// The first function that only compilers for the host have.
fn function_of_compiler(source: &Preprocessed) -> Option<String> {
    let is_other = |(_, name): &(usize, &str)| {
        name.strip_prefix(OF_COMPILER).is_some_and(|rest| !OF_NVRTC.contains(&rest))
    };
    let (at, name) = words(&source.text).find(is_other)?;
    if declared_functions(&source.text).iter().any(|function| function.name == name) {
        return None;
    }
    let known = INSTEAD.iter().find(|(other, _)| *other == name);
    let instead = known.map_or("a function of CUDA C", |(_, instead)| instead);
    Some(format!("{}: NVRTC has no `{name}`: write {instead}", source.place(at)))
}

fn is_of_device(specifiers: &str) -> bool {
    words(specifiers).any(|(_, word)| matches!(word, "__device__" | "__global__"))
}

/// The first function that is declared as the host's, and not as a device's before.
fn declared_host_function(source: &Preprocessed) -> Option<String> {
    let mut of_device = OF_DEVICE.to_vec();
    let function = declared_functions(&source.text).into_iter().find(|function| {
        if is_of_device(function.specifiers) {
            of_device.push(function.name);
        }
        !of_device.contains(&function.name)
    })?;
    Some(format!(
        "{}: the function `{}` is declared as one of the host, which NVRTC refuses, and a kernel \
         cannot call it: put `__device__` before it, or leave it out by `#ifndef __CUDACC_RTC__`",
        source.place(function.at),
        function.name
    ))
}

/// The first function that is defined as the host's.
fn host_function(source: &Preprocessed) -> Option<String> {
    let all = functions(&source.text);
    let function = all.iter().find(|function| !is_of_device(function.specifiers))?;
    let name = match function.specifiers.rsplit_once("operator") {
        // What stands behind it is `+`, or the call's parentheses.
        Some((_, sign)) if function.name.is_empty() => format!("operator{}", sign.trim()),
        _ if function.name == "operator" => String::from("operator()"),
        _ => function.name.to_owned(),
    };
    Some(format!(
        "{}: the function `{name}` is one of the host, which NVRTC refuses: put `__device__` \
         before it, or leave it out by `#ifndef __CUDACC_RTC__`",
        source.place(function.at)
    ))
}

/// The first variable that is the host's.
fn host_variable(source: &Preprocessed) -> Option<String> {
    let (name, at) = *plain_variables(&source.text).first()?;
    Some(format!(
        "{}: the variable `{name}` is one of the host, which NVRTC refuses: put `__device__` \
         or `__constant__` before it, or `const` if nothing writes it",
        source.place(at)
    ))
}

#[cfg(test)]
mod tests {
    use super::{Preprocessed, fault};

    fn of(text: &str) -> Option<String> {
        let text = format!(
            "# 1 \"/tmp/resident-1.cpp\"\n# 1 \"/usr/include/math.h\" 1 3\nint host();\nstd::x y;\n\
             # 1 \"entry.hpp\"\nvoid own() {{}}\n# 1 \"k.cu\"\n{text}\n\
             # 1 \"exports.hpp\"\nvoid also() {{}}\n"
        );
        fault(&Preprocessed::of(&text, "k.cu"), &[])
    }

    #[test]
    fn functions_and_variables_of_the_host_are_refused_with_their_lines() {
        assert_eq!(
            of("__device__ int f() { return 1; }\n__global__ void k() { std::move(1); }"),
            None
        );
        let said = of("\nint f() {\n return 1; }").expect("a host function");
        assert!(said.starts_with("k.cu:2: the function `f` is one of the host"), "{said}");
        let said = of("struct S { S operator+(S o) const { return o; } };").expect("of the host");
        assert!(said.contains("the function `operator+` is one of"), "{said}");
        assert_eq!(of("#pragma pack(push, 1)\nstruct S { int a; };\n#pragma x (y)\n"), None);
        let said = of("__device__ int a;\nextern \"C\" void exit(int);").expect("the host's");
        assert!(said.starts_with("k.cu:2: the function `exit` is declared as one of"), "{said}");
        for fine in [
            "__device__ int g(int x) { return __builtin_expect(x, 1); }",
            "__device__ int f(int); int f(int); extern \"C\" int printf(const char *, ...);",
            "extern \"C\" void *malloc(unsigned long); struct S { __device__ int f(); int g(); };",
            "__global__ void k(int *x); extern \"C\" __device__ void exit(int);",
        ] {
            assert_eq!(of(fine), None, "{fine}");
        }
        let said = of("__global__ void k() {\n __builtin_abort(); }").expect("not there");
        assert_eq!(said, "k.cu:2: NVRTC has no `__builtin_abort`: write `__trap()`, or `assert`");
        let said = of("__device__ int f() {\n return __builtin_popcount(3); }").expect("not there");
        assert!(said.starts_with("k.cu:2: NVRTC has no `__builtin_popcount`"), "{said}");
        let said = of("__device__ int a;\nint b = 2;").expect("a host variable");
        assert!(said.starts_with("k.cu:2: the variable `b` is one of the host"), "{said}");
        let said = of("__device__ int g() { }\n# 7 \"part.cuh\" 1\nint h() { }\n# 3 \"k.cu\" 2\n");
        assert!(said.expect("a host function").starts_with("part.cuh:7: the function `h`"));
    }

    #[test]
    fn an_option_makes_all_functions_a_devices() {
        let text = "# 1 \"k.cu\"\nint f() { return 1; }\n";
        let source = Preprocessed::of(text, "k.cu");
        assert!(fault(&source, &[]).is_some());
        assert_eq!(fault(&source, &["-default-device".into()]), None);
        let text = "# 1 \"k.cu\"\nint counter;\n";
        let source = Preprocessed::of(text, "k.cu");
        assert!(fault(&source, &[]).is_some());
        assert_eq!(fault(&source, &["-default-device".into()]), None);
    }
}
