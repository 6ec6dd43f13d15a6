//! What to do about errors of a compiler, in words of CUDA C.

use super::refusals::features;
use super::refusals::left_out::{LeftOut, without_features};
use super::sanitizer::is_own_file;

/// What the headers of this library say of a source that they refuse, at its lines, in place of the
/// log, which is about these headers.
pub(super) fn asserted(log: &str, text: &str, file: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().collect();
    let is_header = |line: &str| line.split(':').next().is_some_and(is_own_file);
    let errors = lines.iter().enumerate().filter_map(|(at, line)| {
        let words = assertion(line).filter(|_| is_header(line))?;
        let says = |line: &&&str, wanted: &str| line.contains(wanted) && !is_header(line);
        // GCC says before where the instance is wanted, and Clang behind.
        let mut behind = lines[at + 1..].iter().take_while(|line| assertion(line).is_none());
        let place = behind.find(|line| says(line, "requested here"));
        let before = || lines[..at].iter().rev().find(|line| says(line, "required from"));
        let place = place.or_else(before)?;
        let end = place.match_indices(':').nth(2).map(|(end, _)| end)?;
        Some(format!("{}: error: {words}\n", &place[..end]))
    });
    let errors: String = errors.collect();
    (!errors.is_empty()).then(|| with_source_lines(&errors, text, file))
}

/// The words of a failed `static_assert`.
fn assertion(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("static assertion failed").or_else(|| {
        // Older than Clang 16.
        line.split_once("static_assert failed")
    })?;
    let quoted = || rest.split_once("' \"")?.1.strip_suffix('"');
    let named = || rest.split_once("': ").map(|(_, words)| words);
    rest.strip_prefix(": ").or_else(quoted).or_else(named)
}

/// A sentence about the first error of a log that has one. `text` is the source, and `file` its
/// name in the log.
pub(super) fn advice(log: &str, text: &str, file: &str) -> Option<String> {
    let left_out = without_features(text, file).left_out;
    let of_line = |line: &str| {
        let of_feature = || features::of_line(text, file, line_of(line, file)?);
        let of_function = || undeclared(line, &left_out);
        let of_source = || ambiguous(line).or_else(of_function).or_else(of_feature);
        of_source().or_else(|| missing_header(line)).or_else(|| not_of_cuda(line))
    };
    log.lines().find_map(of_line)
}

/// The log with the line of the source, and a mark below the column, behind each error that has
/// none: GCC shows lines of files, and the source is in no file of its name.
pub(super) fn with_source_lines(log: &str, text: &str, file: &str) -> String {
    let mut lines = log.lines().peekable();
    let mut shown = String::with_capacity(log.len());
    while let Some(line) = lines.next() {
        shown.push_str(line);
        shown.push('\n');
        let source =
            line_of(line, file).and_then(|number| text.lines().nth(number.checked_sub(1)?));
        let Some(source) = source.filter(|source| !source.trim().is_empty()) else { continue };
        if lines.peek().is_none_or(|next| !next.contains(source.trim())) {
            shown.push_str(&format!("    {source}\n{}", mark(line, source, file)));
        }
    }
    shown
}

/// A mark below the column that an error names: 3 in `k.cu:7:3: error: ..`. Columns are bytes.
fn mark(line: &str, source: &str, file: &str) -> String {
    let column =
        || line.strip_prefix(file)?.split(':').nth(2)?.parse::<usize>().ok()?.checked_sub(1);
    let Some(before) = column().and_then(|column| source.get(..column)) else {
        return String::new();
    };
    let blank = |letter: char| if letter == '\t' { '\t' } else { ' ' };
    format!("    {}^\n", before.chars().map(blank).collect::<String>())
}

/// The line of the source that an error names: 7 in `k.cu:7:3: error: ..`.
fn line_of(line: &str, file: &str) -> Option<usize> {
    let rest = line.strip_prefix(file)?.strip_prefix(':')?;
    // Assemblers begin with a capital letter.
    let is_error = rest.contains("rror:");
    rest.split(':').next()?.parse().ok().filter(|_| is_error)
}

/// For a function of `float` and `double` that is called with an integer.
fn ambiguous(line: &str) -> Option<String> {
    const STARTS: [&str; 4] = [
        "call of overloaded ",
        "call to deleted function ",
        "call to ",
        "use of deleted function ",
    ];
    let is_meant = line.contains("is ambiguous") || line.contains("deleted function");
    let start = STARTS.iter().find_map(|words| Some(line.split_once(words)?.1))?;
    let name = match start.split_once('(') {
        Some((before, _)) => before.rsplit([' ', ':']).next()?,
        None => start.split_whitespace().next()?,
    };
    let name = name.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let is_name = is_meant && !name.is_empty();
    is_name.then(|| {
        format!(
            "`{name}` of these types is ambiguous, with NVRTC too, which has the functions of \
             mathematics for `float` and `double`: convert the arguments, as in `{name}((float)x)`"
        )
    })
}

