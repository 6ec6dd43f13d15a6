//! The attributes of the crate `resident`, which exports and documents them.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Limits the bytes that a function may copy: `#[resident::budget(to_host = 0)]`. The arguments are
/// `to_device`, `to_host` and `between_devices`, each at most once, with an expression of type
/// `u64`; `exactly` makes the limits exact. The function panics if it spends more, with the call
/// sites that spent it: see `resident::Budget`.
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
    expand(limits, function).unwrap_or_else(|message| {
        format!("::core::compile_error!({message:?});").parse().unwrap_or_default()
    })
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
    let output = output_of(&tokens);
    tokens.push(TokenTree::Group(within_budget(&calls, &output, &body)?));
    Ok(tokens.into_iter().collect())
}

/// The calls of `Budget`'s methods: `to_host = 0` is `.to_host(0)`.
fn limit_calls(limits: TokenStream) -> Result<String, String> {
    const NAMES: [&str; 3] = ["to_device", "to_host", "between_devices"];
    let (mut calls, mut known) = (String::new(), Vec::new());
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
    match known.iter().any(|name| NAMES.contains(&&**name)) {
        true => Ok(calls),
        false => Err("`budget` needs a limit, such as `to_host = 0`".to_owned()),
    }
}

fn split_at_commas(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(it) if it.as_char() == ',');
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let parts = tokens.split(is_comma).map(<[TokenTree]>::to_vec);
    parts.filter(|part| !part.is_empty()).collect()
}

/// The function's return type, from `->` to its `where` or its body.
fn output_of(signature: &[TokenTree]) -> String {
    let is_arrow = |pair: &[TokenTree]| pair[0].to_string() == "-" && pair[1].to_string() == ">";
    let Some(arrow) = signature.windows(2).position(is_arrow) else { return "()".to_owned() };
    let output = signature[arrow + 2..].iter().take_while(|token| token.to_string() != "where");
    output.cloned().collect::<TokenStream>().to_string()
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
