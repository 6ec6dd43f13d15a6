//! `#[derive(Element)]`: a record becomes `bytemuck::Pod`, after checks that it may be.

use proc_macro::{Delimiter, Group, Span, TokenStream, TokenTree};

/// A field: its name or number, and the tokens of its type.
struct Field {
    name: String,
    span: Span,
    of_type: TokenStream,
}

/// A record, as far as the checks need it.
struct Record {
    name: String,
    is_transparent: bool,
    fields: Vec<Field>,
}

pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = input.into_iter().collect();
    let words: Vec<String> = tokens.iter().map(TokenTree::to_string).collect();
    let keyword = words.iter().position(|word| matches!(&**word, "struct" | "enum" | "union"));
    let keyword = keyword.expect("a derive is above a struct, an enum or a union");
    let name = &words[keyword + 1];
    if words.get(keyword + 2).is_some_and(|word| word == "<") {
        return crate::error(format!(
            "`Element` is derived for structs without generic parameters, since their padding \
             depends on them, and `{name}` has some: write a struct for each type that you use"
        ));
    }
    let mut output = match Record::parse(&tokens, keyword) {
        Ok(record) => record.checks(),
        Err(message) => crate::error(message),
    };
    // After an error the implementations spare the program others that would follow from it.
    output.extend(generated(
        &format!(
            "#[automatically_derived]
            // SAFETY: each field is an element (`Field::check`), for which zeros are valid.
            unsafe impl ::resident::bytemuck::Zeroable for {name} {{}}
            #[automatically_derived]
            // SAFETY: as above, and no byte is between or behind the fields (`check_places`,
            // `check_size`), whose layout is fixed (`Record::parse`).
            unsafe impl ::resident::bytemuck::Pod for {name} {{}}"
        ),
        Span::call_site(),
    ));
    output
}

impl Record {
    /// Parses an item whose keyword has this index.
    fn parse(tokens: &[TokenTree], keyword: usize) -> Result<Self, String> {
        let [kind, name] = [keyword, keyword + 1].map(|index| tokens[index].to_string());
        if kind != "struct" {
            let article = if kind == "enum" { "an" } else { "a" };
            return Err(format!(
                "`Element` is derived for structs, and `{name}` is {article} {kind}, of which not \
                 all bytes are valid: use a number in the record, such as `u32`, and convert it"
            ));
        }
        let is_transparent = match representations(&tokens[..keyword]) {
            found if found.iter().any(|word| word == "C") => false,
            found if found.iter().any(|word| word == "transparent") => true,
            _ => {
                return Err(format!(
                    "`{name}` has no fixed layout, which devices need: write `#[repr(C)]` above it"
                ));
            }
        };
        let fields = match tokens.get(keyword + 2) {
            Some(TokenTree::Group(body)) => fields(body),
            // A bound may have groups too, which are no fields.
            Some(TokenTree::Ident(_)) => {
                return Err(format!(
                    "`Element` is derived for structs without a `where` clause before the fields, \
                     and `{name}` has one: leave it out, since it cannot depend on a parameter"
                ));
            }
            _ => Vec::new(),
        };
        Ok(Self { fields, name, is_transparent })
    }

    fn checks(&self) -> TokenStream {
        let mut checks: TokenStream = self.fields.iter().flat_map(Field::check).collect();
        checks.extend(if self.is_transparent { self.check_size() } else { self.check_places() });
        checks
    }

    /// The fields of a `repr(C)` struct are in order, so that each begins where the last one ends.
    fn check_places(&self) -> TokenStream {
        let name = &self.name;
        let mut output = TokenStream::new();
        let mut ends_at = generated("0", Span::call_site());
        for (index, field) in self.fields.iter().enumerate() {
            let (place, of_type) = (place(name, field), &field.of_type);
            if let Some(before) = index.checked_sub(1).map(|index| &self.fields[index].name) {
                output.extend(self.assert_equal(
                    generated(&place, field.span),
                    ends_at,
                    &format!("between `{before}` and `{}`", field.name),
                    field.span,
                ));
            }
            ends_at = generated(&format!("{place} + ::core::mem::size_of::<"), field.span);
            ends_at.extend(of_type.clone());
            ends_at.extend(generated(">()", field.span));
        }
        if let Some(last) = self.fields.last() {
            let size = generated(&format!("::core::mem::size_of::<{name}>()"), last.span);
            let place = format!("after `{}`", last.name);
            output.extend(self.assert_equal(size, ends_at, &place, last.span));
        }
        output
    }

    /// All fields of a transparent struct but one have no size, and their order is not fixed.
    fn check_size(&self) -> TokenStream {
        let span = Span::call_site();
        let size = generated(&format!("::core::mem::size_of::<{}>()", self.name), span);
        let mut sum = generated("0", span);
        for field in &self.fields {
            sum.extend(generated("+ ::core::mem::size_of::<", span));
            sum.extend(field.of_type.clone());
            sum.extend(generated(">()", span));
        }
        self.assert_equal(size, sum, "in it", span)
    }

