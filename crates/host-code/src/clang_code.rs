//! What Clang does not tell the checker by itself, written into its code: where local arrays end,
//! copies of records, and in which functions its warnings are. Pure.

use std::collections::HashMap;

/// The options for code before it is optimised, which `with_lengths` changes.
pub(super) const NOT_OPTIMISED: [&str; 4] = ["-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes"];

/// The options for assembly of that code, for which Clang needs no others of the source's.
pub(super) const OF_CODE: [&str; 2] = ["-S", "-Qunused-arguments"];

/// Copies and fills, which Clang's thread sanitizer announces by `__tsan_memcpy` and its kin only
/// since 16.
const COPIES: [&str; 3] = ["memcpy", "memmove", "memset"];

/// Code whose accesses are compared with a variable's length where only the running kernel knows
/// the index too. (`-fsanitize=object-size` leaves such accesses out.)
pub(super) fn with_lengths(code: &str) -> String {
    let changed = code.split_inclusive('\n').map(|line| {
        if line.contains("call i64 @llvm.objectsize.") {
            line.replacen(", i1 false)", ", i1 true)", 1)
        } else {
            line.to_owned()
        }
    });
    changed.collect()
}

/// Assembly whose calls for copies are those of the checker.
pub(super) fn with_announced_copies(assembly: &str) -> String {
    let changed = assembly.split_inclusive('\n').map(|line| {
        let (start, called) = line.trim_end().rsplit_once(['\t', ' ']).unwrap_or_default();
        let name = called.strip_suffix("@PLT").unwrap_or(called);
        let is_call = COPIES.contains(&name) && !start.trim_start().starts_with('.');
        if is_call { line.replacen(name, &format!("__tsan_{name}"), 1) } else { line.to_owned() }
    });
    changed.collect()
}

/// A log with the function of each warning before it, as GCC names it.
pub(super) fn with_functions(log: &str, code: &str) -> String {
    let functions = functions(code);
    let lines = log.lines().map(|line| {
        let Some((file, number)) = place_of_warning(line) else { return format!("{line}\n") };
        let is_before = |one: &&Function<'_>| one.file == file && one.line <= number;
        let function = functions.iter().filter(is_before).max_by_key(|one| one.line);
        let name = function.map_or("", |function| function.name);
        format!("{file}: In function '{name}':\n{line}\n")
    });
    lines.collect()
}

/// A function that is defined in a source.
struct Function<'t> {
    file: &'t str,
    line: usize,
    name: &'t str,
}

/// The file and the line in `k.cu:3:7: warning: ..`.
fn place_of_warning(line: &str) -> Option<(&str, usize)> {
    let mut parts = line.split_once(": warning: ")?.0.rsplitn(3, ':');
    let number = parts.nth(1)?.parse().ok()?;
    Some((parts.next()?, number))
}

/// The functions that the debug information of the code names.
fn functions(code: &str) -> Vec<Function<'_>> {
    let file =
        |line| Some((between(line, "", " = !DIFile(")?, between(line, "filename: \"", "\"")?));
    let files: HashMap<&str, &str> = code.lines().filter_map(file).collect();
    let function = |line| {
        between(line, " = distinct !DISubprogram(", "DISPFlagDefinition")?;
        Some(Function {
            file: files.get(between(line, " file: ", ",")?)?,
            line: between(line, " line: ", ",")?.parse().ok()?,
            name: between(line, "(name: \"", "\"")?,
        })
    };
    code.lines().filter_map(function).collect()
}

fn between<'t>(line: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = line.split_once(start)?;
    rest.split_once(end).map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::{with_announced_copies, with_functions, with_lengths};

    #[test]
    fn lengths_are_those_at_run_time_for_either_kind_of_pointers() {
        let declared = "declare i64 @llvm.objectsize.i64.p0(ptr, i1 immarg, i1 immarg)\n";
        for call in [
            "  %2 = call i64 @llvm.objectsize.i64.p0i8(i8* %1, i1 false, i1 false, i1 false), !1\n",
            "  %2 = call i64 @llvm.objectsize.i64.p0(ptr %1, i1 false, i1 true, i1 false)\n",
        ] {
            let changed = with_lengths(&[declared, call].concat());
            assert_eq!(changed, [declared, &call.replace("i1 false)", "i1 true)")].concat());
        }
    }

    #[test]
    fn calls_for_copies_become_the_checkers_and_other_names_stay() {
        let given = "memcpy:\n\tcallq\tmemcpy@PLT\n\tbl\tmemset\n\tcallq\town_memcpy@PLT\n\
                     \t.addrsig_sym memcpy\n\tcallq\t__tsan_memmove@PLT\n";
        let expected = given.replace("\tmemcpy@", "\t__tsan_memcpy@");
        assert_eq!(with_announced_copies(given), expected.replace("\tmemset", "\t__tsan_memset"));
    }

    #[test]
    fn a_warning_is_in_the_function_that_begins_last_before_it() {
        let code = "!3 = !DIFile(filename: \"k.cu\", directory: \"/\")\n\
            !4 = !DIFile(filename: \"v.h\", directory: \"/\")\n\
            !5 = distinct !DISubprogram(name: \"k\", scope: !3, file: !3, line: 2, type: !9, \
            spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !2)\n\
            !6 = distinct !DISubprogram(name: \"of<int, 2>\", file: !4, line: 3, type: !9, \
            spFlags: DISPFlagDefinition)\n\
            !7 = !DISubprogram(name: \"declared\", file: !3, line: 4, spFlags: 0)\n";
        let warnings =
            ["k.cu:5:7: warning: variable 'x'", "v.h:3:9: warning: 'y'", "v.h:1:1: warning: z"];
        let told = with_functions(&[warnings.join("\n"), "x [-Wx]".into()].join("\n"), code);
        let [x, y, z] = warnings;
        let expected = format!(
            "k.cu: In function 'k':\n{x}\nv.h: In function 'of<int, 2>':\n{y}\n\
             v.h: In function '':\n{z}\nx [-Wx]\n"
        );
        assert_eq!(told, expected);
    }
}
