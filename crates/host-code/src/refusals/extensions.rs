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

/// The first of these in a source.
pub(super) fn extension(source: &Preprocessed) -> Option<String> {
    let code = code_only(&source.text);
    let (at, what) = symbol(&code, &source.text).or_else(|| word(&code))?;
    Some(format!("{}: NVRTC refuses {what}", source.place(at)))
}

/// `text` is the code with its literals.
fn symbol(code: &str, text: &str) -> Option<(usize, &'static str)> {
    code.match_indices(['?', '(', ']']).find_map(|(at, symbol)| {
        let behind = code[at + 1..].trim_start();
        let is_specified = ["__device__", "__host__"].iter().any(|word| behind.starts_with(word));
        let what = match symbol {
            "?" if has_no_middle(&text[at + 1..]) => MIDDLE,
            "(" if behind.strip_prefix('{').is_some_and(are_statements) => STATEMENTS,
            // Behind an attribute such as `[[noreturn]]` it is that of a function.
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

fn word(code: &str) -> Option<(usize, &'static str)> {
    words(code).find_map(|(at, word)| {
        let until = |end: char| code[at..].split(end).next().unwrap_or_default();
        let what = match word {
            "case" if until(':').contains("...") => RANGE,
            // Not a pointer to dynamic shared memory, which the library declares.
            "thread_local" if !until(';').contains("resident::host::") => OF_THREAD,
            "__shared__" if has_value(until(';')) => VALUE,
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
        extension(&Preprocessed::of(&format!("# 1 \"k.cu\"\n\n{line}\n"), "k.cu"))
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
        ] {
            assert_eq!(of(line), Some(format!("k.cu:2: NVRTC refuses {what}")), "{line}");
        }
        for fine in [
            "x = y ? ::f(z) : 3; s = y ? \"a\" : \"\"; g({1, 2}); h({[] { return 1; }}); int a[3];",
            "[[noreturn]] __device__ void f(); case 1: f(...); // ?: thread_local",
            "static thread_local int *const s = resident::host::dynamic_shared<int>();",
            "__shared__ int s[N == 1 ? 1 : 2]; __shared__ A<(B = 1)> t; t = s[0];",
        ] {
            assert_eq!(of(fine), None, "{fine}");
        }
    }
}
