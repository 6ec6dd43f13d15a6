//! The kernels of a source.

#![forbid(unsafe_code)]

use std::collections::HashMap;

use crate::preprocess::{Plain, complaint};
use crate::types::{self, Layout, Names};

/// A token and its location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    line: usize,
}

impl Token {
    /// A token without a location.
    pub(crate) fn bare(text: &str) -> Self {
        Self { text: text.to_owned(), line: 0 }
    }
}

/// The declaration of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) is_c: bool,
    /// The names of the template parameters; empty if it is not a template.
    pub(crate) template: Vec<String>,
    /// The tokens of each parameter's type.
    pub(crate) parameters: Vec<Vec<String>>,
    pub(crate) max_threads: Option<u32>,
    place: (String, usize),
}

/// The declarations of a source.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) names: Names,
}

/// Finds kernels, structs and aliases.
pub(crate) fn read(plain: &Plain) -> Result<Source, String> {
    let tokens = tokens(plain);
    let names = names(&tokens);
    let mut kernels = Vec::new();
    for (index, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "__global__")
    {
        let place = plain
            .lines
            .get(token.line)
            .map_or_else(|| (String::new(), 0), |line| (line.file.clone(), line.number));
        let kernel = kernel(&tokens, index, place.clone());
        kernels.push(kernel.ok_or_else(|| {
            complaint(&place.0, place.1, "a __global__ function is `void name(parameters)`")
        })?);
    }
    Ok(Source { kernels, names })
}

impl Kernel {
    /// The layouts of the parameters, and the symbol of the kernel, with `arguments` as its
    /// template arguments.
    pub(crate) fn lower(
        &self,
        arguments: &[Vec<String>],
        names: &Names,
    ) -> Result<(String, Vec<Layout>), String> {
        let mut names = names.clone();
        names.aliases.extend(self.template.iter().cloned().zip(arguments.iter().cloned()));
        let mut layouts = Vec::new();
        let mut symbol = format!("_Z{}{}", self.name.len(), self.name);
        if !self.template.is_empty() {
            let known = |words: &Vec<String>| {
                types::read(words, &names).map_or_else(|| words.concat(), |known| known.symbol)
            };
            symbol.push_str(&format!("I{}Ev", arguments.iter().map(known).collect::<String>()));
        }
        for words in &self.parameters {
            let unknown = || {
                complaint(
                    &self.place.0,
                    self.place.1,
                    &format!("identifier \"{}\" is undefined", words.join(" ")),
                )
            };
            let known = types::read(words, &names).ok_or_else(unknown)?;
            layouts.push(known.layout);
            symbol.push_str(&known.symbol);
        }
        if self.parameters.is_empty() {
            symbol.push('v');
        }
        Ok((if self.is_c { self.name.clone() } else { symbol }, layouts))
    }
}

/// Splits a text into words, numbers and single signs; `::` is one token. Macros are replaced once.
fn tokens(plain: &Plain) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (line, text) in plain.lines.iter().enumerate() {
        for word in words(&text.text) {
            let replaced = plain.macros.get(&word).map(|text| words(text));
            tokens.extend(
                replaced.unwrap_or_else(|| vec![word]).into_iter().map(|text| Token { text, line }),
            );
        }
    }
    tokens
}

/// The words of a text; a quoted text is one word.
pub(crate) fn words(text: &str) -> Vec<String> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |length| length + 2),
            ':' if rest.starts_with("::") => 2,
            _ if is_word(first) => rest.find(|character| !is_word(character)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        words.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    words
}

/// The kernel whose `__global__` is at `index`.
fn kernel(tokens: &[Token], index: usize, place: (String, usize)) -> Option<Kernel> {
    let mut max_threads = None;
    let mut cursor = index + 1;
    let mut name = None;
    loop {
        let text = tokens.get(cursor)?.text.as_str();
        match text {
            "__launch_bounds__" => {
                max_threads = tokens.get(cursor + 2)?.text.parse().ok();
                cursor = closing(tokens, cursor + 1)? + 1;
            }
            "(" => break,
            ";" | "{" => return None,
            _ => {
                name = Some(text.to_owned());
                cursor += 1;
            }
        }
    }
    let end = closing(tokens, cursor)?;
    let parameters =
        split(&tokens[cursor + 1..end]).into_iter().map(type_of_parameter).collect::<Vec<_>>();
    let is_nothing = parameters == [vec!["void".to_owned()]];
    let before = statement_before(tokens, index);
    Some(Kernel {
        name: name?,
        is_c: is_c(tokens, index),
        template: template_names(before),
        parameters: if is_nothing { Vec::new() } else { parameters },
        max_threads,
        place,
    })
}

/// The index of the closing bracket that belongs to the bracket at `open`.
fn closing(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "{" => depth += 1,
            ")" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// Splits at commas outside brackets.
pub(crate) fn split(tokens: &[Token]) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    let mut depth = 0_i32;
    let mut starts = true;
    for token in tokens {
        match token.text.as_str() {
            "<" | "(" | "[" => depth += 1,
            ">" | ")" | "]" => depth -= 1,
            "," if depth == 0 => {
                starts = true;
                continue;
            }
            _ => {}
        }
        if starts {
            parts.push(Vec::new());
            starts = false;
        }
        parts.last_mut().into_iter().for_each(|part| part.push(token.text.clone()));
    }
    parts
}

