//! What calls say: a value whose meaning the call does not show is an enum or a struct with names.

use crate::sources::{Source, none, sources};
use crate::tokens::{group_len, tokens_of};

/// Functions that may take a `bool`: setters of a flag, and those of a C interface.
const BOOL_FUNCTIONS_MAX: usize = 17;
/// Functions that may take a tuple: those of shapes, such as `Grid::cover_2d`.
const TUPLE_FUNCTIONS_MAX: usize = 12;

/// A function outside tests, with the tokens of each parameter's type.
struct Signature {
    place: String,
    types: Vec<Vec<String>>,
}

fn signatures(source: &Source) -> Vec<Signature> {
    let tokens = tokens_of(&source.text);
    let starts = (0..tokens.len()).filter(|&at| tokens[at] == "fn");
    let signature = |at: usize| {
        let name = tokens.get(at + 1)?;
        let open = at + 2 + generics_len(&tokens[at + 2..]);
        (tokens.get(open)? == "(").then(|| Signature {
            place: format!("{}: {name}", source.path),
            types: types(&tokens[open + 1..open + group_len(&tokens[open..]) - 1]),
        })
    };
    starts.filter_map(signature).collect()
}

/// The length of the generic parameters in angle brackets at the start of the tokens, if any.
fn generics_len(tokens: &[String]) -> usize {
    if tokens.first().is_none_or(|first| first != "<") {
        return 0;
    }
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        depth += angle(tokens, at, token);
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// What the token adds to the depth of angle brackets; the `>` of an arrow is none.
fn angle(tokens: &[String], at: usize, token: &str) -> i32 {
    let is_arrow = at > 0 && tokens[at - 1] == "-";
    match token {
        "<" => 1,
        ">" if !is_arrow => -1,
        _ => 0,
    }
}

/// The types of parameters that are separated by commas, without `self`, references and `mut`.
fn types(parameters: &[String]) -> Vec<Vec<String>> {
    let (mut split, mut depth, mut at) = (vec![Vec::new()], 0, 0);
    while at < parameters.len() {
        let token = &parameters[at];
        depth += angle(parameters, at, token);
        if token == "," && depth == 0 {
            split.push(Vec::new());
        }
        let len =
            if matches!(token.as_str(), "(" | "[") { group_len(&parameters[at..]) } else { 1 };
        split.last_mut().expect("one is there").extend_from_slice(&parameters[at..at + len]);
        at += len;
    }
    split.iter().filter_map(|one| type_of(one)).collect()
}

fn type_of(parameter: &[String]) -> Option<Vec<String>> {
    let colon = parameter.iter().position(|token| token == ":")?;
    let borrowed = |token: &&String| matches!(token.as_str(), "&" | "mut");
    Some(parameter[colon + 1..].iter().skip_while(borrowed).cloned().collect())
}

/// The places of the functions with a parameter whose type is like this.
fn places_with(is_like: impl Fn(&[String]) -> bool) -> Vec<String> {
    let all = sources(&["src", "crates", "mpi", "macros/src", "report/src"]);
    let library = all.iter().filter(|source| !source.is_test());
    let found = library.flat_map(signatures).filter(|one| one.types.iter().any(|ty| is_like(ty)));
    found.map(|one| one.place).collect()
}

#[test]
fn few_functions_take_a_bool() {
    let places = places_with(|ty| ty == ["bool"]);
    assert!(places.len() <= BOOL_FUNCTIONS_MAX, "{}:\n{}", places.len(), places.join("\n"));
}

#[test]
fn few_functions_take_a_tuple() {
    let is_tuple = |ty: &[String]| {
        ty.first().is_some_and(|first| first == "(")
            && ty.iter().any(|token| token == ",")
            && group_len(ty) == ty.len()
    };
    let places = places_with(is_tuple);
    assert!(places.len() <= TUPLE_FUNCTIONS_MAX, "{}:\n{}", places.len(), places.join("\n"));
}

/// `if` and `else` say it shorter than a match with two arms.
#[test]
fn no_match_is_on_a_bool() {
    let mut found = Vec::new();
    for source in sources(&["src", "crates", "mpi", "macros/src", "report/src"]) {
        let tokens = tokens_of(&source.text);
        let two_arms = (1..tokens.len()).filter(|&at| is_match_on_a_bool(&tokens[at..]));
        found.extend(two_arms.map(|_| source.path.clone()));
    }
    none(found);
}

/// Whether the tokens are a block with the arms `true =>` and `false =>` only.
fn is_match_on_a_bool(block: &[String]) -> bool {
    let starts = |with: [&str; 4]| block.iter().zip(with).filter(|(a, b)| *a == b).count() == 4;
    starts(["{", "true", "=", ">"]) || starts(["{", "false", "=", ">"])
}

#[test]
fn parameters_are_found_behind_generics_and_patterns() {
    let text = "fn a<F: Fn(bool) -> bool>(&self, f: F, (x, y): (u8, u8), mut z: bool) {}
                fn b(each: &mut impl FnMut((u8, bool)), c: &[(u8, u8)], d: &(u8, bool)) {}";
    let source = Source { path: "src/a.rs".to_owned(), text: text.to_owned() };
    let found = signatures(&source).into_iter().map(|one| one.types);
    let types: Vec<Vec<String>> =
        found.map(|types| types.into_iter().map(|ty| ty.concat()).collect()).collect();
    assert_eq!(
        types,
        [vec!["F", "(u8,u8)", "bool"], vec!["implFnMut((u8,bool))", "[(u8,u8)]", "(u8,bool)"],]
    );
}
