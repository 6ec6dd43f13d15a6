//! What to do about errors of a compiler, in words of CUDA C.

/// A sentence about the first error of a log that has one.
pub(super) fn advice(log: &str) -> Option<String> {
    log.lines().find_map(undefined)
}

/// For a function that is used and nowhere defined.
fn undefined(line: &str) -> Option<String> {
    let (_, name) = ["undefined reference to ", "undefined symbol: "]
        .into_iter()
        .find_map(|words| line.split_once(words))?;
    let name = name.trim().trim_matches(['`', '\'', '\u{2018}', '\u{2019}']);
    Some(format!(
        "the source declares and uses `{name}`, and defines it nowhere: define it in the source, \
         or include the file that does"
    ))
}

#[cfg(test)]
mod tests {
    use super::advice;

    #[test]
    fn what_is_nowhere_defined_is_named() {
        for log in [
            "/usr/bin/ld: a.o: in function `k(int*)':\nk.cu:2: undefined reference to `missing(int)'",
            "ld.lld: error: undefined symbol: missing(int)",
        ] {
            let said = advice(log).expect("it is named");
            assert!(said.contains("declares and uses `missing(int)`, and defines it nowhere"));
        }
        assert_eq!(advice("k.cu:1: error: expected `;`"), None);
    }
}
