//! The head of PTX: which kernels it holds, and how many bytes each of their parameters takes.

/// One `.entry` with its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    /// Bytes of each parameter; none where the text could not be read.
    pub(super) parameters_bytes: Option<Vec<usize>>,
    /// From the name to the closing bracket, as it stands in the text.
    declaration: &'a str,
}

/// All kernels of a text, in its order. What stands behind `//` is left out.
pub(super) fn entries(text: &str) -> Vec<Entry<'_>> {
    const WORD: &str = ".entry";
    let is_code =
        |at: usize| !text[..at].rsplit('\n').next().is_some_and(|line| line.contains("//"));
    let starts = text.match_indices(WORD).filter(|(at, _)| is_code(*at));
    starts.filter_map(|(at, _)| entry(&text[at + WORD.len()..])).collect()
}

/// What follows `.entry`: a name, and perhaps parameters in brackets.
fn entry(after: &str) -> Option<Entry<'_>> {
    let name_and_on = after.strip_prefix(char::is_whitespace)?.trim_start();
    let end = name_and_on
        .find(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$' | '%')))
        .unwrap_or(name_and_on.len());
    let (name, behind) = name_and_on.split_at(end);
    if name.is_empty() {
        return None;
    }
    let Some(inner) = behind.trim_start().strip_prefix('(') else {
        return Some(Entry { name, parameters_bytes: Some(Vec::new()), declaration: name });
    };
    let Some((list, _)) = inner.split_once(')') else {
        return Some(Entry { name, parameters_bytes: None, declaration: name });
    };
    let declaration_end = list.as_ptr() as usize + list.len() + 1 - name.as_ptr() as usize;
    let parameters = list.split(',').map(str::trim).filter(|parameter| !parameter.is_empty());
    Some(Entry {
        name,
        parameters_bytes: parameters.map(parameter_bytes).collect(),
        declaration: &name_and_on[..declaration_end],
    })
}

/// `.param .align 8 .b8 name[40]` is 40 bytes, `.param .u64 .ptr .global .align 4 name` is 8.
fn parameter_bytes(parameter: &str) -> Option<usize> {
    let mut words = parameter.split_whitespace();
    if words.next()? != ".param" {
        return None;
    }
    let element_bytes = words.find_map(type_bytes)?;
    match parameter.split_once('[') {
        None => Some(element_bytes),
        Some((_, rest)) => {
            rest.split_once(']')?.0.trim().parse::<usize>().ok()?.checked_mul(element_bytes)
        }
    }
}

/// `.f32` is 4 bytes; `.align`, `.ptr` and the like are no types.
fn type_bytes(word: &str) -> Option<usize> {
    let digits = word.strip_prefix('.')?.strip_prefix(['b', 'u', 's', 'f'])?;
    match digits {
        "8" | "16" | "32" | "64" | "128" => digits.parse::<usize>().ok().map(|bits| bits / 8),
        _ => None,
    }
}

/// The declarations alone, to be kept beside machine code: `entries` reads them again.
pub(super) fn declarations(text: &str) -> String {
    entries(text).iter().map(|entry| format!(".entry {}\n", entry.declaration)).collect()
}

#[cfg(test)]
mod tests {
    use super::{declarations, entries};

    const PTX: &str = "
.version 9.5
.target sm_90
.address_size 64

	// .globl	axpy
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0
)
;
.visible .entry axpy(
	.param .f32 axpy_param_0,
	.param .u64 .ptr .global .align 4 axpy_param_1,
	.param .align 8 .b8 axpy_param_2[40],
	.param .u8 axpy_param_3,
	.param .align 16 .b8 axpy_param_4[ 16 ]
)
.maxntid 256, 1, 1
{
	.param .b64 param0;
	ret;
}
	// .globl	_Z5scaleIfEvT_PS0_
.weak .entry _Z5scaleIfEvT_PS0_(
	.param .align 2 .b16 $a[3]
)
{ ret; }
.visible .entry nothing()
{ ret; }
.visible .entry bare
{ ret; }
";

    #[test]
    fn entries_and_the_sizes_of_their_parameters_are_found() {
        let found: Vec<_> =
            entries(PTX).into_iter().map(|entry| (entry.name, entry.parameters_bytes)).collect();
        let expected = [
            ("axpy", Some(vec![4, 8, 40, 1, 16])),
            ("_Z5scaleIfEvT_PS0_", Some(vec![6])),
            ("nothing", Some(vec![])),
            ("bare", Some(vec![])),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn declarations_read_as_the_whole_text_does() {
        let kept = declarations(PTX);
        assert!(!kept.contains("ret;") && kept.len() < PTX.len() / 2);
        let sizes = |text| {
            entries(text)
                .into_iter()
                .map(|entry| (entry.name.to_owned(), entry.parameters_bytes))
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(&kept), sizes(PTX));
    }

    #[test]
    fn what_is_no_ptx_has_no_entries_and_what_cannot_be_read_no_sizes() {
        assert!(
            entries("").is_empty()
                && entries(".entry").is_empty()
                && entries("// .entrypoint of nothing").is_empty()
        );
        assert_eq!(entries(".entry f(.param .texref t)")[0].parameters_bytes, None);
        assert_eq!(entries(".entry f(.reg .u32 t)")[0].parameters_bytes, None);
        assert_eq!(
            entries(".entry f(.param .b8 t[99999999999999999999])")[0].parameters_bytes,
            None
        );
        assert_eq!(
            entries(".entry f(.param .b64 t[9223372036854775807])")[0].parameters_bytes,
            None
        );
        assert_eq!(entries(".entry f(.param .u32 t")[0].parameters_bytes, None, "cut off");
        assert!(entries("// as in .entry f(.param .u32 t)\n").is_empty());
    }
}
