//! The guide: that its pages are listed wherever readers look for them, that the names of other
//! libraries are not called missing where this one has them, and that messages are quoted as the
//! sources have them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::documents::{files, items};
use crate::sources::{none, root, sources};

const FOLDER: &str = "docs/guide";

fn text_of(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|fault| panic!("{path}: {fault}"))
}

/// The pages below the folder of the guide: their paths there.
fn pages() -> Vec<String> {
    let below = |path: &Path| path.strip_prefix(root().join(FOLDER)).ok().map(Path::to_owned);
    let pages = files(&["docs/guide/*.md"]).into_iter().filter_map(|path| below(&path));
    let pages = pages.map(|page| page.to_string_lossy().replace('\\', "/"));
    pages.filter(|page| page != "README.md").collect()
}

/// The module that has a page: the first one after the page's path in `src/guide.rs`.
fn module_of<'a>(page: &str, guide: &'a str) -> Option<&'a str> {
    let (_, rest) = guide.split_once(&format!("(\"../{FOLDER}/{page}\")"))?;
    rest.split_once("pub mod ")?.1.split_once(" {").map(|(name, _)| name)
}

/// Where a page is not listed.
fn missing_links(page: &str, guide: &str, listing: &str, front: &str) -> Vec<String> {
    let Some(module) = module_of(page, guide) else {
        return vec![format!("{page} is no module of src/guide.rs")];
    };
    let links = [
        ("docs/guide/README.md", listing.contains(&format!("]({page})"))),
        ("src/guide.rs", guide.contains(&format!("]({module})"))),
        ("the front page, src/lib.rs", front.contains(&format!("](guide::{module})"))),
    ];
    let missing = links.into_iter().filter(|(_, is_there)| !is_there);
    missing.map(|(place, _)| format!("{place} does not link to {page}")).collect()
}

#[test]
fn each_page_is_listed_in_the_guide_and_on_the_front_page() {
    let (guide, listing) = (text_of("src/guide.rs"), text_of("docs/guide/README.md"));
    let front = text_of("src/lib.rs");
    let pages = pages();
    assert!(pages.is_empty() || pages.len() > 15, "{pages:?}");
    none(pages.iter().flat_map(|page| missing_links(page, &guide, &listing, &front)).collect());
}

#[test]
fn a_page_without_links_is_found() {
    let guide = "//! [One](one)\n#[doc = include_str!(\"../docs/guide/one.md\")]\npub mod one {}";
    assert_eq!(missing_links("one.md", guide, "[One](one.md)", "[One](guide::one)").len(), 0);
    assert_eq!(missing_links("one.md", guide, "", "[One](guide::other)").len(), 2);
    assert_eq!(missing_links("two.md", guide, "[Two](two.md)", "[Two](guide::two)").len(), 1);
}

/// The first words of the front page are for the first minutes.
#[test]
fn the_front_page_is_short() {
    let front = text_of("src/lib.rs");
    let words = front.lines().filter_map(|line| line.strip_prefix("//!"));
    let count = words.flat_map(str::split_whitespace).count();
    assert!(count <= 1_200, "{count} words; a page of the guide has room for what is for later");
}

/// What says that there is no function for a name.
const SAYS_MISSING: [&str; 6] = [
    "a kernel",
    "[`Kernel`]",
    "not there",
    "on the host",
    "make the array with",
    "cudarc's wrappers",
];

/// Names that `ops` and arrays have under another one.
const OTHER_NAMES: [(&str, &str); 15] = [
    ("[mask]", "compress"),
    ("arange", "range"),
    ("astype", "cast"),
    ("choose", "select"),
    ("clip", "clamp"),
    ("cumprod", "cumulative_product"),
    ("cumsum", "cumulative_sum"),
    ("extract", "compress"),
    ("nonzero", "compress"),
    ("norm", "norm_l2"),
    ("prod", "product"),
    ("put", "scatter"),
    ("random", "random_uniform"),
    ("sparse", "csr_matvec"),
    ("take", "gather"),
];

/// Names that mean something else in other libraries: `view(dtype)` reinterprets elements.
const HOMONYMS: [&str; 1] = ["view"];

