//! What Clang does not tell the checker by itself, written into its code: where local arrays end,
//! copies of records and their alignment, and in which functions its warnings are. Pure.

use std::collections::{HashMap, HashSet};

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

/// The function that compares an address with an alignment, which is inlined. `hooks.hpp` has the
/// one that it calls.
const ALIGNED: &str = "
define internal void @resident_aligned(i64 %address, i64 %bytes, i32 %how) alwaysinline {
  %mask = add i64 %bytes, -1
  %rest = and i64 %address, %mask
  %is_aligned = icmp eq i64 %rest, 0
  br i1 %is_aligned, label %end, label %misaligned
misaligned:
  call void @resident_misaligned(i64 %address, i64 %bytes, i32 %how)
  br label %end
end:
  ret void
}
declare hidden void @resident_misaligned(i64, i64, i32)
";

/// Code in which the addresses of a copy of a record are compared with the record's alignment.
/// (`-fsanitize=alignment` leaves such copies out.)
pub(super) fn with_aligned_records(code: &str) -> String {
    let (mut changed, mut locals) = (String::new(), HashSet::new());
    for (number, line) in code.split_inclusive('\n').enumerate() {
        if line.starts_with("define ") {
            locals.clear();
        }
        locals.extend(local(line, &locals));
        if let Some((_, operands)) = line.split_once("call void @llvm.memcpy.") {
            let debug = line.rfind(", !dbg ").map_or("\n", |at| &line[at..]);
            let sides = operands.split(", ").zip(["1", "0"]);
            for (operand, how) in sides.filter(|(operand, _)| !is_local(operand, &locals)) {
                changed += &comparison(operand, how, number, debug).unwrap_or_default();
            }
        }
        changed += line;
    }
    changed + ALIGNED
}

/// The name of a local variable that a line makes, or of a pointer to one.
fn local<'t>(line: &'t str, locals: &HashSet<&str>) -> Option<&'t str> {
    let (name, made) = line.trim_start().split_once(" = ")?;
    let is_pointer = || {
        let (pointer, _) = made.strip_prefix("bitcast ")?.split_once(" to ")?;
        locals.contains(pointer.rsplit(' ').next()?).then_some(())
    };
    (made.starts_with("alloca ") || is_pointer().is_some()).then_some(name)
}

/// Whether an operand is a local variable, which has the alignment of its type.
fn is_local(operand: &str, locals: &HashSet<&str>) -> bool {
    operand.rsplit(' ').next().is_some_and(|name| locals.contains(name))
}

/// The comparison of an operand, `p0i8.i64(i8* align 8 %2` or `ptr align 8 %2`.
fn comparison(operand: &str, how: &str, number: usize, debug: &str) -> Option<String> {
    let (pointer, rest) = operand.rsplit('(').next()?.split_once(" align ")?;
    let pointer = pointer.split(' ').next()?;
    let (bytes, value) = rest.split_once(" %")?;
    (bytes != "1").then(|| {
        format!(
            "  %resident.{number}.{how} = ptrtoint {pointer} %{value} to i64\n  \
             call void @resident_aligned(i64 %resident.{number}.{how}, i64 {bytes}, \
             i32 {how}){debug}"
        )
    })
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
    use super::{
        ALIGNED, with_aligned_records, with_announced_copies, with_functions, with_lengths,
    };

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
    fn copies_of_records_compare_addresses_that_are_no_locals() {
        let copies = |pointer: &str, name: &str| {
            format!(
                "define void @f() {{\n  %1 = alloca %S, align 8\n  %2 = bitcast %S* %1 to i8*\n  \
                 %3 = load {pointer}, {pointer}* %x\n  \
                 call void @llvm.memcpy.{name}({pointer} align 8 %2, {pointer} align 4 %3, \
                 i64 8, i1 false), !dbg !7\n  \
                 call void @llvm.memcpy.{name}({pointer} align 1 %3, {pointer} align 8 %2, \
                 i64 8, i1 false)\n}}\n"
            )
        };
        for (pointer, name) in [("i8*", "p0i8.p0i8.i64"), ("ptr", "p0.p0.i64")] {
            let given = copies(pointer, name);
            let (before, copy) = given.split_once("  call").expect("a call");
            let expected = format!(
                "{before}  %resident.4.0 = ptrtoint {pointer} %3 to i64\n  call void \
                 @resident_aligned(i64 %resident.4.0, i64 4, i32 0), !dbg !7\n  call{copy}{ALIGNED}"
            );
            assert_eq!(with_aligned_records(&given), expected);
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
