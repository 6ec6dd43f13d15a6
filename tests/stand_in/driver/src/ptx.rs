//! Reads the names and parameters of the kernels from a module's PTX, and nothing else.

#![forbid(unsafe_code)]

use crate::code::INVALID_PTX;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::entry::{Entry, Slot};

/// The contents of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ptx {
    pub(crate) entries: Vec<Entry>,
    /// The PTX version: 88 for 8.8.
    pub(crate) version: i32,
    /// The target architecture: 90 for sm_90a.
    pub(crate) target: i32,
}

/// Reads a module. Returns CUDA_ERROR_INVALID_IMAGE for data that is not text, and
/// CUDA_ERROR_INVALID_PTX for text that is not PTX.
pub(crate) fn parse(image: &[u8]) -> Outcome<Ptx> {
    let text = std::str::from_utf8(image).map_err(|_| Code::INVALID_IMAGE)?;
    let is_text =
        text.chars().all(|character| !character.is_control() || character.is_whitespace());
    if text.trim().is_empty() || !is_text {
        return Err(Code::INVALID_IMAGE);
    }
    read(&without_comments(text)).ok_or(INVALID_PTX)
}

fn read(text: &str) -> Option<Ptx> {
    let version = text.split(".version").nth(1)?.split_whitespace().next()?;
    let (major, minor) = version.split_once('.')?;
    let version = major.parse::<i32>().ok()? * 10 + minor.parse::<i32>().ok()?;
    let target = text
        .split(".target")
        .nth(1)?
        .split([',', ' ', '\n', '\r', '\t'])
        .find(|word| !word.is_empty())?;
    let target = target.strip_prefix("sm_")?.trim_end_matches(['a', 'f']).parse().ok()?;
    let entries = text.split(".entry").skip(1).map(entry).collect::<Option<Vec<Entry>>>()?;
    Some(Ptx { entries, version, target })
}

/// `name( .param ..., .param ... ) .maxntid 256, 1, 1 { ...`
fn entry(text: &str) -> Option<Entry> {
    let head = text.split('{').next()?;
    let head = head.trim_start();
    let name_end = head
        .find(|character: char| character == '(' || character.is_whitespace())
        .unwrap_or(head.len());
    let (name, rest) = head.split_at(name_end);
    let is_name = !name.is_empty()
        && name
            .chars()
            .all(|character| character.is_alphanumeric() || matches!(character, '_' | '$'));
    let inside = match rest.trim_start().strip_prefix('(') {
        Some(list) => list.split_once(')')?.0,
        None => "",
    };
    let mut parameters = Vec::new();
    for declaration in
        inside.split(',').map(str::trim).filter(|declaration| !declaration.is_empty())
    {
        let end_bytes =
            parameters.last().map_or(0, |last: &Slot| last.offset_bytes + last.len_bytes);
        let (len_bytes, alignment) = size_of_parameter(declaration)?;
        parameters.push(Slot { offset_bytes: end_bytes.next_multiple_of(alignment), len_bytes });
    }
    is_name.then(|| Entry { name: name.to_owned(), parameters, max_threads: max_threads(rest) })
}

/// `.param .u64 x`, `.param .u64 .ptr .global .align 4 x`, `.param .align 8 .b8 x[24]`: bytes and
/// alignment.
fn size_of_parameter(declaration: &str) -> Option<(usize, usize)> {
    let mut words = declaration.split_whitespace().peekable();
    if words.next()? != ".param" {
        return None;
    }
    let mut alignment = None;
    if words.peek() == Some(&".align") {
        words.next();
        alignment = words.next()?.parse().ok();
    }
    let kind = words.next()?;
    let digits: String = kind.chars().filter(char::is_ascii_digit).collect();
    let element_bytes = digits.parse::<usize>().ok()?.div_ceil(8);
    let count = match words.last()?.split_once('[') {
        Some((_, count)) => count.trim_end_matches(']').parse().ok()?,
        None => 1,
    };
    let alignment = alignment.unwrap_or(element_bytes);
    (alignment.is_power_of_two() && element_bytes > 0).then_some((element_bytes * count, alignment))
}

fn max_threads(head: &str) -> Option<u32> {
    let numbers = head.split(".maxntid").nth(1)?;
    let is_number =
        |text: &&str| !text.is_empty() && text.chars().all(|character| character.is_ascii_digit());
    let numbers =
        numbers.split([',', ' ', '\n', '\t']).filter(|text| !text.is_empty()).take_while(is_number);
    numbers.map(|number| number.parse::<u32>().ok()).product()
}

fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        plain.push_str(&rest[..start]);
        let end = if rest[start..].starts_with("//") { "\n" } else { "*/" };
        let length =
            rest[start..].find(end).map_or(rest.len() - start, |length| length + end.len());
        plain.push('\n');
        rest = &rest[start + length..];
    }
    plain.push_str(rest);
    plain
}