/// The functions of `ops`, and the methods of arrays and their views.
fn public_functions() -> BTreeSet<String> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let name = |rest: &str| rest.chars().take_while(|c| is_of_name(*c)).collect::<String>();
    let methods = sources(&["src/array", "src/ops"])
        .into_iter()
        .flat_map(|source| source.text.split("pub fn ").skip(1).map(name).collect::<Vec<_>>());
    let operations = text_of("src/ops/mod.rs");
    let exported = operations.split("pub use ").skip(1).filter_map(|rest| rest.split_once(';'));
    let operations = exported.flat_map(|(names, _)| names.split(|c| !is_of_name(c)));
    methods.chain(operations.map(str::to_owned)).filter(|name| !name.is_empty()).collect()
}

/// The name of another library without its module, object and arguments: `sort` of `d.sort()`.
fn last_segment(word: &str) -> &str {
    let bracket = word.find("[mask]").filter(|at| word[*at..].len() == "[mask]".len());
    let Some(bracket) = bracket else {
        let name = word.split(['(', '[', ' ']).next().unwrap_or(word);
        return name.rsplit(['.', ':']).next().unwrap_or(name);
    };
    &word[bracket..]
}

/// The names of a list's item that it calls missing, although there is a function for them.
fn wrongly_missing(item: &str, there: &BTreeSet<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    let item = item.split_whitespace().collect::<Vec<_>>().join(" ");
    for (names, answer) in item.split(". ").filter_map(|sentence| sentence.split_once(": ")) {
        if !SAYS_MISSING.iter().any(|words| answer.contains(words)) {
            continue;
        }
        for word in names.split('`').skip(1).step_by(2) {
            let name = last_segment(word);
            let other = OTHER_NAMES.iter().find(|(theirs, _)| *theirs == name);
            let ours = other.map_or(name, |(_, ours)| ours);
            if there.contains(ours) && !HOMONYMS.contains(&ours) {
                wrong.push(format!("`{word}` is `{ours}` here, and the list says: {answer}"));
            }
        }
    }
    wrong
}

#[test]
fn no_list_calls_a_name_missing_that_is_there() {
    let there = public_functions();
    for known in ["sort", "product", "csr_matvec", "compress", "unique", "fill"] {
        assert!(there.contains(known), "{known} is not in {there:?}");
    }
    let lists = ["numba", "cupy", "cudarc"]
        .map(|list| text_of(&format!("{FOLDER}/from_numba_cupy_and_cudarc/{list}.md")));
    let all = lists.iter().flat_map(|list| items(list));
    none(all.flat_map(|item| wrongly_missing(&item, &there)).collect());
}

#[test]
fn names_that_are_wrongly_called_missing_are_found() {
    let there = ["sort", "product", "compress", "view"].map(str::to_owned).into();
    let found = |item: &str| wrongly_missing(item, &there).len();
    for (item, count) in [
        ("- `d.sort()`, `prod`, `fft`: write a [`Kernel`], or do it on the host.", 2),
        ("- `cupy.where(m)`: [`ops::select`]. `d[mask]`, `d.take(i)`: write a  kernel.", 1),
        ("- `d.sort()`: [`ops::sort`]. `d.fft()`: not there.", 0),
        ("- `d.view(t)`: there is no reinterpretation; use a kernel.", 0),
        ("- `numpy.sort::sort(x)`: not there.", 1),
    ] {
        assert_eq!(found(item), count, "{item}");
    }
}

/// A source as its strings read: without the line ends that a backslash takes out of them.
fn with_joined_strings(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |joined, part| joined + part.trim_start())
}

/// The page has them for those who search for the words that they saw.
#[test]
fn messages_on_the_page_of_the_first_hour_are_those_of_the_library() {
    let page = text_of("docs/guide/first_hour_on_a_gpu.md");
    let table = page.split_once("# 8. Common errors").expect("the section").1;
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let messages: Vec<&str> = rows.map(|(message, _)| message).collect();
    assert!(messages.len() > 8, "{messages:?}");
    let all: String = sources(&["src", "crates"])
        .iter()
        .map(|source| with_joined_strings(&source.text))
        .collect();
    let fragments = messages.iter().flat_map(|message| message.split('…'));
    none(fragments.filter(|part| !all.contains(part.trim())).map(str::to_owned).collect());
}
