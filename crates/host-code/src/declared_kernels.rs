//! The kernels that a source declares, for the error about one that it lacks: a compiler's own
//! message tells of the headers around the source.

use std::ffi::OsString;

use resident_code::words::find_in_code;

/// What is wrong if neither the source nor an option can declare the kernel: none has its name.
/// Other files could declare it, so the source must include none.
pub(super) fn fault(text: &str, entry: &str, options: &[OsString]) -> Option<String> {
    let name = entry.split('<').next().unwrap_or(entry).trim().rsplit("::").next()?;
    // A macro may make names of pieces.
    let is_given = |option: &OsString| {
        let option = option.to_string_lossy();
        option.contains(name)
    };
    if find_in_code(text, &[name]).is_some() || text.contains("##") || options.iter().any(is_given)
    {
        return None;
    }
    let declared: Vec<String> = kernels(text).iter().map(|kernel| format!("`{kernel}`")).collect();
    Some(match &declared[..] {
        [] => format!(
            "the source has no function `{name}`, and no `__global__` function; declare \
             `extern \"C\" __global__ void {name}(..)`"
        ),
        _ => format!(
            "the source declares {}, and no `{name}`; give the kernel that name, or name its \
             function by `CudaSource::entry`",
            declared.join(", ")
        ),
    })
}

/// The names of the `__global__` functions, in order.
fn kernels(text: &str) -> Vec<&str> {
    let (mut names, mut rest) = (Vec::new(), text);
    while let Some((at, word)) = find_in_code(rest, &["__global__"]) {
        rest = &rest[at + word.len()..];
        names.extend(function_name(rest).filter(|name| !names.contains(name)));
    }
    names
}

/// The name before the first parenthesis, except for those of attributes.
fn function_name(mut text: &str) -> Option<&str> {
    loop {
        let at = text.find(['(', ';', '{'])?;
        let before = text[..at].trim_end();
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let start = before.rfind(|letter| !is_word(letter)).map_or(0, |before| before + 1);
        let name = &before[start..];
        if !name.starts_with("__") {
            return Some(name).filter(|name| !name.is_empty() && text[at..].starts_with('('));
        }
        text = text[at..].split_once(')')?.1;
    }
}

#[cfg(test)]
mod tests {
    use super::fault;

    const SOURCE: &str = r#"
        // __global__ void commented(float *x);
        extern "C" __global__ void __launch_bounds__(64) blur(float *x) {}
        template <typename T> __global__ void scale(T *x) {}
    "#;

    #[test]
    fn a_kernel_that_the_source_lacks_is_named_beside_those_that_it_has() {
        let said = fault(SOURCE, "ns::sharpen<float>", &[]).expect("there is none");
        assert!(said.contains("declares `blur`, `scale`, and no `sharpen`"), "{said}");
        let said = fault("int x;", "sharpen", &[]).expect("there is none");
        assert!(said.contains("no `__global__` function; declare `extern"), "{said}");
    }

    #[test]
    fn names_that_may_be_declared_are_left_to_the_compiler() {
        for entry in ["blur", "scale<float>", "ns::scale<ns::Pair>"] {
            assert_eq!(fault(SOURCE, entry, &[]), None);
        }
        assert_eq!(fault(SOURCE, "sharpen", &["-DNAME=sharpen".into()]), None);
        assert_eq!(fault("#define F(x) x##x", "sharpensharpen", &[]), None);
    }
}
