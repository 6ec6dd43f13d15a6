//! The names of variables in compiled code.

/// The last name of a mangled one: `tile` of `_ZZ4blurPfE4tile`. A name follows its length, and
/// only a number or the end of a nested name follows the last one, or what a compiler adds.
pub(super) fn plain_name(mangled: &str) -> &str {
    let is_digit = |at: usize| mangled.as_bytes()[at].is_ascii_digit();
    let starts = (1..mangled.len()).filter(|at| is_digit(*at - 1) && !is_digit(*at));
    let mut names = starts.filter_map(|at| {
        let digits = (0..at).rev().take_while(|before| is_digit(*before)).count();
        let len: usize = mangled[at - digits..at].parse().ok()?;
        let behind = mangled.get(at + len..)?;
        let is_last = behind.is_empty() || behind == "E" || behind.starts_with(['_', '.']);
        (is_last && len > 0).then(|| &mangled[at..at + len])
    });
    names.next().unwrap_or(mangled)
}

/// Whether a variable is one that compilers add to every library.
pub(super) fn is_of_compiler(symbol: &str) -> bool {
    symbol.starts_with("completed.") || symbol.starts_with("__")
}

#[cfg(test)]
mod tests {
    use super::plain_name;

    #[test]
    fn the_last_name_is_the_variables() {
        for (mangled, name) in [
            ("_ZZ4blurPfE4tile", "tile"),
            ("_ZL7counter", "counter"),
            ("_ZZ1kIfEvPKT_PS0_iE4tile", "tile"),
            ("_ZZ1kvE3x10", "x10"),
            ("_ZZ1kvE3x10_0", "x10"),
            ("_ZN2ns5tableE", "table"),
            ("_ZL9threadIdx.0", "threadIdx"),
            ("plain", "plain"),
        ] {
            assert_eq!(plain_name(mangled), name);
        }
    }
}
