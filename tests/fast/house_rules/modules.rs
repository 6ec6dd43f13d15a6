//! The modules of the crate: the items that each defines, imports and names, and the file that
//! defines each name.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens::{group_len, item_len, tokens_of};

type Path = Vec<String>;

/// The modules by their paths, and their files.
pub(crate) struct Crate {
    /// The folder of `lib.rs`.
    folder: String,
    modules: BTreeMap<Path, Module>,
}

/// One module, inline or in its own file.
#[derive(Default)]
struct Module {
    file: String,
    definitions: BTreeSet<String>,
    imports: Vec<Import>,
    /// All tokens except imports and the contents of inline modules.
    body: Vec<String>,
}

/// One name that a `use` imports; `*` for all names.
struct Import {
    name: String,
    path: Path,
    is_exported: bool,
}

/// The target of a path.
enum Target {
    Module(Path),
    /// An item that this file defines.
    Item(String),
}

impl Crate {
    /// Reads the crate of which a folder has the sources.
    pub(crate) fn read(folder: String, text_of: &impl Fn(&str) -> Option<String>) -> Self {
        let root = format!("{folder}/lib.rs");
        let mut read = Self { folder, modules: BTreeMap::new() };
        read.read_module(Path::new(), &root, text_of);
        read
    }

    /// Reads the module of a file, and the modules of the files that it declares.
    fn read_module(&mut self, path: Path, file: &str, text_of: &impl Fn(&str) -> Option<String>) {
        let Some(text) = text_of(file) else { return };
        let declared = self.add(path, file, &tokens_of(&text));
        for path in declared {
            let folder = format!("{}/{}", self.folder, path.join("/"));
            for file in [format!("{folder}.rs"), format!("{folder}/mod.rs")] {
                self.read_module(path.clone(), &file, text_of);
            }
        }
    }

    /// Adds a module; returns the paths of the modules that it declares by `mod name;`.
    fn add(&mut self, path: Path, file: &str, tokens: &[String]) -> Vec<Path> {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        let (mut declared, mut at) = (Vec::new(), 0);
        while at < tokens.len() {
            let item = &tokens[at..at + item_len(&tokens[at..]).max(1)];
            at += item.len();
            let inner = without_prefix(item);
            let is_exported = inner.len() < item.len() && item.iter().any(|word| word == "pub");
            match inner {
                [word, ..] if word == "use" => {
                    import(&inner[1..inner.len() - 1], &[], is_exported, &mut module.imports);
                }
                [word, name, end, ..] if word == "mod" => {
                    let child = [path.as_slice(), std::slice::from_ref(name)].concat();
                    if end == "{" {
                        declared.extend(self.add(child, file, &inner[3..inner.len() - 1]));
                    } else {
                        declared.push(child);
                    }
                }
                _ => {
                    module.definitions.extend(defined_name(inner));
                    module.take_body(item);
                }
            }
        }
        self.modules.insert(path, module);
        declared
    }

    /// For each file, the other files that define the items it refers to.
    pub(crate) fn edges(&self) -> BTreeMap<&str, BTreeSet<String>> {
        let mut edges: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (path, module) in &self.modules {
            let named = self.named_files(path, module).into_iter();
            edges
                .entry(&module.file)
                .or_default()
                .extend(named.filter(|file| *file != module.file));
        }
        edges
    }

    fn named_files(&self, path: &Path, module: &Module) -> BTreeSet<String> {
        let words: BTreeSet<&String> = module.body.iter().collect();
        let is_used = |import: &&Import| !import.is_exported || words.contains(&import.name);
        let imported = module.imports.iter().filter(is_used).map(|import| import.path.clone());
        let all_of = module.imports.iter().filter(|import| import.name == "*");
        let by_star = all_of.flat_map(|import| {
            words.iter().map(|word| [import.path.as_slice(), &[(*word).clone()]].concat())
        });
        let paths = paths_in(&module.body).chain(imported).chain(by_star);
        paths
            .filter_map(|named| match self.resolve(path, &named, 0) {
                Some(Target::Item(file)) => Some(file),
                _ => None,
            })
            .collect()
    }

    fn resolve(&self, from: &Path, path: &[String], depth: usize) -> Option<Target> {
        if depth > 16 {
            return None;
        }
        let mut target = Target::Module(from.clone());
        for (index, word) in path.iter().enumerate() {
            let Target::Module(module) = &target else { return Some(target) };
            target = match word.as_str() {
                "crate" => Target::Module(Vec::new()),
                "self" if index == 0 => Target::Module(module.clone()),
                "super" => Target::Module(module[..module.len().checked_sub(1)?].to_vec()),
                word => self.look_up(module, word, depth)?,
            };
        }
        Some(target)
    }

