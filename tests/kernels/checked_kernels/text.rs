//! The texts of kernels with planted defects.
//!
//! ```text
//! == sums(in out) float|double <<<4, 64>>> Race, OutOfBounds
//! __shared__ T tile[64];
//! tile[t] = in[$2{i + 1}{i}];
//! $1{}{__syncthreads();}
//! ```
//!
//! This is a kernel for each type, and as many with one defect as there are kinds: `$2{bad}{good}`
//! is `bad` in the second of them. `$1{a}2{b}{good}` has a defect for either. `$before{..}` stands
//! before the kernel, and `@` is the kernel's name.

use resident::Grid;
use resident::emulation::FindingKind;

/// What stands before the kernels.
const PRELUDE: &str = r#"
    #include <cuda_fp16.h>
    typedef unsigned char byte;
    struct Settings { int shift; int zero; int rows; int columns; };
"#;

/// One text.
#[derive(Debug)]
pub(crate) struct Text {
    name: String,
    /// Such as `in out`.
    pub(crate) parameters: String,
    types: Vec<String>,
    pub(crate) grid: Grid,
    kinds: Vec<FindingKind>,
    body: String,
}

/// All that a part of the suite has.
pub(crate) fn texts(part: &str) -> Vec<Text> {
    let mut pieces = part.split("\n== ");
    pieces.next();
    pieces.map(Text::parse).collect()
}

/// The source of all their kernels.
pub(crate) fn source(texts: &[Text]) -> String {
    let kernels = texts.iter().flat_map(|text| {
        text.variants().map(|(type_name, variant)| text.kernel(type_name, variant))
    });
    std::iter::once(PRELUDE.to_owned()).chain(kernels).collect()
}

impl Text {
    fn parse(piece: &str) -> Self {
        let (head, body) = piece.split_once('\n').expect("a body");
        let (name, rest) = head.split_once('(').expect("parameters");
        let (parameters, rest) = rest.split_once(')').expect("`)`");
        let (types, rest) = rest.split_once("<<<").expect("a grid");
        let (grid, kinds) = rest.split_once(">>>").expect("`>>>`");
        Self {
            name: name.to_owned(),
            parameters: parameters.to_owned(),
            types: types.trim().split('|').map(str::to_owned).collect(),
            grid: parse_grid(grid),
            kinds: kinds.split(',').map(|name| crate::kind(name.trim())).collect(),
            body: body.to_owned(),
        }
    }

    /// The kernels: each type with 0, which has no defect, and each defect.
    pub(crate) fn variants(&self) -> impl Iterator<Item = (&str, usize)> {
        let all = 0..=self.kinds.len();
        self.types.iter().flat_map(move |name| all.clone().map(move |one| (&**name, one)))
    }

    /// The names of the kernels with a defect.
    pub(crate) fn defects(&self) -> Vec<String> {
        let bad = self.variants().filter(|(_, variant)| *variant > 0);
        bad.map(|(name, variant)| self.kernel_name(name, variant)).collect()
    }

    pub(crate) fn kernel_name(&self, type_name: &str, variant: usize) -> String {
        format!("{}_{type_name}_{variant}", self.name)
    }

    /// What is found in a variant. `None` if it is correct.
    pub(crate) fn kind(&self, variant: usize) -> Option<FindingKind> {
        variant.checked_sub(1).map(|index| self.kinds[index])
    }

    fn kernel(&self, type_name: &str, variant: usize) -> String {
        let name = self.kernel_name(type_name, variant);
        let (before, body) = match self.body.strip_prefix("$before{") {
            None => (String::new(), &*self.body),
            Some(rest) => {
                let (before, body) = rest.split_at(closing_brace(rest));
                (chosen(before, variant).replace('@', &name), &body[1..])
            }
        };
        let body = chosen(body, variant).replace('@', &name);
        let parameters = self.declared_parameters();
        format!(
            "\n#define T {type_name}\n{before}\n\
             extern \"C\" __global__ void {name}({parameters}, Settings s, int n) {{\n\
             int t = threadIdx.x, b = blockIdx.x, i = b * blockDim.x + t;\n\
             (void)i; (void)b; (void)t; (void)s; (void)n;\n\
             {body}\n}}\n#undef T\n"
        )
    }

    fn declared_parameters(&self) -> String {
        let is_view = self.parameters.starts_with("view") || self.parameters.starts_with("part");
        let one = |name: &str| match (name, is_view) {
            ("in", false) => "const T *in".to_owned(),
            ("in", true) => "resident::View2<const T> in".to_owned(),
            (name, false) => format!("T *{name}"),
            (name, true) => format!("resident::View2<T> {name}"),
        };
        let names = self.parameters.split(' ').filter(|name| !matches!(*name, "view" | "part"));
        names.map(one).collect::<Vec<_>>().join(", ")
    }
}

/// `blocks, threads` or `blocks, threads, bytes`, where `2x3` has two axes.
fn parse_grid(text: &str) -> Grid {
    let axes = |text: &str| {
        let mut axes = text.trim().split('x').map(|axis| axis.parse().expect("a number"));
        let mut next = || axes.next().unwrap_or(1_u32);
        (next(), next(), next())
    };
    let mut parts = text.split(',');
    let blocks = axes(parts.next().expect("blocks"));
    let grid = Grid::new(blocks, axes(parts.next().expect("threads")));
    match parts.next() {
        None => grid,
        Some(bytes) => grid.shared_bytes(bytes.trim().parse().expect("a number")),
    }
}

/// A text with the alternatives of a variant.
fn chosen(text: &str, variant: usize) -> String {
    let Some((before, mut rest)) = text.split_once('$') else { return text.to_owned() };
    let mut choice = None;
    loop {
        let (number, behind) = rest.split_once('{').expect("an alternative");
        let (alternative, behind) = behind.split_at(closing_brace(behind));
        rest = &behind[1..];
        let number = number.trim();
        if number.is_empty() || number.parse() == Ok(variant) {
            choice = choice.or(Some(alternative));
        }
        if number.is_empty() {
            let choice = chosen(choice.expect("the last one at least"), variant);
            return format!("{before}{choice}{}", chosen(rest, variant));
        }
    }
}

/// Where the brace closes that was opened before the text.
fn closing_brace(text: &str) -> usize {
    let mut depth = 1;
    let end = text.bytes().position(|byte| {
        depth += i32::from(byte == b'{') - i32::from(byte == b'}');
        depth == 0
    });
    end.expect("a closing brace")
}
