//! Unsafe code: the modules that forbid it, and the comments that say why each block is sound.

use std::fs;

use crate::sources::{ALL_CODE, none, root, sources, without_comment};

#[test]
fn the_core_forbids_unsafe_code() {
    let text = fs::read_to_string(root().join("crates/core/src/lib.rs")).expect("it is there");
    let first = text.lines().find(|line| !line.starts_with("//") && !line.is_empty());
    assert_eq!(first, Some("#![forbid(unsafe_code)]"));
}

#[test]
fn a_safety_comment_stands_directly_above_every_unsafe_block_and_impl() {
    let mut found = Vec::new();
    for source in sources(&ALL_CODE) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let code = without_comment(line);
            let opens = code.contains(concat!("unsafe ", "{"))
                || code.trim_start().starts_with(concat!("unsafe ", "impl"));
            if opens && !has_safety_comment(&lines[..index]) && !code.contains("concat!") {
                found.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    none(found);
}

/// Whether a comment directly above begins with SAFETY. Only the beginning of the same statement,
/// or attributes, may be between them.
fn has_safety_comment(above: &[&str]) -> bool {
    let mut lines = above.iter().rev().map(|line| line.trim()).peekable();
    // The statement may begin above, in lines that do not end with the end of a statement or block.
    while lines.peek().is_some_and(|line| {
        !line.starts_with("//") && !line.is_empty() && !line.ends_with([';', '{', '}', ','])
    }) {
        lines.next();
    }
    let comment: Vec<&str> = lines.take_while(|line| line.starts_with("//")).collect();
    comment.iter().any(|line| line.starts_with("// SAFETY:"))
}