    fn look_up(&self, path: &Path, name: &str, depth: usize) -> Option<Target> {
        let module = self.modules.get(path)?;
        let child = [path.as_slice(), &[name.to_owned()]].concat();
        if self.modules.contains_key(&child) {
            return Some(Target::Module(child));
        }
        if module.definitions.contains(name) {
            return Some(Target::Item(module.file.clone()));
        }
        let named = module.imports.iter().filter(|import| import.name == name);
        let mut named = named.filter_map(|import| self.resolve(path, &import.path, depth + 1));
        named.next().or_else(|| {
            let stars = module.imports.iter().filter(|import| import.name == "*");
            let mut found = stars.filter_map(|import| {
                let inner = [import.path.as_slice(), &[name.to_owned()]].concat();
                let Some(Target::Module(_)) = self.resolve(path, &import.path, depth + 1) else {
                    return None;
                };
                self.resolve(path, &inner, depth + 1)
            });
            found.next()
        })
    }
}

impl Module {
    /// Adds the words of an item, and the imports inside its functions.
    fn take_body(&mut self, item: &[String]) {
        let mut at = 0;
        while at < item.len() {
            if item[at] == "use" {
                let len = item[at..].iter().position(|word| word == ";").unwrap_or(item.len() - at);
                import(&item[at + 1..at + len], &[], false, &mut self.imports);
                at += len;
            } else {
                self.body.push(item[at].clone());
                at += 1;
            }
        }
    }
}

/// An item without its attributes and its visibility.
fn without_prefix(mut item: &[String]) -> &[String] {
    loop {
        item = match item {
            [word, ..] if word == "#" => {
                let sign = usize::from(item.get(1).is_some_and(|next| next == "!"));
                &item[1 + sign + group_len(&item[1 + sign..])..]
            }
            [word, next, ..] if word == "pub" && next == "(" => &item[1 + group_len(&item[1..])..],
            [word, ..] if word == "pub" => &item[1..],
            _ => return item,
        };
    }
}

fn defined_name(item: &[String]) -> Option<String> {
    const KINDS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];
    const QUALIFIERS: [&str; 5] = ["unsafe", "async", "extern", "const", "default"];
    if let [word, _, name, ..] = item
        && word == "macro_rules"
    {
        return Some(name.clone());
    }
    let mut words = item.iter().peekable();
    while let Some(word) = words.next() {
        let next = words.peek()?;
        let is_qualifier = QUALIFIERS.contains(&word.as_str())
            && (KINDS.contains(&next.as_str()) || QUALIFIERS.contains(&next.as_str()));
        if is_qualifier {
            continue;
        }
        return KINDS.contains(&word.as_str()).then(|| (*next).clone());
    }
    None
}

/// The names that the tree of a `use` imports.
fn import(tree: &[String], before: &[String], is_exported: bool, found: &mut Vec<Import>) {
    let mut path = before.to_vec();
    let words = tree.iter().enumerate().filter(|(_, word)| *word != "::");
    for (at, word) in words {
        match word.as_str() {
            "{" => {
                let inner = &tree[at + 1..tree.len() - 1];
                for branch in branches(inner) {
                    import(branch, &path, is_exported, found);
                }
                return;
            }
            "as" => {
                let name = tree[at + 1].clone();
                return found.push(Import { name, path, is_exported });
            }
            "*" => return found.push(Import { name: "*".to_owned(), path, is_exported }),
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
    }
    if let Some(name) = path.last().cloned() {
        found.push(Import { name, path, is_exported });
    }
}

/// The branches of a list in braces.
fn branches(list: &[String]) -> Vec<&[String]> {
    let mut depth = 0;
    list.split(|word| {
        depth += i32::from(word == "{") - i32::from(word == "}");
        depth == 0 && word == ","
    })
    .filter(|branch| !branch.is_empty())
    .collect()
}

/// The paths of two and more words in a body.
fn paths_in(body: &[String]) -> impl Iterator<Item = Path> {
    let starts = (0..body.len()).filter(|at| {
        let follows_path = *at > 0 && (body[at - 1] == "::" || body[at - 1] == ".");
        is_word(&body[*at]) && !follows_path && body.get(at + 1).is_some_and(|next| next == "::")
    });
    starts.map(|at| {
        let mut path = vec![body[at].clone()];
        let mut rest = &body[at + 1..];
        while let [sign, word, others @ ..] = rest
            && sign == "::"
            && is_word(word)
        {
            path.push(word.clone());
            rest = others;
        }
        path
    })
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
