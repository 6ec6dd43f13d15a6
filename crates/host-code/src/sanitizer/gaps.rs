//! Gaps between the variables of checked code, so that an access beyond one is none of the next.

/// The bytes before each variable, at least.
const GAP_BYTES: usize = 64;

/// The sections of variables.
const SECTIONS: [&str; 4] = [".bss", ".data", ".tbss", ".tdata"];

/// Assembly text with a gap before each label in a section of variables, which keeps alignments.
pub(crate) fn with_gaps(assembly: &str) -> String {
    let mut text = String::with_capacity(assembly.len() + assembly.len() / 64);
    let (mut is_in_variables, mut alignment) = (false, 1);
    for line in assembly.split_inclusive('\n') {
        let words = line.trim();
        if let Some(section) = section(words) {
            is_in_variables = SECTIONS.iter().any(|name| is_part(section, name));
        } else if let Some(bytes) = aligned_to(words) {
            alignment = bytes;
        } else if is_in_variables && !line.starts_with(['\t', ' ', '.', '#']) && is_label(words) {
            let gap_bytes = GAP_BYTES.next_multiple_of(alignment);
            text.push_str(&format!("\t.zero\t{gap_bytes}\n"));
            alignment = 1;
        }
        text.push_str(line);
    }
    text
}

/// The section that begins at a line.
fn section(words: &str) -> Option<&str> {
    let first = words.split([' ', '\t']).next()?;
    match first {
        ".text" | ".data" | ".bss" => Some(first),
        ".section" => words[first.len()..].trim_start().split(',').next(),
        _ => None,
    }
}

/// Whether a section has this name, or is such a one of one variable.
fn is_part(section: &str, name: &str) -> bool {
    section.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The alignment, in bytes, that a line asks for.
fn aligned_to(words: &str) -> Option<usize> {
    let number = |text: &str| text.trim().split(',').next()?.trim().parse::<usize>().ok();
    match words.strip_prefix(".p2align") {
        Some(rest) => number(rest).filter(|power| *power < 16).map(|power| 1 << power),
        None => number(words.strip_prefix(".align").or(words.strip_prefix(".balign"))?),
    }
}

fn is_label(words: &str) -> bool {
    words.split('#').next().is_some_and(|code| code.trim_end().ends_with(':'))
}

#[cfg(test)]
mod tests {
    use super::with_gaps;

    #[test]
    fn variables_of_both_compilers_get_gaps_and_code_gets_none() {
        for (given, expected) in [
            (
                "\t.section\t.tbss,\"awT\",@nobits\n\t.align 32\n\t.type\tx, @object\n\
                 x:\n\t.zero\t8\n",
                "\t.section\t.tbss,\"awT\",@nobits\n\t.align 32\n\t.type\tx, @object\n\
                 \t.zero\t64\nx:\n\t.zero\t8\n",
            ),
            ("\t.bss\n\t.p2align\t7, 0x0\nx:\n", "\t.bss\n\t.p2align\t7, 0x0\n\t.zero\t128\nx:\n"),
            ("\t.data\nx: # @x\n", "\t.data\n\t.zero\t64\nx: # @x\n"),
            ("\t.bss\n\t.text\nf:\n.L1:\n", "\t.bss\n\t.text\nf:\n.L1:\n"),
            ("\t.section\t.rodata\nx:\n", "\t.section\t.rodata\nx:\n"),
        ] {
            assert_eq!(with_gaps(given), expected);
        }
    }
}