/// For a function that is left out with its declaration, where a member or a template calls it.
fn undeclared(line: &str, left_out: &[LeftOut]) -> Option<String> {
    let is_meant = line.contains("declared") && line.contains("error:");
    LeftOut::named_in(left_out, line).filter(|_| is_meant).map(|one| one.reason.clone())
}

/// For a header that is nowhere.
fn missing_header(line: &str) -> Option<String> {
    let (place, rest) = line.split_once(" fatal error: ")?;
    let name = rest
        .strip_suffix(": No such file or directory")
        .or_else(|| rest.strip_suffix(" file not found"))?;
    let (place, name) = (without_column(place), name.trim_matches('\''));
    // CUDA's package has it, and a GPU's compiler finds it there.
    let is_of_cuda = name.starts_with("cuda") || name.starts_with("cooperative_groups");
    Some(if is_of_cuda {
        format!(
            "{place}: the embedded device has no {name}, which is among the headers of CUDA: \
             include it under #ifndef __RESIDENT_HOST__, or give the kernel a body by .host(..)"
        )
    } else {
        format!(
            "{place}: NVRTC has no header {name} and no standard library: leave it out, or name a \
             folder that has it by CudaSource::include"
        )
    })
}

/// `k.cu:7` of `k.cu:7:3:`.
fn without_column(place: &str) -> &str {
    place.trim_end_matches(':').rsplit_once(':').map_or(place, |(line, _)| line)
}

/// What to write for names of this machine's headers.
const INSTEAD: [(&str, &str); 6] = [
    ("uint", "write `unsigned int`, or declare it by `typedef unsigned int uint;`"),
    ("ushort", "write `unsigned short`, or declare it by `typedef unsigned short ushort;`"),
    ("ulong", "write `unsigned long`, or declare it by `typedef unsigned long ulong;`"),
    ("alloca", "write an array whose length is a constant"),
    ("exit", "write `__trap()`, or `assert`"),
    ("abort", "write `__trap()`, or `assert`"),
];

/// For a name that neither the source nor NVRTC declares.
fn not_of_cuda(line: &str) -> Option<String> {
    let (place, rest) = line.split_once(" error: ")?;
    let rest = rest.replace(['\u{2018}', '\u{2019}'], "'");
    let mut parts = rest.split('\'');
    let (before, name, behind) = (parts.next()?, parts.next()?, parts.next()?);
    let place = without_column(place);
    let is_member = ["is not a member of", "in namespace"].contains(&behind.trim());
    if is_member && parts.next() == Some("std") {
        return Some(format!(
            "{place}: `std::{name}`: NVRTC has no standard library of C++; write `{name}` if CUDA \
             C has it, such as `sqrtf` or `max`, or a `__device__` function of your own"
        ));
    }
    const BEFORE: [&str; 2] = ["use of undeclared identifier ", "unknown type name "];
    const BEHIND: [&str; 3] = [" was not declared", " has not been declared", " does not name a"];
    let is_meant = BEFORE.contains(&before) || BEHIND.iter().any(|words| behind.starts_with(words));
    // As its first letters say, only a compiler could declare it.
    if is_meant && name.starts_with("__") {
        return Some(format!(
            "{place}: the embedded device has no `{name}`: if CUDA has it, use something else \
             under `#ifdef __RESIDENT_HOST__`, or give the kernel a body by `.host(..)`"
        ));
    }
    let instead = INSTEAD.iter().find(|(known, _)| *known == name);
    let instead = instead.map_or("declare it in the source", |(_, instead)| instead);
    is_meant.then(|| {
        format!(
            "{place}: the source does not declare `{name}`, nor does NVRTC, which has no headers \
             of this machine: {instead}"
        )
    })
}

