//! What compilers for the host have beyond C++, and NVRTC has not. It is looked for in the
//! preprocessed source: GCC has no options that refuse these and nothing else.

use resident_code::words::{code_only, words};

use super::preprocessed::Preprocessed;

const MIDDLE: &str = "`?:` without a value in the middle: write the condition there too";
const STATEMENTS: &str = "statements in parentheses as a value: write a `__device__` function";
const LAMBDA: &str = "`__device__` on a lambda: leave it out, the lambda is the kernel's";
const RANGE: &str = "a range in `case`: write a label for each value, or `if`";
const OF_THREAD: &str = "`thread_local`: write a local variable, which each thread has";
const VALUE: &str = "a `__shared__` variable with a value: let a thread write it, and put \
                     `__syncthreads()` behind that";

const DESIGNATED: &str = "a member's name in a list of values: leave it out, or use the option \
                          `--std=c++20`";
const OF_128_BITS: &str = "`__int128` without the option `--device-int128`";
const OF_STD: &str = "`std::printf`, for it has no standard library: write `printf`";

/// The first of these in a source with these options.
pub(super) fn extension(source: &Preprocessed, options: &[std::sync::Arc<str>]) -> Option<String> {
    let has = |name: &str| options.iter().any(|option| option.contains(name));
    let is_allowed = |what: &str| match what {
        DESIGNATED => has("c++20"),
        OF_128_BITS => has("device-int128"),
        _ => false,
    };
    let code = code_only(&source.text);
    let (symbols, words) = (symbols(&code, &source.text), extension_words(&code));
    let (at, what) = symbols.chain(words).find(|(_, what)| !is_allowed(what))?;
    Some(format!("{}: NVRTC refuses {what}", source.place(at)))
}

/// `text` is the code with its literals.
fn symbols<'t>(code: &'t str, text: &'t str) -> impl Iterator<Item = (usize, &'static str)> {
    code.match_indices(['?', '(', ']', '.']).filter_map(move |(at, symbol)| {
        let behind = code[at + 1..].trim_start();
        let is_specified = ["__device__", "__host__"].iter().any(|word| behind.starts_with(word));
        let what = match symbol {
            "?" if has_no_middle(&text[at + 1..]) => MIDDLE,
            "(" if behind.strip_prefix('{').is_some_and(are_statements) => STATEMENTS,
            // Behind an attribute such as `[[noreturn]]` it is that of a function.
            "." if is_designator(&code[..at], behind) => DESIGNATED,
            "]" if is_specified && !code[..at].ends_with(']') => LAMBDA,
            _ => return None,
        };
        Some((at, what))
    })
}

fn has_no_middle(behind: &str) -> bool {
    let behind = behind.trim_start();
    behind.starts_with(':') && !behind.starts_with("::")
}

/// Whether braces have statements, and not the values of a list.
fn are_statements(inside: &str) -> bool {
    inside.find(['{', '}', ';']).is_some_and(|at| inside[at..].starts_with(';'))
}

/// Whether a point is before a member's name in a list of values.
fn is_designator(before: &str, behind: &str) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_name = behind.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    let rest = behind.trim_start_matches(is_of_name).trim_start();
    let is_given = rest.starts_with('=') && !rest.starts_with("==");
    is_name && is_given && before.trim_end().ends_with(['{', ','])
}

fn extension_words(code: &str) -> impl Iterator<Item = (usize, &'static str)> {
    words(code).filter_map(|(at, word)| {
        let until = |end: char| code[at..].split(end).next().unwrap_or_default();
        let what = match word {
            "case" if until(':').contains("...") => RANGE,
            // Not a pointer to dynamic shared memory, which the library declares.
            "thread_local" if !until(';').contains("resident::host::") => OF_THREAD,
            "__shared__" if has_value(until(';')) => VALUE,
            "__int128" => OF_128_BITS,
            // What a macro makes of `printf`.
            "std" if until('(') == "std::resident::host::print" => OF_STD,
            _ => return None,
        };
        Some((at, what))
    })
}

/// Whether a declaration gives a variable a value, outside of brackets.
fn has_value(declaration: &str) -> bool {
    let mut depth = 0_i32;
    declaration.chars().any(|letter| {
        depth += i32::from(matches!(letter, '(' | '[' | '{' | '<'));
        depth -= i32::from(matches!(letter, ')' | ']' | '}' | '>'));
        letter == '=' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<String> {
        extension(&Preprocessed::of(&format!("# 1 \"k.cu\"\n\n{line}\n"), "k.cu"), &[])
    }

    #[test]
    fn what_nvrtc_lacks_is_named_with_its_line() {
        for (line, what) in [
            ("x = y ?: 3;", MIDDLE),
            ("x = ( { int a = 3; a; });", STATEMENTS),
            ("auto f = [] __device__ (int a) { return a; };", LAMBDA),
            ("switch (x) { case 0 ... 4: break; }", RANGE),
            ("static thread_local int s;", OF_THREAD),
            ("__shared__ int a[2], s = 3;", VALUE),
            ("S s = {1, .b = 2};", DESIGNATED),
            ("unsigned __int128 x;", OF_128_BITS),
            ("std::resident::host::print(1);", OF_STD),
        ] {
            assert_eq!(of(line), Some(format!("k.cu:2: NVRTC refuses {what}")), "{line}");
        }
        for fine in [
            "x = y ? ::f(z) : 3; s = y ? \"a\" : \"\"; g({1, 2}); h({[] { return 1; }}); int a[3];",
            "[[noreturn]] __device__ void f(); case 1: f(...); // ?: thread_local",
            "static thread_local int *const s = resident::host::dynamic_shared<int>();",
            "S s = {.5f, x.b == 2, f(a, b.c = 3)}; t = {1, ...}; resident::host::print(1);",
            "__shared__ int s[N == 1 ? 1 : 2]; __shared__ A<(B = 1)> t; t = s[0];",
        ] {
            assert_eq!(of(fine), None, "{fine}");
        }
    }
}
