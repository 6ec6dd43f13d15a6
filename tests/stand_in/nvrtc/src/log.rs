//! The log of a C++ compiler as NVRTC would write it.

#![forbid(unsafe_code)]

/// The log of a source with this name. Lines that say in which function an error is are left out.
pub(crate) fn of_compiler(log: &str, name: &str) -> String {
    let mut written = String::new();
    let mut errors = 0;
    for line in log.lines() {
        if let Some(diagnostic) = diagnostic(line) {
            errors += usize::from(diagnostic.contains("error: "));
            written.push_str(&diagnostic);
        } else if line.starts_with(char::is_whitespace) && !written.is_empty() {
            written.push_str(line);
        } else {
            continue;
        }
        written.push('\n');
    }
    match errors {
        // What the linker says.
        0 => log.to_owned(),
        1 => format!("{written}\n1 error detected in the compilation of \"{name}\".\n"),
        _ => format!("{written}\n{errors} errors detected in the compilation of \"{name}\".\n"),
    }
}

/// `f.cu(3): error: text` for `f.cu:3:7: error: text`.
fn diagnostic(line: &str) -> Option<String> {
    const KINDS: [(&str, &str); 3] = [
        (": fatal error: ", "catastrophic error"),
        (": error: ", "error"),
        (": warning: ", "warning"),
    ];
    KINDS.iter().find_map(|(separator, kind)| {
        let (place, text) = line.split_once(separator)?;
        let (place, column) = place.rsplit_once(':')?;
        let (file, number) = place.rsplit_once(':')?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(column) || !is_number(number) {
            return None;
        }
        Some(match text.strip_prefix("#error ") {
            Some(text) => format!("{file}({number}): catastrophic error: #error directive: {text}"),
            None => format!("{file}({number}): {kind}: {text}"),
        })
    })
}