/// For the first function that is used and nowhere defined, which the linker says and no compiler.
pub(super) fn undefined(log: &str, file: &str) -> Option<String> {
    const WORDS: [&str; 2] = ["undefined reference to ", "undefined symbol: "];
    let mut lines = log.lines().skip_while(|line| !WORDS.iter().any(|words| line.contains(words)));
    let first = lines.next()?;
    let name = WORDS.iter().find_map(|words| Some(first.split_once(words)?.1))?;
    let name = name.trim().trim_matches(['`', '\'', '\u{2018}', '\u{2019}']);
    // LLVM's linker names the line below.
    let place = [Some(first), lines.next()].into_iter().flatten().find_map(|line| {
        let (_, behind) = line.split_once(file)?;
        let behind = behind.strip_prefix(':')?;
        let end = behind.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(behind.len());
        (end > 0).then(|| format!("{file}:{}: ", &behind[..end]))
    });
    Some(format!(
        "{}the source declares and uses `{name}`, and defines it nowhere: define it in the source, \
         or include the file that does",
        place.unwrap_or_default()
    ))
}

/// For a kernel whose name other functions have, where it is listed.
pub(super) fn overloaded(log: &str, file: &str) -> Option<String> {
    const WORDS: [&str; 2] = [
        "cannot resolve address of overloaded function",
        "reference to overloaded function could not be resolved",
    ];
    let of_list = log.contains("resident_host_kernel");
    let is_meant = of_list && WORDS.iter().any(|words| log.contains(words));
    let is_place = |line: &&str| {
        line.contains("resident_host_kernel") || WORDS.iter().any(|words| line.contains(words))
    };
    let numbers = log.lines().filter(is_place).filter_map(|line| {
        let behind = line.strip_prefix(file)?.strip_prefix(':')?;
        behind.split(':').next()?.parse::<usize>().ok()
    });
    let number = numbers.take(1).find(|_| is_meant)?;
    Some(format!(
        "{file}:{number}: the kernel that ends here has the name of functions of CUDA, such as \
         `min`, so that its name alone says not which is meant, to NVRTC neither: give it another"
    ))
}

/// The most characters of a compiler's log that a message has.
const LOG_MAX: usize = 4_000;

/// The whole lines at the start of a log that a message has room for behind so many characters.
pub(super) fn shortened(log: &str, before: usize) -> String {
    const LEFT_OUT: &str = "\n(further lines are left out)";
    let room = LOG_MAX.saturating_sub(before);
    let is_long = log.chars().nth(room).is_some();
    let cut = log.char_indices().nth(room.saturating_sub(LEFT_OUT.len()));
    let Some((cut, _)) = cut.filter(|_| is_long) else { return log.to_owned() };
    let end = log[..cut].rfind('\n').unwrap_or(cut);
    format!("{}{LEFT_OUT}", &log[..end])
}

#[cfg(test)]
mod tests {
    use super::{LOG_MAX, advice, asserted, shortened, undefined};

    #[test]
    fn what_is_nowhere_defined_is_named_with_its_line() {
        for log in [
            "ld: a.o: in function `k(int*)':\n/tmp/k.cu:2: undefined reference to `missing(int)'",
            "ld.lld: error: undefined symbol: missing(int)\n>>> referenced by k.cu:2 (/tmp/k.cu:2)",
        ] {
            let said = undefined(log, "k.cu").expect("it is named");
            let start = "k.cu:2: the source declares and uses `missing(int)`, and defines it";
            assert!(said.starts_with(start), "{said}");
        }
        let said = undefined("ld: undefined reference to `missing(int)'", "k.cu").expect("named");
        assert!(said.starts_with("the source declares and uses `missing(int)`"), "{said}");
        assert_eq!(undefined("k.cu:1: error: expected `;`", "k.cu"), None);
        assert_eq!(advice("k.cu:1: error: expected `;`", "x", "k.cu"), None);
    }

    #[test]
    fn what_headers_refuse_is_said_at_the_line_of_the_source() {
        for log in [
            "printing.hpp: In instantiation of \u{2018}int print()\u{2019}:\n\
             k.cu:2:3:   required from here\n\
             printing.hpp:9:1: error: static assertion failed: a `char`: no",
            "printing.hpp:9:1: error: static_assert failed due to requirement 'a == b' \"a `char`: \
             no\"\nk.cu:2:3: note: in instantiation of function 'print' requested here",
            "printing.hpp:9:1: error: static assertion failed due to requirement 'a': a `char`: \
             no\nk.cu:2:3: note: in instantiation of function 'print' requested here",
        ] {
            let said = asserted(log, "\nx y z", "k.cu").expect("it is the headers'");
            assert_eq!(said, "k.cu:2:3: error: a `char`: no\n    x y z\n      ^\n");
        }
        let own =
            "k.cu: required from here\nk.cu:9:1: error: static assertion failed: of the source";
        assert_eq!(asserted(own, "", "k.cu"), None);
    }

