//! Puts changes that cargo-mutants knows into the sources, all at once, each behind a switch that
//! is read when a program runs: one build then serves all of them. `scripts/mutants` runs it.
//!
//! usage: mutant-switches CHANGES TREE
//!
//! CHANGES is what `cargo mutants --list --json` prints, or some of it; switches are numbered in
//! its order, from 0. Those with a member `apart` are left out. Each is between the comments
//! `/*<7*/` and `/*7>*/`. Prints the numbers of those that it put in. An operator keeps its
//! operands, also where the text of a change would group them otherwise.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::{env, fs};

use serde_json::Value;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The text that replaces a range of a file.
#[derive(Clone)]
struct Edit {
    number: usize,
    range: Range<usize>,
    pieces: Vec<Piece>,
}

/// Text with `ON` for the switch and `NEW` for the replacement; or a range that is kept, in which
/// other changes may lie.
#[derive(Clone)]
enum Piece {
    Text(String),
    Kept(Range<usize>),
}

/// What changes can be applied to, by genre, line and column.
#[derive(Default)]
struct Places {
    all: HashMap<(String, u64, u64), Vec<Edit>>,
    /// The `const` of the function around it: a switch is read when a program runs, so it goes.
    constness: Option<Range<usize>>,
}

fn range(spanned: &impl Spanned) -> Range<usize> {
    spanned.span().byte_range()
}

impl Places {
    /// A place whose range becomes what `template` says: `1`, `2` and so on are the kept ranges.
    fn add(
        &mut self,
        genre: &str,
        at: &impl Spanned,
        range: Range<usize>,
        template: &str,
        kept: &[Range<usize>],
    ) {
        let pieces = template.split('|').map(|piece| match piece.parse::<usize>() {
            Ok(number) => Piece::Kept(kept[number - 1].clone()),
            Err(_) => Piece::Text(piece.to_owned()),
        });
        let mut edits = vec![Edit { number: 0, range, pieces: pieces.collect() }];
        let no_const = |range| Edit { number: 0, range, pieces: vec![] };
        edits.extend(self.constness.clone().map(no_const));
        let start = at.span().start();
        self.all.insert((genre.to_owned(), start.line as u64, start.column as u64 + 1), edits);
    }

    fn enter(&mut self, signature: &syn::Signature, block: &syn::Block) {
        self.constness = signature.constness.map(|token| token.span.byte_range());
        // All that a function returns is of one type, also where the type has no name.
        let unnamed = matches!(&signature.output, syn::ReturnType::Type(_, returned)
            if matches!(**returned, syn::Type::ImplTrait(_)));
        if let (Some(first), false) = (block.stmts.first(), unnamed) {
            let begin = block.brace_token.span.open().byte_range().end;
            self.add("FnValue", first, begin..begin, " if ON { return NEW; }", &[]);
        }
    }
}

impl<'ast> Visit<'ast> for Places {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.enter(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.enter(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.enter(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        // A condition with `let` is no expression, and none of its operators can be another one.
        if ![&binary.left, &binary.right].iter().any(|side| matches!(***side, syn::Expr::Let(_))) {
            let (left, right) = (range(&binary.left), range(&binary.right));
            let all = left.start..right.end;
            let template = "(if ON { (|1|) NEW (|2|) } else { |3| })";
            self.add("BinaryOperator", &binary.op, all.clone(), template, &[left, right, all]);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let (all, operand) = (range(unary), range(&unary.expr));
        let template = "(if ON { |1| } else { |2| })";
        self.add("UnaryOperator", &unary.op, all.clone(), template, &[operand, all]);
        visit::visit_expr_unary(self, unary);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            let all = range(guard);
            self.add("MatchArmGuard", guard, all.clone(), "if ON { NEW } else { |1| }", &[all]);
        }
        let end = range(&arm.pat).end;
        self.add("MatchArm", arm, end..end, " if !ON", &[]);
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, expression: &'ast syn::ExprStruct) {
        for field in &expression.fields {
            if let (Some(base), syn::Member::Named(name)) = (&expression.rest, &field.member) {
                let (all, base, value) = (range(field), range(base), range(&field.expr));
                let template = format!("{name}: if ON {{ (|1|).{name} }} else {{ |2| }}");
                self.add("StructField", field, all, &template, &[base, value]);
            }
        }
        visit::visit_expr_struct(self, expression);
    }
}

/// The text of a range with the edits inside, but those at the indices in `done`, which enclose it.
fn rendered(source: &str, range: Range<usize>, edits: &[Edit], done: &mut Vec<usize>) -> String {
    let (mut text, mut at, enclosing) = (String::new(), range.start, done.len());
    // The first edit in the rest, and of those that begin there the longest.
    let next = |at: usize, done: &[usize]| {
        let inside = |edit: &Edit| at <= edit.range.start && edit.range.end <= range.end;
        let left = (0..edits.len()).filter(|index| inside(&edits[*index]) && !done.contains(index));
        left.min_by_key(|index| (edits[*index].range.start, usize::MAX - edits[*index].range.end))
    };
    while let Some(index) = next(at, done) {
        let Edit { number, range, pieces } = &edits[index];
        done.push(index);
        text += &format!("{}/*<{number}*/", &source[at..range.start]);
        for piece in pieces {
            text += &match piece {
                Piece::Text(text) => text.clone(),
                Piece::Kept(kept) => rendered(source, kept.clone(), edits, done),
            };
        }
        text += &format!("/*{number}>*/");
        at = range.end;
    }
    done.truncate(enclosing);
    text + &source[at..range.end]
}

/// The edits for one change, if a switch can be put there.
fn edits_for(number: usize, change: &Value, places: &Places) -> Option<Vec<Edit>> {
    let start = &change["span"]["start"];
    let genre = change["genre"].as_str()?.to_owned();
    let place = (genre, start["line"].as_u64()?, start["column"].as_u64()?);
    let mut edits = places.all.get(&place).filter(|_| change["apart"].is_null())?.clone();
    for edit in &mut edits {
        edit.number = number;
        for piece in &mut edit.pieces {
            if let Piece::Text(text) = piece {
                let new = text.replace("ON", &format!("crate::mutant_switch::on({number})"));
                *text = new.replace("NEW", change["replacement"].as_str()?);
            }
        }
    }
    Some(edits)
}

fn main() {
    let [_, list, tree] = &env::args().collect::<Vec<_>>()[..] else { panic!("two arguments") };
    let list = fs::read_to_string(list).expect("the list can be read");
    let changes: Vec<Value> = serde_json::from_str(&list).expect("the list is JSON");
    let mut files = BTreeMap::<&str, Vec<usize>>::new();
    for (number, change) in changes.iter().enumerate() {
        files.entry(change["file"].as_str().expect("it is in a file")).or_default().push(number);
    }
    for (file, numbers) in files {
        let path = format!("{tree}/{file}");
        let source = fs::read_to_string(&path).expect("the file can be read");
        let mut places = Places::default();
        places.visit_file(&syn::parse_file(&source).expect("the file is Rust"));
        let mut all = Vec::new();
        for number in numbers {
            let Some(edits) = edits_for(number, &changes[number], &places) else { continue };
            all.extend(edits);
            println!("{number}");
        }
        let text = rendered(&source, 0..source.len(), &all, &mut Vec::new());
        fs::write(&path, text).expect("the file can be written");
    }
}
