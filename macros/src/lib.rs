//! The attributes and derives of the crate `resident`, which exports and documents them.

mod element;

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Limits the bytes that a function may copy: `#[resident::budget(to_host = 0)]`. The arguments are
/// `to_device`, `to_host` and `between_devices`, each at most once, with an expression of type
/// `u64`; `exactly` makes the limits exact. The function panics if it spends more, with the call
/// sites that spent it: see `resident::Budget`. Copies by other threads do not count, unless they
/// run in a scope of this one.
///
/// It is meant for tests. The attribute stands above or below `#[test]`. An `async fn` is refused,
/// since other tasks may run while it waits.
///
/// ```ignore
/// #[test]
/// #[resident::budget(to_device = 4000, to_host = 0)]
/// fn a_step_uploads_its_input_once() {
///     // ..
/// }
/// ```
#[proc_macro_attribute]
pub fn budget(limits: TokenStream, function: TokenStream) -> TokenStream {
    expand(limits, function).unwrap_or_else(error)
}

/// Makes a struct of elements an `Element` itself, so that arrays can have records
/// of it. The struct has `#[repr(C)]`, as the same struct in CUDA C, or `#[repr(transparent)]`, and
/// is `Clone` and `Copy`:
///
/// ```ignore
/// #[repr(C)]
/// #[derive(Clone, Copy, resident::Element)]
/// struct Particle { position: [f32; 3], mass: f32 }
/// ```
///
/// It implements `bytemuck::Pod` and `Zeroable` of `resident::bytemuck`, and the crate needs no
/// dependency on `bytemuck`. A program does not compile if
///
/// - a field is no element, such as a `bool`, a reference or an enum,
/// - there is padding between fields or after the last, whose bytes would have no value,
/// - the struct has no fixed layout, or is an enum or a union,
/// - the struct has generic parameters, or a `where` clause before its fields.
///
/// In a kernel's source the record is a struct with the same fields in the same order:
/// `struct Particle { float position[3]; float mass; };`
#[proc_macro_derive(Element)]
pub fn derive_element(record: TokenStream) -> TokenStream {
    element::expand(record)
}

fn error(message: String) -> TokenStream {
    format!("::core::compile_error!({message:?});").parse().unwrap_or_default()
}

fn expand(limits: TokenStream, function: TokenStream) -> Result<TokenStream, String> {
    let calls = limit_calls(limits)?;
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let is_word = |token: &TokenTree, word: &str| token.to_string() == word;
    if tokens.iter().any(|token| is_word(token, "async")) {
        return Err("`budget` is for functions that are not `async`: other tasks may run while \
                    they wait; use `Budget::enforce` around what they call"
            .to_owned());
    }
    if !tokens.iter().any(|token| is_word(token, "fn")) {
        return Err("`budget` is for functions".to_owned());
    }
    let Some(TokenTree::Group(body)) = tokens.pop() else {
        return Err("`budget` is for functions with a body".to_owned());
    };
    let output = output_of(&tokens)?;
    tokens.push(TokenTree::Group(within_budget(&calls, &output, &body)?));
    Ok(tokens.into_iter().collect())
}

/// The calls of `Budget`'s methods: `to_host = 0` is `.to_host(0)`.
fn limit_calls(limits: TokenStream) -> Result<String, String> {
    const NAMES: [&str; 3] = ["to_device", "to_host", "between_devices"];
    let mut calls = String::new();
    let mut known = Vec::new();
    for limit in split_at_commas(limits) {
        let mut tokens = limit.into_iter();
        let name = tokens.next().map(|token| token.to_string()).unwrap_or_default();
        let equals = tokens.next().map(|token| token.to_string());
        let value: TokenStream = tokens.collect();
        let is_last = equals.is_none();
        if known.contains(&name) {
            return Err(format!("`{name}` is given twice"));
        }
        match (&*name, equals.as_deref()) {
            ("exactly", None) if is_last => calls += ".exactly()",
            (limit, Some("=")) if NAMES.contains(&limit) && !value.is_empty() => {
                calls += &format!(".{limit}({value})");
            }
            _ => {
                return Err(format!(
                    "`{name}` is no limit: write `to_device = BYTES`, `to_host = BYTES`, \
                     `between_devices = BYTES` or `exactly`"
                ));
            }
        }
        known.push(name);
    }
    if !known.iter().any(|name| NAMES.contains(&&**name)) {
        return Err("`budget` needs a limit, such as `to_host = 0`".to_owned());
    }
    Ok(calls)
}

fn split_at_commas(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(it) if it.as_char() == ',');
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let parts = tokens.split(is_comma).map(<[TokenTree]>::to_vec);
    parts.filter(|part| !part.is_empty()).collect()
}

/// The function's return type: what follows the parameters and `->`, up to `where` or the body.
fn output_of(signature: &[TokenTree]) -> Result<String, String> {
    let words: Vec<String> = signature.iter().map(TokenTree::to_string).collect();
    let name = words.iter().position(|word| word == "fn").map_or(0, |index| index + 2);
    let parameters = name + generics_len(words.get(name..).unwrap_or_default());
    let rest = words.get(parameters + 1..).unwrap_or_default();
    if !matches!(rest, [first, second, ..] if first == "-" && second == ">") {
        return Ok("()".to_owned());
    }
    let output = &signature[parameters + 3..];
    let len = output.iter().take_while(|token| token.to_string() != "where").count();
    if output[..len].iter().any(|token| token.to_string() == "impl") {
        return Err("`budget` is for functions that name what they return, not `impl`; use \
                    `Budget::enforce` in the function"
            .to_owned());
    }
    Ok(output[..len].iter().cloned().collect::<TokenStream>().to_string())
}

/// The number of tokens from `<` to its `>`; 0 if there are none. The `>` of `->` closes nothing.
fn generics_len(words: &[String]) -> usize {
    let mut depth = 0_usize;
    for (index, word) in words.iter().enumerate() {
        match &**word {
            "<" => depth += 1,
            ">" if index > 0 && words[index - 1] == "-" => {}
            ">" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if index == 0 { 0 } else { index + 1 };
        }
    }
    0
}

/// The body inside of `Budget::enforce`. Its own tokens are kept, with the lines where they stand.
fn within_budget(calls: &str, output: &str, body: &Group) -> Result<Group, String> {
    let parse = |text: &str| -> Result<TokenStream, String> {
        text.parse().map_err(|error| format!("`budget`: {error}"))
    };
    let mut closure = parse(&format!("|| -> {output}"))?;
    closure.extend([TokenTree::Group(body.clone())]);
    let mut tokens = parse(&format!("match ::resident::Budget::new(){calls}.enforce"))?;
    tokens.extend([TokenTree::Group(Group::new(Delimiter::Parenthesis, closure))]);
    tokens.extend(parse(
        "{
            ::core::result::Result::Ok(value) => value,
            ::core::result::Result::Err(error) => ::core::panic!(\"{error}\"),
        }",
    )?);
    Ok(Group::new(Delimiter::Brace, tokens))
}