    #[test]
    fn long_logs_end_behind_a_line() {
        assert_eq!(shortened("a\nb", 10), "a\nb");
        let log = "\u{2018}0123456789\u{2019}\n".repeat(1000);
        let short = shortened(&log, 100);
        assert!(short.chars().count() <= LOG_MAX - 100 && short.chars().count() > LOG_MAX - 1000);
        assert!(short.ends_with("\u{2019}\n(further lines are left out)"), "{short}");
        assert!(shortened(&"x".repeat(9000), 0).len() <= LOG_MAX);
    }

    #[test]
    fn ambiguous_calls_and_features_that_are_not_there_are_explained() {
        for log in [
            "k.cu:1:9: error: call of overloaded \u{2018}sqrt(int)\u{2019} is ambiguous",
            "k.cu:1:9: error: call to 'sqrt' is ambiguous",
            "k.cu:1:9: error: use of deleted function \u{2018}void sqrt(T) [with T = int]\u{2019}",
        ] {
            let said = advice(log, "", "k.cu").expect("it is explained");
            assert!(said.starts_with("`sqrt` of these types is ambiguous"), "{said}");
        }
        let text = "\n__device__ float f(int t) { return tex1Dfetch<float>(t, 1); }";
        let said =
            advice("k.cu:2:5: error: \u{2018}tex1Dfetch\u{2019} was not declared", text, "k.cu");
        let said = said.expect("it is named");
        assert!(said.contains("k.cu:2: `tex1Dfetch`: the embedded device has no textures"));
        for log in [
            "k.cu:1:9: error: \u{2018}__isGlobal\u{2019} was not declared in this scope; did you \
             mean \u{2018}__ilogbl\u{2019}?",
            "k.cu:1:9: error: use of undeclared identifier '__isGlobal'",
        ] {
            let said = advice(log, "", "k.cu").expect("it is named");
            let start = "k.cu:1: the embedded device has no `__isGlobal`: if CUDA has it";
            assert!(said.starts_with(start), "{said}");
        }
        let text = "__device__ int f() { asm(\"mov\"); return 1; }";
        let log = "k.cu:1: Error: no such instruction: `mov'";
        assert!(advice(log, text, "k.cu").expect("it is named").contains("no inline PTX"));
    }

    #[test]
    fn names_and_headers_of_this_machine_are_named_with_their_line() {
        for (log, words) in [
            (
                "k.cu:2:5: error: \u{2018}max\u{2019} is not a member of \u{2018}std\u{2019}",
                "k.cu:2: `std::max`: NVRTC has no standard library",
            ),
            ("k.cu:2:5: error: no member named 'max' in namespace 'std'", "k.cu:2: `std::max`"),
            (
                "part.cuh:7:5: error: 'uint' has not been declared",
                "part.cuh:7: the source does not declare `uint`, nor does NVRTC, which has no \
                 headers of this machine: write `unsigned int`, or declare it by `typedef",
            ),
            ("k.cu:2:5: error: unknown type name 'ulong'; did you", "k.cu:2: the source does not"),
            (
                "k.cu:2:5: error: use of undeclared identifier 'exit'",
                "k.cu:2: the source does not declare `exit`, nor does NVRTC, which has no headers \
                 of this machine: write `__trap()`",
            ),
            (
                "k.cu:1:10: fatal error: algorithm: No such file or directory",
                "k.cu:1: NVRTC has no header algorithm and no standard library: leave it out",
            ),
            (
                "k.cu:1:10: fatal error: 'algorithm' file not found",
                "k.cu:1: NVRTC has no header algorithm and",
            ),
            (
                "k.cu:1:10: fatal error: cuda_fp8.h: No such file or directory",
                "k.cu:1: the embedded device has no cuda_fp8.h, which is among",
            ),
        ] {
            let said = advice(log, "", "k.cu").expect("it is named");
            assert!(said.starts_with(words), "{said}");
        }
        assert_eq!(advice("k.cu:1:2: error: 'f' is ambiguous here", "", "k.cu"), None);
    }

    #[test]
    fn a_function_that_is_left_out_is_named_where_it_is_called() {
        let text = "__device__ float f(cudaTextureObject_t t) { return 1; }";
        for log in [
            "k.cu:2:5: error: \u{2018}f\u{2019} was not declared in this scope",
            "k.cu:2:5: error: use of undeclared identifier 'f'",
        ] {
            let said = advice(log, text, "k.cu").expect("it is named");
            assert!(said.contains("k.cu:1: `cudaTextureObject_t` in `f`"), "{said}");
        }
    }
}
