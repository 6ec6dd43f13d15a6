//! The texts of kernels with planted defects, and of correct ones.
//!
//! ```text
//! == a_read_without_a_barrier <<<4, 64>>> Race
//! __shared__ float tile[64];
//! if (threadIdx.x < 32) tile[threadIdx.x] = in[i];
//! if (!bad) __syncthreads();
//! if (threadIdx.x >= 32) out[i] = tile[63 - threadIdx.x]; // here
//! ```
//!
//! This is a kernel whose defect its last parameter turns on: `const float *in, float *io, float
//! *out, int bad`, with 256 elements each. The defect is on the line that ends with `// here`; the
//! grid is `<<<4, 64>>>` unless another one is given. `strict Race` has it on a strict device
//! alone, and `correct` has none. What `$before{..}` has stands before the kernel.
//!
//! ```text
//! == sums(in out) float|double <<<4, 64>>> Race, OutOfBounds
//! __shared__ T tile[64];
//! tile[t] = in[$2{i + 1}{i}];
//! $1{}{__syncthreads();}
//! ```
//!
//! This is a kernel for each type, and as many with one defect as there are kinds: `$2{bad}{good}`
//! is `bad` in the second of them. `$1{a}2{b}{good}` has a defect for either. `@` is the kernel's
//! name.

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
    pub(crate) name: String,
    /// Such as `in out`. `None` for those that have a parameter `bad`.
    pub(crate) parameters: Option<String>,
    types: Vec<String>,
    pub(crate) grid: Grid,
    kinds: Vec<FindingKind>,
    pub(crate) is_strict: bool,
    body: String,
}

/// All that a part of the suite has.
pub(crate) fn texts(part: &str) -> Vec<Text> {
    let mut pieces = part.split("\n== ");
    pieces.next();
    pieces.map(Text::parse).collect()
}

/// The source of all their kernels.
pub(crate) fn source<'a>(texts: impl IntoIterator<Item = &'a Text>) -> String {
    let kernels = texts.into_iter().flat_map(Text::kernels);
    std::iter::once(PRELUDE.to_owned()).chain(kernels).collect()
}

impl Text {
    fn parse(piece: &str) -> Self {
        let (head, body) = piece.split_once('\n').expect("a body");
        match head.split_once('(') {
            None => Self::with_a_switch(head, body),
            Some((name, rest)) => Self::with_types(name, rest, body),
        }
    }

    fn with_a_switch(head: &str, body: &str) -> Self {
        let (name, rest) = head.split_once(' ').expect("a kind");
        let (grid, kind) = match rest.strip_prefix("<<<") {
            None => ("4, 64", rest),
            Some(rest) => rest.split_once(">>> ").expect("`>>>`"),
        };
        let strict = kind.strip_prefix("strict ");
        let kind = Some(strict.unwrap_or(kind)).filter(|kind| *kind != "correct");
        Self {
            name: name.to_owned(),
            parameters: None,
            types: vec!["float".to_owned()],
            grid: parse_grid(grid),
            kinds: kind.into_iter().map(crate::kind).collect(),
            is_strict: strict.is_some(),
            body: body.to_owned(),
        }
    }

    fn with_types(name: &str, rest: &str, body: &str) -> Self {
        let (parameters, rest) = rest.split_once(')').expect("`)`");
        let (types, rest) = rest.split_once("<<<").expect("a grid");
        let (grid, kinds) = rest.split_once(">>>").expect("`>>>`");
        Self {
            name: name.to_owned(),
            parameters: Some(parameters.to_owned()),
            types: types.trim().split('|').map(str::to_owned).collect(),
            grid: parse_grid(grid),
            kinds: kinds.split(',').map(|name| crate::kind(name.trim())).collect(),
            is_strict: false,
            body: body.to_owned(),
        }
    }

    /// What is launched: each type with 0, which has no defect, and each defect.
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
        match self.parameters {
            None => self.name.clone(),
            Some(_) => format!("{}_{type_name}_{variant}", self.name),
        }
    }

    /// The line of the source on which a defect is, if the text says that.
    pub(crate) fn line_in(&self, source: &str) -> Option<u32> {
        let kernel = self.parameters.is_none().then(|| self.kernel_with_a_switch())?;
        let before = &source[..source.find(&kernel).expect("it is there")];
        let line = kernel.lines().position(|line| line.ends_with("// here")).expect("a marker");
        Some((before.matches('\n').count() + line + 1) as u32)
    }

    /// What is found in the first variant with a defect, if there is one.
    pub(crate) fn kind_of_first(&self) -> Option<FindingKind> {
        self.kinds.first().copied()
    }

    /// What is found in a variant. `None` if it is correct.
    pub(crate) fn kind(&self, variant: usize) -> Option<FindingKind> {
        variant.checked_sub(1).map(|index| self.kinds[index])
    }

    fn kernels(&self) -> Vec<String> {
        match &self.parameters {
            None => vec![self.kernel_with_a_switch()],
            Some(names) => {
                let one = |(kind, variant)| self.kernel(names, kind, variant);
                self.variants().map(one).collect()
            }
        }
    }

    /// What stands before the kernel, and its body.
    fn parts(&self) -> (&str, &str) {
        match self.body.strip_prefix("$before{") {
            None => ("", &*self.body),
            Some(rest) => {
                let (before, body) = rest.split_at(closing_brace(rest));
                (before, &body[1..])
            }
        }
    }

    /// In a namespace, so that what stands before it is its own.
    fn kernel_with_a_switch(&self) -> String {
        let ((before, body), name) = (self.parts(), &self.name);
        format!(
            "\nnamespace of_{name} {{\n{before}\n\
             extern \"C\" __global__ void \
             {name}(const float *in, float *io, float *out, int bad) {{\n\
             int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             (void)i;\n{body}\n}}\n}}\n"
        )
    }

    fn kernel(&self, names: &str, type_name: &str, variant: usize) -> String {
        let name = self.kernel_name(type_name, variant);
        let (before, body) = self.parts();
        let [before, body] = [before, body].map(|text| chosen(text, variant).replace('@', &name));
        let parameters = declared_parameters(names);
        format!(
            "\n#define T {type_name}\n{before}\n\
             extern \"C\" __global__ void {name}({parameters}, Settings s, int n) {{\n\
             int t = threadIdx.x, b = blockIdx.x, i = b * blockDim.x + t;\n\
             (void)i; (void)b; (void)t; (void)s; (void)n;\n\
             {body}\n}}\n#undef T\n"
        )
    }
}

fn declared_parameters(all: &str) -> String {
    let is_view = all.starts_with("view") || all.starts_with("part");
    let one = |name: &str| match (name, is_view) {
        ("in", false) => "const T *in".to_owned(),
        ("in", true) => "resident::View2<const T> in".to_owned(),
        (name, false) => format!("T *{name}"),
        (name, true) => format!("resident::View2<T> {name}"),
    };
    let names = all.split(' ').filter(|name| !matches!(*name, "view" | "part"));
    names.map(one).collect::<Vec<_>>().join(", ")
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