/// A parameter without its name and default, such as `const float* __restrict__ x = 0`; `float x[]`
/// is a pointer.
fn type_of_parameter(mut words: Vec<String>) -> Vec<String> {
    words.truncate(words.iter().position(|word| word == "=").unwrap_or(words.len()));
    let is_array = words.iter().position(|word| word == "[");
    words.truncate(is_array.unwrap_or(words.len()));
    let is_name = |word: &String| {
        word.chars().next().is_some_and(|first| first.is_alphabetic() || first == '_')
    };
    let has_type = words.iter().filter(|word| is_name(word) && *word != "const").count() > 1;
    let last_names = words.last().is_some_and(is_name) && !is_keyword(words.last());
    if has_type && last_names {
        words.pop();
    }
    if is_array.is_some() {
        words.push("*".to_owned());
    }
    words
}

/// Whether the word is the end of a type, and not the name of a parameter.
fn is_keyword(word: Option<&String>) -> bool {
    let keywords = [
        "const",
        "int",
        "char",
        "short",
        "long",
        "float",
        "double",
        "unsigned",
        "signed",
        "bool",
        "__restrict__",
        "restrict",
    ];
    word.is_some_and(|word| keywords.contains(&word.as_str()))
}

/// The tokens of the declaration before `index`.
fn statement_before(tokens: &[Token], index: usize) -> &[Token] {
    let start =
        tokens[..index].iter().rposition(|token| matches!(token.text.as_str(), ";" | "}" | "{"));
    &tokens[start.map_or(0, |start| start + 1)..index]
}

/// Whether `extern "C"` precedes the declaration, or encloses it as a block.
fn is_c(tokens: &[Token], index: usize) -> bool {
    let is_extern = |at: usize| {
        tokens[at].text == "extern" && tokens.get(at + 1).is_some_and(|token| token.text == "\"C\"")
    };
    let statement_start = index - statement_before(tokens, index).len();
    let directly = (statement_start..index).any(is_extern);
    let opens_around = |at: usize| {
        is_extern(at)
            && tokens.get(at + 2).is_some_and(|token| token.text == "{")
            && closing(tokens, at + 2).is_none_or(|end| end > index)
    };
    directly || (0..index).any(opens_around)
}

/// The names of template parameters: T and N in `template <typename T, int N>`.
fn template_names(declaration: &[Token]) -> Vec<String> {
    let Some(start) = declaration.iter().position(|token| token.text == "template") else {
        return Vec::new();
    };
    let inside: Vec<Token> = declaration[start + 1..]
        .iter()
        .skip(1)
        .take_while(|token| token.text != ">")
        .cloned()
        .collect();
    split(&inside).into_iter().filter_map(|words| words.last().cloned()).collect()
}

/// Collects structs, typedefs and aliases in the order of the source.
fn names(tokens: &[Token]) -> Names {
    let mut names = Names { aliases: HashMap::new(), structs: HashMap::new() };
    for index in 0..tokens.len() {
        let until_end = || {
            tokens[index + 1..]
                .iter()
                .take_while(|token| token.text != ";")
                .map(|token| token.text.clone())
                .collect::<Vec<_>>()
        };
        match tokens[index].text.as_str() {
            "struct" if tokens.get(index + 2).is_some_and(|token| token.text == "{") => {
                let layout = closing(tokens, index + 2)
                    .and_then(|end| layout(&tokens[index + 3..end], &names));
                names.structs.extend(layout.map(|layout| (tokens[index + 1].text.clone(), layout)));
            }
            "typedef" => {
                let mut words = until_end();
                let name = words.pop();
                names.aliases.extend(name.map(|name| (name, words)));
            }
            "using" => {
                let words = until_end();
                if let Some(equals) =
                    words.iter().position(|word| word == "=").filter(|equals| *equals == 1)
                {
                    names.aliases.insert(words[0].clone(), words[equals + 1..].to_vec());
                }
            }
            _ => {}
        }
    }
    names
}

/// The layout of fields in order, each at its alignment.
fn layout(fields: &[Token], names: &Names) -> Option<Layout> {
    let (mut end_bytes, mut alignment) = (0_usize, 1);
    for field in fields.split(|token| token.text == ";").filter(|field| !field.is_empty()) {
        let words: Vec<String> = field.iter().map(|token| token.text.clone()).collect();
        let count = words
            .iter()
            .position(|word| word == "[")
            .and_then(|open| words.get(open + 1)?.parse().ok())
            .unwrap_or(1);
        let declared: Vec<String> = words.iter().take_while(|word| *word != "[").cloned().collect();
        let known = types::read(&type_of_parameter(declared), names)?.layout;
        end_bytes = end_bytes.next_multiple_of(known.alignment) + known.len_bytes * count;
        alignment = alignment.max(known.alignment);
    }
    Some(Layout {
        len_bytes: end_bytes.next_multiple_of(alignment).max(1),
        alignment,
        letter: None,
    })
}
