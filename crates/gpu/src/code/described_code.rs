//! What compiled code tells of its source: the types of its kernels' parameters, which each source
//! lists (`source`), and its variables. PTX has both in text, AMD's code objects as symbols.

use super::compile::Compiled;
use resident_code::c_declaration::identifier;
use resident_code::code_object;
use resident_code::parameter_types::ParameterType;

/// What the names of descriptions begin with.
pub(super) const PREFIX: &str = "resident_parameters_";

/// How names of the library's own constants begin, which NVRTC 11 leaves in the code.
const OWN: &str = "_ZN8resident";

/// The descriptions of kernels by the entries that name them, and the names of variables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct DescribedCode {
    /// By the identifier nearest to the entry.
    parameters: Vec<(String, Vec<ParameterType>)>,
    pub(super) variables: Vec<String>,
}

impl DescribedCode {
    pub(super) fn of(code: &Compiled) -> Self {
        let mut described = Self::default();
        if code.ptx.is_empty() {
            for (name, bytes) in code_object::variables(&code.machine_code) {
                described.add(&name, &bytes);
            }
        } else {
            for line in String::from_utf8_lossy(&code.ptx).lines() {
                if let Some((name, bytes)) = variable(line) {
                    described.add(name, &bytes);
                }
            }
        }
        described
    }

    fn add(&mut self, name: &str, bytes: &[u8]) {
        match name.strip_prefix(PREFIX) {
            Some(kernel) => {
                self.parameters.push((kernel.to_owned(), ParameterType::read_all(bytes)));
            }
            None if name.starts_with(OWN) => {}
            None => self.variables.push(name.to_owned()),
        }
    }

    /// The types of a kernel's parameters; none if the code does not tell them.
    pub(super) fn parameters(&self, entry: &str) -> &[ParameterType] {
        let name = identifier(entry);
        let found = self.parameters.iter().find(|(kernel, _)| *kernel == name);
        found.map_or(&[], |(_, types)| types)
    }
}

/// The variable that a line of PTX defines, and its bytes: `.visible .global .align 4 .b8 x[8] =
/// {1, 2};`. Those behind the last that is listed are 0. Variables of other types have no bytes.
fn variable(line: &str) -> Option<(&str, Vec<u8>)> {
    let line = line.trim();
    let is_variable = |word: &str| matches!(word, ".global" | ".const");
    let start = line.split_whitespace().take(2).any(is_variable);
    if !start || line.starts_with("//") || line.starts_with(".extern") {
        return None;
    }
    let (head, values) = line.split_once('=').unwrap_or((line, ""));
    let last = head.trim().trim_end_matches(';').split_whitespace().next_back()?;
    let (name, len) = last.split_once('[').unwrap_or((last, ""));
    // Texts, and what the compiler keeps for itself.
    if name.starts_with('$') || name.starts_with('.') {
        return None;
    }
    let len: usize = len.trim_end_matches(']').parse().unwrap_or_default();
    if !name.starts_with(PREFIX) || len > 1 << 12 {
        return Some((name, Vec::new()));
    }
    let listed = values.trim().trim_start_matches('{').trim_end_matches([';', '}']);
    let numbers = listed.split(',').filter_map(|number| number.trim().parse::<u8>().ok());
    let mut bytes: Vec<u8> = numbers.collect();
    bytes.resize(len, 0);
    Some((name, bytes))
}

#[cfg(test)]
mod tests {
    use super::{Compiled, DescribedCode};

    #[test]
    fn ptx_tells_of_parameters_and_variables() {
        let text = ".visible .entry f(.param .u64 x)
.global .align 4 .b8 resident_parameters_f[16] = {1, 1, 1, 0, 4};
.global .align 4 .b8 resident_parameters_none[8];
.visible .const .align 4 .b8 coef[8];
.visible .global .align 4 .u32 counter = 3;
.global .align 1 .b8 $str[3] = {37, 100, 0};
.extern .shared .align 16 .b8 tile[];
// .global .u32 commented;";
        let described = DescribedCode::of(&Compiled::ptx(text));
        assert_eq!(described.variables, ["coef", "counter"]);
        assert_eq!(described.parameters("f").len(), 1);
        assert!(described.parameters("none").is_empty() && described.parameters("g").is_empty());
    }
}