    fn assert_equal(
        &self,
        one: TokenStream,
        other: TokenStream,
        place: &str,
        span: Span,
    ) -> TokenStream {
        let message = format!(
            "`{}` has padding {place}, whose bytes have no value: reorder the fields, or add a \
             field for the gap, such as `gap: [u8; 4]`",
            self.name
        );
        let mut arguments = one;
        arguments.extend(generated("==", span));
        arguments.extend(other);
        arguments.extend(generated(&format!(", {message:?}"), span));
        let mut output = generated("const _: () = ::core::assert!", span);
        output.extend([group(Delimiter::Parenthesis, arguments, span)]);
        output.extend(generated(";", span));
        output
    }
}

impl Field {
    /// The type is an element.
    fn check(&self) -> TokenStream {
        let mut output = generated("const _: () = ::resident::internal::is_element::<", self.span);
        output.extend(self.of_type.clone());
        output.extend(generated(">();", self.span));
        output
    }
}

fn place(record: &str, field: &Field) -> String {
    format!("::core::mem::offset_of!({record}, {})", field.name)
}

/// What the attributes `repr` of an item say.
fn representations(attributes: &[TokenTree]) -> Vec<String> {
    let mut found = Vec::new();
    for attribute in attributes {
        let TokenTree::Group(attribute) = attribute else { continue };
        let mut inner = attribute.stream().into_iter();
        if inner.next().is_some_and(|word| word.to_string() == "repr")
            && let Some(TokenTree::Group(list)) = inner.next()
        {
            found.extend(list.stream().into_iter().map(|word| word.to_string()));
        }
    }
    found
}

/// The fields in braces or, without names, in parentheses.
fn fields(body: &Group) -> Vec<Field> {
    let has_names = body.delimiter() == Delimiter::Brace;
    let field = |(index, tokens): (usize, Vec<TokenTree>)| {
        // Attributes and visibility are before the name, and have no colon outside of groups.
        let colon = tokens.iter().position(|token| has_names && token.to_string() == ":");
        let of_type = colon.map_or_else(|| without_attributes(&tokens), |at| &tokens[at + 1..]);
        let name = colon.map(|at| &tokens[at - 1]);
        let span = name.or(of_type.first()).map_or_else(Span::call_site, TokenTree::span);
        let name = name.map_or_else(|| index.to_string(), TokenTree::to_string);
        Field { name, span, of_type: of_type.iter().cloned().collect() }
    };
    split_at_commas(body.stream()).into_iter().enumerate().map(field).collect()
}

/// The type of a field without a name: what follows attributes and visibility.
fn without_attributes(mut tokens: &[TokenTree]) -> &[TokenTree] {
    loop {
        tokens = match tokens {
            [TokenTree::Punct(hash), TokenTree::Group(_), rest @ ..] if hash.as_char() == '#' => {
                rest
            }
            [TokenTree::Ident(word), TokenTree::Group(place), rest @ ..]
                if word.to_string() == "pub"
                    && place.delimiter() == Delimiter::Parenthesis
                    && !rest.is_empty() =>
            {
                rest
            }
            [TokenTree::Ident(word), rest @ ..] if word.to_string() == "pub" => rest,
            // The visibility that a macro was given, `$visibility:vis`.
            [TokenTree::Group(given), rest @ ..]
                if given.delimiter() == Delimiter::None
                    && !rest.is_empty()
                    && is_visibility(given) =>
            {
                rest
            }
            _ => return tokens,
        };
    }
}

fn is_visibility(given: &Group) -> bool {
    given.stream().into_iter().next().is_none_or(|word| word.to_string() == "pub")
}

/// The parts between commas that are not within `<` and `>`. The `>` of `->` closes nothing.
fn split_at_commas(stream: TokenStream) -> Vec<Vec<TokenTree>> {
    let (mut parts, mut depth, mut is_arrow) = (vec![Vec::new()], 0_usize, false);
    for token in stream {
        let sign = match &token {
            TokenTree::Punct(sign) => sign.as_char(),
            _ => ' ',
        };
        match sign {
            ',' if depth == 0 => parts.push(Vec::new()),
            _ => {
                depth = match sign {
                    '<' => depth + 1,
                    '>' if !is_arrow => depth.saturating_sub(1),
                    _ => depth,
                };
                parts.last_mut().expect("there is one").push(token);
            }
        }
        is_arrow = sign == '-';
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Generated code, which messages show at a place of the program.
fn generated(text: &str, place: Span) -> TokenStream {
    at_place(text.parse().expect("the text of this crate can be parsed"), place)
}

fn at_place(stream: TokenStream, place: Span) -> TokenStream {
    let moved = |token| match token {
        TokenTree::Group(inner) => group(inner.delimiter(), at_place(inner.stream(), place), place),
        mut token => {
            token.set_span(Span::call_site().located_at(place));
            token
        }
    };
    stream.into_iter().map(moved).collect()
}

fn group(delimiter: Delimiter, inner: TokenStream, place: Span) -> TokenTree {
    let mut group = Group::new(delimiter, inner);
    group.set_span(Span::call_site().located_at(place));
    TokenTree::Group(group)
}
