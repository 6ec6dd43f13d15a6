//! What is left out of a library since it uses features that are not there: kernels, and functions
//! of the device with the kernels that may call them. The other kernels of the source run.

use std::ops::Range;

use super::callers::{Replaced, Unusable, unusable_functions};
use super::features::{first_use, line_of};
use resident_code::kernels::definitions;
use resident_code::words::code_only;

/// A kernel or a function that is left out: its name, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) struct LeftOut {
    pub(in super::super) name: String,
    pub(in super::super) reason: String,
}

/// A source without what uses such features, on as many lines.
pub(in super::super) struct Kept {
    pub(in super::super) text: String,
    pub(in super::super) left_out: Vec<LeftOut>,
}

impl LeftOut {
    /// What of a list a text names, such as the entry of a kernel, whose template may have a
    /// function as its argument.
    pub(in super::super) fn named_in<'l>(list: &'l [Self], text: &str) -> Option<&'l Self> {
        let is_separator = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
        list.iter().find(|one| text.split(is_separator).any(|word| word == one.name))
    }
}

/// Another text in place of a part of the source.
struct Replacement {
    part: Range<usize>,
    text: String,
}

/// The source with a declaration in place of each kernel that uses such a feature, or may call a
/// function that does, and with such functions replaced.
pub(in super::super) fn without_features(text: &str, file: &str) -> Kept {
    let code = code_only(text);
    let kernels = definitions(text);
    let parts: Vec<Range<usize>> =
        kernels.iter().map(|kernel| kernel.start..kernel.body.end).collect();
    let functions = unusable_functions(text, &code, &parts);
    let (mut left_out, mut replacements) = (Vec::new(), Vec::new());
    for (kernel, part) in kernels.into_iter().zip(parts) {
        let Some(reason) = kernel_reason(text, &code, part.clone(), &functions) else { continue };
        let declaration = format!("__device__ void resident_left_out_{}();", left_out.len());
        replacements.push(Replacement { part, text: declaration });
        left_out.push(LeftOut { name: kernel.name, reason: format!("{file}:{reason}") });
    }
    for function in &functions {
        let reason = function.reason(text);
        replacements.extend(Replacement::of_function(function, &reason));
        let name = function.name.to_owned();
        left_out.push(LeftOut { name, reason: format!("{file}:{reason}") });
    }
    Kept { text: replaced(text, replacements), left_out }
}

/// Why a kernel is left out, if it is: the line, and what is there.
fn kernel_reason(
    text: &str,
    code: &str,
    kernel: Range<usize>,
    functions: &[Unusable<'_>],
) -> Option<String> {
    if let Some(found) = first_use(text, code, kernel.clone()) {
        return Some(format!("{}: {}", line_of(text, found.at), found.reason("")));
    }
    let called = functions.iter().find(|function| function.is_mentioned(code, kernel.clone()))?;
    Some(called.reason(text))
}

impl Replacement {
    /// Instead of a function. What the library does not see as its caller, such as an operator,
    /// fails the launch that comes there.
    fn of_function(function: &Unusable<'_>, reason: &str) -> Option<Self> {
        match &function.replaced {
            Replaced::Nothing => None,
            Replaced::Body(body) => {
                let reason = reason.replace('\\', "\\\\").replace('"', "\\\"");
                // The file's name is no part of the module's key.
                let text = format!("{{ ::resident::host::left_out(__FILE__ \":{reason}\"); }}");
                Some(Self { part: body.clone(), text })
            }
            Replaced::Whole(part) => Some(Self { part: part.clone(), text: String::new() }),
        }
    }
}

fn replaced(text: &str, mut replacements: Vec<Replacement>) -> String {
    replacements.sort_by_key(|replacement| replacement.part.start);
    let (mut result, mut done) = (String::with_capacity(text.len()), 0);
    for Replacement { part, text: new } in replacements {
        result.push_str(&text[done..part.start]);
        result.push_str(&new);
        result.push_str(&"\n".repeat(text[part.clone()].matches('\n').count()));
        done = part.end;
    }
    result + &text[done..]
}
